"""Kept frames on the disk: whole files only, never more than the cap, never older than allowed."""

from __future__ import annotations

import json
import logging
import os
import shutil
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2

from edge_road.clock import Clock, SystemClock, utc_text
from edge_road.frames import Frame, Image
from edge_road.preprocess import Crop
from edge_road.runtime.evidence import Evidence
from edge_road.runtime.frame_picking import KeepSettings, Picker, enclosing, most_probable
from edge_road.runtime.model import LoadedModel
from edge_road.runtime.perception import View
from edge_road.runtime.slot import NewestFrameSlot
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_inputs import VehicleInputs

log = logging.getLogger(__name__)

LEAST_FREE = 0.05
"""of the disk; the store never takes the last of it"""
SUFFIX = ".jpg"
LOOK_S = 0.5
MOST_LISTED = 200_000


@dataclass(frozen=True)
class Picked:
    pixels: Image
    evidence: Evidence
    reason: str
    model_digest: str
    inputs: VehicleInputs


class FrameStore:
    """Takes a picture at once and writes it in its own thread; a disk in trouble costs pictures only."""

    def __init__(self, settings: KeepSettings, part: Crop, clock: Clock | None = None) -> None:
        assert settings.folder is not None
        self._folder, self._settings, self._part = settings.folder, settings, part
        self._clock = clock or SystemClock()
        self._slot = NewestFrameSlot[Picked]()
        self._trouble = ""
        self._sizes: dict[str, int] | None = None
        self.kept = 0
        self._thread = threading.Thread(target=self._run, name="frame-store", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, picked: Picked) -> None:
        self._slot.put(picked)

    def _run(self) -> None:
        while True:
            picked = self._slot.take(LOOK_S)
            if picked is not None:
                self.keep(picked)

    def keep(self, picked: Picked) -> None:
        try:
            self._write(picked)
            self._trouble = ""
        except (OSError, cv2.error) as error:
            if str(error) != self._trouble:  # the same trouble is told once
                log.warning("a picture for the next training is lost: %s", error)
            self._trouble = str(error)

    def _write(self, picked: Picked) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        usage = shutil.disk_usage(self._folder)
        if usage.free < LEAST_FREE * usage.total:
            raise OSError(f"less than {LEAST_FREE:.0%} of the disk is free")
        pixels = picked.pixels if self._settings.whole else self._part.cut(picked.pixels)
        quality = (cv2.IMWRITE_JPEG_QUALITY, self._settings.quality)
        done, jpeg = cv2.imencode(SUFFIX, pixels[..., ::-1], quality)
        if not done:
            raise OSError("the picture cannot be encoded")
        name = self._name(picked)
        self._replace(name + ".json", json.dumps(self._facts(picked), allow_nan=False).encode())
        self._replace(name + SUFFIX, jpeg.tobytes())
        self.kept += 1
        self._sizes = {**self._listed(), name: self._size_of(name)}
        self._make_room(self._sizes)

    def _name(self, picked: Picked) -> str:
        stamp = utc_text(self._clock.utc()).replace(":", "").replace("-", "")
        return f"{stamp}-{picked.evidence.number:09d}-{picked.reason}-{most_probable(picked.evidence)}"

    def _facts(self, picked: Picked) -> dict[str, Any]:
        now_ns = picked.evidence.captured_mono_ns
        position = picked.inputs.position_at(now_ns) if self._settings.position else None
        return {
            "reason": picked.reason,
            "captured_utc": picked.evidence.captured_utc,
            "model_digest": picked.model_digest,
            "regions": [_finite(region.model_dump()) for region in picked.evidence.regions],
            "part": None if self._settings.whole else self._part.model_dump(),
            "speed_mps": picked.inputs.speed_mps(now_ns),
            **({"position": position.model_dump() if position else None} if self._settings.position else {}),
        }

    def _replace(self, name: str, content: bytes) -> None:
        """Whole or not at all; it need not survive a power cut, so nobody waits for the disk."""
        part = self._folder / f".{name}.part"
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(part, self._folder / name)

    def _listed(self) -> dict[str, int]:
        """Pictures and their sizes, oldest first; the folder is read once."""
        if self._sizes is None:
            for stray in self._folder.glob(".*.part"):
                stray.unlink(missing_ok=True)
            with os.scandir(self._folder) as entries:
                found = [entry.name for _, entry in zip(range(MOST_LISTED), entries)]
            names = sorted(name[: -len(SUFFIX)] for name in found if name.endswith(SUFFIX))
            self._sizes = {name: self._size_of(name) for name in names}
        return self._sizes

    def _size_of(self, name: str) -> int:
        return sum(path.stat().st_size for path in self._files(name) if path.is_file())

    def _files(self, name: str) -> list[Path]:
        return [self._folder / f"{name}{suffix}" for suffix in (SUFFIX, ".json")]

    def _make_room(self, sizes: dict[str, int]) -> None:
        total = sum(sizes.values())
        newest = next(reversed(sizes))
        for name in list(sizes):
            too_much = total > self._settings.most_mb * 2**20 and name != newest
            if not (too_much or self._is_old(name)):
                return
            for path in self._files(name):
                path.unlink(missing_ok=True)
            total -= sizes.pop(name)

    def _is_old(self, name: str) -> bool:
        try:
            made_s = (self._folder / f"{name}{SUFFIX}").stat().st_mtime
        except OSError:
            return True  # somebody took it away
        return self._clock.utc().timestamp() - made_s > self._settings.most_days * 86_400


def _finite(region: dict[str, Any]) -> dict[str, Any]:
    """JSON knows no NaN."""
    sane = [p if p == p and abs(p) < float("inf") else None for p in region["probabilities"]]
    distance = region["distance"]
    return {**region, "probabilities": sane, "distance": distance if abs(distance) < float("inf") else None}


class FrameKeeper:
    """Looks at every judged frame; without a folder it does nothing."""

    def __init__(self, vehicle: Vehicle, crops: Sequence[Crop]) -> None:
        self._picker = Picker(vehicle.keep, vehicle.decision)
        self._store = FrameStore(vehicle.keep, enclosing(crops)) if vehicle.keep.folder else None
        if self._store is not None:
            self._store.start()

    def look(self, view: View, evidence: Evidence, model: LoadedModel, inputs: VehicleInputs) -> None:
        if self._store is None or not isinstance(view.picture, Frame):
            return
        reason = self._picker.reason(evidence, model.confidence_threshold)
        if reason is not None:
            self._store.put(Picked(view.picture.pixels, evidence, reason, model.digest, inputs))
