"""What is measured for docs/reliability.md: when a test may be repeated, and that the table says so."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
from daemon_harness import ATTEMPTS, Scenario, retried_on_a_busy_machine


def failing(times: int, fault_row: Callable[..., None]) -> Scenario:
    """Takes two seconds of the one that is promised, so many times."""
    took_s = iter([2.0] * times + [0.5] * ATTEMPTS)

    @retried_on_a_busy_machine
    def scenario(tmp_path: Path) -> None:
        (tmp_path / "its own folder").mkdir()
        fault_row(1, "a test", detect_s=next(took_s), detect_limit_s=1.0)

    return scenario


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EDGE_ROAD_FAULT_TABLE", str(tmp_path / "rows.jsonl"))
    monkeypatch.setattr("fault_rows.crowding", lambda: 1.0)
    return tmp_path / "rows.jsonl"


def table(root: Path, rows: Path) -> str:
    made = runpy.run_path(str(root / "tests" / "faults" / "make_table.py"))
    return str(made["page"](made["read_rows"](rows)))


def test_a_broken_promise_fails_at_once_where_there_is_time_enough(
    tmp_path: Path, rows: Path, monkeypatch: pytest.MonkeyPatch, fault_row: Callable[..., None]
) -> None:
    monkeypatch.setattr("daemon_harness.crowding", lambda: 1.0)
    with pytest.raises(AssertionError, match=r"took 2\.000 s"):
        failing(1, fault_row)(tmp_path=tmp_path)
    assert len(rows.read_text().splitlines()) == 1


def test_on_a_crowded_machine_it_is_tried_again_and_the_table_says_so(
    tmp_path: Path, rows: Path, monkeypatch: pytest.MonkeyPatch, fault_row: Callable[..., None], root: Path
) -> None:
    monkeypatch.setattr("daemon_harness.crowding", lambda: 1.1)
    failing(1, fault_row)(tmp_path=tmp_path)
    assert [json.loads(line)["attempt"] for line in rows.read_text().splitlines()] == [1, 2]
    page = table(root, rows)
    assert "| `unknown`; attempt 2 | 0.50 s (1) |" in page


def test_it_fails_when_no_attempt_keeps_the_promise(
    tmp_path: Path, rows: Path, monkeypatch: pytest.MonkeyPatch, fault_row: Callable[..., None], root: Path
) -> None:
    monkeypatch.setattr("daemon_harness.crowding", lambda: 5.0)
    with pytest.raises(AssertionError):
        failing(ATTEMPTS, fault_row)(tmp_path=tmp_path)
    assert f"attempt {ATTEMPTS} | 2.00 s (1) **missed** |" in table(root, rows)


def test_one_attempt_is_not_worth_a_word(
    tmp_path: Path, rows: Path, fault_row: Callable[..., None], root: Path
) -> None:
    failing(0, fault_row)(tmp_path=tmp_path)
    assert "| `unknown` | 0.50 s (1) |" in table(root, rows)
