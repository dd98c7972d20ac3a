"""The decision at its very limits: what belongs to which side, and what is forgotten when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edge_road.conditions import UNKNOWN
from edge_road.runtime.decision import (
    DecisionSettings,
    Past,
    Rules,
    _hold_s,
    _target,
    _update,
    decide,
    is_distribution,
)
from edge_road.runtime.evidence import Evidence, RegionEvidence

SECOND = 10**9
DRY, ICY = (0.98, 0.01, 0.01), (0.01, 0.01, 0.98)
AT_ONCE = DecisionSettings(start_s=0, smoothing_s=0, threshold=0.5)


def seen(
    past: Past, at_s: float, *rows: tuple[float, ...], problems: tuple[str, ...] = (), rules: Rules
) -> Past:
    regions = tuple(RegionEvidence(name=str(n), probabilities=row) for n, row in enumerate(rows))  # type: ignore[arg-type]
    at_ns = round(at_s * SECOND)
    evidence = Evidence(number=0, captured_mono_ns=at_ns, regions=regions, problems=problems)
    return decide(past, evidence, at_ns, rules)[0]


def rules(fresh_s: float = 0.4, **settings: object) -> Rules:
    return Rules(AT_ONCE.model_copy(update=settings), 0.6, round(fresh_s * SECOND))


def said(past: Past, at_s: float, with_rules: Rules) -> tuple[str, tuple[str, ...]]:
    decision = decide(past, None, round(at_s * SECOND), with_rules)[1]
    return decision.state, decision.reasons


@pytest.mark.parametrize(
    ("shown", "target", "hold"),
    [(UNKNOWN, "icy", "start"), ("dry", "icy", "warn"), ("icy", "wet", "clear"), ("dry", "wet", "change")],
)
def test_each_change_has_its_own_patience(shown: str, target: str, hold: str) -> None:
    settings = DecisionSettings(start_s=1, warn_s=2, clear_s=3, change_s=4)
    assert _hold_s(shown, target, settings) == getattr(settings, f"{hold}_s")


def test_thresholds_themselves_are_enough() -> None:
    settings = DecisionSettings(threshold=0.75, icy_threshold=0.5)
    assert _target(Past(belief=(0.25, 0.25, 0.5), shown="dry"), settings) == "icy"
    assert _target(Past(belief=(0.0, 0.75, 0.25), shown="dry"), settings) == "wet"
    assert _target(Past(belief=(0.3, 0.7, 0.0), shown="dry"), settings) == "dry"


def test_certainty_is_a_distribution_and_a_little_rounding_is_forgiven() -> None:
    assert is_distribution((1.0, 0.0, 0.0))
    assert is_distribution((1.0005, 0.0, 0.0))
    assert not is_distribution((1.002, 0.0, 0.0))
    assert not is_distribution((0.5, 0.5))
    assert not is_distribution((1e308, 1e308, 1e308))


@pytest.mark.parametrize(("gap_s", "power"), [(0.05, 0.5), (0.1, 1.0), (0.5, 1.0)])
def test_evidence_counts_by_time_up_to_once(gap_s: float, power: float) -> None:
    settings = DecisionSettings(dwell_s=1e12)
    belief = _update((0.5, 0.3, 0.2), (0.6, 0.3, 0.1), gap_s, settings)
    weights = [b * p**power for b, p in zip((0.5, 0.3, 0.2), (0.6, 0.3, 0.1))]
    assert belief == pytest.approx([w / sum(weights) for w in weights])


def test_evidence_that_is_just_fresh_counts() -> None:
    regions = (RegionEvidence(name="r", probabilities=DRY),)
    evidence = Evidence(number=0, captured_mono_ns=SECOND, regions=regions)
    assert decide(Past(), evidence, SECOND + 400_000_000, rules())[1].state == "dry"
    assert decide(Past(), evidence, SECOND + 400_000_001, rules())[1].state == UNKNOWN


def test_a_repeated_time_brings_no_trouble_either() -> None:
    past = seen(Past(), 1.0, DRY, rules=rules())
    assert seen(past, 1.0, problems=("frozen",), rules=rules()) == past


def test_a_flash_passes_as_long_as_the_frame_before_it_is_fresh() -> None:
    patient = rules(passing_s=10.0)
    past = seen(seen(Past(), 1.0, DRY, rules=patient), 1.3, problems=("exposure",), rules=patient)
    assert said(past, 1.4, patient) == ("dry", ("exposure",))
    assert said(past, 1.41, patient) == (UNKNOWN, ("exposure",))


def test_two_flashes_pass_and_a_flash_that_becomes_something_else_does_not() -> None:
    past = seen(Past(), 1.0, DRY, rules=rules())
    past = seen(past, 1.01, problems=("exposure",), rules=rules())
    again = seen(past, 1.02, problems=("decode",), rules=rules())
    assert said(again, 1.03, rules()) == ("dry", ("decode",))
    worse = seen(again, 1.03, problems=("frozen",), rules=rules())
    assert said(worse, 1.03, rules()) == (UNKNOWN, ("frozen",))
    assert said(seen(worse, 1.04, problems=("exposure",), rules=rules()), 1.04, rules())[0] == UNKNOWN


def test_a_gap_of_just_the_limit_forgets_nothing() -> None:
    slow = rules(fresh_s=3.0, start_s=0.5)
    past = replace(Past(), shown="dry", valid_ns=SECOND, seen_ns=SECOND, belief=DRY, confidence=0.98)
    assert said(seen(past, 2.0, DRY, rules=slow), 2.0, slow) == ("dry", ())
    assert said(seen(past, 2.001, DRY, rules=slow), 2.001, slow) == (UNKNOWN, ("settling",))


def test_a_covered_region_is_told_from_the_first_frame_on() -> None:
    regions = (
        RegionEvidence(name="a", probabilities=DRY),
        RegionEvidence(name="b", probabilities=DRY, obstructed=True),
    )
    evidence = Evidence(number=0, captured_mono_ns=SECOND, regions=regions)
    assert decide(Past(), evidence, SECOND, rules())[1].reasons == ("obstructed",)


def test_without_smoothing_the_confidence_is_that_of_the_last_frame_and_never_above_one() -> None:
    past = seen(seen(Past(), 1.0, DRY, rules=rules()), 1.1, (0.7, 0.3, 0.0), rules=rules())
    assert past.confidence == pytest.approx(0.7)
    assert seen(past, 1.2, (1.0005, 0.0, 0.0), rules=rules()).confidence == 1.0


def test_strange_pictures_must_be_more_than_half() -> None:
    past = seen(Past(), 1.0, DRY, rules=rules())
    assert said(replace(past, strange=0.5), 1.0, rules()) == ("dry", ())
    assert said(replace(past, strange=0.51), 1.0, rules()) == (UNKNOWN, ("unfamiliar",))


@pytest.mark.parametrize(("early_ns", "state"), [(0, "dry"), (1, "icy")])
def test_ice_is_cleared_at_the_very_nanosecond(early_ns: int, state: str) -> None:
    slow = rules(clear_s=0.8)
    past = replace(seen(Past(), 1.7, DRY, rules=slow), shown="icy", candidate="dry")
    past = replace(past, candidate_ns=SECOND + early_ns)
    assert seen(past, 1.8, DRY, rules=slow).shown == state


def test_a_change_is_over_when_it_is_made_and_ice_has_its_own_patience() -> None:
    quick = rules(warn_s=0.0, change_s=5.0, clear_s=5.0)
    past = seen(Past(), 1.0, DRY, rules=quick)
    for number in range(1, 4):
        past = seen(past, 1.0 + number / 10, ICY, rules=quick)
    assert said(past, 1.3, quick) == ("icy", ())
