"""The decision filter, told as short drives; the clock is a number."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from edge_road.runtime.decision import (
    Decision,
    DecisionSettings,
    Past,
    Rules,
    decide,
    fuse,
    interrupt,
    resume,
    rules_for,
)
from edge_road.runtime.evidence import Evidence, RegionEvidence
from edge_road.runtime.vehicle_inputs import VehicleInputs

NAN = float("nan")
SURE = {
    "dry": (0.96, 0.03, 0.01),
    "wet": (0.02, 0.96, 0.02),
    "icy": (0.01, 0.03, 0.96),
    "unsure": (0.4, 0.35, 0.25),
}
RULES = rules_for(DecisionSettings(), confidence_threshold=0.6, period_s=0.1)
SECOND = 10**9


def frame(at_s: float, probabilities: tuple[float, ...], *problems: str) -> Evidence:
    regions = (RegionEvidence(name="road", probabilities=probabilities),)  # type: ignore[arg-type]
    return Evidence(number=0, captured_mono_ns=round(at_s * SECOND), regions=regions, problems=problems)


class Drive:
    """Feeds frames at 10 a second and remembers what was decided when."""

    def __init__(self, rules: Rules = RULES) -> None:
        self.rules, self.past, self.now_s = rules, Past(), 100.0
        self.decisions: list[tuple[float, Decision]] = []
        self.speed_mps: float | None = None

    def see(self, what: str | tuple[float, ...], seconds: float, *problems: str) -> Decision:
        probabilities = SURE[what] if isinstance(what, str) else what
        for _ in range(round(seconds * 10)):
            self.now_s += 0.1
            self._decide(frame(self.now_s, probabilities, *problems))
        return self.decisions[-1][1]

    def wait(self, seconds: float) -> Decision:
        self.now_s += seconds
        return self._decide(None)

    def _decide(self, evidence: Evidence | None) -> Decision:
        now_ns, inputs = round(self.now_s * SECOND), VehicleInputs()
        if self.speed_mps is not None:
            inputs = inputs.with_speed(self.speed_mps, now_ns)
        self.past, decision = decide(self.past, evidence, now_ns, self.rules, inputs)
        self.decisions.append((self.now_s, decision))
        return decision

    def states_since(self, start_s: float) -> list[str]:
        return [decision.state for at_s, decision in self.decisions if at_s > start_s]


def first_time(drive: Drive, state: str, after_s: float) -> float:
    return next(at for at, decision in drive.decisions if at > after_s and decision.state == state) - after_s


def test_before_the_first_frame_the_state_is_unknown() -> None:
    assert Drive().wait(0.0) == Decision("unknown", ("no_frames",), None, None)


def test_a_steady_road_is_named_within_half_a_second() -> None:
    drive = Drive()
    assert drive.see("dry", 0.1) == Decision("unknown", ("settling",), drive.past.belief, 100_100_000_000)
    assert drive.see("dry", 0.4).state == "dry"


def test_ice_is_announced_within_a_second_and_cleared_no_sooner_than_configured() -> None:
    drive = Drive()
    drive.see("dry", 5.0)
    began_s = drive.now_s
    drive.see("icy", 5.0)
    assert first_time(drive, "icy", began_s) <= 1.0
    cleared_s = drive.now_s
    drive.see("dry", 5.0)
    assert 0.8 <= first_time(drive, "dry", cleared_s) <= 1.5


def icy_drive(speed_mps: float | None, **settings: float) -> Drive:
    drive = Drive(rules_for(DecisionSettings(**settings), confidence_threshold=0.6, period_s=0.1))
    drive.see("icy", 3.0)
    drive.speed_mps = speed_mps
    return drive


@pytest.mark.parametrize("speed_mps", [0.0, 0.99])
def test_a_vehicle_that_stands_clears_no_ice_until_it_has_driven(speed_mps: float) -> None:
    drive = icy_drive(speed_mps, clear_m=10.0)
    assert drive.see("dry", 60.0) == Decision("icy", ("changing",), drive.past.belief, drive.past.valid_ns)
    drive.speed_mps = 5.0
    began_s = drive.now_s
    assert drive.see("dry", 1.9).state == "icy"
    assert drive.see("dry", 0.2).state == "dry"
    assert first_time(drive, "dry", began_s) == pytest.approx(2.0, abs=0.11)


@pytest.mark.parametrize(
    ("speed_mps", "clear_m", "least_s", "most_s"),
    [(1.0, 5.0, 5.0, 6.0), (50.0, 5.0, 0.8, 1.5), (None, 1000.0, 0.8, 1.5), (0.0, 0.0, 0.8, 1.5)],
)
def test_ice_is_cleared_after_the_time_and_after_the_distance_if_that_is_known(
    speed_mps: float | None, clear_m: float, least_s: float, most_s: float
) -> None:
    drive = icy_drive(speed_mps, clear_m=clear_m)
    began_s = drive.now_s
    drive.see("dry", 10.0)
    assert least_s <= first_time(drive, "dry", began_s) <= most_s


def test_the_distance_begins_anew_when_ice_comes_back() -> None:
    drive = icy_drive(5.0, clear_m=10.0)
    drive.see("dry", 2.0)
    assert drive.see("icy", 1.0).reasons == ()
    assert drive.see("dry", 2.0).state == "icy"
    assert drive.see("dry", 1.0).state == "dry"


def test_a_vehicle_that_stands_is_warned_of_ice_and_told_of_rain_as_ever() -> None:
    drive = Drive()
    drive.speed_mps = 0.0
    assert drive.see("dry", 1.0).state == "dry"
    assert drive.see("wet", 2.0).state == "wet"
    assert drive.see("icy", 1.0).state == "icy"


@pytest.mark.parametrize(
    ("before", "after"), [("dry", "wet"), ("wet", "dry"), ("icy", "wet"), ("wet", "icy")]
)
@pytest.mark.parametrize("fps", [5, 10, 30])
def test_every_change_is_made_once_and_within_two_seconds(before: str, after: str, fps: int) -> None:
    past, states = Past(), []
    for number in range(10 * fps):
        at_s = number / fps
        evidence = frame(at_s, SURE[before if at_s < 5 else after])
        past, decision = decide(past, evidence, round(at_s * SECOND), RULES)
        states.append(decision.state)
    changes = [(n / fps, new) for n, (old, new) in enumerate(pairwise(states), 1) if old != new]
    assert [state for _, state in changes] == [before, after]
    assert 5.0 < changes[1][0] <= 7.0


def test_a_pending_change_is_said_to_be_doubted() -> None:
    drive = Drive()
    drive.see("icy", 3.0)
    assert drive.see("dry", 0.6) == Decision("icy", ("changing",), drive.past.belief, drive.past.valid_ns)


def test_one_wrong_frame_changes_nothing() -> None:
    drive = Drive()
    drive.see("dry", 3.0)
    began_s = drive.now_s
    drive.see("icy", 0.1)
    drive.see("dry", 1.0)
    assert set(drive.states_since(began_s)) == {"dry"}


def test_a_candidate_that_is_not_confirmed_is_forgotten() -> None:
    drive = Drive()
    drive.see("icy", 3.0)
    for _ in range(4):
        drive.see("dry", 0.8)  # shorter than clear_s each time
        drive.see("icy", 0.8)
    assert set(drive.states_since(102.9)) == {"icy"}


def test_a_frame_with_a_problem_is_unknown_at_once_and_the_next_good_one_is_a_state_again() -> None:
    drive = Drive()
    drive.see("wet", 2.0)
    assert drive.see("wet", 0.1, "frozen").reasons == ("frozen",)
    assert drive.see("wet", 0.1).state == "wet"


@pytest.mark.parametrize("problem", ["exposure", "decode"])
def test_a_flash_or_one_damaged_picture_is_a_doubt_and_a_lasting_one_is_unknown(problem: str) -> None:
    drive = Drive()
    drive.see("wet", 2.0)
    valid_ns = drive.past.valid_ns
    assert drive.see("wet", 0.1, problem) == Decision("wet", (problem,), drive.past.belief, valid_ns)
    assert drive.wait(0.099).state == "wet"
    assert drive.wait(0.002).reasons == (problem,)
    assert drive.see("wet", 0.1).reasons == ()
    drive.see("wet", 0.1, problem)
    assert drive.see("wet", 0.1, problem).state == "unknown"


def test_a_flash_together_with_another_problem_is_unknown_at_once() -> None:
    drive = Drive()
    drive.see("wet", 2.0)
    assert drive.see("wet", 0.1, "exposure", "frozen").reasons == ("exposure", "frozen")


def test_a_flash_after_another_problem_brings_nothing_back() -> None:
    drive = Drive()
    drive.see("wet", 2.0)
    drive.see("wet", 0.1, "frozen")
    drive.now_s -= 0.09  # at once
    assert drive.see("wet", 0.1, "exposure").state == "unknown"


def test_a_flash_is_never_the_first_state() -> None:
    drive = Drive()
    assert drive.see("dry", 0.1, "exposure") == Decision("unknown", ("exposure",), None, None)


@pytest.mark.parametrize(
    "output",
    [
        (NAN, NAN, NAN),
        (NAN, 0.5, 0.5),
        (float("inf"), 0.0, 0.0),
        (-0.1, 0.6, 0.5),
        (0.5, 0.5, 0.5),
        (0.0, 0.0, 0.0),
        (1.2, 0.0, -0.2),
    ],
)
def test_an_output_that_is_no_distribution_never_becomes_a_state(output: tuple[float, ...]) -> None:
    drive = Drive()
    drive.see("dry", 2.0)
    assert drive.see(output, 0.1).reasons == ("model_output",)
    assert drive.see(output, 2.0) == Decision("unknown", ("model_output",), None, None)


def test_evidence_without_a_region_is_a_broken_output() -> None:
    drive = Drive()
    drive.see("dry", 1.0)
    now_ns = round((drive.now_s + 0.1) * SECOND)
    evidence = Evidence(number=1, captured_mono_ns=now_ns)
    assert decide(drive.past, evidence, now_ns, RULES)[1].reasons == ("model_output",)


def test_lasting_low_confidence_is_unknown_and_confidence_comes_back() -> None:
    drive = Drive()
    drive.see("dry", 2.0)
    assert drive.see("unsure", 0.1).state == "dry"
    assert drive.see("unsure", 2.0).reasons == ("low_confidence",)
    assert drive.see("dry", 1.0).state == "dry"


EXACT = Rules(DecisionSettings(smoothing_s=0, start_s=0, threshold=0.5), 0.75, 10**9)


@pytest.mark.parametrize(("confidence", "said"), [(0.75, "dry"), (0.74, "unknown")])
def test_a_state_begins_at_the_threshold(confidence: float, said: str) -> None:
    _, decision = decide(Past(), frame(1, (confidence, 1 - confidence, 0.0)), SECOND, EXACT)
    assert decision.state == said
    assert decision.reasons == (() if said == "dry" else ("low_confidence",))


def test_after_doubt_a_state_comes_back_only_half_way_from_the_threshold_to_certainty() -> None:
    past, said = Past(), []
    for second, confidence in enumerate((0.9, 0.75, 0.74, 0.75, 0.874, 0.875), start=1):
        past, decision = decide(
            past, frame(second, (confidence, 1 - confidence, 0.0)), second * SECOND, EXACT
        )
        said.append(decision.state)
    assert said == ["dry", "dry", "unknown", "unknown", "unknown", "dry"]


def test_a_gap_without_doubt_asks_for_no_higher_confidence_afterwards() -> None:
    past, said = Past(), []
    for second in (1, 2, 9):
        past, decision = decide(past, frame(second, (0.75, 0.25, 0.0)), second * SECOND, EXACT)
        said.append(decision.state)
    assert said == ["dry", "dry", "dry"]


def test_a_state_that_has_grown_old_is_withdrawn() -> None:
    drive = Drive()
    drive.see("wet", 2.0)
    assert drive.wait(0.4).state == "wet"
    assert drive.wait(0.01) == Decision("unknown", ("no_frames",), None, None)


def test_slow_cameras_get_four_periods_but_never_more_than_a_second() -> None:
    settings = DecisionSettings()
    assert rules_for(settings, 0.6, period_s=1 / 30).fresh_ns == 400_000_000
    assert rules_for(settings, 0.6, period_s=0.2).fresh_ns == 800_000_000
    assert rules_for(settings, 0.6, period_s=1.0).fresh_ns == 900_000_000
    assert rules_for(DecisionSettings(fresh_s=3), 0.6, period_s=1.0).fresh_ns == 3 * SECOND


def test_the_vehicle_file_may_ask_for_another_confidence_than_the_bundle() -> None:
    assert rules_for(DecisionSettings(), 0.7, 0.1).confidence == 0.7
    assert rules_for(DecisionSettings(confidence=0.9), 0.7, 0.1).confidence == 0.9


def test_after_a_short_gap_the_state_stands_and_after_a_long_one_it_must_be_earned_again() -> None:
    drive = Drive()
    drive.see("dry", 2.0)
    drive.wait(0.8)
    assert drive.see("dry", 0.1).state == "dry"
    drive.wait(1.0)
    assert drive.see("icy", 0.1).reasons == ("settling",)
    assert drive.see("icy", 0.3).state == "icy"


@pytest.mark.parametrize("shift_s", [0.0, -0.1, -50.0, +0.05])
def test_repeated_backward_and_future_frames_never_extend_freshness(shift_s: float) -> None:
    drive = Drive()
    drive.see("dry", 2.0)
    newest_s = drive.now_s
    now_ns = round((newest_s + 0.02) * SECOND)
    past, _ = decide(drive.past, frame(newest_s + shift_s, SURE["dry"]), now_ns, RULES)
    assert past == drive.past


def test_evidence_that_arrives_late_counts_for_nothing() -> None:
    past, decision = decide(Past(), frame(10.0, SURE["dry"]), round(10.41 * SECOND), RULES)
    assert past == Past()
    assert decision.reasons == ("no_frames",)


def test_the_newest_trouble_is_named_until_it_too_is_old() -> None:
    drive = Drive()
    drive.see("dry", 1.0)
    assert drive.see("dry", 1.0, "frozen").reasons == ("frozen",)
    assert drive.wait(0.3).reasons == ("frozen",)
    assert drive.wait(0.2).reasons == ("no_frames",)


def test_an_outage_is_named_at_once_and_ends_with_the_next_frame() -> None:
    drive = Drive()
    drive.see("dry", 1.0)
    drive.past = interrupt(drive.past, "worker_died")
    assert drive.wait(0.0).reasons == ("worker_died",)
    assert drive.see("dry", 0.1).state == "dry"
    drive.past = resume(interrupt(drive.past, "worker_died"))
    assert drive.wait(0.0).state == "dry"


def test_regions_are_averaged_and_nan_in_one_is_nan_in_all() -> None:
    def regions(*rows: tuple[float, float, float]) -> tuple[RegionEvidence, ...]:
        return tuple(RegionEvidence(name=str(n), probabilities=row) for n, row in enumerate(rows))

    assert fuse(regions((0.2, 0.8, 0.0), (0.6, 0.0, 0.4))) == pytest.approx((0.4, 0.4, 0.2))
    assert fuse(regions((0.2, 0.8, 0.0), (NAN, NAN, NAN))) == ()


def region(probabilities: tuple[float, float, float], **more: object) -> RegionEvidence:
    return RegionEvidence(name="r", probabilities=probabilities, **more)  # type: ignore[arg-type]


def test_the_iciest_region_can_rule() -> None:
    tracks = (region((0.9, 0.05, 0.05)), region((0.05, 0.05, 0.9)))
    assert fuse(tracks, "worst") == pytest.approx((0.0904762, 0.0095238, 0.9), abs=1e-6)
    assert sum(fuse(tracks, "worst")) == pytest.approx(1)
    assert fuse((), "worst") == ()
    assert fuse((region((0.0, 0.0, 1.0)),), "worst") == (0.0, 0.0, 1.0)
    assert fuse((region((NAN, NAN, NAN)), region(SURE["dry"])), "worst") == ()


def see_regions(drive: Drive, regions: tuple[RegionEvidence, ...], frames: int = 10) -> Decision:
    for number in range(frames):
        drive.now_s += 0.1
        now_ns = round(drive.now_s * SECOND)
        evidence = Evidence(number=number, captured_mono_ns=now_ns, regions=regions)
        drive.past, decision = decide(drive.past, evidence, now_ns, drive.rules)
    return decision


def test_ice_in_one_wheel_track_is_unclear_on_average_and_told_by_the_worst() -> None:
    tracks = (region(SURE["dry"]), region(SURE["icy"]))
    assert see_regions(Drive(), tracks).reasons == ("low_confidence",)
    worst = rules_for(DecisionSettings(fusion="worst"), confidence_threshold=0.6, period_s=0.1)
    assert see_regions(Drive(worst), tracks).state == "icy"


def test_an_obstructed_region_does_not_count_and_is_told() -> None:
    drive = Drive()
    decision = see_regions(drive, (region(SURE["dry"]), region(SURE["icy"], obstructed=True)))
    assert (decision.state, decision.reasons) == ("dry", ("obstructed",))
    assert see_regions(drive, (region(SURE["dry"]), region(SURE["dry"]))).reasons == ()
    blind = see_regions(drive, (region(SURE["icy"], obstructed=True),))
    assert (blind.state, blind.reasons) == ("unknown", ("model_output",))


def test_pictures_far_from_everything_learnt_are_unfamiliar_and_a_single_one_changes_nothing() -> None:
    drive = Drive()
    near, far = (region(SURE["dry"], distance=1.5),), (region(SURE["dry"], distance=1.51),)
    assert see_regions(drive, near).state == "dry"
    assert see_regions(drive, far, frames=1).state == "dry"
    assert see_regions(drive, far).reasons == ("unfamiliar",)
    assert see_regions(drive, near).state == "dry"
    assert see_regions(Drive(), far, frames=1).reasons == ("unfamiliar",)
    assert see_regions(Drive(), (region(SURE["dry"], distance=NAN),)).reasons == ("unfamiliar",)


def test_one_familiar_region_is_enough() -> None:
    assert (
        see_regions(Drive(), (region(SURE["dry"], distance=9), region(SURE["dry"], distance=1))).state
        == "dry"
    )


def test_ice_in_warm_air_is_doubted_and_not_hidden() -> None:
    drive = Drive()
    drive.see("icy", 2.0)
    now_ns = round(drive.now_s * SECOND)

    def told(ambient_c: float | None, past: Past = drive.past) -> tuple[str, tuple[str, ...]]:
        inputs = VehicleInputs() if ambient_c is None else VehicleInputs().with_ambient(ambient_c, now_ns)
        decision = decide(past, None, now_ns, RULES, inputs)[1]
        return decision.state, decision.reasons

    assert told(20.0) == told(12.01) == ("icy", ("implausible_temperature",))
    assert told(12.0) == told(-5.0) == told(None) == ("icy", ())
    drive.see("dry", 5.0)
    assert told(20.0, drive.past) == ("dry", ())


def test_the_filter_equals_a_forward_algorithm_written_with_matrices() -> None:
    settings, gap_s = DecisionSettings(), 0.1
    leave = 1 - np.exp(-gap_s / settings.dwell_s)
    transition = np.full((3, 3), leave / 2)
    np.fill_diagonal(transition, 1 - leave)
    generator = np.random.default_rng(3)
    past, belief = Past(), np.full(3, 1 / 3)
    for number in range(200):
        observed = generator.dirichlet((1, 1, 1))
        past, _ = decide(past, frame(number * gap_s, tuple(observed)), round(number * gap_s * SECOND), RULES)
        power = 1.0 if number == 0 else gap_s / settings.evidence_s
        moved = belief if number == 0 else transition @ belief
        belief = moved * np.maximum(observed, settings.floor) ** power
        belief /= belief.sum()
        assert past.belief == pytest.approx(tuple(belief), abs=1e-9)


@pytest.mark.parametrize("fusion", ["mean", "worst"])
def test_two_regions_of_nonsense_that_add_up_to_a_road_are_nonsense(fusion: str) -> None:
    nonsense = ((1.4, -0.2, -0.2), (0.5, 0.3, 0.2))
    regions = tuple(RegionEvidence(name=str(n), probabilities=shares) for n, shares in enumerate(nonsense))
    rules = rules_for(DecisionSettings.model_validate({"fusion": fusion}), 0.6, 0.1)
    past = Past()
    for number in range(10):
        seen = Evidence(number=number, captured_mono_ns=number * SECOND // 10, regions=regions)
        past, decision = decide(past, seen, seen.captured_mono_ns, rules)
        assert (decision.state, decision.reasons) == ("unknown", ("model_output",))
