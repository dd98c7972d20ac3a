"""Which layers suffer most from INT8, and how few of them must stay in float."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.conditions import ClassList
from edge_road.export.quantize import Int8Layers, quantize
from edge_road.frames import Floats, Images


@dataclass(frozen=True)
class Trial:
    """One choice of float layers, and what it does to the answers."""

    kept_float: tuple[str, ...]
    agreement: float
    """share of labels that are the float model's"""
    logit_error: float
    """mean |difference|"""

    @property
    def row(self) -> tuple[str, ...]:
        last = self.kept_float[-1] if self.kept_float else "-"
        return str(len(self.kept_float)), last, f"{self.agreement:.2%}", f"{self.logit_error:.4f}"


@dataclass(frozen=True)
class Sensitivity:
    """Why some layers stayed in float."""

    worst: tuple[tuple[str, float], ...]
    """layers, and the mean change of the logits when each alone is INT8"""
    trials: tuple[Trial, ...] = ()
    """each keeps so many of the worst, in their order"""


def by_sensitivity(
    onnx_bytes: bytes, layers: Int8Layers, classes: ClassList, images_NHWC: Images
) -> list[tuple[str, float]]:
    """Every layer with the mean change of the logits when it alone is INT8, the worst first."""
    reference_NC = logits_of(onnx_bytes, classes, images_NHWC)

    def damage(name: str) -> float:
        logits_NC = logits_of(quantize(onnx_bytes, layers, {name}), classes, images_NHWC)
        return float(np.abs(logits_NC - reference_NC).mean())

    return sorted(((name, damage(name)) for name in layers), key=lambda row: -row[1])


def fewest_float(
    order: Sequence[str], judge: Callable[[tuple[str, ...]], Trial], wanted: float, most: int
) -> tuple[Trial, list[Trial]]:
    """The choice with the fewest float layers that agrees well enough, and every trial, by their number.

    More float layers are taken to agree better, so the number is found by halving. If even `most` do not
    suffice, the choice is the trial that agrees best, and the gate will have its say.
    """
    most = min(most, len(order))
    trials = {0: judge(())}
    low, high = 0, most
    if trials[0].agreement < wanted and most:
        trials[most] = judge(tuple(order[:most]))
        while trials[high].agreement >= wanted and high - low > 1:
            middle = (low + high) // 2
            trials[middle] = judge(tuple(order[:middle]))
            low, high = (low, middle) if trials[middle].agreement >= wanted else (middle, high)
    rows = [trials[count] for count in sorted(trials)]
    enough = [trial for trial in rows if trial.agreement >= wanted]
    return (enough or [max(rows, key=lambda trial: trial.agreement)])[0], rows


def agreement_trial(
    onnx_bytes: bytes, layers: Int8Layers, classes: ClassList, images_NHWC: Images
) -> Callable[[tuple[str, ...]], Trial]:
    """A judge for `fewest_float`."""
    reference_NC = logits_of(onnx_bytes, classes, images_NHWC)

    def judge(kept_float: tuple[str, ...]) -> Trial:
        chosen = layers.keys() - set(kept_float)
        logits_NC = logits_of(quantize(onnx_bytes, layers, chosen), classes, images_NHWC)
        agreement = (logits_NC.argmax(axis=1) == reference_NC.argmax(axis=1)).mean()
        return Trial(kept_float, float(agreement), float(np.abs(logits_NC - reference_NC).mean()))

    return judge


def logits_of(onnx_bytes: bytes, classes: ClassList, images_NHWC: Images) -> Floats:
    size = (images_NHWC.shape[1], images_NHWC.shape[2])
    return OnnxPredictor(onnx_bytes, classes, size, name="sensitivity").predict(images_NHWC).logits_NC
