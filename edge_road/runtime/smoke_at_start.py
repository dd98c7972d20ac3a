"""The bundle's self-test beside the start: the verdict that whoever has updated a vehicle waits for."""

from __future__ import annotations

import threading

from edge_road.runtime.events.event import Severity
from edge_road.runtime.events.journal import Journal
from edge_road.runtime.status import Status
from edge_road.runtime.vehicle import Vehicle


def begin_smoke(status: Status, journal: Journal, vehicle: Vehicle, digest: str) -> None:
    """In a process and a thread of their own: the road is watched meanwhile."""
    if vehicle.smoke_at_start and vehicle.bundle is not None:
        status.smoke = {"smoke": "running", "digest": digest}
        threading.Thread(
            target=_tell, args=(status, journal, vehicle, digest), name="smoke", daemon=True
        ).start()


def _tell(status: Status, journal: Journal, vehicle: Vehicle, digest: str) -> None:
    import asyncio  # only here: it takes longer than a heartbeat may wait

    from edge_road.runtime.outputs.self_test import SelfTest

    result = asyncio.run(SelfTest(status, lambda: vehicle).run())
    verdict = ("passed" if result["passed"] else "failed") if "passed" in result else result.get("error")
    failed = [check["name"] for check in result.get("checks", ()) if check["accuracy"] < check["least"]]
    told = {"smoke": verdict, "digest": digest, "failed": failed}
    status.smoke = told
    journal.note("model", Severity.NOTE if verdict == "passed" else Severity.ALARM, dict(told))
