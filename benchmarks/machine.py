"""What a measurement was made on: processor, memory, load, and the version of everyone."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from edge_road import workspace


def description() -> dict[str, str]:
    return {
        "processor": _processor(),
        "cores": f"{len(os.sched_getaffinity(0))}",
        "memory": f"{_memory_gb():.0f} GB",
        "load at the start": f"{os.getloadavg()[0]:.1f}",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "commit": workspace.git_commit() or "unknown",
    }


def versions(packages: Iterable[str]) -> dict[str, str]:
    return {name: _version(name) for name in packages}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found.group(1) if found else platform.machine()


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
