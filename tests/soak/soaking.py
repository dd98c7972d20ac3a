"""A daemon under stress for as long as wanted: the broker flaps, the worker is killed at random.

python tests/soak/soaking.py 900      # 15 minutes
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from daemon_harness import Daemon, pattern_vehicle, resident_mb
from mosquitto import Backend, Broker

from edge_road.client import EventReader


@dataclass(frozen=True)
class Sample:
    at_s: float
    rss_mb: float
    descriptors: int
    threads: int


@dataclass(frozen=True)
class Soaked:
    samples: list[Sample]
    states: set[str]
    longest_silence_s: float
    seqs_in_a_row: bool
    missing: dict[str, list[int]]
    events: int
    worker_kills: int
    broker_kills: int
    exit_code: int


def sample(pid: int, began_s: float) -> Sample:
    folder = Path(f"/proc/{pid}")
    return Sample(
        time.monotonic() - began_s,
        resident_mb(pid),
        len(os.listdir(folder / "fd")),
        len(os.listdir(folder / "task")),
    )


class Acknowledging:
    """A backend that stores what it gets and names the last event without a hole before it."""

    def __init__(self, backend: Backend) -> None:
        self.reader = EventReader()
        self._lock, self._forward = threading.Lock(), backend.client.on_message
        backend.client.on_message = self._on_message

    def _on_message(self, client: Any, data: object, message: Any) -> None:
        if not message.topic.endswith("/events"):
            return  # states are not kept: the backend's memory is not what is measured
        with self._lock:
            event = self.reader.take(message.payload)
            boot = json.loads(message.payload)["boot_id"]
            up_to = self.reader.up_to(boot)
        if event is not None and up_to >= 0:
            ack = json.dumps({"boot_id": boot, "up_to_seq": up_to})
            client.publish("edge_road/test/ack", ack, qos=0)


def soak(folder: Path, seconds: float, flap_s: float, kill_s: float, seed: int = 1) -> Soaked:
    generator = random.Random(seed)
    broker = Broker(folder)
    store = folder / "events.sqlite"
    mqtt = {"kind": "mqtt", "port": broker.port, "delivery": "backend_ack", "resend_s": 2.0, "keepalive_s": 2}
    outputs = [{"path": "-"}, mqtt, {"kind": "http", "port": 0}, {"kind": "unix_socket"}]
    vehicle = pattern_vehicle(outputs=outputs, loop=True, events={"path": str(store)})
    samples: list[Sample] = []
    worker_kills = broker_kills = 0
    with broker, Backend(broker.port) as backend, Daemon(folder, vehicle=vehicle) as daemon:
        told = Acknowledging(backend)
        daemon.wait_for_state("dry", timeout_s=60)
        began_s = time.monotonic()
        flap_at_s = kill_at_s = 0.0
        while (now_s := time.monotonic() - began_s) < seconds:
            time.sleep(0.25)
            samples.append(sample(daemon.process.pid, began_s))
            if now_s - flap_at_s > flap_s:
                broker.down()
                time.sleep(0.5)
                broker.up()
                flap_at_s, broker_kills = now_s, broker_kills + 1
            if now_s - kill_at_s > kill_s * generator.uniform(0.5, 1.5):
                kill_at_s, worker_kills = now_s, worker_kills + _kill_worker(daemon)
        _wait_until_quiet(told, seconds=8.0)
        code = daemon.stop(signal.SIGTERM)
        _wait_until_quiet(told, seconds=2.0)
    arrived = [at for at, _ in daemon.received if at >= began_s]
    return Soaked(
        samples=samples,
        states={message.state for message in daemon.messages},
        longest_silence_s=max(b - a for a, b in itertools.pairwise(arrived)),
        seqs_in_a_row=[m.seq for m in daemon.messages] == list(range(len(daemon.messages))),
        missing=told.reader.missing,
        events=sum(len(seen) for seen in told.reader._seen.values()),
        worker_kills=worker_kills,
        broker_kills=broker_kills,
        exit_code=code,
    )


def _kill_worker(daemon: Daemon) -> bool:
    try:
        os.kill(daemon.worker_pid(), signal.SIGKILL)
        return True
    except (AssertionError, ProcessLookupError):
        return False  # it is being replaced


def _wait_until_quiet(told: Acknowledging, seconds: float) -> None:
    """Until nothing has come for a second, or the time is over."""
    ends_s, count, since_s = time.monotonic() + seconds, -1, time.monotonic()
    while time.monotonic() < ends_s and time.monotonic() - since_s < 1.0:
        now = sum(len(seen) for seen in told.reader._seen.values())
        if now != count:
            count, since_s = now, time.monotonic()
        time.sleep(0.05)


def slope_mb_per_hour(samples: list[Sample]) -> float:
    """Least squares over the second half: the first fills caches."""
    half = samples[len(samples) // 2 :]
    mean_t = sum(s.at_s for s in half) / len(half)
    mean_m = sum(s.rss_mb for s in half) / len(half)
    above = sum((s.at_s - mean_t) * (s.rss_mb - mean_m) for s in half)
    return 3600 * above / sum((s.at_s - mean_t) ** 2 for s in half)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 900.0
    with tempfile.TemporaryDirectory() as name:
        done = soak(Path(name), seconds, flap_s=60.0, kill_s=30.0)
    first, last = done.samples[len(done.samples) // 2], done.samples[-1]
    slope = slope_mb_per_hour(done.samples)
    print(
        f"{done.events} events, {sum(map(len, done.missing.values()))} missing; "
        f"{done.worker_kills} worker kills, {done.broker_kills} broker kills\n"
        f"RSS {first.rss_mb:.1f} -> {last.rss_mb:.1f} MB ({slope:+.1f} MB an hour)\n"
        f"descriptors {first.descriptors} -> {last.descriptors}, threads {first.threads} -> {last.threads}\n"
        f"longest silence {done.longest_silence_s:.2f} s, states {sorted(done.states)}, exit {done.exit_code}"
    )


if __name__ == "__main__":
    main()
