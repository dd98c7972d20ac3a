"""Frames for the next training: few, capped, private."""

from __future__ import annotations

import json
import math
import os
from datetime import timedelta
from pathlib import Path

import cv2
import numpy as np
import pytest

from edge_road.clock import ScriptedClock
from edge_road.preprocess import Crop
from edge_road.road_state import Position
from edge_road.runtime.decision import DecisionSettings
from edge_road.runtime.evidence import Evidence, RegionEvidence
from edge_road.runtime.frame_picking import KeepSettings, Picker, enclosing
from edge_road.runtime.frame_store import FrameStore, Picked
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_inputs import NO_INPUTS

SECOND = 10**9
LOWER = Crop(top=0.5)


def evidence(
    *probabilities: float, at_s: float = 0.0, number: int = 1, problems: tuple[str, ...] = ()
) -> Evidence:
    region = RegionEvidence(name="road", probabilities=probabilities)  # type: ignore[arg-type]
    captured_ns = round(at_s * SECOND)
    return Evidence(number=number, captured_mono_ns=captured_ns, regions=(region,), problems=problems)


DRY, WET, DOUBT, SICK = (0.9, 0.1, 0.0), (0.1, 0.9, 0.0), (0.4, 0.3, 0.3), (math.nan, 0.0, 0.0)


def test_off_by_default() -> None:
    assert Vehicle().keep.folder is None


def test_doubt_and_change_are_picked_and_sameness_is_not() -> None:
    picker = Picker(KeepSettings(every_s=0.0), DecisionSettings())
    drive = [DRY, DRY, DOUBT, DRY, WET, WET, SICK]
    picked = [picker.reason(evidence(*p, at_s=n), 0.6) for n, p in enumerate(drive)]
    assert picked == [None, None, "uncertain", None, "changed", None, "uncertain"]


def test_not_oftener_than_asked_and_never_what_the_camera_spoilt() -> None:
    picker = Picker(KeepSettings(every_s=2.0), DecisionSettings())
    picked = [picker.reason(evidence(*DOUBT, at_s=s), 0.6) for s in (0.0, 1.9, 2.0, 3.0, 4.0)]
    assert picked == ["uncertain", None, "uncertain", None, "uncertain"]
    assert picker.reason(evidence(*DOUBT, at_s=99.0, problems=("frozen",)), 0.6) is None


def picked(number: int = 1, probabilities: tuple[float, ...] = DOUBT, size: int = 64) -> Picked:
    pixels = np.random.default_rng(number).integers(0, 256, (size, size, 3), dtype=np.uint8)
    pixels[: size // 2] = 200  # faces and plates are above the road
    inputs = NO_INPUTS.with_position(Position(latitude=60.0, longitude=24.0), 0).with_speed(10.0, 0)
    return Picked(pixels, evidence(*probabilities, number=number), "uncertain", "digest", inputs)


def store(folder: Path, clock: ScriptedClock | None = None, **settings: object) -> FrameStore:
    chosen = KeepSettings.model_validate({"folder": folder, **settings})
    return FrameStore(chosen, LOWER, clock or ScriptedClock())


def pictures(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jpg"))


def test_only_the_road_is_kept_and_no_position(tmp_path: Path) -> None:
    store(tmp_path / "kept").keep(picked())
    (picture,) = pictures(tmp_path / "kept")
    assert picture.name == "20260101T000000.000Z-000000001-uncertain-dry.jpg"
    assert cv2.imread(str(picture)).shape == (32, 64, 3)
    facts = json.loads(picture.with_suffix(".json").read_text())
    assert facts["part"] == {"left": 0.0, "top": 0.5, "right": 1.0, "bottom": 1.0}
    assert facts["speed_mps"] == 10.0
    assert "position" not in facts
    assert (tmp_path / "kept").stat().st_mode & 0o777 == 0o700
    assert picture.stat().st_mode & 0o777 == 0o600


def test_whole_pictures_and_positions_only_when_asked(tmp_path: Path) -> None:
    store(tmp_path, whole=True, position=True).keep(picked())
    (picture,) = pictures(tmp_path)
    assert cv2.imread(str(picture)).shape == (64, 64, 3)
    assert json.loads(picture.with_suffix(".json").read_text())["position"]["latitude"] == 60.0


def test_no_number_is_written_as_none(tmp_path: Path) -> None:
    store(tmp_path).keep(picked(probabilities=SICK))
    facts = json.loads(pictures(tmp_path)[0].with_suffix(".json").read_text())
    assert facts["regions"][0]["probabilities"] == [None, 0.0, 0.0]


def test_the_cap_removes_the_oldest_also_those_of_an_earlier_start(tmp_path: Path) -> None:
    clock = ScriptedClock()
    for start in range(3):
        keeper = store(tmp_path, clock, most_mb=0.02)
        for number in range(4):
            clock.sleep(1)
            keeper.keep(picked(number + 10 * start))
    names = [path.name for path in pictures(tmp_path)]
    total = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert total <= 0.02 * 2**20
    assert len(names) >= 3
    assert "-000000023-" in names[-1]
    assert {path.stem for path in tmp_path.glob("*.json")} == {path.stem for path in tmp_path.glob("*.jpg")}


def test_one_picture_larger_than_the_cap_is_still_kept_alone(tmp_path: Path) -> None:
    clock = ScriptedClock()
    keeper = store(tmp_path, clock, most_mb=0.0001)
    for number in range(3):
        clock.sleep(1)
        keeper.keep(picked(number))
    assert len(pictures(tmp_path)) == 1


def test_what_is_too_old_goes(tmp_path: Path) -> None:
    clock = ScriptedClock()
    keeper = store(tmp_path, clock, most_days=1)
    keeper.keep(picked(1))
    old = pictures(tmp_path)[0]
    made_s = (clock.utc() - timedelta(days=2)).timestamp()
    os.utime(old, (made_s, made_s))
    clock.sleep(1)
    keeper.keep(picked(2))
    assert [path.name.split("-")[1] for path in pictures(tmp_path)] == ["000000002"]


def test_a_disk_in_trouble_is_told_once_and_costs_pictures_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "kept").write_text("not a folder")
    keeper = store(tmp_path / "kept")
    keeper.keep(picked(1))
    keeper.keep(picked(2))
    assert caplog.text.count("is lost") == 1


def test_a_nearly_full_disk_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    monkeypatch.setattr("shutil.disk_usage", lambda path: shutil._ntuple_diskusage(100, 96, 4))  # type: ignore[attr-defined]
    store(tmp_path / "kept").keep(picked())
    assert pictures(tmp_path / "kept") == []


def test_half_a_file_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".x.jpg.part").write_bytes(b"half")
    store(tmp_path).keep(picked())
    assert not list(tmp_path.glob(".*.part"))


def test_the_part_that_holds_all_regions() -> None:
    crops = [Crop(left=0.2, top=0.6, right=0.4), Crop(left=0.5, top=0.5, right=0.9, bottom=0.8)]
    assert enclosing(crops) == Crop(left=0.2, top=0.5, right=0.9, bottom=1.0)
