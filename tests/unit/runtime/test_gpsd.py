"""Against a small server that speaks gpsd's documented protocol (gpsd_json(5))."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from edge_road.clock import SystemClock
from edge_road.runtime.gpsd import Gpsd, GpsdSettings
from edge_road.runtime.inputs_box import InputBox

VERSION = b'{"class":"VERSION","release":"3.25","rev":"3.25","proto_major":3,"proto_minor":15}\r\n'
DEVICES = (
    b'{"class":"DEVICES","devices":[{"class":"DEVICE","path":"/dev/ttyACM0","driver":"u-blox",'
    b'"activated":"2026-01-15T07:21:30.003Z","native":1,"bps":9600,"parity":"N","stopbits":1,"cycle":1.00}]}\r\n'
)
WATCHING = (
    b'{"class":"WATCH","enable":true,"json":true,"nmea":false,"raw":0,"scaled":false,"timing":false}\r\n'
)
NO_FIX = b'{"class":"TPV","device":"/dev/ttyACM0","mode":1,"leapseconds":18}\r\n'
FIX = (
    b'{"class":"TPV","device":"/dev/ttyACM0","status":1,"mode":3,"time":"2026-01-15T07:21:31.000Z",'
    b'"ept":0.005,"lat":60.169856,"lon":24.938379,"altHAE":43.1,"altMSL":25.2,"epx":3.1,"epy":4.2,"epv":8.0,'
    b'"track":10.3,"speed":13.911,"climb":-0.1,"eps":8.4,"epc":16.0,"eph":5.7,"sep":9.8}\r\n'
)
SKY = (
    b'{"class":"SKY","device":"/dev/ttyACM0","satellites":['
    + b",".join(
        b'{"PRN":%d,"el":35.0,"az":120.0,"ss":38.0,"used":true,"gnssid":0,"svid":%d}' % (n, n)
        for n in range(90)
    )
    + b"]}\r\n"
)


class FakeGpsd:
    """Greets, waits for ?WATCH, then says what it is told to; one connection after the other."""

    def __init__(self, *scripts: bytes) -> None:
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        self._scripts = scripts
        self.asked: list[bytes] = []
        self._done = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        for script in self._scripts:
            guest, _ = self._door.accept()
            with guest:
                guest.sendall(VERSION)
                self.asked.append(guest.recv(200))
                for part in (script[:50], script[50:]):
                    guest.sendall(part)
                if script is self._scripts[-1]:
                    self._done.wait(30)

    def close(self) -> None:
        self._done.set()
        self._door.close()


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
    wait_until(lambda: box.refused == 1)
    assert not has_position(box)


def test_a_connection_that_breaks_is_made_again(box: InputBox, listen: Listen) -> None:
    server = listen(WATCHING, WATCHING + FIX)
    wait_until(lambda: has_position(box))
    assert len(server.asked) == 2


def test_a_line_without_an_end_and_a_silent_receiver_are_left(box: InputBox, listen: Listen) -> None:
    server = listen(b"x" * 40_000, NO_FIX, FIX, silent_s=1.0)
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
