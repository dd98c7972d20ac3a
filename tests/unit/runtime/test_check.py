"""`--check`, before the first start and beside the daemon that runs already."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edge_road.errors import ConfigError
from edge_road.runtime.check import check_vehicle
from edge_road.runtime.lock import only_one
from edge_road.runtime.outputs import JsonLines
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_outputs import HttpOutput, JsonLinesOutput


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


IMPOSSIBLE: list[Callable[[Path, int], dict[str, Any]]] = [
    lambda file, port: {"outputs": [{"kind": "http", "port": port}]},
    lambda file, port: {"outputs": [{"kind": "unix_socket", "path": str(file / "van.sock")}]},
    lambda file, port: {"outputs": [{"kind": "unix_socket", "path": str(file.parent / ("x" * 120))}]},
    lambda file, port: {"events": {"path": str(file / "events.sqlite")}},
    lambda file, port: {"events": {"path": str(file.parent)}},
    lambda file, port: {"keep": {"folder": str(file / "pictures")}},
    lambda file, port: {"keep": {"folder": str(file)}},
]


@pytest.mark.parametrize("settings", IMPOSSIBLE)
def test_what_would_end_the_daemon_or_cost_its_events_fails_the_check(
    settings: Callable[[Path, int], dict[str, Any]], tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        changes = settings(file, taken.getsockname()[1])
        values = {"vehicle": "van", "backend": "fake", "source": {"kind": "pattern"}, **changes}
        with pytest.raises((ConfigError, OSError)) as refused:
            check_vehicle(Vehicle.model_validate(values))
    assert isinstance(refused.value, ConfigError) or refused.value.filename is not None
    assert list(tmp_path.iterdir()) == [file]


def test_what_can_be_made_is_said_and_not_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = [tmp_path / name for name in ("here.sock", "deep/there.sock", "e/events.sqlite", "pictures")]
    values = {
        "backend": "fake",
        "source": {"kind": "pattern"},
        "outputs": [
            *({"kind": "unix_socket", "path": str(path)} for path in places[:2]),
            {"kind": "http", "port": 0},
        ],
        "events": {"path": str(places[2])},
        "keep": {"folder": str(places[3])},
    }
    assert check_vehicle(Vehicle.model_validate(values)) == 0
    said = capsys.readouterr().out
    assert all(f"{place}: can be" in said for place in places)
    assert "http 127.0.0.1:0: can be served" in said
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
    with only_one("van"), socket.create_server(("127.0.0.1", 0)) as page:
        http = HttpOutput(kind="http", port=page.getsockname()[1])
        assert check_vehicle(camera.model_copy(update={"outputs": (*camera.outputs, http)})) == 0
    out = capsys.readouterr().out
    assert f"not opened, the daemon that runs (process {os.getpid()})" in out
    assert f"the daemon that runs (process {os.getpid()}) writes to it" in out
    assert "not free, the daemon that runs" in out
    with pytest.raises(ConfigError, match="another process writes"):
        check_vehicle(vehicle(messages, {"kind": "pattern"}))
    writer.close(timeout_s=5)
