"""Several runs become one row: means, deviations, pictures put together, a rule proposed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from edge_road.conditions import ROAD_CLASSES
from edge_road.evaluation.familiarity import ClassGeometry, Scale, doubt_of
from edge_road.evaluation.metrics import wilson_interval
from edge_road.evaluation.ood import Familiar, StrangerScores, sum_up_strangers
from edge_road.export.target import Target
from edge_road.runtime.decision import DecisionSettings
from edge_road.training.pool import markdown
from edge_road.training.pool.curvature import CurvatureSample, curvature_row
from edge_road.training.pool.result import Pooled
from edge_road.training.pool.strangers import StrangerSample, strangers_row
from edge_road.training.pool.wanted import VEHICLE_LIMITS

GEOMETRY = ClassGeometry(np.zeros((3, 2)), np.ones(3))
FAMILIAR = Familiar(ROAD_CLASSES, GEOMETRY, Scale(-4.0, 2.0), Scale(-1.0, 0.5))


def scored(confidence: np.ndarray, distance: np.ndarray) -> dict[str, np.ndarray]:
    doubt_N = doubt_of(confidence)
    either_N = np.maximum(FAMILIAR.of_doubt(doubt_N), FAMILIAR.of_log_distance(np.log(distance)))
    return {"confidence": doubt_N, "distance": distance, "either": either_N}


def stranger_sample(seed: int, *, sure: bool) -> StrangerSample:
    """Roads lie within a radius; strange pictures beyond it, and the model doubts them, unless `sure`."""
    draw = np.random.default_rng(seed)
    known = scored(draw.uniform(0.9, 0.999, 60), draw.uniform(0.1, 1.0, 60))
    roads = scored(draw.uniform(0.9, 0.999, 40), draw.uniform(0.1, 1.0, 40))
    confidence = draw.uniform(0.9, 0.999, 20) if sure else draw.uniform(0.35, 0.6, 20)
    sky = scored(confidence, draw.uniform(1.6, 4.0, 20))
    scores = StrangerScores(FAMILIAR, known, "validation pictures", roads, {"sky": sky})
    return StrangerSample(scores, sum_up_strangers(scores))


def test_strangers_are_judged_run_by_run_and_then_averaged() -> None:
    samples = [stranger_sample(0, sure=True), stranger_sample(1, sure=False)]
    row = strangers_row("ours", samples, limits=(0.7, 1.5))
    assert (row.runs, row.roads) == (2, 80)
    aurocs = [sample.result.kinds["sky"]["confidence"].auroc for sample in samples]
    assert row.kinds["sky"]["confidence"].auroc == pytest.approx(np.mean(aurocs))
    assert row.kinds["sky"]["confidence"].deviation == pytest.approx(np.std(aurocs, ddof=1))
    assert row.kinds["sky"]["distance"].auroc == 1.0
    assert row.best in ("distance", "either")
    assert row.refused == {"roads": 0.0, "sky": 1.0}
    assert strangers_row("one", samples[:1], (0.7, 1.5)).means["distance"].deviation is None


def test_the_proposal_lets_95_percent_of_the_familiar_roads_pass_and_says_what_it_refuses() -> None:
    sample = stranger_sample(3, sure=False)
    row = strangers_row("ours", [sample], limits=(0.7, 1.5))
    assert row.confidence is not None
    assert row.radii is not None
    familiar = replace(sample.scores, roads=sample.scores.known)
    assert familiar.refused(row.confidence - 1e-9, row.radii + 1e-9)["roads"] <= 0.05
    assert row.at_limits == sample.scores.refused(row.confidence, row.radii)
    assert row.at_limits["sky"] == 1.0
    assert row.distance_limit == sample.result.distance_limit
    assert row.at_distance_limit == sample.scores.refused(0.0, row.distance_limit)
    roads = row.at_limits["roads"]
    assert "read off validation pictures" in markdown.proposal(row)
    assert f"these refuse {roads:.1%} of the roads and 100% of the others" in markdown.proposal(row)
    for radii in (row.radii, row.distance_limit):
        assert f"familiar_radii = {radii:.2f}" in markdown.proposal(row)


def bent(keys: str, curvature: list[float], right: list[float], runs: int = 10) -> CurvatureSample:
    """`right`: the share of noisy copies that were right."""
    right_RN = np.array([[run < share * runs for share in right] for run in range(runs)])
    return CurvatureSample(tuple(keys), np.array(curvature), right_RN)


def test_pictures_of_all_runs_are_put_together() -> None:
    flat = [bent("ab", [1.0, 3.0], [1.0, 0.8]), bent("cd", [2.0, 4.0], [0.9, 0.1])]
    steep = [bent("ab", [10.0, 2.0], [0.5, 0.5]), bent("cd", [20.0, 40.0], [0.5, 0.5])]
    row = curvature_row("flat", flat, steep)
    assert (row.runs, row.pictures, row.medians) == (2, 4, (2.0, 3.0))
    assert row.pooled.median == 2.5
    retained = [accuracy for _, accuracy in row.pooled.retained]
    assert retained[0] == 1.0
    assert retained[-1] == pytest.approx((1.0 + 0.8 + 0.9 + 0.1) / 4)
    assert retained == sorted(retained, reverse=True), "accuracy falls with curvature"
    assert row.flatter == 0.75
    assert (row.flatter_low, row.flatter_high) == wilson_interval(3, 4)


def test_the_reference_and_other_pictures_have_no_difference() -> None:
    ours, others = [bent("ab", [1.0, 3.0], [1.0, 1.0])], [bent("xy", [1.0, 3.0], [1.0, 1.0])]
    assert curvature_row("ours", ours, ours).flatter is None
    assert curvature_row("others", others, ours).flatter is None


def test_tables_say_what_was_measured_and_leave_out_what_was_not() -> None:
    ours = [bent("ab", [1.0, 3.0], [1.0, 1.0])]
    pooled = Pooled(
        seed=0,
        reference="softmax",
        limits=(0.7, 1.5),
        strangers=(strangers_row("ours", [stranger_sample(0, sure=True)], (0.7, 1.5)),),
        curvature=(curvature_row("softmax", ours, ours),),
    )
    text = markdown.to_markdown(pooled)
    assert "| sky | " in text
    assert "## At the limits of a vehicle" in text
    assert "| softmax | 2 | 2 | 2 | " in text
    assert "## Layers" not in text
    assert "nan" not in text
    assert Pooled.model_validate_json(pooled.to_json()) == pooled


def test_the_limits_of_a_vehicle_are_those_that_export_and_daemon_use() -> None:
    """Stages do not import each other, so the numbers stand twice."""
    radii = DecisionSettings.model_fields["familiar_radii"].default
    assert (Target.model_fields["highest_threshold"].default, radii) == VEHICLE_LIMITS
