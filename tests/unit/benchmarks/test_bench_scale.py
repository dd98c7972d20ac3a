"""Every subject of the scale benchmark does its work, and its growth is told."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="benchmarks are made where the training packages are")

from benchmarks import scale
from benchmarks.scale_subjects import OPERATIONS, SUBJECTS


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_subject_does_its_work(name: str) -> None:
    size, cpu_s, seconds = scale.point_of(name, 1_000 if name == "walk folders" else 30)
    assert size >= 30
    assert cpu_s > 0
    assert seconds > 0


def test_the_time_of_each_is_that_of_one_operation() -> None:
    curves = {name: [(1_000_000, 0.5, 0.6)] for name in ("fill the outbox", "use a full outbox")}
    rows = scale._rows(curves, dict.fromkeys(curves, 1.0))
    assert [row[4] for row in rows] == ["0.5", f"{0.5e6 / OPERATIONS:.1f}"]


def test_every_subject_has_its_sizes_and_growth_is_told() -> None:
    assert SUBJECTS.keys() == scale.SIZES.keys() == scale.QUICK.keys()
    outcome = scale.measure({"fill the outbox": (10, 20)}, torchrun=False, quick=True)
    assert [row[:2] for row in outcome.tables[0].rows] == [
        ("fill the outbox", "10"),
        ("fill the outbox", "20"),
    ]
    assert [claim.most for claim in outcome.claims] == [scale.TOLERANCE]
    assert outcome.picture is not None
    assert {"processor", "commit", "load at the start", "took"} <= outcome.provenance.keys()
