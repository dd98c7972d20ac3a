"""`--check`, before the first start and beside the daemon that runs already."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edge_road.errors import ConfigError
from edge_road.runtime.check import check_vehicle
from edge_road.runtime.lock import only_one
from edge_road.runtime.outputs import JsonLines
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_outputs import JsonLinesOutput


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path / "run"))


def vehicle(messages: Path, source: dict[str, object]) -> Vehicle:
    outputs = [{"path": str(messages)}]
    return Vehicle.model_validate({"vehicle": "van", "backend": "fake", "source": source, "outputs": outputs})


def test_nothing_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of root's would be closed to the service, which then never starts."""
    messages = tmp_path / "deep" / "m.jsonl"
    check_vehicle(vehicle(messages, {"kind": "pattern"}))
    assert f"{messages}: can be made" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("fps", "said"), [(1, True), (2, False)])
def test_a_camera_slower_than_a_state_holds_is_told(
    fps: float, said: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check_vehicle(vehicle(tmp_path / "m.jsonl", {"kind": "pattern", "fps": fps}))
    assert ("a state holds for 0.9 s, so it is unknown between pictures" in capsys.readouterr().out) is said


def test_beside_the_daemon_its_camera_and_its_file_are_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = tmp_path / "m.jsonl"
    camera = vehicle(messages, {"kind": "mjpeg", "url": "http://127.0.0.1:9/"})
    writer = JsonLines(JsonLinesOutput(path=str(messages)))
    with only_one("van"):
        assert check_vehicle(camera) == 0
    out = capsys.readouterr().out
    assert f"not opened, the daemon that runs (process {os.getpid()})" in out
    assert f"the daemon that runs (process {os.getpid()}) writes to it" in out
    with pytest.raises(ConfigError, match="another process writes"):
        check_vehicle(vehicle(messages, {"kind": "pattern"}))
    writer.close(timeout_s=5)
