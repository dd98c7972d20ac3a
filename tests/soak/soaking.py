"""A daemon under stress for as long as wanted: camera and broker flap, the disk fills, the worker is killed.

python tests/soak/soaking.py 900      # 15 minutes

It runs in a mount namespace of its own, where its event store lies on a disk of 2 MiB; where there are no
such namespaces the disk does not fill, and the result says so.
"""

from __future__ import annotations

import argparse
import errno
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "soak")]

from camera_servers import HttpCamera  # noqa: E402
from daemon_harness import Daemon, resident_mb  # noqa: E402
from mosquitto import Backend, Broker  # noqa: E402
from soaked import Sample, Soaked  # noqa: E402

from edge_road.client import EventReader  # noqa: E402

APART = "EDGE_ROAD_SOAK_APART"


class Acknowledging:
    """A backend that stores what it gets and names the last event without a hole before it."""

    def __init__(self, backend: Backend) -> None:
        self.reader, self.events = EventReader(), 0
        self._lock = threading.Lock()
        backend.client.on_message = self._on_message

    def _on_message(self, client: Any, data: object, message: Any) -> None:
        if not message.topic.endswith("/events"):
            return  # states are not kept: the backend's memory is not what is measured
        with self._lock:
            event = self.reader.take(message.payload)
            boot = json.loads(message.payload)["boot_id"]
            up_to = self.reader.up_to(boot)
            self.events += event is not None
        if event is not None and up_to >= 0:
            ack = json.dumps({"boot_id": boot, "up_to_seq": up_to})
            client.publish("edge_road/test/ack", ack, qos=0)


class Trouble:
    """Begins again and again, at random, and lasts for a while."""

    def __init__(
        self, name: str, every_s: float, lasts_s: float, begin: Callable[[], bool], end: Callable[[], object]
    ) -> None:
        self.name, self.count = name, 0
        self._every_s, self._lasts_s, self._begin, self._end = every_s, lasts_s, begin, end
        self._next_s, self._until_s = every_s / 2, 0.0

    def step(self, now_s: float, generator: random.Random) -> None:
        if self._until_s and now_s >= self._until_s:
            self.stop()
        elif not self._until_s and now_s >= self._next_s and self._begin():
            self.count += 1
            self._until_s = now_s + self._lasts_s
            self._next_s = now_s + self._lasts_s + self._every_s * generator.uniform(0.5, 1.5)

    def stop(self) -> None:
        if self._until_s:
            self._until_s = 0.0
            self._end()


def troubles_of(
    camera: HttpCamera, broker: Broker, disk: Path | None, daemon: Daemon, s: float
) -> list[Trouble]:
    """`s` stretches the pauses: 1 is the pace of a quarter of an hour."""

    def behave(how: str) -> bool:
        camera.behaviour = how
        return True

    def take_down() -> bool:
        broker.down()
        return True

    found = [
        Trouble("camera gone", 30 * s, 2.0, lambda: behave("unplugged"), lambda: behave("good")),
        Trouble("camera silent", 45 * s, 2.0, lambda: behave("silent"), lambda: behave("good")),
        Trouble("cut pictures", 60 * s, 1.5, lambda: behave("cut"), lambda: behave("good")),
        Trouble("broker killed", 60 * s, 1.0, take_down, broker.up),
        Trouble("worker killed", 40 * s, 0.5, lambda: kill_worker(daemon), lambda: None),
    ]
    if disk is not None:
        ballast = disk / "ballast"
        found.append(Trouble("disk full", 75 * s, 4.0, lambda: fill(ballast), ballast.unlink))
    return found


def kill_worker(daemon: Daemon) -> bool:
    try:
        os.kill(daemon.worker_pid(), signal.SIGKILL)
        return True
    except (AssertionError, ProcessLookupError, FileNotFoundError):
        return False  # it is being replaced


def fill(ballast: Path) -> bool:
    try:
        with open(ballast, "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError as error:
        return error.errno == errno.ENOSPC


def vehicle_for(camera: HttpCamera, port: int, store: Path) -> dict[str, Any]:
    mqtt = {"kind": "mqtt", "port": port, "delivery": "backend_ack", "resend_s": 2.0, "keepalive_s": 2}
    return {
        "vehicle": "test",
        "backend": "fake",
        "source": {"kind": "mjpeg", "url": camera.url, "fps": 20},
        "quality": {"obstructed_s": 0.0},
        "worker": {"longest_pause_s": 0.5},
        "outputs": [{"path": "-"}, mqtt, {"kind": "http", "port": 0}, {"kind": "unix_socket"}],
        "events": {"path": str(store)},
    }


def soak(folder: Path, seconds: float, stretch: float, disk: Path | None, seed: int = 1) -> Soaked:
    generator, camera, broker = random.Random(seed), HttpCamera(), Broker(folder)
    vehicle = vehicle_for(camera, broker.port, (disk or folder) / "events.sqlite")
    samples: list[Sample] = []
    with broker, Backend(broker.port) as backend, Daemon(folder, vehicle=vehicle) as daemon:
        told = Acknowledging(backend)
        daemon.wait_for_state("dry", timeout_s=60)
        troubles = troubles_of(camera, broker, disk, daemon, stretch)
        began_s = time.monotonic()
        while (now_s := time.monotonic() - began_s) < seconds:
            for trouble in troubles:
                trouble.step(now_s, generator)
            samples.append(sample(daemon.process.pid, began_s))
            time.sleep(0.25)
        for trouble in troubles:
            trouble.stop()
        daemon.wait_for_state("dry", since_s=time.monotonic(), timeout_s=60)
        wait_until_quiet(told, least_s=2.0, most_s=45.0)
        wait_until_stored(daemon, most_s=30.0)
        code = daemon.stop(signal.SIGTERM)
        wait_until_quiet(told, least_s=0.5, most_s=5.0)
    camera.close()
    arrived = [at for at, _ in daemon.received if at >= began_s]
    return Soaked(
        seconds=seconds,
        samples=samples,
        states=sorted({message.state for message in daemon.messages}),
        longest_silence_s=max(b - a for a, b in itertools.pairwise(arrived)),
        seqs_in_a_row=[m.seq for m in daemon.messages] == list(range(len(daemon.messages))),
        missing=told.reader.missing,
        events=told.events,
        repeated=told.reader.repeated,
        troubles={trouble.name: trouble.count for trouble in troubles},
        exit_code=code,
        said=[word for word in ("kept in memory", "stored again", "Traceback") if word in daemon.stderr],
    )


def wait_until_stored(daemon: Daemon, most_s: float) -> None:
    """A disk that was full at the last moment is tried again after a while."""
    ends_s = time.monotonic() + most_s
    while "kept in memory" in daemon.stderr and "stored again" not in daemon.stderr:
        if time.monotonic() > ends_s:
            return
        time.sleep(0.2)


def sample(pid: int, began_s: float) -> Sample:
    folder = Path(f"/proc/{pid}")
    at_s = time.monotonic() - began_s
    return Sample(at_s, resident_mb(pid), len(os.listdir(folder / "fd")), len(os.listdir(folder / "task")))


def wait_until_quiet(told: Acknowledging, least_s: float, most_s: float) -> None:
    """Until nothing has come for `least_s` and nothing is missing, or the time is over."""
    ends_s, count, since_s = time.monotonic() + most_s, -1, time.monotonic()
    while time.monotonic() < ends_s:
        if told.events != count:
            count, since_s = told.events, time.monotonic()
        if time.monotonic() - since_s >= least_s and not told.reader.missing:
            return
        time.sleep(0.05)


def run_apart(seconds: float, stretch: float) -> Soaked:
    """In a mount namespace of its own when there are any."""
    unshare = shutil.which("unshare")
    can = (
        unshare is not None and subprocess.run([unshare, "-rm", "true"], capture_output=True).returncode == 0
    )
    words = [sys.executable, str(Path(__file__)), str(seconds), "--stretch", str(stretch), "--json"]
    command = [str(unshare), "-rm", *words] if can else words
    environment = {**os.environ, APART: "disk" if can else "plain"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True)
    values = json.loads(done.stdout)
    return Soaked(**{**values, "samples": [Sample(**one) for one in values["samples"]]})


def soak_here(seconds: float, stretch: float, with_disk: bool) -> Soaked:
    with tempfile.TemporaryDirectory() as name:
        disk = Path(name) / "disk" if with_disk else None
        if disk is not None:
            disk.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], check=True)
        try:
            return soak(Path(name), seconds, stretch, disk)
        finally:
            if disk is not None:
                subprocess.run(["umount", str(disk)], check=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("seconds", type=float, nargs="?", default=900.0)
    parser.add_argument(
        "--stretch", type=float, default=1.0, help="of the pauses between troubles; less is harder"
    )
    parser.add_argument("--json", action="store_true", help="the result as JSON")
    options = parser.parse_args()
    if where := os.environ.get(APART):
        done = soak_here(options.seconds, options.stretch, where == "disk")
    else:
        done = run_apart(options.seconds, options.stretch)
    print(json.dumps(asdict(done)) if options.json else done)
    return 0 if options.json or not done.broken() else 1


if __name__ == "__main__":
    sys.exit(main())
