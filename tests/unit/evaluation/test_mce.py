"""mCE by hand, and what is refused instead of being made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_road.errors import ConfigError
from edge_road.evaluation.mce import corruption_errors, load_baseline, mean_corruption_error
from edge_road.evaluation.perturbations import COMMON, FAMILIES
from edge_road.evaluation.report import Entry, PictureSet, Report, Subject
from edge_road.evaluation.scores import Evaluation, Score

TWO = [FAMILIES["fog"], FAMILIES["snow"]]


def score(name: str, accuracy: float) -> Score:
    return Score(
        name=name,
        runs=1,
        accuracy=accuracy,
        accuracy_std=None,
        state_accuracy=accuracy,
        macro_f1=accuracy,
        recall={"dry": accuracy},
        danger=None,
        calibration_error=None,
        not_finite=0,
    )


def scores(fog: float, snow: float) -> list[Score]:
    """Errors that grow with severity: one tenth, two tenths, ... of the value given."""
    strengths = {"fog": fog, "snow": snow}
    return [
        score(f"{family}:{severity}", 1 - error * severity / 10)
        for family, error in strengths.items()
        for severity in range(1, 6)
    ]


def write_baseline(path: Path, perturbed: list[Score], entries: int = 1) -> Path:
    evaluation = Evaluation(
        artefact="onnx",
        classes=("dry",),
        images=1,
        images_of_class={"dry": 1},
        runs=1,
        seed=0,
        clean=score("clean", 1.0),
        perturbed=tuple(perturbed),
        confusion=((1, 0),),
        mistakes=(),
    )
    subject = Subject(
        name="base",
        kind="run",
        sha256="0",
        method="softmax",
        seed=0,
        recipe_digest="0",
        git_commit=None,
        version="1",
    )
    test_set = PictureSet(kind="folder", split="test", digest="0", as_trained=True)
    report = Report(test_set=test_set, entries=(Entry(subject=subject, evaluation=evaluation),) * entries)
    path.write_text(report.to_json())
    return path


def test_errors_are_means_over_the_severities() -> None:
    assert corruption_errors(scores(1.0, 0.5), TWO) == pytest.approx({"fog": 0.3, "snow": 0.15})


def test_a_family_with_a_severity_missing_is_left_out() -> None:
    assert corruption_errors(scores(1.0, 0.5)[:-1], TWO).keys() == {"fog"}


def test_mce_is_the_mean_of_the_ratios_not_the_ratio_of_the_means(tmp_path: Path) -> None:
    """fog 0.3 of 0.3, snow 0.15 of 0.03: ratios 1 and 5."""
    from_errors = mean_corruption_error(scores(1.0, 0.5), {"fog": 0.3, "snow": 0.03}, TWO)
    assert from_errors.relative == pytest.approx({"fog": 1.0, "snow": 5.0})
    assert from_errors.mean == pytest.approx(3.0)
    stored = write_baseline(tmp_path / "report.json", scores(1.0, 0.1))
    assert mean_corruption_error(scores(1.0, 0.5), stored, TWO).mean == pytest.approx(3.0)


def test_a_baseline_without_errors_has_no_mce() -> None:
    errors = mean_corruption_error(scores(1.0, 0.5), {"fog": 0.3, "snow": 0.0}, TWO)
    assert errors.relative["snow"] is None
    assert errors.mean is None


def test_what_was_not_measured_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        mean_corruption_error(scores(1.0, 0.5), {family.name: 0.1 for family in COMMON})
    assert "gaussian_noise" in str(caught.value)
    assert "--perturbations common" in str(caught.value)
    with pytest.raises(ConfigError, match="the baseline was not judged"):
        mean_corruption_error(scores(1.0, 0.5), {"fog": 0.1}, TWO)
    with pytest.raises(ConfigError, match="the baseline was not judged"):
        load_baseline(write_baseline(tmp_path / "partial.json", scores(1, 1)))
    with pytest.raises(ConfigError, match="a baseline is one model"):
        mean_corruption_error(
            scores(1, 1), write_baseline(tmp_path / "two.json", scores(1, 1), entries=2), TWO
        )
    with pytest.raises(ConfigError, match="cannot be read"):
        mean_corruption_error(scores(1, 1), tmp_path / "none.json", TWO)
