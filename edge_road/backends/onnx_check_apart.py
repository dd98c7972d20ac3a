"""The check of an ONNX file in a process of its own: its memory is given back, and a crash is a refusal.

A lack of memory says nothing of the file: it is no refusal but a MemoryError, as without that process.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import signal
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from edge_road.backends.onnx_check import check_onnx
from edge_road.errors import BackendError
from edge_road.processes import end_with

log = logging.getLogger(__name__)

LARGEST_VERDICT_BYTES = 64 * 1024
NO_MEMORY = (errno.ENOMEM, -signal.SIGKILL)
"""exit codes of the process: it found none itself, or the kernel ended it for want of some"""


def begin_check(content: bytes, where: object) -> Callable[[], object]:
    """Begins it; what is returned waits for the verdict, and raises `check_onnx`'s error."""
    here = partial(check_onnx, content, where=where)
    if not _alone():
        return here  # a forked child would inherit the locks of threads that it does not have
    reader, writer = os.pipe()
    parent = os.getpid()
    try:
        child = os.fork()
    except OSError:  # no memory or no process to be had
        os.close(reader)
        os.close(writer)
        return here
    if child == 0:
        _judge(here, writer, parent)
    os.close(writer)
    return partial(_await, child, reader, where)


def _alone() -> bool:
    """Without other threads, those of libraries included; only Linux can tell."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except FileNotFoundError:
        return False


def _judge(check: Callable[[], object], writer: int, parent: int) -> NoReturn:
    code = 0
    try:
        end_with(parent)
        os.write(writer, json.dumps(_verdict(check)).encode())
    except MemoryError:
        code = errno.ENOMEM
    except BaseException:  # nothing may go on in the child what the parent does
        log.exception("an ONNX model cannot be checked")
    finally:
        os._exit(code)


def _verdict(check: Callable[[], object]) -> dict[str, object]:
    try:
        check()
    except BackendError as error:
        return {"what": error.what, "details": error.details}
    return {}


def _await(child: int, reader: int, where: object) -> None:
    with open(reader, "rb") as pipe:
        said = pipe.read(LARGEST_VERDICT_BYTES)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        verdict = json.loads(said)
    except ValueError:
        if code in NO_MEMORY:
            raise MemoryError("the process that checks the ONNX model was without") from None
        raise BackendError(
            "the ONNX model cannot be checked", where=where, got=f"code {code} of the process that tried"
        ) from None
    if verdict:
        error = BackendError(verdict["what"])
        error.details = verdict["details"]
        raise error
