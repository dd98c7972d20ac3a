"""The parts of a picture that spoke for the state: found by covering them, only on demand, only when idle."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from edge_road.clock import ScriptedClock
from edge_road.conditions import ROAD_CLASSES
from edge_road.frames import Frame, Images, Prediction
from edge_road.preprocess import Crop, Preprocessing
from edge_road.runtime.evidence import Evidence
from edge_road.runtime.model import LoadedModel
from edge_road.runtime.parts import COLUMNS, ROWS, Parts, covered, log_odds, shares_of
from edge_road.runtime.parts_file import LARGEST_BYTES, parts_path, read_parts, wish
from edge_road.runtime.perception import Perception, View
from edge_road.runtime.vehicle import Vehicle

SIZE = (40, 60)
SPOT = (2, 4)
"""the row and column of the only part that the model looks at"""


class SpotPredictor:
    """Says icy when the spot is bright, and dry otherwise."""

    name, classes, size = "spot", ROAD_CLASSES, SIZE

    def __init__(self) -> None:
        self.calls = 0

    def predict(self, images_NHWC: Images) -> Prediction:
        self.calls += 1
        spot_N = images_NHWC[:, 20:30, 40:50].mean(axis=(1, 2, 3)) / 255
        logits_NC = np.stack([4 - 8 * spot_N, np.zeros_like(spot_N), 8 * spot_N - 4], axis=1).astype(
            np.float32
        )
        exponentials_NC = np.exp(logits_NC)
        return Prediction(exponentials_NC / exponentials_NC.sum(1, keepdims=True), logits_NC, logits_NC)


class Drive:
    """Frames with a bright spot, judged and looked into as the worker does it."""

    def __init__(self, vehicle: Vehicle) -> None:
        self.predictor = SpotPredictor()
        self.model = LoadedModel(self.predictor, Preprocessing(height=SIZE[0], width=SIZE[1]), "m", 0.6)
        self.clock = ScriptedClock()
        self.perception = Perception(self.predictor, self.model.preprocessing, vehicle.regions)
        self.parts = Parts(vehicle, self.model, self.clock)
        noise = np.random.default_rng(0).integers(0, 60, (*SIZE, 3))
        self.pixels = noise.astype(np.uint8)
        self.pixels[20:30, 40:50] = 250
        self.path = parts_path(vehicle)

    def go(self, frames: int, period_s: float = 0.1, predict_ms: float = 10.0) -> None:
        for number in range(frames):
            frame = Frame(self.pixels, number, self.clock.mono_ns())
            view = self.perception.view_of_checked(frame, (False,) * 4)
            evidence = self.perception.judge(view)
            view.stage_ms["predict"] = predict_ms
            self.parts.look(self.model, view, evidence)
            self.clock.sleep(period_s)

    def told(self) -> list[dict[str, object]]:
        return list(read_parts(self.path)["regions"])


@pytest.fixture
def vehicle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vehicle:
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    return Vehicle.model_validate({"vehicle": "parts", "outputs": [{"kind": "http", "snapshots": True}]})


def wished(drive: Drive) -> Drive:
    assert drive.path is not None
    wish(drive.path)
    now_s = drive.clock.utc().timestamp()
    os.utime(drive.path.with_suffix(".wish"), (now_s, now_s))
    return drive


def test_the_part_that_the_model_looks_at_is_found_and_no_other(vehicle: Vehicle) -> None:
    drive = wished(Drive(vehicle))
    drive.go(ROWS * COLUMNS + 1)
    shares_RC = np.array(drive.told()[0]["shares"])
    assert shares_RC.shape == (ROWS, COLUMNS)
    assert shares_RC[SPOT] == 1
    assert np.delete(shares_RC.ravel(), SPOT[0] * COLUMNS + SPOT[1]).max() < 0.05


def test_nothing_is_asked_of_the_model_while_nobody_wants_to_know(vehicle: Vehicle) -> None:
    drive = Drive(vehicle)
    drive.go(30)
    assert drive.predictor.calls == 30
    assert "shares" not in drive.told()[0]


def test_a_wish_grows_old(vehicle: Vehicle) -> None:
    drive = wished(Drive(vehicle))
    drive.go(80)
    calls = drive.predictor.calls
    drive.go(20)
    assert 30 + 80 < calls < 2 * 80
    assert drive.predictor.calls == calls + 20


@pytest.mark.parametrize(("period_s", "predict_ms"), [(0.1, 40.0), (0.02, 10.0)])
def test_a_model_that_is_busy_is_left_alone(vehicle: Vehicle, period_s: float, predict_ms: float) -> None:
    drive = wished(Drive(vehicle))
    drive.go(30, period_s, predict_ms)
    assert drive.predictor.calls == 30


def test_without_settings_it_tells_where_the_bundle_looks(vehicle: Vehicle) -> None:
    assert Drive(vehicle).told() == [{"name": "road", "left": 0, "top": 0, "right": 1, "bottom": 1}]


def test_several_regions_are_covered_in_one_call(vehicle: Vehicle) -> None:
    regions = [{"name": name, "crop": Crop()} for name in ("left", "right")]
    drive = wished(Drive(vehicle.model_validate({**vehicle.model_dump(), "regions": regions})))
    drive.go(ROWS * COLUMNS + 1)
    assert drive.predictor.calls == 2 * ROWS * COLUMNS + 1
    assert [region["name"] for region in drive.told()] == ["left", "right"]
    assert all(np.array(region["shares"])[SPOT] == 1 for region in drive.told())


def test_a_new_state_begins_a_new_map(vehicle: Vehicle) -> None:
    drive = wished(Drive(vehicle))
    drive.go(ROWS * COLUMNS - 2)
    drive.pixels[20:30, 40:50] = 0
    drive.go(6)
    assert "shares" not in drive.told()[0], "half of that map would be of another state"


def test_where_pictures_are_off_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    Drive(Vehicle(vehicle="parts")).go(3)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_cannot_be_written_harms_nobody(vehicle: Vehicle, tmp_path: Path) -> None:
    tmp_path.rmdir()
    Drive(vehicle).go(3)


def test_frames_without_an_answer_are_left_out(vehicle: Vehicle) -> None:
    drive = wished(Drive(vehicle))
    drive.go(3)
    frame = Frame(drive.pixels, 9, drive.clock.mono_ns())
    calls = drive.predictor.calls
    nothing = Evidence(number=9, captured_mono_ns=0, captured_utc=None, regions=(), problems=("dark",))
    unseen = drive.perception.view_of_checked(frame, (False,))
    drive.parts.look(drive.model, View(frame, None, unseen.verdict, {}), nothing)
    assert drive.predictor.calls == calls


def test_a_covered_part_has_the_mean_colour_and_the_rest_is_as_it_was() -> None:
    images_NHWC = np.random.default_rng(1).integers(0, 255, (2, *SIZE, 3)).astype(np.uint8)
    copies_NHWC = covered(images_NHWC, ROWS - 1, COLUMNS - 1)
    assert (copies_NHWC[:, 30:, 50:] == images_NHWC.mean(axis=(1, 2), keepdims=True).astype(np.uint8)).all()
    copies_NHWC[:, 30:, 50:] = images_NHWC[:, 30:, 50:]
    assert (copies_NHWC == images_NHWC).all()


def test_certainty_and_nonsense_give_finite_log_odds() -> None:
    assert np.isfinite(log_odds(np.array([0.0, 1.0, np.nan]))).all()
    assert log_odds(np.array([0.5]))[0] == 0


def test_small_differences_are_not_blown_up() -> None:
    drops_NRC = np.full((1, ROWS, COLUMNS), 0.01)
    assert shares_of(drops_NRC).max() < 0.05
    assert shares_of(-drops_NRC).max() == 0


@pytest.mark.parametrize(
    "content", [b"", b"[1, 2]", b"\xff", b"null", b"{}", b"{" * 9, b" " * (LARGEST_BYTES + 1)]
)
def test_a_damaged_answer_is_no_answer(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "van.parts.json"
    path.write_bytes(content)
    assert read_parts(path) == {"regions": [], "seconds": 0.0}
    assert json.dumps(read_parts(None))
