"""Everything the runtime must know of one model file, measured with that very file."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.bundle import MODEL_FILES, Artefact, Precision
from edge_road.conditions import STATES, ClassList
from edge_road.datasets.index import Labels
from edge_road.errors import DataError
from edge_road.evaluation import metrics
from edge_road.evaluation.judge import judge
from edge_road.evaluation.metrics import fit_temperature
from edge_road.evaluation.perturbations import CLEAN
from edge_road.evaluation.smoke import SMOKE_TESTS
from edge_road.export.gate import Answers, Parity, Quality
from edge_road.export.material import Material, Sample
from edge_road.export.onnx_edit import with_temperature
from edge_road.export.target import Target
from edge_road.frames import Floats, Images, Prediction, join
from edge_road.predictor import Predictor

RADIUS_QUANTILE = 0.99
THRESHOLDS = tuple(round(0.4 + 0.02 * step, 2) for step in range(31))
# Enough to compare, few enough that equal models on equal machines give equal text.
DIGITS = 6


@dataclass(frozen=True, eq=False)
class Measured:
    """One model file, ready for a bundle."""

    onnx_bytes: bytes
    artefact: Artefact
    quality: Quality
    predictor: OnnxPredictor
    validation: Prediction
    """of the clean validation images"""
    finite: bool
    """every output on these and on the training images"""


def measure(onnx_bytes: bytes, precision: Precision, material: Material, target: Target) -> Measured:
    """Temperature and threshold on validation images, centroids and radii on training images."""
    classes, validation = material.record.class_list, material.validation
    prediction = open_predictor(onnx_bytes, precision, material).predict(validation.images_NHWC)
    logits_NC, labels_N = prediction.logits_NC[prediction.finite_N], validation.labels_N[prediction.finite_N]
    temperature = round(fit_temperature(logits_NC, labels_N), DIGITS)
    onnx_bytes = with_temperature(onnx_bytes, temperature)
    predictor = open_predictor(onnx_bytes, precision, material)
    training = predictor.predict(material.training.images_NHWC)
    features_ND = np.where(training.finite_N[:, None], training.features_ND, np.float32(0))
    centroids_CD, radii_C = class_geometry(features_ND, material.training.labels_N, classes)
    artefact = Artefact(
        file=MODEL_FILES[precision],
        temperature=temperature,
        confidence_threshold=_threshold(logits_NC / temperature, labels_N, classes, target),
        centroids=tuple(map(_rounded, centroids_CD)),
        radii=_rounded(radii_C),
    )
    finite = bool(prediction.finite_N.all() and training.finite_N.all())
    return Measured(
        onnx_bytes,
        artefact,
        quality_of(predictor, material.validation, target),
        predictor,
        prediction,
        finite,
    )


def open_predictor(onnx_bytes: bytes, precision: Precision, material: Material) -> OnnxPredictor:
    size = (material.record.preprocessing.height, material.record.preprocessing.width)
    name = f"onnx {precision} on CPU"
    threads = os.cpu_count() or 1
    return OnnxPredictor(onnx_bytes, material.record.class_list, size, name=name, threads=threads)


def compare(first: Predictor, second: Predictor, images_NHWC: Images) -> Parity:
    return parity_of(first.predict(images_NHWC), second.predict(images_NHWC))


def parity_of(one: Prediction, other: Prediction) -> Parity:
    if not (one.finite_N.all() and other.finite_N.all()):
        return Parity(len(one), len(one), float("inf"), float("inf"))
    differing = int((one.labels_N != other.labels_N).sum())
    difference = float(np.abs(one.logits_NC - other.logits_NC).max())
    return Parity(len(one), differing, difference, float(np.abs(one.logits_NC).max()))


def class_geometry(features_ND: Floats, labels_N: Labels, classes: ClassList) -> tuple[Floats, Floats]:
    """The mean feature of each class, and the distance to it that 99 % of its images stay within."""
    centroids, radii = [], []
    for label in range(len(classes)):
        members_MD = features_ND[labels_N == label]
        if len(members_MD) == 0:
            raise DataError("a class has no training images", got=classes.names[label])
        centroid_D = members_MD.mean(axis=0)
        distances_M = np.linalg.norm(members_MD - centroid_D, axis=1)
        centroids.append(centroid_D)
        radii.append(np.quantile(distances_M, RADIUS_QUANTILE))
    return np.asarray(centroids, np.float32), np.asarray(radii, np.float32)


def lowest_threshold(confidence_N: Floats, right_N: npt.NDArray[np.bool_], wanted: float) -> float:
    """The lowest confidence at which the answers are right often enough; the highest if none is."""
    for threshold in THRESHOLDS:
        answered_N = confidence_N >= threshold
        if not answered_N.any() or right_N[answered_N].mean() >= wanted:
            return threshold
    return THRESHOLDS[-1]


def _threshold(logits_NC: Floats, labels_N: Labels, classes: ClassList, target: Target) -> float:
    """Of the road state, whose probability is the sum over its classes: what the runtime compares."""
    powers_NC = np.exp(logits_NC - logits_NC.max(axis=1, keepdims=True))
    states_NS = classes.state_probabilities(powers_NC / powers_NC.sum(axis=1, keepdims=True))
    true_N = np.argmax(classes.state_probabilities(np.eye(len(classes))[labels_N]), axis=1)
    right_N = states_NS.argmax(axis=1) == true_N
    found = lowest_threshold(states_NS.max(axis=1).astype(np.float32), right_N, target.answer_accuracy)
    return min(found, target.highest_threshold)


def quality_of(predictor: Predictor, sample: Sample, target: Target) -> Quality:
    """On the sample, and on a few of it under every perturbation of the smoke test."""
    seed = target.seed
    perturbed = sample.draw(target.samples.robustness, seed)
    tests = [name for name in SMOKE_TESTS if name != CLEAN]
    listener = _Listener(predictor)
    clean = judge(listener, sample.images_NHWC, sample.labels_N, (), seed=seed)
    clean_answers = _answers(listener.heard(), sample.labels_N)
    robust = judge(listener, perturbed.images_NHWC, perturbed.labels_N, tests, runs=1, seed=seed)
    # The judge looks at the clean images first; each perturbation follows in its order.
    return Quality(clean, robust, clean_answers, _answers(listener.heard(), perturbed.labels_N, skip=1))


class _Listener:
    """A predictor that remembers its answers: the gate compares models image by image."""

    def __init__(self, predictor: Predictor) -> None:
        self.name, self.classes, self.size = predictor.name, predictor.classes, predictor.size
        self._predictor = predictor
        self._heard: list[Prediction] = []

    def predict(self, images_NHWC: Images) -> Prediction:
        self._heard.append(self._predictor.predict(images_NHWC))
        return self._heard[-1]

    def heard(self) -> tuple[Prediction, ClassList]:
        """Everything since it was last asked."""
        heard, self._heard = self._heard, []
        return join(heard), self.classes


def _answers(heard: tuple[Prediction, ClassList], labels_N: Labels, skip: int = 0) -> Answers:
    prediction, classes = heard
    said_RN = metrics.said(prediction).reshape(-1, len(labels_N))[skip:]
    states_RN = metrics.said_states(prediction, classes).reshape(-1, len(labels_N))[skip:]
    true_N = metrics.true_states(labels_N, classes)
    icy = STATES.index("icy")
    published_RN = states_RN if metrics.about_roads(classes) else said_RN
    return Answers(said_RN == labels_N, states_RN[:, true_N == icy] == icy, published_RN, labels_N)


def _rounded(values: Floats) -> tuple[float, ...]:
    return tuple(round(float(value), DIGITS) for value in values)
