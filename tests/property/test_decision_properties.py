"""Whatever comes, in whatever order: the decision never lies, and it recovers."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from edge_road.conditions import STATES, UNKNOWN
from edge_road.runtime.decision import (
    Decision,
    DecisionSettings,
    Past,
    decide,
    interrupt,
    rules_for,
)
from edge_road.runtime.evidence import Evidence, RegionEvidence
from edge_road.runtime.vehicle_inputs import NO_INPUTS

SECOND = 10**9
RULES = rules_for(DecisionSettings(), confidence_threshold=0.6, period_s=0.05)
ANY_FLOATS = st.tuples(*[st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True)] * 3)
SHARES = st.tuples(*[st.floats(0.001, 1.0)] * 3).map(lambda t: tuple(p / math.fsum(t) for p in t))


def frame(at_ns: int, probabilities: tuple[float, ...], problems: tuple[str, ...] = ()) -> Evidence:
    regions = (RegionEvidence(name="road", probabilities=probabilities),)  # type: ignore[arg-type]
    return Evidence(number=0, captured_mono_ns=at_ns, regions=regions, problems=problems)


def is_usable(probabilities: tuple[float, ...]) -> bool:
    finite = all(math.isfinite(p) and p >= 0 for p in probabilities)
    return finite and abs(sum(probabilities) - 1) <= 1e-3


class AnyDrive(RuleBasedStateMachine):
    """Frames good, bad, late, repeated and from the future, gaps and outages in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ns = 10 * SECOND
        self.past = Past()
        self.good: set[int] = set()
        self.newest_bad_ns = self.newest_flash_ns = -1
        self.outage = False
        self.decision = Decision(UNKNOWN, ("no_frames",), None, None)

    def _decide(self, evidence: Evidence | None) -> None:
        self.past, self.decision = decide(self.past, evidence, self.now_ns, RULES)

    def _receive(self, captured_ns: int, probabilities: tuple[float, ...], problems: tuple[str, ...]) -> None:
        """Keeps its own, slower account of which frames may stand behind a state."""
        newest_ns = max([self.newest_bad_ns, self.newest_flash_ns, *self.good])
        if newest_ns < captured_ns <= self.now_ns <= captured_ns + RULES.fresh_ns:
            self.outage = False
            if problems or not is_usable(probabilities):
                self.newest_bad_ns = captured_ns
            else:
                self.good.add(captured_ns)
        self._decide(frame(captured_ns, probabilities, problems))

    @rule(gap_ns=st.integers(1, 2 * SECOND))
    def time_passes(self, gap_ns: int) -> None:
        self.now_ns += gap_ns
        self._decide(None)

    @rule(gap_ns=st.integers(10**6, SECOND // 5), probabilities=SHARES)
    def good_frame(self, gap_ns: int, probabilities: tuple[float, ...]) -> None:
        self.now_ns += gap_ns
        self._receive(self.now_ns, probabilities, ())

    @rule(state=st.sampled_from(STATES), frames=st.integers(1, 20))
    def steady_road(self, state: str, frames: int) -> None:
        for _ in range(frames):
            self.good_frame(SECOND // 20, tuple(0.98 if s == state else 0.01 for s in STATES))

    @rule(gap_ns=st.integers(0, SECOND // 2), probabilities=ANY_FLOATS)
    def any_output(self, gap_ns: int, probabilities: tuple[float, ...]) -> None:
        self.now_ns += gap_ns
        self._receive(self.now_ns, probabilities, ())

    @rule(gap_ns=st.integers(0, SECOND // 2), probabilities=SHARES)
    def frame_with_a_problem(self, gap_ns: int, probabilities: tuple[float, ...]) -> None:
        self.now_ns += gap_ns
        self._receive(self.now_ns, probabilities, ("frozen",))

    @rule(gap_ns=st.integers(0, SECOND // 2), frames=st.integers(1, 5))
    def flashes(self, gap_ns: int, frames: int) -> None:
        """One flash is a doubt; flashes that last are trouble like any other."""
        for _ in range(frames):
            self.now_ns += gap_ns
            self._decide(frame(self.now_ns, (1.0, 0.0, 0.0), ("exposure",)))
        if (frames - 1) * gap_ns >= RULES.settings.passing_s * SECOND:
            assert self.decision.state == UNKNOWN
        self.newest_flash_ns, self.outage = self.now_ns, False

    @rule(shift_ns=st.integers(-3 * SECOND, SECOND), probabilities=SHARES)
    def frame_of_another_time(self, shift_ns: int, probabilities: tuple[float, ...]) -> None:
        self._receive(self.now_ns + shift_ns, probabilities, ())

    @rule()
    def outage_begins(self) -> None:
        self.outage = True
        self.past = interrupt(self.past, "worker_died")
        self._decide(None)

    @invariant()
    def a_state_has_a_fresh_valid_frame_behind_it(self) -> None:
        if self.decision.state == UNKNOWN:
            return
        captured_ns = self.decision.captured_mono_ns
        assert captured_ns in self.good
        assert captured_ns == max(self.good)
        assert captured_ns > self.newest_bad_ns
        assert 0 <= self.now_ns - captured_ns <= RULES.fresh_ns
        assert not self.outage

    @invariant()
    def unknown_has_a_reason(self) -> None:
        assert self.decision.state in (*STATES, UNKNOWN)
        assert self.decision.state != UNKNOWN or self.decision.reasons

    @invariant()
    def what_is_published_is_a_distribution(self) -> None:
        assert is_usable(self.past.belief)
        assert 0 <= self.past.confidence <= 1
        assert (self.decision.probabilities is None) == (self.decision.captured_mono_ns is None)
        if self.decision.state != UNKNOWN:
            assert self.past.confidence >= RULES.confidence

    @precondition(lambda self: self.decision.state == UNKNOWN)
    @rule(state=st.sampled_from(STATES))
    def it_recovers(self, state: str) -> None:
        """Two seconds of good frames give the right state after any past whatsoever."""
        past = self.past
        for number in range(1, 41):
            at_ns = self.now_ns + number * SECOND // 20
            sure = tuple(0.98 if s == state else 0.01 for s in STATES)
            past, decision = decide(past, frame(at_ns, sure), at_ns, RULES)
        assert decision.state == state


TestAnyDrive = AnyDrive.TestCase


@given(st.lists(ANY_FLOATS, min_size=1, max_size=30))
def test_garbage_alone_never_becomes_a_state(outputs: list[tuple[float, ...]]) -> None:
    past = Past()
    for number, output in enumerate(o for o in outputs if not is_usable(o)):
        at_ns = number * SECOND // 10
        past, decision = decide(past, frame(at_ns, output), at_ns, RULES)
        assert decision.state == UNKNOWN


@given(st.lists(SHARES, min_size=2, max_size=60), st.integers(2, 60))
def test_no_flapping_faster_than_the_hysteresis(shares: list[tuple[float, ...]], fps: int) -> None:
    """Ice once announced stays for `clear_s`, whatever the frames say."""
    past, announced_ns, before = Past(), None, UNKNOWN
    for number, probabilities in enumerate(shares):
        at_ns = number * SECOND // fps
        past, _ = decide(past, frame(at_ns, probabilities), at_ns, RULES)
        if past.shown == "icy" and before != "icy":
            announced_ns = at_ns
        if before == "icy" and past.shown != "icy":
            assert announced_ns is not None
            assert at_ns - announced_ns >= RULES.settings.clear_s * SECOND
        before = past.shown


SPEEDS = st.one_of(st.none(), st.floats(0, 60))


@given(st.lists(st.tuples(SHARES, SPEEDS), min_size=2, max_size=60), st.floats(0, 30), st.integers(2, 30))
def test_ice_is_cleared_only_by_a_frame_that_knows_no_speed_or_after_the_distance(
    frames: list[tuple[tuple[float, ...], float | None]], clear_m: float, fps: int
) -> None:
    """No more is driven since the announcement than the sum over all frames: it keeps its own account."""
    rules = rules_for(DecisionSettings(clear_m=clear_m), confidence_threshold=0.6, period_s=0.05)
    past, driven_m = Past(), 0.0
    for number, (probabilities, speed_mps) in enumerate(frames):
        at_ns, before = number * SECOND // fps, past.shown
        inputs = NO_INPUTS if speed_mps is None else NO_INPUTS.with_speed(speed_mps, at_ns)
        past, _ = decide(past, frame(at_ns, probabilities), at_ns, rules, inputs)
        driven_m = driven_m + (speed_mps or 0.0) / fps if before == "icy" else 0.0
        if before == "icy" and past.shown != "icy":
            assert speed_mps is None or driven_m >= clear_m - 1e-6
