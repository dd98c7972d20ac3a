"""`edge-road data counts` prints every class in every split; for RSCD by both splits."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_road import cli
from edge_road.conditions import RSCD_CLASSES


def make_rscd(root: Path, days: int) -> Path:
    for label in RSCD_CLASSES:
        names = [f"202201{day:02d}1200001-{label}.jpg" for day in range(1, days + 1)]
        names = [f"train/{label.replace('-', '_')}/{name}" for name in names]
        names += [f"vali_20k/202201011200002-{label}.jpg", f"test_50k/202201021200003-{label}.jpg"]
        for name in names:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).touch()
    return root


def test_both_splits_of_rscd_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["data", "counts", str(make_rscd(tmp_path, days=10))]) == 0
    official, per_day = capsys.readouterr().out.strip().split("\n\n")
    assert official.startswith("split: official")
    assert per_day.startswith("split: per_day")
    assert official.splitlines()[-1].split() == ["sum", "270", "27", "27"]
    total = sum(int(count.replace(",", "")) for count in per_day.splitlines()[-1].split()[1:])
    assert total == 324
    assert all(label in per_day for label in RSCD_CLASSES)


def test_too_few_days_are_told_with_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["data", "counts", str(make_rscd(tmp_path, days=2))]) == 2
    assert "too few days" in capsys.readouterr().err
