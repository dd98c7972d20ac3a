"""When the worker doubts its own model."""

from __future__ import annotations

import pytest

from edge_road.backends.fake import FakePredictor
from edge_road.errors import BackendError
from edge_road.preprocess import Preprocessing
from edge_road.runtime.model import LoadedModel
from edge_road.runtime.perception import Perception
from edge_road.runtime.worker import SICK_FRAMES, _check_model

PREPROCESSING = Preprocessing(height=32, width=32)


def model(*failures: BackendError) -> tuple[LoadedModel, list[str]]:
    asked: list[str] = []

    def self_test() -> None:
        asked.append("tested")
        for failure in failures:
            raise failure

    return LoadedModel(FakePredictor(), PREPROCESSING, "fake", 0.6, None, self_test), asked


@pytest.mark.parametrize(("sick", "tests"), [(0, 0), (SICK_FRAMES - 1, 0), (SICK_FRAMES, 1)])
def test_a_model_is_tested_after_many_sick_answers_in_a_row(sick: int, tests: int) -> None:
    loaded, asked = model()
    perception = Perception(loaded.predictor, PREPROCESSING)
    perception.sick_in_a_row = sick
    _check_model(perception, loaded)
    _check_model(perception, loaded)
    assert len(asked) == tests


def test_a_model_that_fails_its_test_ends_the_worker() -> None:
    loaded, _ = model(BackendError("the model does not give its own outputs"))
    perception = Perception(loaded.predictor, PREPROCESSING)
    perception.sick_in_a_row = SICK_FRAMES
    with pytest.raises(BackendError, match="its own outputs"):
        _check_model(perception, loaded)
