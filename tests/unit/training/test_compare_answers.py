"""What a trained model answered, for every run of every condition, and no more features than asked for."""

from __future__ import annotations

import numpy as np
import pytest

from edge_road.backends.fake import FakePredictor
from edge_road.datasets.prepared import Prepared
from edge_road.errors import DataError
from edge_road.evaluation.answers import answers_of
from edge_road.evaluation.judge import judge
from edge_road.evaluation.perturbations import CLEAN
from edge_road.frames import Images, Prediction
from edge_road.training.compare.answers import ask

CONDITIONS = ("gaussian_40", "occlusion", "dark")


class Wide(FakePredictor):
    """With as many features as a real one."""

    def predict(self, images_NHWC: Images) -> Prediction:
        said = super().predict(images_NHWC)
        return Prediction(said.probabilities_NC, said.logits_NC, np.repeat(said.features_ND, 99, axis=1))


def pictures() -> Prepared:
    images_NHWC = np.random.default_rng(0).integers(0, 256, (70, 32, 32, 3), dtype=np.uint8) // 2 + 40
    return Prepared(images_NHWC, np.arange(70) % 3, tuple(map(str, range(70))))


def test_answers_by_run_have_the_accuracy_of_the_judge() -> None:
    test = pictures()
    answers = ask(FakePredictor(), test, CONDITIONS, 3, ())
    judged = judge(FakePredictor(), test.images_NHWC, test.labels_N, CONDITIONS, 3)
    assert {name: right_RN.shape for name, right_RN in answers.right.items()} == {
        CLEAN: (1, 70),
        "gaussian_40": (3, 70),
        "occlusion": (3, 70),
        "dark": (1, 70),
    }
    for score in (judged.clean, *judged.perturbed):
        assert answers.right[score.name].mean() == pytest.approx(score.accuracy)
        assert score.danger is not None
        assert answers.missed_ice[score.name][:, answers.icy_N].mean() == pytest.approx(score.danger.rate)
    assert answers.features == {}


def test_features_are_kept_of_the_first_run_of_what_is_asked_for_and_of_nothing_else() -> None:
    test, predictor = pictures(), Wide()
    answers = ask(predictor, test, CONDITIONS, 3, (CLEAN, "occlusion", "not measured"))
    assert {name: features.shape for name, features in answers.features.items()} == {
        CLEAN: (70, 297),
        "occlusion": (70, 297),
    }
    said = answers_of(predictor, test.images_NHWC, CONDITIONS, 3, 0, features_of=(CLEAN, "occlusion"))
    assert np.array_equal(said["occlusion"][0].features_ND, answers.features["occlusion"])
    widths = {name: [p.features_ND.shape[1] for p in found] for name, found in said.items()}
    assert widths == {CLEAN: [297], "gaussian_40": [1] * 3, "occlusion": [297, 1, 1], "dark": [1]}


def test_pictures_of_another_size_are_refused() -> None:
    test = pictures()
    with pytest.raises(DataError, match="size"):
        ask(FakePredictor((64, 64)), test, CONDITIONS, 1, ())
