"""What a process that decodes or infers may take."""

from __future__ import annotations

import ctypes
import logging
import resource

from edge_road.runtime.vehicle import WorkerLimits

log = logging.getLogger(__name__)


def limit_ourselves(limits: WorkerLimits) -> None:
    if limits.memory_mb:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = limits.memory_mb * 2**20
        resource.setrlimit(
            resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
        )
    try:  # when memory runs out, the worker goes and not the supervisor
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        log.debug("the kernel does not let us raise our own oom score")


def give_back_memory() -> None:
    """What the C library keeps after a model was opened: as much again as the model."""
    if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
