"""Processes of ours end with whoever started them, at any moment of their lives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from camera_servers import wait_until

from edge_road.runtime import spawning
from edge_road.runtime.spawning import early_worker, spawn

PARENT = """
import time
from edge_road.runtime.spawning import spawn
print(spawn("slow", []).pid, flush=True)
time.sleep(60)
"""


def test_a_process_that_still_imports_ends_with_its_parent(tmp_path: Path, root: Path) -> None:
    mark = tmp_path / "importing"
    (tmp_path / "slow.py").write_text(f"import time; open({str(mark)!r}, 'w').close(); time.sleep(60)")
    environment = {**os.environ, "PYTHONPATH": f"{root}:{tmp_path}"}
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, env=environment, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    wait_until(mark.exists)
    parent.kill()
    parent.communicate()
    wait_until(lambda: not Path(f"/proc/{child}").exists())


def test_a_process_hands_on_its_descriptors_and_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "seven.py").write_text("import os\ndef main(fds): os.write(fds[0], b'here'); return 7")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    reader, writer = os.pipe()
    process = spawn("seven", [writer])
    os.close(writer)
    assert process.wait(30) == 7
    with open(reader, "rb") as pipe:
        assert pipe.read() == b"here"


def test_an_early_worker_that_nobody_needs_is_ended() -> None:
    with early_worker() as early:
        assert early is not None
        assert early.process.poll() is None
    assert early.process.returncode == -signal.SIGKILL


def test_an_early_worker_whose_supervisor_says_nothing_leaves_quietly() -> None:
    with early_worker() as early:
        assert early is not None
        early.channel.close()
        assert early.process.wait(60) == 1


def test_without_a_process_to_spare_the_daemon_begins_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(module: str, descriptors: list[int]) -> subprocess.Popen[bytes]:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(spawning, "spawn", refuse)
    with early_worker() as early:
        assert early is None


def test_libraries_start_no_threads_of_their_own_unless_the_user_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "told.py").write_text(
        "import os\ndef main(fds): os.write(fds[0], os.environ['OPENBLAS_NUM_THREADS'].encode()); return 0"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert told_by("told") == b"1"
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    assert told_by("told") == b"3"


def told_by(module: str) -> bytes:
    reader, writer = os.pipe()
    process = spawn(module, [writer])
    os.close(writer)
    assert process.wait(30) == 0
    with open(reader, "rb") as pipe:
        return pipe.read()
