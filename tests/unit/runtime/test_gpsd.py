"""Position and speed from gpsd, whatever it does."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator

import pytest
from fake_gpsd import DEVICES, FIX, NO_FIX, SKY, WATCHING, FakeGpsd

from edge_road.clock import SystemClock
from edge_road.runtime.gpsd import Gpsd, GpsdSettings
from edge_road.runtime.inputs_box import InputBox


@pytest.fixture
def box() -> InputBox:
    return InputBox(SystemClock())


Listen = Callable[..., FakeGpsd]


@pytest.fixture
def listen(box: InputBox) -> Iterator[Listen]:
    opened: list[tuple[FakeGpsd, Gpsd]] = []

    def start(*scripts: bytes, **settings: float) -> FakeGpsd:
        server = FakeGpsd(*scripts)
        receiver = Gpsd(GpsdSettings(port=server.port, **settings), box.take_gpsd)  # type: ignore[arg-type]
        receiver.start()
        opened.append((server, receiver))
        return server

    yield start
    for server, receiver in opened:
        server.close()
        receiver.close(2.0)
        assert not receiver._thread.is_alive()


def wait_until(true: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end_s
        time.sleep(0.02)


def has_position(box: InputBox) -> bool:
    return box.newest().position is not None


def test_a_fix_gives_position_accuracy_and_speed(box: InputBox, listen: Listen) -> None:
    server = listen(DEVICES + WATCHING + NO_FIX + SKY + FIX)
    wait_until(lambda: has_position(box))
    reading, speed = box.newest().position, box.newest().speed
    assert reading is not None
    assert speed is not None
    position = reading.value
    assert (position.latitude, position.longitude, position.accuracy_m) == (60.169856, 24.938379, 5.7)
    assert speed.value == 13.911
    assert server.asked == [b'?WATCH={"enable":true,"json":true};\n']
    assert len(SKY) > 4096
    assert box.refused == 0


def test_without_a_fix_there_is_no_position(box: InputBox, listen: Listen) -> None:
    broken = FIX.replace(b'"mode":3', b'"mode":1') + FIX.replace(b"60.169856", b'"north"')
    listen(WATCHING + NO_FIX + broken)
    wait_until(lambda: box.refused >= 1)
    assert not has_position(box)


def test_a_connection_that_breaks_is_made_again(box: InputBox, listen: Listen) -> None:
    server = listen(WATCHING, WATCHING + FIX)
    wait_until(lambda: has_position(box))
    assert len(server.asked) == 2


def test_a_line_without_an_end_and_a_silent_receiver_are_left(box: InputBox, listen: Listen) -> None:
    server = listen(b"x" * 40_000, b"", FIX, silent_s=1.0)
    wait_until(lambda: has_position(box))
    assert len(server.asked) == 3


def test_nobody_there_costs_nothing_but_the_position(box: InputBox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
    receiver = Gpsd(GpsdSettings(port=port), box.take_gpsd)
    receiver.start()
    wait_until(lambda: not receiver.connected)
    receiver.close(2.0)
    assert not receiver._thread.is_alive()
    assert not has_position(box)


def test_a_name_that_no_host_can_have_is_told_once_and_asked_for_again(
    box: InputBox, caplog: pytest.LogCaptureFixture
) -> None:
    receiver = Gpsd(GpsdSettings(host="gps..local"), box.take_gpsd)
    receiver.start()
    wait_until(lambda: bool(caplog.records))
    assert "no position from gpsd" in caplog.records[0].message
    assert receiver._thread.is_alive()
    receiver.close(2.0)
