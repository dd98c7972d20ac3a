"""Every subject of the scale benchmark does its work, and its growth is told."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="benchmarks are made where the training packages are")

from benchmarks import scale


def test_every_subject_is_measured_at_every_size() -> None:
    sizes = {name: (30, 60) for name in scale.SIZES} | {"walk folders": (1_000, 1_500)}
    outcome = scale.measure(sizes, torchrun=False)
    assert len(outcome.tables[0].rows) == 2 * len(scale.SIZES)
    assert {claim.what.partition(":")[0] for claim in outcome.claims} == scale.SIZES.keys()
    assert outcome.picture is not None
