"""The daemon's figures for Prometheus; every label comes from a fixed list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from edge_road.conditions import STATES, UNKNOWN
from edge_road.runtime.status import Status

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    def __init__(self, status: Status) -> None:
        self._status = status
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Any]:
        status = self._status
        yield self._states()
        yield _counter("frames", "frames judged", status.frames)
        yield _counter("frames_dropped", "frames that a newer one replaced", status.dropped)
        yield _counter("frames_rejected", "pictures that could not be decoded", status.rejected)
        yield _by("frames_unfit", "frames that were not judged", "problem", status.unfit)
        yield _counter("worker_starts", "starts of the worker", status.worker_starts)
        yield _by("messages", "messages by state", "state", status.messages)
        yield _by("reasons", "messages by reason", "reason", status.reasons)
        yield _gauge("silent_seconds", "since the last message", status.silent_s())
        yield _gauge("blind_seconds", "of nothing but unknown, by a fault", status.blind_s())
        yield _gauge("up_seconds", "since the start", status.up_s())
        if status.newest is not None:
            yield from self._newest()
        if status.storage is not None:
            storage = status.storage()
            yield _gauge("storage_ok", "events are stored on the disk", storage.ok)
            yield _gauge(
                "events_waiting", "events that an MQTT output has not delivered yet", storage.waiting
            )
            yield _gauge("events_unsaved", "events that only memory holds", storage.unsaved)
        yield from self._machine()
        yield from self._outputs()

    def _states(self) -> Any:
        family = GaugeMetricFamily("edge_road_state", "1 for the state that holds", labels=["state"])
        newest = self._status.newest
        holds = newest[0].state if newest and self._status.alive else UNKNOWN
        for state in (*STATES, UNKNOWN):
            family.add_metric([state], float(state == holds))
        return family

    def _newest(self) -> Iterator[Any]:
        assert self._status.newest is not None
        message = self._status.newest[0]
        if message.age_ms is not None:
            yield _gauge("frame_age_seconds", "from capture to message", message.age_ms / 1000)
        family = GaugeMetricFamily("edge_road_stage_seconds", "time of each stage", labels=["stage"])
        for stage, milliseconds in sorted(message.stage_ms.items())[:16]:
            family.add_metric([stage], milliseconds / 1000)
        yield family

    def _machine(self) -> Iterator[Any]:
        facts, machine = self._status.machine_facts, self._status.machine
        labels = {"model": facts.model, "l4t": facts.l4t, "cpu": facts.cpu}
        family = GaugeMetricFamily("edge_road_machine", "which computer this is", labels=list(labels))
        family.add_metric([value or "" for value in labels.values()], 1.0)
        yield family
        yield _gauge("rehearsal", "1 while faults are injected on purpose", bool(self._status.rehearsal))
        if machine is None:
            return
        yield _gauge("rate_hertz", "most pictures judged in a second, for now", machine.rate_hz)
        yield _gauge("throttled", "1 while heat or power holds the computer back", machine.throttled)
        yield _gauge("dropped_share", "of the last frames", machine.dropped_share)
        if machine.hottest_c is not None:
            yield _gauge("temperature_celsius", "of the hottest zone", machine.hottest_c)
        if machine.available_mb is not None:
            yield _gauge(
                "memory_available_bytes", "that programs could still get", machine.available_mb * 2**20
            )

    def _outputs(self) -> Iterator[Any]:
        ok = GaugeMetricFamily("edge_road_output_ok", "1 while the output works", labels=["output"])
        lost = CounterMetricFamily("edge_road_output_lost", "messages nobody will get", labels=["output"])
        for output in self._status.outputs():
            ok.add_metric([output.name], float(output.ok))
            lost.add_metric([output.name], output.lost)
        yield from (ok, lost)


def _counter(name: str, text: str, value: float) -> Any:
    return CounterMetricFamily(f"edge_road_{name}", text, value=value)


def _gauge(name: str, text: str, value: float) -> Any:
    return GaugeMetricFamily(f"edge_road_{name}", text, value=float(value))


def _by(name: str, text: str, label: str, counts: dict[str, int]) -> Any:
    family = CounterMetricFamily(f"edge_road_{name}", text, labels=[label])
    for value, count in sorted(counts.items()):
        family.add_metric([value], count)
    return family
