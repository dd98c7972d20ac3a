from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edge_road.errors import ConfigError
from edge_road.runtime.lock import lock_folder, only_one

HOLD_AND_DIE = """
import os, signal
from edge_road.runtime.lock import only_one
with only_one("van"):
    print("held", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))


def test_a_second_daemon_is_refused_with_the_pid_of_the_first() -> None:
    with only_one("van"):
        with pytest.raises(ConfigError, match=f"process {os.getpid()}"), only_one("van"):
            pass
        with only_one("lorry"):
            pass
    with only_one("van"):
        pass


def test_the_lock_of_a_killed_daemon_is_free(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", HOLD_AND_DIE], capture_output=True, timeout=30)
    assert done.stdout == b"held\n"
    assert (tmp_path / "van.lock").exists()
    with only_one("van"):
        pass


def test_a_lock_that_cannot_be_made_is_a_config_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path / "file"))
    with pytest.raises(ConfigError, match="lock") as caught, only_one("van"):
        pass
    assert "RUNTIME_DIRECTORY" in caught.value.details["to do"]


def test_without_systemd_the_lock_lies_in_the_workspace(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("RUNTIME_DIRECTORY")
    monkeypatch.setenv("EDGE_ROAD_HOME", str(tmp_path))
    assert lock_folder() == tmp_path / "runs" / ".locks"
