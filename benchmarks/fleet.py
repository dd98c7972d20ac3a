"""Fifty simulated vehicles on a real Mosquitto before the fleet page: memory, processor, wrong states.

python benchmarks/fleet.py [--seconds 600] [--vehicles 50] [--hz 2]

Needs mosquitto. The service runs with a store and one reader of its stream, as on a desk in a control room.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[0:0] = [str(ROOT), str(ROOT / "tests")]

import httpx  # noqa: E402
from daemon_harness import resident_mb  # noqa: E402
from fleet_service import FleetService  # noqa: E402
from fleet_traffic import Traffic  # noqa: E402
from mosquitto import Broker  # noqa: E402

from edge_road.client import LONGEST_VALID_MS  # noqa: E402
from edge_road.fleet.track import MOST_POINTS  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--vehicles", type=int, default=50)
    parser.add_argument("--hz", type=float, default=2.0, help="messages a second of each vehicle")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = ("--store", str(folder / "fleet.sqlite"))
        with (
            Broker(folder) as broker,
            FleetService(folder, broker, *store) as service,
            Traffic(broker.port, options.vehicles) as traffic,
        ):
            measure(service, traffic, options.seconds, options.hz)


def measure(service: FleetService, traffic: Traffic, seconds: float, hz: float) -> None:
    threading.Thread(target=read_stream, args=(service.url,), daemon=True).start()
    for _ in range(MOST_POINTS + 1):  # tracks are full, so that what grows now would grow for ever
        traffic.tick()
    service.wait_for(lambda: told_right(service, traffic), timeout_s=300)  # it has caught up
    first_mb, began_s, cpu_s = resident_mb(service.process.pid), time.monotonic(), processor_s(service)
    wrong = judged = 0
    highest_mb, shown_s = first_mb, began_s
    while (now_s := time.monotonic()) - began_s < seconds:
        traffic.tick(valid_for_ms=5000)
        time.sleep(max(0.0, now_s + 1 / hz - time.monotonic()))
        highest_mb = max(highest_mb, resident_mb(service.process.pid))
        if now_s - shown_s >= seconds / 10:
            shown_s = now_s
            wrong, judged = wrong + wrong_states(service, traffic), judged + len(traffic.vehicles)
            print(f"{now_s - began_s:6.0f} s  {resident_mb(service.process.pid):6.1f} MB", flush=True)
    lasted_s = time.monotonic() - began_s
    print(f"vehicles           {len(traffic.vehicles)} at {hz:g} messages a second, one open page")
    print(f"memory             {first_mb:.1f} MB at first, {highest_mb:.1f} MB at most")
    print(f"processor          {100 * (processor_s(service) - cpu_s) / lasted_s:.1f} % of a core")
    print(f"states             {wrong} wrong of {judged} looked at")


def told_right(service: FleetService, traffic: Traffic) -> bool:
    """Said anew each time, because no state is believed for longer than a minute."""
    traffic.tick(LONGEST_VALID_MS)
    return wrong_states(service, traffic) == 0


def wrong_states(service: FleetService, traffic: Traffic) -> int:
    """Nobody speaks meanwhile; the last words have two seconds to arrive."""
    for _ in range(20):
        shown = service.states()
        wrong = sum(shown.get(vehicle.name) != vehicle.state for vehicle in traffic.vehicles)
        if wrong == 0:
            break
        time.sleep(0.1)
    return wrong


def read_stream(url: str) -> None:
    with (
        contextlib.suppress(httpx.TransportError),  # the service has ended
        httpx.stream("GET", f"{url}/stream", timeout=None) as answer,
    ):
        for _ in answer.iter_lines():
            pass


def processor_s(service: FleetService) -> float:
    fields = Path(f"/proc/{service.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


if __name__ == "__main__":
    main()
