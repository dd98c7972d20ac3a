"""What a bundle must keep under perturbation, and when the self-test says no."""

from __future__ import annotations

import numpy as np
import pytest

from edge_road.backends.fake import FakePredictor
from edge_road.bundle import Probe
from edge_road.errors import ConfigError
from edge_road.evaluation.perturbations import PERTURBATIONS
from edge_road.evaluation.smoke import SMOKE_TESTS, SmokeVerdict, smoke_accuracies, smoke_limits


def probe() -> Probe:
    labels_N = np.arange(9) % 3
    images_NHWC = np.empty((9, 32, 32, 3), np.uint8)
    images_NHWC[:] = np.array([60, 120, 200], np.uint8)[labels_N][:, None, None, None]
    return Probe(images_NHWC, labels_N, {})


def test_every_smoke_test_is_measured_on_the_probe_frames_and_repeatable() -> None:
    accuracies = smoke_accuracies(FakePredictor(), probe())
    assert tuple(accuracies) == SMOKE_TESTS
    assert set(SMOKE_TESTS) <= {"clean", *PERTURBATIONS}
    assert accuracies["clean"] == 1.0
    assert accuracies["dark"] == pytest.approx(1 / 3)
    assert accuracies == smoke_accuracies(FakePredictor(), probe())


def test_limits_lie_a_little_below_what_was_measured_and_never_below_zero() -> None:
    assert smoke_limits({"clean": 1.0, "dark": 0.05}) == {"clean": 0.9, "dark": 0.0}


def test_the_machine_that_exported_passes_its_own_limits() -> None:
    accuracies = smoke_accuracies(FakePredictor(), probe())
    assert SmokeVerdict(accuracies=accuracies, limits=smoke_limits(accuracies)).passed


@pytest.mark.parametrize(
    ("accuracies", "limits", "breaches"),
    [
        ({"clean": 0.9}, {"clean": 0.9}, ()),
        ({"clean": 0.89}, {"clean": 0.9}, ("clean",)),
        ({"clean": 1.0}, {"clean": 0.9, "dark": 0.1}, ("dark",)),
    ],
)
def test_a_limit_missed_or_not_measured_is_a_breach(
    accuracies: dict[str, float], limits: dict[str, float], breaches: tuple[str, ...]
) -> None:
    verdict = SmokeVerdict(accuracies=accuracies, limits=limits)
    assert verdict.breaches == breaches
    assert verdict.passed == (not breaches)


def test_no_limits_is_no_pass() -> None:
    assert not SmokeVerdict(accuracies={"clean": 1.0}, limits={}).passed


def test_an_unknown_test_is_refused() -> None:
    with pytest.raises(ConfigError, match="no such perturbation"):
        smoke_accuracies(FakePredictor(), probe(), tests=["fog_of_war"])
