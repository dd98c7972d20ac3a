"""`edge-road doctor`: what this machine has and lacks for the daemon. It changes nothing."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from edge_road import __version__, workspace
from edge_road.clock import clock_synced
from edge_road.errors import EdgeRoadError
from edge_road.runtime.events.journal import state_folder
from edge_road.runtime.machine import hottest_zone_c, power_mode
from edge_road.runtime.machine_facts import held_back, machine_facts
from edge_road.runtime.thermal import ThermalSettings

PACKAGES = ("numpy", "pydantic", "onnxruntime", "av", "paho-mqtt", "starlette", "uvicorn", "python-can")
OLDEST_SQLITE = (3, 37, 0)
"""STRICT tables"""
LEAST_FREE = 0.07
ARPHRD_CAN = "280"
"""of the kernel's if_arp.h"""


@dataclass(frozen=True)
class Finding:
    what: str
    ok: bool
    found: str
    fix: str = ""


def version_facts() -> dict[str, str | None]:
    return {
        "version": __version__,
        "git_commit": workspace.git_commit(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "kernel": platform.release(),
    }


def examine() -> list[Finding]:
    checks: tuple[Callable[[], list[Finding]], ...] = (
        _machine, _packages, _sqlite, _disk, _clock, _cameras, _gstreamer, _can, _gpu, _tensorrt,
        _providers, _bundle, _descriptors,
    )  # fmt: skip
    return [finding for check in checks for finding in check()]


def _machine() -> list[Finding]:
    facts, thermal = machine_facts(), ThermalSettings()
    texts = (
        facts.model,
        facts.l4t and f"L4T {facts.l4t} (JetPack {facts.jetpack or '?'})",
        facts.cpu,
        f"{facts.cores} cores",
        None if facts.memory_mb is None else f"{facts.memory_mb} MB",
    )
    hottest_c, mode = hottest_zone_c(thermal.zones), power_mode(thermal.power_mode)
    heat = "no thermal zone" if hottest_c is None else f"{hottest_c:.0f} C"
    cool = hottest_c is None or hottest_c < thermal.hot_c
    slow = held_back()
    return [
        Finding("machine", True, ", ".join(filter(None, texts))),
        Finding("temperature", cool, heat, "the daemon looks less often when it is hot"),
        Finding("power mode", True, mode or "not a Jetson"),
        Finding(
            "clock of the CPU", not slow, "held back" if slow else "full", "nvpmodel, jetson_clocks, cooling"
        ),
    ]


def _packages() -> list[Finding]:
    findings = []
    for name in PACKAGES:
        try:
            findings.append(Finding(f"package {name}", True, metadata.version(name)))
        except metadata.PackageNotFoundError:
            fix = "pip install 'edge-road[vehicle]'"
            findings.append(Finding(f"package {name}", False, "not installed", fix))
    return findings


def _sqlite() -> list[Finding]:
    ok = sqlite3.sqlite_version_info >= OLDEST_SQLITE
    return [Finding("sqlite", ok, sqlite3.sqlite_version, "" if ok else "3.37 or newer is needed for events")]


def _disk() -> list[Finding]:
    """Of the nearest folder that exists: the store's own is made at the first start."""
    folder = state_folder()
    while not folder.exists():
        folder = folder.parent
    usage = shutil.disk_usage(folder)
    share = usage.free / usage.total
    writable = os.access(folder, os.W_OK)
    found = f"{folder}: {share:.0%} free" + ("" if writable else ", not writable")
    return [
        Finding("room for events", writable and share >= LEAST_FREE, found, "make room, or set events.path")
    ]


def _clock() -> list[Finding]:
    synced = clock_synced()
    found = "synchronised" if synced else "not synchronised: UTC in messages may be wrong, states are not"
    return [Finding("clock", synced, found, "run a time service, such as chrony")]


def _cameras() -> list[Finding]:
    devices = sorted(str(path) for path in Path("/dev").glob("video*"))
    return [Finding("V4L2 cameras", bool(devices), ", ".join(devices) or "none")]


def _gstreamer() -> list[Finding]:
    found = shutil.which("gst-launch-1.0")
    return [
        Finding("GStreamer", bool(found), found or "none: no CSI camera", "apt install gstreamer1.0-tools")
    ]


def _can() -> list[Finding]:
    kinds = Path("/sys/class/net").glob("*/type")
    names = sorted(kind.parent.name for kind in kinds if kind.read_text().strip() == ARPHRD_CAN)
    return [
        Finding("CAN interfaces", bool(names), ", ".join(names) or "none", "ip link set can0 up type can")
    ]


def _tensorrt() -> list[Finding]:
    try:
        from edge_road.backends.trt import import_tensorrt

        return [Finding("TensorRT", True, import_tensorrt().__version__)]
    except (EdgeRoadError, ImportError) as error:
        return [
            Finding("TensorRT", False, "none: no engines", getattr(error, "details", {}).get("to do", ""))
        ]


def _providers() -> list[Finding]:
    try:
        import onnxruntime

        return [Finding("ONNX Runtime on", True, ", ".join(onnxruntime.get_available_providers()))]
    except ImportError:
        return []  # said among the packages


def _gpu() -> list[Finding]:
    tegra = Path("/etc/nv_tegra_release")
    found = [str(path) for path in (tegra, Path("/dev/nvidia0"), Path("/dev/nvhost-gpu")) if path.exists()]
    return [Finding("NVIDIA GPU", bool(found), ", ".join(found) or "none: the model runs on the CPU")]


def _bundle() -> list[Finding]:
    try:
        return [Finding("newest bundle", True, str(workspace.newest_bundle()))]
    except EdgeRoadError as error:
        return [Finding("newest bundle", False, error.what, error.details.get("to do", ""))]


def _descriptors() -> list[Finding]:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return [Finding("open files", soft >= 256, f"{soft} allowed", "ulimit -n 1024")]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="edge-road doctor",
        description="What this machine has and lacks. What one vehicle needs is told by: "
        "edge-road run --vehicle FILE --check",
    )
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    chosen = parser.parse_args(arguments)
    facts, findings = version_facts(), examine()
    if chosen.json:
        print(json.dumps({**facts, "findings": [asdict(finding) for finding in findings]}, indent=2))
        return 0
    print("edge-road " + ", ".join(f"{name} {value}" for name, value in facts.items() if value))
    for finding in findings:
        advice = f"  ({finding.fix})" if finding.fix and not finding.ok else ""
        print(f"{'ok' if finding.ok else '--':<4}{finding.what:<22}{finding.found}{advice}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
