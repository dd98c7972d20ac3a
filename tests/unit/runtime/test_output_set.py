"""New settings for outputs while the daemon runs: in the same place, or back to what was."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from road_messages import road

from edge_road.clock import SystemClock
from edge_road.errors import ConfigError
from edge_road.runtime.events.writer import EventWriter
from edge_road.runtime.outputs.json_lines import JsonLines
from edge_road.runtime.outputs.mqtt import Mqtt
from edge_road.runtime.outputs.output import Output
from edge_road.runtime.outputs.output_set import OutputSet
from edge_road.runtime.outputs.unix_socket import UnixSocket
from edge_road.runtime.outputs.web import Web
from edge_road.runtime.status import Status
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_outputs import (
    HttpOutput,
    JsonLinesOutput,
    MqttOutput,
    OutputSettings,
    UnixSocketOutput,
)


class NoEvents:
    def after(self, entry_id: int, limit: int) -> list[object]:
        return []


def open_output(settings: OutputSettings) -> Output:
    if isinstance(settings, UnixSocketOutput):
        return UnixSocket(settings, "van")
    if isinstance(settings, MqttOutput):
        return Mqtt(settings, "van", cast(EventWriter, NoEvents()), lambda: "{}", SystemClock())
    if isinstance(settings, HttpOutput):
        return Web(settings, Status("van", "b1", SystemClock()), Vehicle, lambda: None)
    assert isinstance(settings, JsonLinesOutput)
    return JsonLines(settings)


@pytest.fixture
def outputs() -> Iterator[OutputSet]:
    made = OutputSet(open_output, SystemClock())
    made.start()
    yield made
    made.close(timeout_s=2)


def at(path: Path, events: bool = True) -> UnixSocketOutput:
    return UnixSocketOutput(kind="unix_socket", path=path, events=events)


def is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as reader:
        return reader.connect_ex(str(path)) == 0


def test_a_socket_with_other_settings_is_served_where_the_old_one_was(
    outputs: OutputSet, tmp_path: Path
) -> None:
    door = tmp_path / "s"
    outputs.use([at(door)])
    outputs.use([at(door, events=False)])
    assert is_served(door)


def test_a_file_with_other_settings_goes_on(outputs: OutputSet, tmp_path: Path) -> None:
    path = str(tmp_path / "m.jsonl")
    for number, megabytes in enumerate((0.0, 1.0)):
        outputs.use([JsonLinesOutput(path=path, rotate_mb=megabytes)])
        for output in outputs.current:
            output.publish(road("dry", number), f"line {number}")
    outputs.use([])
    assert Path(path).read_text() == "line 0\nline 1\n"


def test_a_page_with_other_settings_has_the_same_address(outputs: OutputSet) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for clients in (4, 8):
        outputs.use([HttpOutput(kind="http", port=port, clients=clients)])
        (page,) = outputs.current
        for _ in range(500):
            with socket.socket() as reader:
                if reader.connect_ex(("127.0.0.1", port)) == 0:
                    break
            threading.Event().wait(0.02)
        else:
            raise AssertionError(page.health())


def test_when_one_cannot_be_opened_all_are_as_they_were(outputs: OutputSet, tmp_path: Path) -> None:
    door = tmp_path / "s"
    before = [at(door), JsonLinesOutput(path=str(tmp_path / "m.jsonl"))]
    outputs.use(before)
    kept = outputs.current[1]
    with pytest.raises(ConfigError, match="cannot be opened"):
        outputs.use([at(door, events=False), before[1], JsonLinesOutput(path=str(tmp_path))])
    assert is_served(door)
    assert [type(output) for output in outputs.current] == [UnixSocket, JsonLines]
    assert outputs.current[1] is kept
    outputs.use(before)
    assert outputs.current[1] is kept


def test_when_one_cannot_be_opened_again_the_others_return(
    outputs: OutputSet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    door, folder = tmp_path / "s", tmp_path / "lines"
    outputs.use([JsonLinesOutput(path=str(folder / "m.jsonl")), at(door)])
    folder.rename(tmp_path / "elsewhere")
    folder.write_text("a file where a folder should be")
    with pytest.raises(ConfigError, match="cannot be opened"):
        outputs.use([JsonLinesOutput(path=str(folder / "m.jsonl"), rotate_mb=1.0), at(door, events=False)])
    assert [type(output) for output in outputs.current] == [UnixSocket]
    assert is_served(door)
    assert ["an output is lost" in record.message for record in caplog.records] == [True]


def test_changes_leave_no_descriptor_behind(outputs: OutputSet, tmp_path: Path) -> None:
    nobody = MqttOutput(kind="mqtt", port=9)

    def change() -> int:
        outputs.use([at(tmp_path / "s"), nobody])
        outputs.use([])
        return len(os.listdir("/proc/self/fd"))

    change()  # libraries are imported
    assert change() == change()
