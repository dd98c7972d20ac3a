"""The release gate: figures of an artefact and the limits of a target in, a verdict out.

Shares are counted in images, so a small validation set moves in steps: one image may always
differ, because a limit below one image would only ask for luck, and a loss beyond its limit counts
only when chance would rarely make it (see `Limits`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from edge_road.config import StrictModel
from edge_road.datasets.index import Labels
from edge_road.evaluation.scores import Evaluation
from edge_road.export.footprint import Footprint
from edge_road.export.paired import Bools, Loss, paired_loss
from edge_road.export.rtx_check import RtxReport
from edge_road.export.target import FloatLimits, Limits, MachineLimits

USUAL_LOGIT = 10.0
NOT_FINITE = "its outputs are not finite"
_ROUNDING = 1e-9


class Check(StrictModel):
    """One figure against its limit."""

    name: str
    value: float
    limit: float
    at_least: bool = False
    """else at most"""
    ceiling: float | None = None
    """a loss between limit and ceiling is forgiven where chance alone may have made it"""
    significance: float = 0.0
    loss: Loss | None = None

    @property
    def passed(self) -> bool:
        if self.at_least:
            return self.value >= self.limit - _ROUNDING
        return self.value <= self.limit + _ROUNDING or self.forgiven

    @property
    def forgiven(self) -> bool:
        """Beyond the limit, but so few images that chance may have done it."""
        if self.loss is None or self.ceiling is None or self.value <= self.limit + _ROUNDING:
            return False
        return self.value <= self.ceiling + _ROUNDING and self.loss.chance > self.significance

    @property
    def text(self) -> str:
        bound = "at least" if self.at_least else "at most"
        words = f"{self.name} {self.value:.3g} ({bound} {self.limit:.3g})"
        if self.loss is not None and self.value > self.limit:
            words += (
                f", 95 % interval {self.loss.low:.3g} to {self.loss.high:.3g}, chance {self.loss.chance:.2g}"
            )
        return words


class Verdict(StrictModel):
    checks: tuple[Check, ...] = ()
    refusals: tuple[str, ...] = ()
    """what stands against the artefact without a figure"""

    @property
    def passed(self) -> bool:
        return not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        return (*self.refusals, *(check.text for check in self.checks if not check.passed))


@dataclass(frozen=True)
class Parity:
    """Two models on the same images."""

    images: int
    differing: int
    """images with another label"""
    logit_difference: float
    """the largest; infinite where an output is not finite"""
    largest_logit: float
    """of the first model, as |logit|"""

    @property
    def agreement(self) -> float:
        return 1.0 - self.differing / self.images


@dataclass(frozen=True, eq=False)
class Answers:
    """What one model said, image by image; rows are conditions of the same N images."""

    right_RN: Bools
    warned_RN: Bools
    """of the icy images alone: were they called icy?"""
    published_RN: Labels
    """road states, which vehicles publish; classes, where these stand for none"""
    labels_N: Labels


@dataclass(frozen=True, eq=False)
class Quality:
    """What one artefact achieves on validation images, clean and perturbed."""

    clean: Evaluation
    robust: Evaluation
    clean_answers: Answers
    robust_answers: Answers
    """one row for each perturbation of `robust`"""


@dataclass(frozen=True)
class Built:
    """The file, and what TensorRT-RTX made of it."""

    size_share: float
    """of the float file's bytes"""
    rtx: RtxReport | None
    work_share: float | None = None
    """of the multiply-adds that are INT8; none where TensorRT-RTX built nothing"""
    excess_noise: float | None = None
    """see `coverage`; none without INT8"""
    finite: bool = True
    """every value inside, and every output on training images too"""


def judge_float(parity: Parity, rtx: RtxReport | None, limits: FloatLimits) -> Verdict:
    """Of the float ONNX model against torch."""
    if parity.logit_difference == float("inf"):
        return Verdict(refusals=(NOT_FINITE,))
    # Rounding grows with what is rounded: trained models reach logits of about 10.
    difference = limits.logit_difference * max(1.0, parity.largest_logit / USUAL_LOGIT)
    checks = (
        Check(name="largest logit difference", value=parity.logit_difference, limit=difference),
        Check(name="images with another label", value=parity.differing, limit=0),
    )
    return Verdict(checks=checks, refusals=_rtx_refusals(rtx))


def judge_reduced(reference: Quality, quality: Quality, built: Built, limits: Limits) -> Verdict:
    """Of a float16 or INT8 model against the float ONNX model."""
    broken = any(score.not_finite for score in (quality.clean.clean, *quality.robust.perturbed))
    if broken or not built.finite:
        return Verdict(refusals=(NOT_FINITE,))
    checks = [
        *_agreement_checks(reference, quality, limits),
        *_clean_checks(reference, quality, limits),
        *_robustness_checks(reference, quality, limits),
        Check(name="file size against float", value=built.size_share, limit=limits.size_share),
    ]
    if built.excess_noise is not None:
        name = "excess noise of scales not made for the road"
        checks.append(Check(name=name, value=built.excess_noise, limit=limits.excess_noise))
    if built.work_share is not None and limits.work_share:
        name, share = "INT8 share of the multiply-adds", built.work_share
        checks.append(Check(name=name, value=share, limit=limits.work_share, at_least=True))
    return Verdict(checks=tuple(checks), refusals=_rtx_refusals(built.rtx))


def judge_machine(found: Footprint | str, limits: MachineLimits) -> Verdict:
    """Of a model on this machine; a text is the reason why it could not be measured."""
    if isinstance(found, str):
        return Verdict(refusals=(found,))
    latency = Check(name="time of an image here, ms", value=found.latency_ms, limit=limits.latency_ms)
    memory = Check(name="memory of a process here, MB", value=found.memory_mb, limit=limits.memory_mb)
    return Verdict(checks=(latency, memory))


def agreement(reference: Answers, answers: Answers) -> float:
    return float((reference.published_RN == answers.published_RN).mean())


def _agreement_checks(reference: Quality, quality: Quality, limits: Limits) -> Iterator[Check]:
    pairs = [
        ("agreement with float", limits.agreement, reference.clean_answers, quality.clean_answers),
        (
            "agreement under perturbation",
            limits.perturbed_agreement,
            reference.robust_answers,
            quality.robust_answers,
        ),
    ]
    for name, limit, before, after in pairs:
        if after.published_RN.size:
            least = min(limit, 1.0 - 1.0 / after.published_RN.shape[1])
            yield Check(name=name, value=agreement(before, after), limit=least, at_least=True)


def _clean_checks(reference: Quality, quality: Quality, limits: Limits) -> Iterator[Check]:
    before, after = reference.clean_answers, quality.clean_answers
    yield _loss_check("accuracy drop", before.right_RN, after.right_RN, limits.accuracy_drop, limits)
    for label, name in enumerate(quality.clean.classes):
        of_class_N = after.labels_N == label
        if of_class_N.any():
            rows = before.right_RN[:, of_class_N], after.right_RN[:, of_class_N]
            yield _loss_check(f"recall drop of {name}", *rows, limits.recall_drop, limits)
    yield from _danger_checks("danger rate rise", before, after, limits)
    errors = reference.clean.clean.calibration_error, quality.clean.clean.calibration_error
    if errors[0] is not None and errors[1] is not None:
        rise = errors[1] - errors[0]
        yield Check(name="calibration error rise", value=rise, limit=limits.calibration_rise)


def _danger_checks(name: str, before: Answers, after: Answers, limits: Limits) -> Iterator[Check]:
    if after.warned_RN.size:
        yield _loss_check(name, before.warned_RN, after.warned_RN, limits.danger_rise, limits)


def _robustness_checks(reference: Quality, quality: Quality, limits: Limits) -> Iterator[Check]:
    before, after = reference.robust_answers, quality.robust_answers
    if not after.right_RN.size:
        return
    name = "mean accuracy drop under perturbation"
    yield _loss_check(name, before.right_RN, after.right_RN, limits.robustness_drop, limits)
    drops_R = before.right_RN.mean(axis=1) - after.right_RN.mean(axis=1)
    worst = int(drops_R.argmax())
    rows = before.right_RN[worst : worst + 1], after.right_RN[worst : worst + 1]
    # The worst of many is also the unluckiest: Bonferroni.
    stricter = limits.model_copy(update={"significance": limits.significance / len(drops_R)})
    name = f"accuracy drop under {quality.robust.perturbed[worst].name}"
    yield _loss_check(name, *rows, limits.worst_drop, stricter)
    yield from _danger_checks("danger rate rise under perturbation", before, after, limits)


def _loss_check(name: str, before_RN: Bools, after_RN: Bools, limit: float, limits: Limits) -> Check:
    loss = paired_loss(before_RN, after_RN)
    one_image = 1.0 / loss.images
    return Check(
        name=name,
        value=loss.value,
        limit=max(limit, one_image),
        ceiling=max(limits.ceiling * limit, one_image),
        significance=limits.significance,
        loss=loss,
    )


def _rtx_refusals(rtx: RtxReport | None) -> tuple[str, ...]:
    if rtx is None or rtx.status != "refused":
        return ()
    return tuple(f"TensorRT refuses it: {reason}" for reason in rtx.reasons[:3])
