"""What a process that decodes or infers may take, and with whom it ends."""

from __future__ import annotations

import ctypes
import logging
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from edge_road.runtime.vehicle import WorkerLimits

log = logging.getLogger(__name__)

_PR_SET_PDEATHSIG = 1
_PACKAGE_PARENT = Path(__file__).resolve().parents[2]


def spawn(module: str, descriptors: Sequence[int]) -> subprocess.Popen[bytes]:
    """A Python process of ours; it gets the numbers of its descriptors and of its parent as arguments."""
    return subprocess.Popen(
        [sys.executable, "-m", module, *map(str, descriptors), str(os.getpid())],
        pass_fds=descriptors,
        stdin=subprocess.DEVNULL,
        stdout=2,  # the standard output belongs to the messages
        start_new_session=True,  # Ctrl-C on the terminal is the supervisor's to answer
        env=_environment(),
    )


def _environment() -> dict[str, str]:
    """This very package must be found, whatever the current folder holds."""
    paths = [str(_PACKAGE_PARENT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}


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


def die_with(parent_pid: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the supervisor's to answer
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:  # it died before the line above
        os._exit(1)
