"""The judge: what it reports equals what a loop over the same predictions gives."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from edge_road.conditions import ROAD_CLASSES, ClassList
from edge_road.errors import ConfigError, DataError
from edge_road.evaluation.judge import judge
from edge_road.evaluation.perturbations import PERTURBATIONS, perturb
from edge_road.evaluation.scores import Evaluation
from edge_road.frames import Images, Prediction

SIZE = (16, 20)


class ByBrightness:
    """dry below 85, wet below 170, icy above: simple, and noise does not move it much."""

    name = "by brightness"
    size = SIZE

    def __init__(
        self, classes: ClassList = ROAD_CLASSES, spoil: Callable[[np.ndarray], None] | None = None
    ) -> None:
        self.classes = classes
        self.spoil = spoil
        self.seen: list[Images] = []

    def predict(self, images_NHWC: Images) -> Prediction:
        self.seen.append(images_NHWC)
        brightness_N = images_NHWC.reshape(len(images_NHWC), -1).mean(axis=1)
        levels_C = np.linspace(40, 210, len(self.classes))
        logits_NC = (-np.abs(brightness_N[:, None] - levels_C) / 20).astype(np.float32)
        if self.spoil:
            self.spoil(logits_NC)
        powers_NC = np.exp(logits_NC)
        probabilities_NC = powers_NC / powers_NC.sum(axis=1, keepdims=True)
        return Prediction(probabilities_NC, logits_NC, logits_NC)


def grey_pictures(count: int = 30) -> tuple[Images, np.ndarray]:
    labels_N = np.arange(count) % 3
    images_NHWC = np.empty((count, *SIZE, 3), np.uint8)
    for position, label in enumerate(labels_N):
        images_NHWC[position] = (40, 125, 210)[label]
    return images_NHWC, labels_N


def test_a_perfect_predictor_is_perfect_on_clean_pictures_and_worse_in_the_dark() -> None:
    images_NHWC, labels_N = grey_pictures()
    evaluation = judge(ByBrightness(), images_NHWC, labels_N, runs=2)
    assert evaluation.clean.accuracy == evaluation.clean.macro_f1 == 1.0
    assert evaluation.clean.danger is not None
    assert evaluation.clean.danger.rate == 0.0
    assert evaluation.mistakes == ()
    assert evaluation.confusion == ((10, 0, 0, 0), (0, 10, 0, 0), (0, 0, 10, 0))
    scores = {score.name: score for score in evaluation.perturbed}
    assert list(scores) == list(PERTURBATIONS)
    assert scores["dark"].recall == {"dry": 1.0, "wet": 0.0, "icy": 0.0}
    assert scores["dark"].danger is not None
    assert scores["dark"].danger.rate == 1.0
    assert scores["dark"].runs == 1
    assert scores["dark"].accuracy_std is None
    assert evaluation.worst is not None
    assert evaluation.worst.accuracy == min(score.accuracy for score in evaluation.perturbed)


@pytest.mark.parametrize("batch_size", [1, 7, 64])
def test_accuracy_over_runs_equals_a_slow_loop_whatever_the_batch(batch_size: int) -> None:
    images_NHWC, labels_N = grey_pictures()
    images_NHWC[labels_N == 1] = 132  # patches take this one to and fro over the limit
    score = judge(
        ByBrightness(), images_NHWC, labels_N, ["occlusion"], runs=4, seed=9, batch_size=batch_size
    ).perturbed[0]
    accuracies, wet_hits = [], 0
    for run in range(4):
        said_N = ByBrightness().predict(perturb(images_NHWC, "occlusion", 9, run)).labels_N
        accuracies.append(sum(said_N == labels_N) / 30)
        wet_hits += sum((said_N == 1) & (labels_N == 1))
    assert len(set(accuracies)) > 1
    assert score.accuracy == pytest.approx(np.mean(accuracies))
    assert score.accuracy_std == pytest.approx(np.std(accuracies, ddof=1))
    assert score.recall["wet"] == pytest.approx(wet_hits / 40)


def test_a_predictor_that_answers_nan_is_wrong_everywhere() -> None:
    images_NHWC, labels_N = grey_pictures()
    evaluation = judge(ByBrightness(spoil=lambda z: z.fill(np.nan)), images_NHWC, labels_N, ["dark"])
    for score in (evaluation.clean, *evaluation.perturbed):
        assert score.accuracy == score.state_accuracy == score.macro_f1 == 0.0
        assert score.not_finite == 30
        assert score.calibration_error is None
        assert score.danger is not None
        assert score.danger.rate == 1.0
    assert evaluation.confusion == ((0, 0, 0, 10),) * 3
    assert len(evaluation.mistakes) == 30
    assert evaluation.mistakes[0].said is None


def test_one_nan_in_thirty_is_one_mistake() -> None:
    images_NHWC, labels_N = grey_pictures()

    def spoil(logits_NC: np.ndarray) -> None:
        logits_NC[4, 1] = np.nan

    evaluation = judge(ByBrightness(spoil=spoil), images_NHWC, labels_N, [])
    assert evaluation.clean.accuracy == pytest.approx(29 / 30)
    assert [(m.position, m.said) for m in evaluation.mistakes] == [(4, None)]


def test_missed_ice_comes_first_among_the_mistakes_then_the_surest() -> None:
    images_NHWC, labels_N = grey_pictures(6)
    images_NHWC[0], images_NHWC[1], images_NHWC[2], images_NHWC[5] = 120, 205, 60, 40
    mistakes = judge(ByBrightness(), images_NHWC, labels_N, []).mistakes
    assert [m.position for m in mistakes] == [5, 2, 1, 0]
    assert [m.missed_ice for m in mistakes] == [True, True, False, False]


def test_a_set_without_ice_has_no_danger_rate_and_no_recall_for_it() -> None:
    images_NHWC, labels_N = grey_pictures()
    few = labels_N != 2
    clean = judge(ByBrightness(), images_NHWC[few], labels_N[few], []).clean
    assert clean.danger is None
    assert clean.recall == {"dry": 1.0, "wet": 1.0, "icy": None}


def test_an_evaluation_survives_json() -> None:
    images_NHWC, labels_N = grey_pictures()
    evaluation = judge(ByBrightness(), images_NHWC, labels_N, ["stripes", "dark"], runs=2)
    text = json.dumps(evaluation.model_dump(mode="json"), allow_nan=False)
    assert Evaluation.model_validate_json(text) == evaluation


def test_progress_names_each_condition() -> None:
    names: list[str] = []
    judge(ByBrightness(), *grey_pictures(), ["stripes", "dark"], runs=1, progress=names.append)
    assert names == ["clean", "stripes", "dark"]


@pytest.mark.parametrize(
    ("images", "labels", "words"),
    [
        (np.zeros((0, *SIZE, 3), np.uint8), np.zeros(0, np.int64), "no pictures"),
        (np.zeros((2, *SIZE, 3), np.uint8), np.zeros(3, np.int64), "2 pictures, 3 labels"),
        (np.zeros((2, 8, 8, 3), np.uint8), np.zeros(2, np.int64), "model's size"),
        (np.zeros((2, *SIZE, 3), np.uint8), np.array([0, 3]), "not one of the model's classes"),
    ],
)
def test_pictures_that_do_not_fit_are_refused(images: Images, labels: np.ndarray, words: str) -> None:
    with pytest.raises(DataError, match=words):
        judge(ByBrightness(), images, labels, [])


def test_an_unknown_perturbation_is_refused_before_any_work() -> None:
    predictor = ByBrightness()
    with pytest.raises(ConfigError, match="no such perturbation"):
        judge(predictor, *grey_pictures(), ["dark", "rainbow"])
    assert predictor.seen == []
