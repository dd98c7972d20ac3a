"""The check in a process of its own says what the check says, and survives what the check does not."""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from camera_servers import wait_until
from tiny_bundle import write_tiny_bundle
from tiny_onnx import conv_bytes

from edge_road.backends import onnx_check_apart
from edge_road.backends.onnx_check import check_onnx
from edge_road.backends.onnx_check_apart import begin_check
from edge_road.errors import BackendError


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runner has threads, none of which holds a lock that the check needs."""
    monkeypatch.setattr(onnx_check_apart, "_alone", lambda: True)


def test_a_good_model_passes_and_no_process_stays(apart: None) -> None:
    before = children()
    begin_check(conv_bytes(), where="tiny")()
    assert children() == before


def children() -> set[str]:
    """Of this process; others of its tests may have left some."""
    return {pid for task in Path("/proc/self/task").glob("*/children") for pid in task.read_text().split()}


@pytest.mark.parametrize("content", [b"no model", b"", conv_bytes()[:-40]])
def test_a_bad_model_is_refused_in_the_same_words(apart: None, content: bytes) -> None:
    with pytest.raises(BackendError) as here:
        check_onnx(content, where="tiny")
    with pytest.raises(BackendError) as there:
        begin_check(content, where="tiny")()
    assert str(there.value) == str(here.value)


def end_by(how: signal.Signals) -> None:
    faulthandler.disable()  # in the child alone: its trace would look like a failure of the tests
    os.kill(os.getpid(), how)


def find_no_memory() -> None:
    raise MemoryError


def test_a_check_that_crashes_is_a_refusal(apart: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_check_apart, "check_onnx", lambda *_, **__: end_by(signal.SIGSEGV))
    with pytest.raises(BackendError, match="cannot be checked"):
        begin_check(conv_bytes(), where="tiny")()


@pytest.mark.parametrize("end", [partial(end_by, signal.SIGKILL), find_no_memory])
def test_a_lack_of_memory_says_nothing_of_the_model(
    apart: None, monkeypatch: pytest.MonkeyPatch, end: Callable[[], None]
) -> None:
    monkeypatch.setattr(onnx_check_apart, "check_onnx", lambda *_, **__: end())
    with pytest.raises(MemoryError):
        begin_check(conv_bytes(), where="tiny")()


@pytest.mark.parametrize("place", ["ModelProto", "numpy_helper.to_array", "shape_inference.infer_shapes"])
def test_nor_does_a_lack_of_memory_amid_the_check(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setattr(f"onnx.{place}", lambda *_, **__: find_no_memory())
    with pytest.raises(MemoryError):
        check_onnx(conv_bytes(), where="tiny")


def test_a_bug_in_the_check_is_a_refusal(apart: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_check_apart, "check_onnx", lambda *_, **__: 1 // 0)
    with pytest.raises(BackendError, match="cannot be checked"):
        begin_check(conv_bytes(), where="tiny")()


@pytest.mark.parametrize("obstacle", ["other threads", "no process to be had"])
def test_where_no_process_can_be_forked_the_check_is_made_here(
    monkeypatch: pytest.MonkeyPatch, obstacle: str
) -> None:
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(onnx_check_apart, "_alone", lambda: obstacle != "other threads")
    monkeypatch.setattr(os, "fork", refuse)
    begin_check(conv_bytes(), where="tiny")()
    with pytest.raises(BackendError, match="not an ONNX model"):
        begin_check(b"no model", where="tiny")()


OPEN = """
import sys
from pathlib import Path
from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.bundle import load_bundle
OnnxPredictor.from_bundle(load_bundle(Path(sys.argv[1])))
print("onnx" in sys.modules)
"""


def test_a_process_with_one_thread_opens_a_model_without_ever_loading_onnx(
    tmp_path: Path, root: Path
) -> None:
    write_tiny_bundle(tmp_path / "bundle")
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", OPEN, str(tmp_path / "bundle")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "False", done.stderr


HANG = """
import sys, time
from edge_road.backends import onnx_check_apart
onnx_check_apart.check_onnx = lambda *_, **__: time.sleep(60)
print(onnx_check_apart.begin_check(b"", where="").args[0], flush=True)
time.sleep(60)
"""


def test_a_check_that_hangs_ends_with_whoever_waits_for_it(root: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(root)}
    parent = subprocess.Popen(
        [sys.executable, "-c", HANG], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    wait_until(lambda: not Path(f"/proc/{child}").exists())
