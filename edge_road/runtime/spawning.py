"""Processes of ours: started with a socket to talk over, ended with whoever started them.

Nothing heavy is imported here: a worker starts before the supervisor has imported the rest.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from edge_road.processes import end_with

WORKER = "edge_road.runtime.worker"
KILL_S = 0.2
_PACKAGE_PARENT = Path(__file__).resolve().parents[2]


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """SOCK_SEQPACKET keeps record boundaries and tells when the other side is gone."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def spawn(module: str, descriptors: Sequence[int]) -> subprocess.Popen[bytes]:
    """The module's `main` in a process of its own; it gets the numbers of its descriptors."""
    return subprocess.Popen(
        [sys.executable, "-m", "edge_road.runtime.spawning", module, *map(str, (*descriptors, os.getpid()))],
        pass_fds=descriptors,
        stdin=subprocess.DEVNULL,
        stdout=2,  # the standard output belongs to the messages
        start_new_session=True,  # Ctrl-C on the terminal is the supervisor's to answer
        env=_environment(),
    )


@dataclass(frozen=True)
class EarlyWorker:
    """It imports its libraries, then waits for its settings: until they come it touches nothing."""

    process: subprocess.Popen[bytes]
    channel: socket.socket

    def close(self) -> None:
        self.process.kill()
        with suppress(subprocess.TimeoutExpired):  # stuck in the kernel; it cannot hold us up
            self.process.wait(KILL_S)
        self.channel.close()


@contextmanager
def early_worker() -> Iterator[EarlyWorker | None]:
    """None when no process is to be had now; a worker is then started when it is needed."""
    ours, theirs = socket_pair()
    try:
        early = EarlyWorker(spawn(WORKER, [theirs.fileno()]), ours)
    except OSError:
        early = None
        ours.close()
    theirs.close()
    try:
        yield early
    finally:
        if early is not None:
            early.close()


def _environment() -> dict[str, str]:
    """This very package must be found, whatever the current folder holds.

    NumPy's linear algebra would start a thread for each core, and has nothing to do here.
    """
    paths = [str(_PACKAGE_PARENT), *filter(None, [os.environ.get("PYTHONPATH")])]
    ours = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
    return {"OPENBLAS_NUM_THREADS": "1", **os.environ, **ours}


def main(module: str, *numbers: str) -> NoReturn:
    *descriptors, parent_pid = map(int, numbers)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the supervisor's to answer
    end_with(parent_pid)  # first: the imports take a while
    code = import_module(module).main(descriptors)
    sys.stderr.flush()
    os._exit(code)  # a thread that hangs in a decoder must not keep the process


if __name__ == "__main__":
    main(*sys.argv[1:])
