"""Faults on purpose, named by the environment: refused in production, told in every message. Pure.

EDGE_ROAD_FAULT="camera.freeze@10-20,worker.hang@30": seconds of the machine's time since the daemon's start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import Field

from edge_road.errors import ConfigError, suggestion
from edge_road.runtime.evidence import Record
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_sources import CsiSource

VARIABLE = "EDGE_ROAD_FAULT"
REHEARSAL = "rehearsal"
"""the reason that every message carries while faults are armed"""
PLACES = {
    "camera.black": "the picture is black",
    "camera.white": "the picture is white",
    "camera.noise": "the picture is noise",
    "camera.freeze": "the same picture again and again",
    "camera.silence": "no picture comes",
    "camera.decode": "pictures come damaged",
    "camera.error": "the camera is gone, and cannot be opened",
    "camera.hang": "a call to the camera does not come back",
    "model.nan": "the model's answers are no numbers",
    "model.slow": "every answer takes half a second longer",
    "worker.crash": "the worker process ends, once",
    "worker.hang": "the worker process hangs, once",
    "supervisor.hang": "the supervisor says nothing: systemd's watchdog has to act",
}
ONCE = ("worker.crash", "worker.hang")
"""of what happens once, a worker that starts later knows nothing"""
LASTS_S = 5.0
MOST_FAULTS = 32
_FORM = re.compile(r"(?P<place>[a-z.]+)@(?P<begin>\d{1,6}(\.\d{1,3})?)(-(?P<end>\d{1,6}(\.\d{1,3})?))?")


class InjectedFault(Record):
    place: str
    begin_s: float
    end_s: float

    def __str__(self) -> str:
        return f"{self.place}@{self.begin_s:g}-{self.end_s:g}"


class Rehearsal(Record):
    """All faults of one daemon, and when its time began."""

    faults: tuple[InjectedFault, ...] = ()
    began_mono_ns: int = Field(default=0)

    def active(self, place: str, now_ns: int) -> bool:
        elapsed_s = (now_ns - self.began_mono_ns) / 1e9
        return any(f.place == place and f.begin_s <= elapsed_s < f.end_s for f in self.faults)

    def first_active(self, part: str, now_ns: int) -> str | None:
        """What is wrong with this part (`camera`, `model`, ...) now."""
        names = [f.place for f in self.faults if f.place.startswith(f"{part}.")]
        return next((name.partition(".")[2] for name in names if self.active(name, now_ns)), None)

    def still_to_come(self, now_ns: int) -> Rehearsal:
        """For a worker that takes over now."""
        elapsed_s = (now_ns - self.began_mono_ns) / 1e9
        kept = tuple(f for f in self.faults if f.place not in ONCE or f.begin_s >= elapsed_s)
        return self.model_copy(update={"faults": kept})


NO_REHEARSAL = Rehearsal()
MADE_UP = ("synthetic", "pattern")
"""kinds of source that show no road; a source that nobody chose is synthetic"""


def rehearsal_from(environment: Mapping[str, str], vehicle: Vehicle, now_ns: int) -> Rehearsal:
    text = environment.get(VARIABLE, "").strip()
    if not text:
        return NO_REHEARSAL
    if vehicle.production:
        raise ConfigError(
            "faults are not injected in production",
            where=VARIABLE,
            got=text[:200],
            fix=f"unset {VARIABLE}, or rehearse with production = false",
        )
    words = text.split(",")
    if len(words) > MOST_FAULTS:
        raise ConfigError(
            "too many faults", where=VARIABLE, got=len(words), expected=f"{MOST_FAULTS} at most"
        )
    return Rehearsal(faults=tuple(_parsed(word.strip()) for word in words), began_mono_ns=now_ns)


def refuse_in_production(vehicle: Vehicle, where: object) -> None:
    """What looks like a drive and is none: made-up pictures, a made-up model, another time."""
    source = vehicle.source
    found = [
        *(["backend = fake"] if vehicle.backend == "fake" else []),
        *([f"source.kind = {source.kind}"] if source.kind in MADE_UP else []),
        *(["source.pipeline = test"] if isinstance(source, CsiSource) and source.pipeline == "test" else []),
        *([f"speed = {vehicle.speed:g}"] if vehicle.speed != 1 else []),
    ]
    if vehicle.production and found:
        raise ConfigError(
            "a rehearsal is not let through in production",
            where=where,
            got=", ".join(found),
            expected="a camera, a model and the speed of a drive",
            fix="change these, or rehearse with production = false",
        )


def _parsed(word: str) -> InjectedFault:
    found = _FORM.fullmatch(word)
    if found is None or found["place"] not in PLACES:
        raise ConfigError(
            "not a fault that can be injected",
            where=VARIABLE,
            got=word[:200],
            expected="PLACE@BEGIN or PLACE@BEGIN-END in seconds, with PLACE of " + ", ".join(PLACES),
            fix=suggestion(word.partition("@")[0], PLACES),
        )
    begin_s = float(found["begin"])
    end_s = float(found["end"]) if found["end"] else begin_s + LASTS_S
    if end_s <= begin_s:
        raise ConfigError("a fault ends after it has begun", where=VARIABLE, got=word)
    return InjectedFault(place=found["place"], begin_s=begin_s, end_s=end_s)
