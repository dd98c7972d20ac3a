"""What the live page costs: its weight, the processor for ten open pages, and a browser that stands still.

One daemon (coded pictures at 15 a second, preview at 5 a second) is watched through its standard output in
turns: by nobody; by ten pages, each with the event stream and five pictures a second; by ten dead browsers
that ask for the streams and for the history and never read a byte; by one page that asks for the parts of
the picture that spoke for the state, which costs the worker one more call of the model for each frame. The
turns alternate in one run, because a shared machine is never the same twice; medians over the turns.

python benchmarks/page.py [--seconds 10] [--rounds 3] [--pages 10] [--bundle DIR]
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[0:0] = [str(ROOT)]

import tomli_w  # noqa: E402

from edge_road.road_state import parse_message  # noqa: E402
from edge_road.web.files import page_files  # noqa: E402

LIVE_PAGE_ONLY = ("login", "setup")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Watched:
    """A daemon, how much processor time it has taken, and how old its messages are when they arrive."""

    def __init__(self, folder: Path, bundle: Path | None) -> None:
        self.port = free_port()
        page = {"kind": "http", "port": self.port, "snapshots": True, "clients": 64}
        source = {"kind": "pattern", "fps": 15.0, "segments": [{"state": "dry", "seconds": 86_400.0}]}
        outputs = [{"kind": "json_lines", "path": "-"}, page]
        model = {"bundle": str(bundle.absolute())} if bundle else {"backend": "fake"}
        trust = {"allow_unsigned": True}
        vehicle = {"vehicle": "page", **model, "trust": trust, "source": source, "outputs": outputs}
        (folder / "vehicle.toml").write_text(tomli_w.dumps(vehicle))
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "runtime/road_daemon.py"), "--vehicle", "vehicle.toml"],
            cwd=folder,
            env={**os.environ, "EDGE_ROAD_HOME": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.ages_ms: list[float] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        last_ns = None
        for line in self.process.stdout:
            now_ns, message = time.monotonic_ns(), parse_message(line)
            if message.captured_mono_ns not in (None, last_ns):
                last_ns = message.captured_mono_ns
                self.ages_ms.append((now_ns - last_ns) / 1e6)

    def cpu_s(self) -> float:
        """Of the supervisor, where the web server lives."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * TICK_S

    def observe(self, seconds: float) -> tuple[float, list[float]]:
        """Percent of a core, and the ages of the messages."""
        self.ages_ms.clear()
        began_s, began_cpu_s = time.monotonic(), self.cpu_s()
        time.sleep(seconds)
        return 100 * (self.cpu_s() - began_cpu_s) / (time.monotonic() - began_s), sorted(self.ages_ms)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", type=int, default=10)
    parser.add_argument("--bundle", type=Path, help="default: no model, brightness tells the state")
    parser.add_argument("--read", metavar="PORT", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        return read_pages(options.read, options.pages)
    with tempfile.TemporaryDirectory() as folder:
        daemon = Watched(Path(folder), options.bundle)
        try:
            wait_for_messages(daemon)
            report(options, measure(daemon, options))
        finally:
            daemon.process.terminate()
            daemon.process.wait(10)
    return None


def measure(daemon: Watched, options: argparse.Namespace) -> dict[str, list[tuple[float, list[float]]]]:
    turns = {"nobody": nobody, "pages": pages, "dead": dead_browsers, "parts": parts}
    seen: dict[str, list[tuple[float, list[float]]]] = {name: [] for name in turns}
    for _ in range(options.rounds):
        for name, turn in turns.items():
            with turn(daemon.port, options.pages):
                time.sleep(1.5)  # connections are made, and those of the turn before are gone
                seen[name].append(daemon.observe(options.seconds))
    return seen


def report(options: argparse.Namespace, seen: dict[str, list[tuple[float, list[float]]]]) -> None:
    cpu = {name: statistics.median(percent for percent, _ in turns) for name, turns in seen.items()}
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"weight of the page           {page_bytes() / 1000:8.1f} kB of 150, without the picture")
    print(f"supervisor, nobody watches   {cpu['nobody']:8.1f} % of a core")
    extra = cpu["pages"] - cpu["nobody"]
    print(f"supervisor, {options.pages} open pages    {cpu['pages']:8.1f} % of a core, {extra:+.1f} of 5")
    print(f"supervisor, {options.pages} dead browsers {cpu['dead']:8.1f} % of a core")
    texts = {
        "nobody": "nobody watches",
        "pages": "open pages",
        "dead": "dead browsers",
        "parts": "parts shown",
    }
    for name, text in texts.items():
        ages = sorted(age for _, turn in seen[name] for age in turn)
        p50, p99 = ages[len(ages) // 2], ages[min(len(ages) - 1, int(0.99 * len(ages)))]
        print(
            f"camera to reader, {text:<15}{p50:7.1f} ms p50, {p99:.1f} p99, {ages[-1]:.1f} most ({len(ages)})"
        )


def page_bytes() -> int:
    files = page_files("edge_road.runtime")
    return sum(len(content) for name, (content, _) in files.items() if not name.startswith(LIVE_PAGE_ONLY))


@contextmanager
def nobody(port: int, count: int) -> Iterator[None]:
    yield


@contextmanager
def pages(port: int, count: int) -> Iterator[None]:
    """In a process of their own, whose time is not the daemon's."""
    readers = subprocess.Popen([sys.executable, __file__, "--read", str(port), "--pages", str(count)])
    try:
        yield
    finally:
        readers.terminate()
        readers.wait(10)


@contextmanager
def dead_browsers(port: int, count: int) -> Iterator[None]:
    channels = [ask(port, path, 1024) for _ in range(count) for path in ("/events", "/camera", "/history")]
    yield
    for channel in channels:
        channel.close()


@contextmanager
def parts(port: int, count: int) -> Iterator[None]:
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(1.0):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/parts", timeout=10) as answer:
                answer.read()

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    yield
    ended.set()
    looking.join()


def ask(port: int, path: str, buffer_bytes: int = 65536) -> socket.socket:
    channel = socket.socket()
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    channel.connect(("127.0.0.1", port))
    channel.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return channel


def read_pages(port: int, count: int) -> None:
    """What browsers do, without the drawing."""
    for _ in range(count):
        for path in ("/events", "/camera"):
            threading.Thread(target=read_stream, args=(port, path), daemon=True).start()
    while True:
        time.sleep(1)


def read_stream(port: int, path: str) -> None:
    channel = ask(port, path)
    while channel.recv(65536):
        pass


def wait_for_messages(daemon: Watched) -> None:
    for _ in range(600):
        if daemon.ages_ms:
            return
        time.sleep(0.1)
    raise SystemExit("the daemon says nothing")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
