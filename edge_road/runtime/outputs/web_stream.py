"""Server-sent events to one reader: the newest state first if it still holds, then what comes, and health."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict

from edge_road.runtime.outputs.hub import Hub
from edge_road.runtime.status import Status

HEALTH_EVERY_S = 2.0


def sse(name: str, content: str) -> str:
    return f"event: {name}\ndata: {content}\n\n"


def stream(hub: Hub, status: Status, may_read: Callable[[], bool]) -> AsyncIterator[str] | None:
    """None when the house is full; it ends when the reader may not read any more."""
    return None if hub.readers >= hub.most_readers else _parts(hub, status, may_read)


async def _parts(hub: Hub, status: Status, may_read: Callable[[], bool]) -> AsyncIterator[str]:
    loop, come = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(come.set)

    reader = hub.join(wake)  # here: who never begins to read would never leave
    if reader is None:
        return
    try:
        if status.newest is not None and status.alive:
            yield sse("state", status.newest[1])
        while may_read():
            yield sse("health", json.dumps(flat_health(status)))
            ends = loop.time() + HEALTH_EVERY_S
            while await _comes(come, ends - loop.time()):
                if items := reader.take():
                    yield "".join(items)
    finally:
        hub.leave(reader)


async def _comes(event: asyncio.Event, within_s: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), within_s)
    except asyncio.TimeoutError:
        return False
    event.clear()
    return True


def flat_health(status: Status) -> dict[str, object]:
    """One value a name, for a table; what is not there, and what never changes, is left out."""
    health = status.health()
    storage, outputs = health.pop("storage") or {}, health.pop("outputs")
    machine, facts = health.pop("machine"), asdict(status.machine_facts)
    del health["reasons"]
    flat = {**health, **{name: value for name, value in machine.items() if name not in facts}}
    flat["storage"] = "ok" if storage.get("ok", True) else storage.get("detail")
    flat["events_waiting"] = storage.get("waiting", 0)
    for output in outputs:
        flat[output["name"]] = "ok" if output["ok"] else output["detail"] or "failing"
    return {name: told(value) for name, value in flat.items() if value not in (None, "", [], {})}


def told(value: object) -> object:
    """A value as a table shows it."""
    if isinstance(value, dict):
        return ", ".join(
            f"{name} {told(inner)}" for name, inner in value.items() if inner not in (None, "", {})
        )
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return round(value, 2) if isinstance(value, float) else value
