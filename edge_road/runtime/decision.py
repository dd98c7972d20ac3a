"""From evidence to a road state: a pure function of the past, the evidence and the time.

A hidden-Markov filter (forward algorithm, Rabiner 1989, eq. 19-20) over dry, wet and icy, whose
evidence counts by time and not by frame, then a hysteresis in seconds and metres: quick to warn of
ice, slow to clear. Whatever is missing, old, damaged, strange or doubtful becomes `unknown` with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import Field

from edge_road.conditions import STATES, UNKNOWN
from edge_road.config import StrictModel
from edge_road.runtime.evidence import Evidence, RegionEvidence
from edge_road.runtime.quality import DECODE, EXPOSURE, OBSTRUCTED
from edge_road.runtime.vehicle_inputs import NO_INPUTS, STANDING_MPS, VehicleInputs

Belief = tuple[float, ...]
"""probabilities of STATES"""
UNIFORM: Belief = tuple(1.0 / len(STATES) for _ in STATES)

NO_FRAMES, MODEL_OUTPUT, LOW_CONFIDENCE = "no_frames", "model_output", "low_confidence"
SETTLING, CHANGING, UNFAMILIAR = "settling", "changing", "unfamiliar"
IMPLAUSIBLE_TEMPERATURE = "implausible_temperature"
PASSING = frozenset({EXPOSURE, DECODE})
"""a flash or one damaged picture says nothing of the road, and nothing against the frame before it"""
ICY = STATES.index("icy")
SUM_TOLERANCE = 1e-3


class DecisionSettings(StrictModel):
    confidence: float | None = Field(default=None, ge=0.34, le=1)
    """least confidence of a state; none: the bundle's own threshold"""
    regained: float = Field(default=0.5, ge=0, le=1)
    """a state that was withdrawn for doubt comes back this share of the way from `confidence` to certainty"""
    smoothing_s: float = Field(default=0.5, ge=0)
    """time constant of the confidence, so that one doubtful frame does not flap"""
    dwell_s: float = Field(default=30.0, gt=0)
    """how long a road state lasts on average"""
    evidence_s: float = Field(default=0.1, gt=0)
    """frames closer than this see the same patch of road: their evidence counts by their distance"""
    floor: float = Field(default=0.02, gt=0, lt=0.3)
    """least probability that one frame may give to a state"""
    threshold: float = Field(default=0.8, gt=0.34, lt=1)
    """belief at which dry or wet is a candidate"""
    icy_threshold: float = Field(default=0.5, gt=0.34, lt=1)
    """belief at which icy is a candidate; lower, because missed ice is worse"""
    fusion: Literal["mean", "worst"] = "mean"
    """of several regions: their mean, or as icy as the iciest of them (ice in one wheel track)"""
    familiar_radii: float = Field(default=1.5, gt=0)
    """a picture further from every class centroid than this many of its radii is unlike the training's"""
    warmest_ice_c: float = Field(default=12.0, ge=0, le=50)
    """ice in warmer air is doubted, but still told"""
    passing_s: float = Field(default=0.1, ge=0)
    """a flash or a damaged picture withdraws a state only when it lasts this long"""
    start_s: float = Field(default=0.2, ge=0)
    """how long a candidate must last to be the first state"""
    warn_s: float = Field(default=0.1, ge=0)
    """to become icy"""
    change_s: float = Field(default=0.2, ge=0)
    """from dry to wet and back"""
    clear_s: float = Field(default=0.8, ge=0)
    """to be icy no longer"""
    clear_m: float = Field(default=5.0, ge=0, le=1000)
    """and so far must be driven, when the speed is known: standing on one spot clears no road; 0: any"""
    fresh_s: float = Field(default=0.4, gt=0, le=60)
    """a state older than this is unknown; slow cameras get four periods, but at most 0.9 s"""
    reset_s: float = Field(default=1.0, gt=0)
    """after a gap this long the past says nothing any more"""


@dataclass(frozen=True)
class Rules:
    """The settings, completed with what the model and the camera are like."""

    settings: DecisionSettings
    confidence: float
    fresh_ns: int

    @property
    def regained(self) -> float:
        return self.confidence + self.settings.regained * (1.0 - self.confidence)


def rules_for(settings: DecisionSettings, confidence_threshold: float, period_s: float) -> Rules:
    confidence = confidence_threshold if settings.confidence is None else settings.confidence
    fresh_s = max(settings.fresh_s, min(0.9, 4 * period_s))
    return Rules(settings, confidence, round(fresh_s * 1e9))


@dataclass(frozen=True)
class Past:
    """All that is remembered."""

    belief: Belief = UNIFORM
    confidence: float = 0.0
    """of the last frames, smoothed"""
    doubted: bool = False
    """the confidence was too low, and has not been high since"""
    strange: float = 0.0
    """share of the last frames that were unlike the training's, smoothed"""
    covered: bool = False
    """some region of the newest usable frame was obstructed"""
    valid_ns: int | None = None
    """when the newest usable frame was taken"""
    seen_ns: int | None = None
    """when the newest frame of any kind was taken"""
    shown: str = UNKNOWN
    candidate: str | None = None
    candidate_ns: int = 0
    candidate_m: float = 0.0
    """driven since the candidate came, as far as the speed is known"""
    trouble: tuple[str, ...] = ()
    """what is wrong with the newest frame"""
    trouble_ns: int = 0
    """when the first frame of this trouble was taken"""
    only_flashes: bool = False
    """the trouble has been nothing but flashes since the last good frame"""
    outage: str | None = None
    """why there can be no frames at all"""


@dataclass(frozen=True)
class Decision:
    state: str
    reasons: tuple[str, ...]
    probabilities: Belief | None
    captured_mono_ns: int | None
    """of the newest usable frame, while it is fresh"""


def decide(
    past: Past,
    evidence: Evidence | None,
    now_ns: int,
    rules: Rules,
    inputs: VehicleInputs = NO_INPUTS,
) -> tuple[Past, Decision]:
    """Take in the evidence (none: time has passed) and say what holds at `now_ns`."""
    if evidence is not None:
        past = _take_in(past, evidence, now_ns, rules, inputs.speed_mps(now_ns))
    reasons = _reasons_for_unknown(past, now_ns, rules)
    if past.valid_ns is None or now_ns - past.valid_ns > rules.fresh_ns:
        return past, Decision(UNKNOWN, reasons or (NO_FRAMES,), None, None)
    state = UNKNOWN if reasons else past.shown
    doubts = _doubts(past, state, inputs.ambient_c(now_ns), rules.settings)
    return past, Decision(state, reasons or doubts, past.belief, past.valid_ns)


def interrupt(past: Past, reason: str) -> Past:
    """There will be no frames for now (the worker died, the daemon ends); the next one ends this."""
    return replace(past, outage=reason)


def resume(past: Past) -> Past:
    return replace(past, outage=None)


def fuse(regions: Sequence[RegionEvidence], fusion: str = "mean") -> Belief:
    """One distribution over STATES; nothing when there is no region, or one of them gives none."""
    if not all(is_distribution(region.probabilities) for region in regions):
        return ()
    columns = zip(*(region.probabilities for region in regions))
    mean = tuple(math.fsum(column) / len(regions) for column in columns)
    if fusion == "mean" or not mean:
        return mean
    icy = max(region.probabilities[ICY] for region in regions)
    rest = (1.0 - icy) / max(1.0 - mean[ICY], 1e-9)
    return tuple(icy if n == ICY else p * rest for n, p in enumerate(mean))


def _reasons_for_unknown(past: Past, now_ns: int, rules: Rules) -> tuple[str, ...]:
    if past.outage is not None:
        return (past.outage,)
    if past.seen_ns is None or now_ns - past.seen_ns > rules.fresh_ns:
        return (NO_FRAMES,)
    if past.trouble and not _passes(past, now_ns, rules):
        return past.trouble
    if past.doubted:
        return (LOW_CONFIDENCE,)
    if past.strange > 0.5:
        return (UNFAMILIAR,)
    return (SETTLING,) if past.shown == UNKNOWN else ()


def _passes(past: Past, now_ns: int, rules: Rules) -> bool:
    """Whether the trouble is no more than a flash after a good frame."""
    is_flash = past.only_flashes and past.shown != UNKNOWN
    short = now_ns - past.trouble_ns < rules.settings.passing_s * 1e9
    return is_flash and short and past.valid_ns is not None and now_ns - past.valid_ns <= rules.fresh_ns


def _doubts(past: Past, state: str, ambient_c: float | None, settings: DecisionSettings) -> tuple[str, ...]:
    too_warm = state == "icy" and ambient_c is not None and ambient_c > settings.warmest_ice_c
    found = {
        CHANGING: past.candidate is not None,
        OBSTRUCTED: past.covered,
        IMPLAUSIBLE_TEMPERATURE: too_warm,
    }
    return (*past.trouble, *(reason for reason, holds in found.items() if holds))


def _take_in(past: Past, evidence: Evidence, now_ns: int, rules: Rules, speed_mps: float | None) -> Past:
    captured_ns = evidence.captured_mono_ns
    is_new = past.seen_ns is None or captured_ns > past.seen_ns
    if not is_new or not 0 <= now_ns - captured_ns <= rules.fresh_ns:
        return past  # repeated, backward, late or from the future: never extends freshness
    past = replace(past, seen_ns=captured_ns, outage=None)
    if evidence.problems:
        return _troubled(past, evidence.problems, captured_ns)
    judged = [region for region in evidence.regions if not region.obstructed]
    observed = fuse(judged, rules.settings.fusion)
    if not is_distribution(observed):
        return _troubled(past, (MODEL_OUTPUT,), captured_ns)
    nearest = min(region.distance for region in judged)
    is_strange = not (nearest <= rules.settings.familiar_radii)  # NaN is strange
    past = replace(past, trouble=(), covered=len(judged) < len(evidence.regions))
    past = _observe(past, observed, float(is_strange), captured_ns, rules.settings, speed_mps)
    needed = rules.regained if past.doubted else rules.confidence
    return replace(past, doubted=not (past.confidence >= needed))  # NaN is doubted


def _troubled(past: Past, trouble: tuple[str, ...], captured_ns: int) -> Past:
    is_flash = PASSING.issuperset(trouble)
    if not past.trouble:
        return replace(past, trouble=trouble, trouble_ns=captured_ns, only_flashes=is_flash)
    return replace(past, trouble=trouble, only_flashes=past.only_flashes and is_flash)


def is_distribution(observed: Belief) -> bool:
    """NaN fails every comparison, and what is infinite has no sum near one."""
    is_complete = len(observed) == len(STATES) and all(p >= 0.0 for p in observed)
    return is_complete and abs(sum(observed) - 1.0) <= SUM_TOLERANCE


def _observe(
    past: Past,
    observed: Belief,
    strange: float,
    captured_ns: int,
    settings: DecisionSettings,
    speed_mps: float | None,
) -> Past:
    gap_s = None if past.valid_ns is None else (captured_ns - past.valid_ns) / 1e9
    if gap_s is None or gap_s > settings.reset_s:
        gap_s = settings.evidence_s
        past = Past(seen_ns=captured_ns, confidence=max(observed), strange=strange, covered=past.covered)
    belief = _update(past.belief, observed, gap_s, settings)
    weight = 1.0 if settings.smoothing_s == 0 else -math.expm1(-gap_s / settings.smoothing_s)
    past = replace(
        past,
        belief=belief,
        confidence=min(1.0, past.confidence + weight * (max(observed) - past.confidence)),
        strange=past.strange + weight * (strange - past.strange),
        valid_ns=captured_ns,
    )
    return _hysteresis(past, captured_ns, _driven_m(speed_mps, gap_s), settings)


def _update(belief: Belief, observed: Belief, gap_s: float, settings: DecisionSettings) -> Belief:
    """Predict with exponential dwell times, then weigh by the evidence of `gap_s` seconds."""
    leave = -math.expm1(-gap_s / settings.dwell_s)
    predicted = [b * (1 - leave) + leave * (1 - b) / (len(STATES) - 1) for b in belief]
    power = min(1.0, gap_s / settings.evidence_s)
    weighed = [b * max(p, settings.floor) ** power for b, p in zip(predicted, observed)]
    total = math.fsum(weighed)
    return tuple(w / total for w in weighed)


def _driven_m(speed_mps: float | None, gap_s: float) -> float | None:
    """None: nobody knows."""
    if speed_mps is None:
        return None
    return speed_mps * gap_s if speed_mps >= STANDING_MPS else 0.0


def _hysteresis(past: Past, captured_ns: int, driven_m: float | None, settings: DecisionSettings) -> Past:
    target = _target(past, settings)
    if target == past.shown:
        return replace(past, candidate=None)
    if target != past.candidate:
        past = replace(past, candidate=target, candidate_ns=captured_ns, candidate_m=0.0)
    else:
        past = replace(past, candidate_m=past.candidate_m + (driven_m or 0.0))
    too_near = driven_m is not None and past.shown == "icy" and past.candidate_m < settings.clear_m
    if too_near or captured_ns - past.candidate_ns < _hold_s(past.shown, target, settings) * 1e9:
        return past
    return replace(past, shown=target, candidate=None)


def _target(past: Past, settings: DecisionSettings) -> str:
    """The state that the belief asks for; without a clear answer, the one that is shown."""
    if past.belief[ICY] >= settings.icy_threshold:
        return "icy"
    best = max(past.belief)
    return STATES[past.belief.index(best)] if best >= settings.threshold else past.shown


def _hold_s(shown: str, target: str, settings: DecisionSettings) -> float:
    if shown == UNKNOWN:
        return settings.start_s
    if target == "icy":
        return settings.warn_s
    return settings.clear_s if shown == "icy" else settings.change_s
