from __future__ import annotations

import os
from pathlib import Path

import pytest

from edge_road import workspace
from edge_road.errors import BundleError, ConfigError


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGE_ROAD_HOME", str(tmp_path))


def test_runs_are_numbered_and_never_shared(tmp_path: Path) -> None:
    assert [workspace.new_run("road").name for _ in range(3)] == ["road-0001", "road-0002", "road-0003"]


def test_the_newest_finished_run_is_found(tmp_path: Path) -> None:
    first, second, unfinished = (workspace.new_run("road") for _ in range(3))
    for age, run in ((20, first), (10, second)):
        (run / "run.json").write_text("{}")
        os.utime(run / "run.json", ns=(10**18 - age, 10**18 - age))
    assert workspace.newest_run() == second
    assert unfinished.exists()


def test_nothing_yet_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match="train_road"):
        workspace.newest_run()
    with pytest.raises(BundleError, match="to_trt"):
        workspace.newest_bundle()
