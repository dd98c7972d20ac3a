"""A server that speaks gpsd's documented protocol (gpsd_json(5)), and says what a test wants."""

from __future__ import annotations

import contextlib
import socket
import threading

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
    """Greets, waits for ?WATCH, says the script, and closes; one connection after the other.

    An empty script stays silent until the client leaves; the last one is said again and again.
    """

    def __init__(self, *scripts: bytes) -> None:
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        self._scripts = scripts
        self.asked: list[bytes] = []
        self._done = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        for number, script in enumerate(self._scripts, start=1):
            guest, _ = self._door.accept()
            with guest, contextlib.suppress(ConnectionError):
                guest.sendall(VERSION)
                self.asked.append(guest.recv(200))
                self._say(guest, script)
                while number == len(self._scripts) and not self._done.wait(0.3):
                    self._say(guest, script)

    def _say(self, guest: socket.socket, script: bytes) -> None:
        if not script:
            guest.recv(1)
        for part in (script[:50], script[50:]):  # lines come in pieces
            guest.sendall(part)

    def close(self) -> None:
        self._done.set()
        self._door.close()
