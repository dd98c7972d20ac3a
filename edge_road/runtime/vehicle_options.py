"""From the daemon's command line to the settings of a vehicle, now and whenever they are read again."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from edge_road.config import load_settings
from edge_road.errors import ConfigError, suggestion
from edge_road.runtime.bundle_choice import Outcome, accepted_bundle, read_choice, settle
from edge_road.runtime.rehearsal import refuse_in_production
from edge_road.runtime.vehicle import Vehicle
from edge_road.trust import DEVELOPMENT
from edge_road.workspace import newest_bundle

PLAIN_KINDS = ("synthetic", "pattern")
ADDRESSES = {"rtsp": "rtsp", "rtsps": "rtsp", "http": "mjpeg", "https": "mjpeg"}
"""scheme of an address -> kind of source"""


class VehicleOptions:
    """The vehicle file, changed by the command line; the bundle is found at once, so that it is one only."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._newest = Vehicle()
        """what the file named when it could be read last"""
        self._damaged: Path | None = None
        """a bundle that was accepted once"""

    def load(self) -> Vehicle:
        """As the daemon begins: a bundle that was accepted while it ran goes before the one that is named."""
        return self._with_bundle(self._named(), wish=None)

    def load_again(self) -> Vehicle:
        """The same, with the bundle that somebody wishes for."""
        vehicle = self._named()
        return self._with_bundle(vehicle, read_choice(vehicle.vehicle).wish)

    def bundle_wished(self) -> Path | None:
        return read_choice(self._newest.vehicle).wish

    def instead_of_damaged(self) -> Path | None:
        """What the vehicle file names goes in where the accepted bundle is damaged, unless it was refused."""
        named, choice = self._newest.bundle, read_choice(self._newest.vehicle)
        if named is None or named == choice.refused:
            return None
        self._damaged = choice.running
        return named

    def settle(self, outcome: Outcome) -> None:
        self._damaged = None
        settle(self._newest.vehicle, self._newest.bundle, outcome)

    def _with_bundle(self, vehicle: Vehicle, wish: Path | None) -> Vehicle:
        if vehicle.backend == "fake":
            return vehicle
        accepted = accepted_bundle(vehicle.vehicle, vehicle.bundle)
        bundle = wish or (None if accepted == self._damaged else accepted) or vehicle.bundle
        return vehicle.model_copy(update={"bundle": bundle or newest_bundle()})

    def _named(self) -> Vehicle:
        options, overrides = self._options, []
        if options.source is not None:
            overrides.append(f"source={source_table(options.source)}")
        if options.bundle is not None:
            overrides.append(f"bundle={json.dumps(str(options.bundle))}")
        if options.messages is not None:
            overrides.append(f"outputs=[{{path={json.dumps(options.messages)}}}]")
        if options.truth is not None:
            overrides.append(f"source.truth={json.dumps(options.truth)}")
        vehicle = load_vehicle(options.vehicle, overrides + options.overrides)
        refuse_in_production(vehicle, options.vehicle or "the command line")
        self._newest = vehicle
        return vehicle


def load_vehicle(path: Path | None, overrides: Sequence[str] = ()) -> Vehicle:
    """Without a file somebody tries a bundle out, with their own hands: it may go unsigned."""
    vehicle = load_settings(Vehicle, path, overrides)
    if path is None and "trust" not in vehicle.model_fields_set:
        return vehicle.model_copy(update={"trust": DEVELOPMENT})
    return vehicle


def source_table(text: str) -> str:
    """A kind, a camera, an address, or the path of a video or of a folder of pictures, as a TOML table."""
    kind, _, rest = text.partition(":")
    if text in PLAIN_KINDS:
        return _table(kind=text)
    if kind in ADDRESSES and rest.startswith("//"):
        return _table(kind=ADDRESSES[kind], url=text)
    if kind == "csi" and rest.isascii() and rest.isdigit():
        return _table(kind="csi", sensor=int(rest))
    if kind == "v4l2" or text.startswith("/dev/"):
        return _table(kind="v4l2", device=rest if kind == "v4l2" else text)
    return _file_table(text)


def _file_table(text: str) -> str:
    path = Path(text)
    if not text or not path.exists():
        raise ConfigError(
            "there is no such source",
            where="--source",
            got=text,
            expected="synthetic, a video file, a folder of pictures, v4l2:/dev/video0, csi:0, rtsp://... or http://...",
            fix=suggestion(text, PLAIN_KINDS),
        )
    return _table(kind="images" if path.is_dir() else "video", path=str(path.absolute()))


def _table(**values: str | int) -> str:
    """JSON's texts and numbers are TOML's too."""
    return "{" + ", ".join(f"{name}={json.dumps(value)}" for name, value in values.items()) + "}"
