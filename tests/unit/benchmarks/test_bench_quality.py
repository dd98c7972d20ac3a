"""The quality benchmark tells of each rival what the laboratory found, and when INT8 was refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="benchmarks are made where the training packages are")

from benchmarks import quality, quality_runs
from benchmarks.quality import Effort
from benchmarks.quality_runs import OURS, TIMM, Contest
from edge_road.conditions import STATES, ClassList
from edge_road.evaluation.comparison import compare_with_first
from edge_road.evaluation.judge import Judged, sum_up
from edge_road.evaluation.report import Entry, PictureSet, Report, Subject
from edge_road.frames import Prediction

CONDITIONS = ("clean", "gaussian_40", "occlusion", "occlusion+gaussian_40")
LABELS_N = np.arange(60) % 3


@pytest.fixture
def contest(tmp_path: Path) -> Contest:
    for state in STATES:
        (tmp_path / "photos" / state).mkdir(parents=True)
    return Contest(tmp_path / "home", tmp_path / "photos", "none", seed=0, epochs=4)


def judged(artefact: str, share_right: float) -> Judged:
    """Right in the first pictures, and one class too far in the others."""
    said_N = np.where(np.arange(60) < 60 * share_right, LABELS_N, (LABELS_N + 1) % 3)
    probabilities_NC = np.full((60, 3), 0.1, np.float32)
    probabilities_NC[np.arange(60), said_N] = 0.8
    prediction = Prediction(probabilities_NC, np.log(probabilities_NC), np.zeros((60, 4), np.float32))
    answers = {name: [prediction] for name in CONDITIONS}
    return sum_up(artefact, ClassList(STATES), answers, LABELS_N, 1, 0)


def report(*subjects: tuple[str, str, str, float]) -> Report:
    """Of (name, kind, artefact, share of right answers)."""
    found = [judged(artefact, share) for _, _, artefact, share in subjects]
    entries = [
        Entry(
            subject=Subject(
                name=name,
                kind=kind,  # type: ignore[arg-type]
                sha256="0",
                method="softmax",
                seed=0,
                recipe_digest="0",
                git_commit=None,
                version="0",
            ),
            evaluation=each.evaluation,
        )
        for (name, kind, _, _), each in zip(subjects, found)
    ]
    test_set = PictureSet(kind="folder", split="test", digest="0", as_trained=True)
    return Report(test_set=test_set, entries=tuple(entries), comparisons=compare_with_first(found, 0))


def test_ours_stands_beside_each_peer(contest: Contest) -> None:
    found = report(
        (OURS, "run", "torch", 0.9),
        (TIMM, "run", "torch", 0.6),
        (OURS, "bundle", "onnx int8 on CPU", 0.8),
        (TIMM, "bundle", "onnx float32 on CPU", 0.6),
    )
    outcome = quality._outcome([found], contest, Effort())
    ours, timm = (dict(zip(("", *quality.COLUMNS), row)) for row in outcome.tables[0].rows)
    assert (ours["clean"], ours["mean"], ours["INT8 clean"]) == ("90.0", "90.0", "80.0")
    assert (timm["combinations"], timm["INT8 clean"]) == ("60.0", "refused in 1 of 1")
    assert [claim.met for claim in outcome.claims] == [True, True]


def test_a_peer_that_is_better_is_published_as_such(contest: Contest) -> None:
    found = report((OURS, "run", "torch", 0.5), (TIMM, "run", "torch", 0.9))
    outcome = quality._outcome([found], contest, Effort(int8=False))
    assert [claim.met for claim in outcome.claims] == [False, False]
    assert "INT8 clean" not in outcome.tables[0].header


def test_a_figure_that_cannot_be_told_is_a_dash(contest: Contest) -> None:
    found = report((OURS, "run", "torch", 0.9), (TIMM, "run", "torch", 0.9))
    entry = found.entries[0]
    clean = entry.evaluation.clean.model_copy(update={"calibration_error": None, "danger": None})
    silent = entry.model_copy(update={"evaluation": entry.evaluation.model_copy(update={"clean": clean})})
    shared = found.model_copy(update={"entries": (silent, found.entries[1])})
    outcome = quality._outcome([shared, found], contest, Effort(int8=False))
    ours, timm = (dict(zip(("", *quality.COLUMNS), row)) for row in outcome.tables[0].rows)
    assert (ours["ECE"], ours["danger"]) == ("–", "–")
    assert "–" not in (ours["clean"], timm["ECE"], timm["danger"])


def test_what_is_finished_is_not_trained_again(contest: Contest, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[str] = []
    for name in (OURS, TIMM):
        monkeypatch.setattr(
            quality_runs, f"_train_{'ours' if name == OURS else 'timm'}", lambda c, n=name: trained.append(n)
        )
    monkeypatch.setattr(quality_runs, "python_of_peers", lambda: None)
    contest.run_of(OURS).mkdir(parents=True)
    (contest.run_of(OURS) / "run.json").touch()
    assert quality_runs.train_all(contest).keys() == {OURS, TIMM}
    assert trained == [TIMM]


def test_the_peers_see_as_many_pictures(contest: Contest) -> None:
    recipe = contest.recipe
    assert recipe.method.name == "discriminative", "which shows each picture clean and noisy"
    assert recipe.training.epochs == 4
    assert quality_runs.PASSES == 2
