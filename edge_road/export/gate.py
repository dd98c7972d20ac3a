"""The release gate: figures of an artefact and the limits of a target in, a verdict out.

Shares are counted in images, so a small validation set moves in steps: one image may always
differ, because a limit below one image would only ask for luck.
"""

from __future__ import annotations

from dataclasses import dataclass

from edge_road.config import StrictModel
from edge_road.evaluation.scores import Evaluation
from edge_road.export.rtx_check import RtxReport
from edge_road.export.target import FloatLimits, Int8Limits

USUAL_LOGIT = 10.0
_ROUNDING = 1e-9


class Check(StrictModel):
    """One figure against its limit."""

    name: str
    value: float
    limit: float
    at_least: bool = False
    """else at most"""

    @property
    def passed(self) -> bool:
        if self.at_least:
            return self.value >= self.limit - _ROUNDING
        return self.value <= self.limit + _ROUNDING

    @property
    def text(self) -> str:
        bound = "at least" if self.at_least else "at most"
        return f"{self.name} {self.value:.3g} ({bound} {self.limit:.3g})"


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


@dataclass(frozen=True)
class Quality:
    """What one artefact achieves on validation images, clean and perturbed."""

    clean: Evaluation
    robust: Evaluation


def judge_float(parity: Parity, rtx: RtxReport | None, limits: FloatLimits) -> Verdict:
    """Of the float ONNX model against torch."""
    if parity.logit_difference == float("inf"):
        return Verdict(refusals=("its outputs are not finite",))
    # Rounding grows with what is rounded: trained models reach logits of about 10.
    difference = limits.logit_difference * max(1.0, parity.largest_logit / USUAL_LOGIT)
    checks = (
        Check(name="largest logit difference", value=parity.logit_difference, limit=difference),
        Check(name="images with another label", value=parity.differing, limit=0),
    )
    return Verdict(checks=checks, refusals=_rtx_refusals(rtx))


def judge_int8(
    reference: Quality, quality: Quality, parity: Parity, rtx: RtxReport | None, limits: Int8Limits
) -> Verdict:
    """Of the INT8 model against the float ONNX model."""
    before, after = reference.clean.clean, quality.clean.clean
    least_agreement = min(limits.agreement, 1.0 - 1.0 / parity.images)
    checks = [
        Check(name="agreement with float", value=parity.agreement, limit=least_agreement, at_least=True),
        _drop("accuracy drop", before.accuracy, after.accuracy, limits.accuracy_drop, quality.clean.images),
        *_recall_checks(reference.clean, quality.clean, limits.recall_drop),
        *_danger_check(reference.clean, quality.clean, limits.danger_rise),
        *_robustness_checks(reference.robust, quality.robust, limits),
    ]
    if rtx is not None and rtx.status == "built":
        share = Check(name="INT8 kernels", value=rtx.int8_share, limit=limits.kernel_share, at_least=True)
        checks.append(share)
    return Verdict(checks=tuple(checks), refusals=_rtx_refusals(rtx))


def _recall_checks(reference: Evaluation, quality: Evaluation, limit: float) -> list[Check]:
    rows = [(name, before, quality.clean.recall[name]) for name, before in reference.clean.recall.items()]
    return [
        _drop(f"recall drop of {name}", before, after, limit, quality.images_of_class[name])
        for name, before, after in rows
        if before is not None and after is not None
    ]


def _danger_check(reference: Evaluation, quality: Evaluation, limit: float) -> list[Check]:
    before, after = reference.clean.danger, quality.clean.danger
    if before is None or after is None:
        return []
    return [_drop("danger rate rise", after.rate, before.rate, limit, after.icy)]


def _robustness_checks(reference: Evaluation, quality: Evaluation, limits: Int8Limits) -> list[Check]:
    """The mean over all perturbations, and the worst one, whose limit is wider: it is also the unluckiest."""
    pairs = list(zip(reference.perturbed, quality.perturbed))
    if not pairs:
        return []
    drops = {after.name: before.accuracy - after.accuracy for before, after in pairs}
    worst = max(drops, key=lambda name: drops[name])
    mean = sum(drops.values()) / len(drops)
    one_image = 1.0 / quality.images
    return [
        Check(name="mean accuracy drop under perturbation", value=mean, limit=limits.robustness_drop),
        Check(
            name=f"accuracy drop under {worst}", value=drops[worst], limit=max(limits.worst_drop, one_image)
        ),
    ]


def _drop(name: str, before: float, after: float, limit: float, images: int) -> Check:
    return Check(name=name, value=before - after, limit=max(limit, 1.0 / images))


def _rtx_refusals(rtx: RtxReport | None) -> tuple[str, ...]:
    if rtx is None or rtx.status != "refused":
        return ()
    return tuple(f"TensorRT refuses it: {reason}" for reason in rtx.reasons[:3])
