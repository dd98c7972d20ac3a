"""Answers of several processes are those of one, errors cross over, and a dead process is named."""

from __future__ import annotations

import os
from functools import partial

import numpy as np
import pytest

from edge_road.backends.fake import FakePredictor
from edge_road.errors import BackendError, DataError
from edge_road.evaluation.answers import Source, answers_of_all, best_jobs, tasks_of
from edge_road.frames import Images, Prediction

NAMES = ("gaussian_40", "occlusion", "dark")


class Stubborn(FakePredictor):
    """Fails in its own way as soon as it is asked."""

    def predict(self, images_NHWC: Images) -> Prediction:
        raise DataError("will not", where="here", got="this")


class Fatal(FakePredictor):
    def predict(self, images_NHWC: Images) -> Prediction:
        os._exit(9)


def sources(kind: type[FakePredictor] = FakePredictor) -> list[Source]:
    draw = np.random.default_rng(0)
    return [
        Source(partial(kind), draw.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8) // 2 + 40)
        for n in (70, 5)
    ]


def test_any_number_of_jobs_gives_the_same_bits() -> None:
    one, two = (answers_of_all(sources(), NAMES, runs=3, seed=7, jobs=jobs) for jobs in (1, 2))
    for first, second in zip(one, two):
        assert list(first) == list(second) == ["clean", *NAMES]
        for name in first:
            assert [len(p) for p in first[name]] == [len(p) for p in second[name]]
            for a, b in zip(first[name], second[name]):
                assert np.array_equal(a.logits_NC, b.logits_NC)
                assert np.array_equal(a.features_ND, b.features_ND)
    assert [len(one[0][name]) for name in NAMES] == [3, 3, 1]
    assert one[0]["clean"][0].features_ND.shape[1] > 1
    assert one[0]["dark"][0].features_ND.shape[1] == 1


def test_an_error_in_another_process_arrives_whole() -> None:
    with pytest.raises(DataError, match="will not") as caught:
        answers_of_all(sources(Stubborn), NAMES, runs=1, seed=0, jobs=2)
    assert caught.value.details == {"where": "here", "got": "this"}


def test_a_process_that_dies_is_a_backend_error() -> None:
    with pytest.raises(BackendError, match="has died"):
        answers_of_all(sources(Fatal), NAMES, runs=1, seed=0, jobs=2)


def test_little_work_stays_in_one_process() -> None:
    assert best_jobs(sources(), NAMES, runs=3) == 1
    assert len(tasks_of(0, NAMES, 10)) == 1 + 10 + 10 + 1
