"""Cameras that tests can break: an HTTP camera, GStreamer's RTSP server, a V4L2 device without a kernel."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from edge_road.backends.fake import LEVEL_OF_STATE
from edge_road.frames import Image

TESTS = Path(__file__).resolve().parent
PERIOD_S = 0.05


def road_picture(state: str = "dry", seed: int = 0, size: tuple[int, int] = (96, 128)) -> Image:
    grain = np.random.default_rng(seed).integers(-12, 13, (*size, 1))
    light = np.linspace(-10, 10, size[0]).astype(int)[:, None, None]
    return np.repeat((grain + light + LEVEL_OF_STATE[state]).astype(np.uint8), 3, axis=2)


def jpeg(pixels: Image) -> bytes:
    return bytes(cv2.imencode(".jpg", cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR))[1].tobytes())


def write_jpegs(folder: Path, count: int = 7) -> None:
    for number in range(count):
        (folder / f"{number}.jpg").write_bytes(jpeg(road_picture(seed=number)))


class HttpCamera:
    """Sends pictures at 20 a second to whoever connects; `behaviour` can be changed at any time."""

    HEADER = b"HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=frame\r\n\r\n"

    def __init__(self) -> None:
        self.behaviour = "good"
        self.requests: list[bytes] = []
        self.pictures = [jpeg(road_picture(seed=seed)) for seed in range(7)]
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/road.mjpg"

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        try:
            with client:
                self.requests.append(client.recv(4096))
                while self.behaviour == "mute":
                    time.sleep(0.02)
                if self.behaviour == "refuse":
                    client.sendall(b"HTTP/1.0 401 Unauthorized\r\n\r\n")
                    return
                client.sendall(self.HEADER)
                number = 0
                while self.behaviour != "unplugged":
                    number += 1
                    self._send_one(client, number)
                    time.sleep(PERIOD_S)
        except OSError:
            return

    def _send_one(self, client: socket.socket, number: int) -> None:
        content = self.pictures[number % len(self.pictures)]
        if self.behaviour == "silent":
            return
        if self.behaviour == "cut":
            content = content[: number * 37 % len(content)]
        if self.behaviour == "nonsense":
            content = b"\xff\xd8 no picture at all"
        length = b"" if number % 2 else b"Content-Length: %d\r\n" % len(content)
        client.sendall(b"--frame\r\nContent-Type: image/jpeg\r\n" + length + b"\r\n" + content + b"\r\n")

    def close(self) -> None:
        self.behaviour = "unplugged"
        self._listener.close()


class NumberedCamera:
    """HTTP pictures whose brightness is their number; it sends what it is told to, and no more."""

    STEP, COUNT = 4, 50

    def __init__(self) -> None:
        self.sent = 0
        grain = np.random.default_rng(0).integers(-20, 21, (240, 320, 3))
        self._pictures = [jpeg((grain + 24 + self.STEP * n).astype(np.uint8)) for n in range(self.COUNT)]
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/"

    def accept(self) -> None:
        self._client, _ = self._listener.accept()
        self._client.recv(4096)
        self._client.sendall(HttpCamera.HEADER)

    def send(self, count: int = 1, pause_s: float = 0.0) -> None:
        for _ in range(count):
            content = self._pictures[self.sent % self.COUNT]
            self._client.sendall(b"--frame\r\nContent-Length: %d\r\n\r\n" % len(content) + content + b"\r\n")
            self.sent += 1
            time.sleep(pause_s)

    def number_of(self, pixels: Image) -> int:
        return round((float(pixels.mean()) - 24) / self.STEP)

    def close(self) -> None:
        self._client.close()
        self._listener.close()


TEST_VIDEO = (
    "videotestsrc is-live=true pattern=smpte horizontal-speed=3 "
    "! video/x-raw,width=320,height=240,framerate=20/1 "
    "! x264enc tune=zerolatency speed-preset=ultrafast key-int-max=10 ! rtph264pay name=pay0 pt=96"
)


class RtspServer:
    """GStreamer's, in the system's Python; it can be stopped, killed and started again on its port."""

    def __init__(self, pipeline: str = TEST_VIDEO) -> None:
        self._pipeline = pipeline
        self.port = 0
        self.start()

    @staticmethod
    def missing() -> str | None:
        code = (
            "import gi; gi.require_version('GstRtspServer', '1.0'); from gi.repository import GstRtspServer"
        )
        if not Path("/usr/bin/python3").exists():
            return "there is no /usr/bin/python3"
        done = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True)
        return "GStreamer's RTSP server is not installed" if done.returncode else None

    def start(self) -> None:
        command = ["/usr/bin/python3", str(TESTS / "rtsp_server.py"), self._pipeline, str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    @property
    def url(self) -> str:
        return f"rtsp://admin:pl4nted@127.0.0.1:{self.port}/road"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def fake_v4l2(folder: Path) -> dict[str, str]:
    """The environment in which /dev/video77 is a camera with the pictures of `folder`."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no C compiler")
    library = folder / "fake_v4l2.so"
    command = ["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(TESTS / "fake_v4l2.c"), "-ldl"]
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode:
        pytest.skip(f"the fake camera does not compile here: {built.stderr[:200]}")
    write_jpegs(folder)
    return {"LD_PRELOAD": str(library), "EDGE_ROAD_FAKE_V4L2": str(folder)}


def wait_until(condition: Callable[[], bool], timeout_s: float = 30.0) -> None:
    end_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end_s, "it did not happen in time"
        time.sleep(0.01)
