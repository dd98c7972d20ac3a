"""A real daemon in a process of its own, watched through its messages."""

from __future__ import annotations

import fcntl
import functools
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Any

import tomli_w

from edge_road.road_state import RoadState, parse_message

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "runtime" / "road_daemon.py"
STATES = ("dry", "wet", "icy")


class Turn:
    """Daemons watch the clock: those of parallel test processes wait for each other."""

    def __init__(self) -> None:
        self._file = open(Path(tempfile.gettempdir()) / f"edge_road_tests_{os.getuid()}.lock", "w")  # noqa: SIM115
        self._daemons = 0

    def take(self) -> None:
        if self._daemons == 0:
            fcntl.flock(self._file, fcntl.LOCK_EX)
        self._daemons += 1

    def give_back(self) -> None:
        self._daemons -= 1
        if self._daemons == 0:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            time.sleep(0.02)  # whoever waits gets it, not the next test of this process


_TURN = Turn()


class Daemon:
    """Messages come through the standard output and are stamped when they arrive."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        vehicle: dict[str, Any] | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.folder = folder
        words = [str(option) for option in options]
        if vehicle is not None:
            (folder / "vehicle.toml").write_text(tomli_w.dumps(vehicle))
            words += ["--vehicle", str(folder / "vehicle.toml")]
        _TURN.take()
        self.began_s = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT), *words],
            stdout=subprocess.PIPE,
            stderr=open(folder / "stderr.txt", "wb"),  # noqa: SIM115
            env={**os.environ, "EDGE_ROAD_HOME": str(folder), **(environment or {})},
            cwd=folder,
        )
        self.received: list[tuple[float, RoadState]] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Daemon:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        _TURN.give_back()

    @property
    def stderr(self) -> str:
        return (self.folder / "stderr.txt").read_text()

    @property
    def messages(self) -> list[RoadState]:
        return [message for _, message in self.received]

    def wait_for(
        self, wanted: Callable[[RoadState], bool], timeout_s: float = 40.0, since_s: float = 0.0
    ) -> tuple[float, RoadState]:
        """The first message of this kind that arrived after `since_s`."""

        def found() -> tuple[float, RoadState] | None:
            return next(((at, m) for at, m in self.received if at >= since_s and wanted(m)), None)

        with self._changed:
            self._changed.wait_for(lambda: found() or self._ended, timeout_s)
            result = found()
        assert result is not None, f"it was not said in {timeout_s} s\n{self._tail()}\n{self.stderr}"
        return result

    def wait_for_state(self, *states: str, since_s: float = 0.0, timeout_s: float = 40.0) -> float:
        return self.wait_for(lambda m: m.state in (states or STATES), timeout_s, since_s)[0]

    def wait_for_unknown(self, reason: str, since_s: float = 0.0, timeout_s: float = 40.0) -> float:
        return self.wait_for(lambda m: m.state == "unknown" and reason in m.reasons, timeout_s, since_s)[0]

    def worker_pid(self) -> int:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        assert len(children) == 1, children
        return int(children[0])

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.finish(timeout_s=30)

    def finish(self, timeout_s: float = 60.0) -> int:
        code = self.process.wait(timeout_s)
        self._reader.join(5)
        return code

    _ended = False

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self.received.append((time.monotonic(), parse_message(line)))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _tail(self) -> str:
        return "\n".join(f"{at - self.began_s:7.3f} {m.state} {m.reasons}" for at, m in self.received[-30:])


def crowding() -> float:
    """How many processes share one core of this machine: what is promised may take as many times longer."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


Scenario = Callable[..., None]
ATTEMPTS = 3
ATTEMPT: ContextVar[int] = ContextVar("attempt", default=1)
"""which one of a test is under way: the table of measurements tells of it"""


class NeverConnected(AssertionError):
    """gloo gave up between two processes of one machine: no promise of ours was tried."""


def retried_on_a_busy_machine(scenario: Scenario) -> Scenario:
    """Times are promised for a machine that is not overloaded; on one that is not, they hold at once."""

    @functools.wraps(scenario)  # pytest reads the fixtures that the scenario asks for
    def test(tmp_path: Path, **fixtures: Any) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            folder = tmp_path / str(attempt)
            folder.mkdir()
            token = ATTEMPT.set(attempt)
            try:
                return scenario(tmp_path=folder, **fixtures)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                is_ours = not isinstance(error, NeverConnected)
                if attempt == ATTEMPTS or (is_ours and crowding() <= 1.0):
                    raise
            finally:
                ATTEMPT.reset(token)

    return test


def resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def pattern_vehicle(*segments: tuple[str, float], fps: float = 20, **settings: Any) -> dict[str, Any]:
    """A vehicle with coded pictures and the fake backend; `faults` go into the source."""
    source: dict[str, Any] = {
        "kind": "pattern",
        "fps": fps,
        "segments": [{"state": state, "seconds": seconds} for state, seconds in segments or [("dry", 600.0)]],
    }
    for key in ("faults", "truth", "loop"):
        if key in settings:
            source[key] = settings.pop(key)
    trust = {"allow_unsigned": True}  # a test's bundle is its own
    return {"vehicle": "test", "backend": "fake", "trust": trust, "source": source, **settings}
