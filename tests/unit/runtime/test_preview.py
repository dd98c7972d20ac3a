"""The picture on the live page: small, rare, only where it is wanted."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from edge_road.clock import ScriptedClock
from edge_road.runtime.preview import PERIOD_NS, Preview, encode
from edge_road.runtime.snapshot import snapshot_path
from edge_road.runtime.vehicle import Vehicle

GREEN = np.full((540, 960, 3), (10, 200, 30), np.uint8)


@pytest.fixture
def vehicle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vehicle:
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    return Vehicle.model_validate(
        {"vehicle": "preview-test", "outputs": [{"kind": "http", "snapshots": True}]}
    )


def test_a_picture_is_small_and_keeps_its_colours() -> None:
    seen = cv2.imdecode(np.frombuffer(encode(GREEN), np.uint8), cv2.IMREAD_COLOR)
    assert seen.shape == (360, 640, 3)
    assert np.abs(seen.astype(int) - (30, 200, 10)).max() < 12  # OpenCV reads BGR


def test_pictures_come_five_times_a_second_at_most(vehicle: Vehicle) -> None:
    clock = ScriptedClock()
    preview, path = Preview(vehicle, clock), snapshot_path(vehicle)
    assert path is not None
    preview.show(GREEN)
    path.unlink()
    clock.sleep(PERIOD_NS / 2 / 1e9)
    preview.show(GREEN)
    assert not path.exists()
    clock.sleep(PERIOD_NS / 2 / 1e9)
    preview.show(GREEN)
    path.unlink()


def test_nobody_who_did_not_ask_gets_a_picture() -> None:
    silent = Vehicle.model_validate({"vehicle": "preview-off", "outputs": [{"kind": "http"}]})
    assert snapshot_path(silent) is None
    Preview(silent, ScriptedClock()).show(GREEN)
