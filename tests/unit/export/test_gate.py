"""The release gate: what passes, what is refused, and with which words."""

from __future__ import annotations

from typing import Any

import pytest

from edge_road.evaluation.metrics import DangerRate
from edge_road.evaluation.scores import Evaluation, Score
from edge_road.export.gate import Check, Parity, Quality, Verdict, judge_float, judge_int8
from edge_road.export.rtx_check import Kernel, RtxReport
from edge_road.export.target import FloatLimits, Int8Limits

CONV = Kernel("correlation", ("Int8",), ("Int8", "Float"), ("Conv_3",))
FLOAT_CONV = Kernel("correlation", ("Float",), ("Float",), ("Conv_5",))
BUILT = RtxReport("built", "1.7", kernels=(CONV, CONV, CONV, FLOAT_CONV))
SAME = Parity(1000, 0, 0.2, 10.0)


def score(name: str = "clean", accuracy: float = 0.95, missed: int = 5, **recall: float) -> Score:
    return Score(
        name=name,
        runs=1,
        accuracy=accuracy,
        accuracy_std=None,
        state_accuracy=accuracy,
        macro_f1=accuracy,
        recall={"dry": 0.95, "wet": 0.9, "icy": 0.98, **recall},
        danger=DangerRate(rate=missed / 500, low=0.0, high=1.0, icy=500),
        calibration_error=0.02,
        not_finite=0,
    )


def evaluation(clean: Score, *perturbed: Score, images: int = 1000) -> Evaluation:
    return Evaluation(
        artefact="x",
        classes=("dry", "wet", "icy"),
        images=images,
        images_of_class={"dry": 400, "wet": 100, "icy": 500},
        runs=1,
        seed=0,
        clean=clean,
        perturbed=perturbed,
        confusion=((1, 0, 0, 0),) * 3,
        mistakes=(),
    )


def quality(dark: float = 0.8, gaussian: float = 0.9, **clean: Any) -> Quality:
    others = [score(f"gaussian_{level}", gaussian) for level in (10, 30, 40, 60)]
    robust = evaluation(score(), *others, score("dark", dark), images=100)
    return Quality(evaluation(score(**clean)), robust)


def int8_verdict(worse: Quality, parity: Parity = SAME, rtx: RtxReport | None = BUILT) -> Verdict:
    return judge_int8(quality(), worse, parity, rtx, Int8Limits())


def test_an_equal_int8_model_is_released() -> None:
    verdict = int8_verdict(quality())
    assert verdict.passed
    assert len(verdict.checks) == 9


@pytest.mark.parametrize(
    ("worse", "reason"),
    [
        (quality(accuracy=0.93), "accuracy drop 0.02 (at most 0.01)"),
        (quality(wet=0.8), "recall drop of wet 0.1 (at most 0.03)"),
        (quality(missed=15), "danger rate rise 0.02 (at most 0.01)"),
        (quality(gaussian=0.85), "mean accuracy drop under perturbation 0.04 (at most 0.03)"),
        (quality(dark=0.68), "accuracy drop under dark 0.12 (at most 0.1)"),
    ],
)
def test_each_loss_is_refused_and_named(worse: Quality, reason: str) -> None:
    assert int8_verdict(worse).reasons == (reason,)


def test_disagreement_is_refused_though_the_accuracy_is_the_same() -> None:
    verdict = int8_verdict(quality(), parity=Parity(1000, 30, 0.5, 10.0))
    assert verdict.reasons == ("agreement with float 0.97 (at least 0.98)",)


def test_too_few_int8_kernels_are_refused() -> None:
    half = RtxReport("built", "1.7", kernels=(CONV, FLOAT_CONV))
    assert int8_verdict(quality(), rtx=half).reasons == ("INT8 kernels 0.5 (at least 0.7)",)


def test_what_tensorrt_refuses_is_refused_in_its_own_words() -> None:
    refused = RtxReport("refused", "1.7", reasons=("Conv_3: zero point must be 0",))
    assert int8_verdict(quality(), rtx=refused).reasons == (
        "TensorRT refuses it: Conv_3: zero point must be 0",
    )
    assert not judge_float(Parity(200, 0, 1e-6, 10.0), refused, FloatLimits()).passed


@pytest.mark.parametrize("rtx", [None, RtxReport("not installed")])
def test_without_tensorrt_rtx_the_other_checks_decide(rtx: RtxReport | None) -> None:
    assert int8_verdict(quality(), rtx=rtx).passed
    assert not int8_verdict(quality(accuracy=0.5), rtx=rtx).passed


def test_one_image_may_always_differ() -> None:
    """Of 20 images one is 5 %: a limit of 2 % would only ask for luck."""
    assert int8_verdict(quality(), parity=Parity(20, 1, 0.1, 10.0)).passed
    assert not int8_verdict(quality(), parity=Parity(20, 2, 0.1, 10.0)).passed


def test_a_better_int8_model_is_not_punished() -> None:
    assert int8_verdict(quality(accuracy=0.99, missed=0, dark=0.9, wet=1.0)).passed


def test_float_must_equal_torch() -> None:
    limits = FloatLimits()
    assert judge_float(Parity(200, 0, 9e-5, 8.0), None, limits).passed
    assert not judge_float(Parity(200, 0, 2e-4, 8.0), None, limits).passed
    assert judge_float(Parity(200, 0, 2e-4, 25.0), None, limits).passed
    assert judge_float(Parity(200, 1, 1e-6, 8.0), None, limits).reasons == (
        "images with another label 1 (at most 0)",
    )
    assert judge_float(Parity(200, 200, float("inf"), 8.0), None, limits).reasons == (
        "its outputs are not finite",
    )


def test_a_limit_is_kept_by_a_value_that_equals_it() -> None:
    assert Check(name="drop", value=0.1 + 0.2, limit=0.3).passed
    assert Check(name="share", value=0.3, limit=0.1 + 0.2, at_least=True).passed
