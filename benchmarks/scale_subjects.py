"""Work of a chosen size: each subject prepares n names, files, events or pictures, and says what to time."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import cv2
import numpy as np

from benchmarks.indexing import generate_names, label_all, write_files
from edge_road.conditions import STATES, ClassList
from edge_road.datasets.folder import files_below
from edge_road.datasets.opening import open_dataset
from edge_road.datasets.rscd import per_day_splits
from edge_road.evaluation.comparison import compare_with_first
from edge_road.evaluation.judge import Judged, sum_up
from edge_road.evaluation.perturbations import CLEAN, SUITES
from edge_road.evaluation.report import Entry, PictureSet, Report, Subject, write_report
from edge_road.frames import Prediction
from edge_road.recipe_data import FolderData, RscdData
from edge_road.runtime.events.event import Draft, Severity
from edge_road.runtime.events.outbox import Limits, Outbox
from edge_road.training.compare.answers import Answers
from edge_road.training.compare.table import build_rows
from edge_road.training.data_check.checking import check_data

Work = Callable[[], object]
RUNS = 3
EVENTS_AT_ONCE = 500
OPERATIONS = 50


@contextmanager
def index_names(size: int, home: Path) -> Iterator[Work]:
    """Names as a listing gives them: labelled, split by day, digested."""
    names = generate_names(size)
    settings = RscdData(kind="rscd", path=Path(), split="per_day")

    def work() -> str:
        official = label_all(names)
        splits = per_day_splits(dict(official.splits), settings)
        return files_below(Path(), official.classes, splits).digest

    yield work


@contextmanager
def walk_folders(size: int, home: Path) -> Iterator[Work]:
    write_files(home, generate_names(size))
    yield lambda: open_dataset(RscdData(kind="rscd", path=home))


@contextmanager
def check_files(size: int, home: Path) -> Iterator[Work]:
    """Small pictures, no two alike."""
    generator = np.random.default_rng(0)
    for state in STATES:
        (home / state).mkdir()
    for number in range(size):
        coarse = generator.integers(0, 256, (6, 6, 3), dtype=np.uint8)
        picture = cv2.resize(coarse, (48, 48), interpolation=cv2.INTER_CUBIC)
        cv2.imwrite(str(home / STATES[number % 3] / f"{number:07d}.jpg"), picture)
    yield lambda: check_data(FolderData(kind="folder", path=home), workers=1)


@contextmanager
def fill_outbox(size: int, home: Path) -> Iterator[Work]:
    """Every event is stored before the next batch comes."""

    def work() -> None:
        outbox = _outbox(home)
        _record(outbox, size)
        outbox.close()

    yield work


@contextmanager
def drain_outbox(size: int, home: Path) -> Iterator[Work]:
    """All that waits is sent and confirmed, batch by batch, with a look at how much is left."""
    outbox = _outbox(home)
    _record(outbox, size)

    def work() -> None:
        while entries := outbox.after(0, EVENTS_AT_ONCE):
            outbox.delivered(entry.id for entry in entries)
            outbox.waiting()

    yield work
    outbox.close()


@contextmanager
def use_full_outbox(size: int, home: Path) -> Iterator[Work]:
    """A fixed number of events, each recorded, sent, confirmed and counted, while `size` others wait."""
    outbox = _outbox(home)
    _record(outbox, size)

    def work() -> None:
        for _ in range(OPERATIONS):
            (entry,) = outbox.record([_draft("state", Severity.NOTE, {})])
            outbox.after(entry.id - 1, EVENTS_AT_ONCE)
            outbox.delivered([entry.id])
            outbox.waiting()

    yield work
    outbox.close()


@contextmanager
def open_outbox(size: int, home: Path) -> Iterator[Work]:
    """After a start: the file is checked, and what waits is counted."""
    outbox = _outbox(home)
    _record(outbox, size)
    outbox.close()
    yield lambda: _outbox(home, "next").close()


@contextmanager
def write_reports(size: int, home: Path) -> Iterator[Work]:
    """Two models judged under the paper's suite: figures, bootstrap, page and JSON, without the models."""
    generator = np.random.default_rng(0)
    labels_N = generator.integers(0, len(STATES), size)
    conditions = (CLEAN, *SUITES["paper"])
    answers = [
        {name: [_prediction(labels_N, generator) for _ in range(_runs_of(name))] for name in conditions}
        for _ in range(2)
    ]
    images_NHWC = np.broadcast_to(
        generator.integers(0, 256, (1, 48, 48, 3), dtype=np.uint8), (size, 48, 48, 3)
    )
    keys = [f"{number:07d}.jpg" for number in range(size)]

    def work() -> None:
        judged = [sum_up("model", ClassList(STATES), each, labels_N, RUNS, 0, keys) for each in answers]
        write_report(home, _report(judged), [images_NHWC, images_NHWC])

    yield work


@contextmanager
def compare_rows(size: int, home: Path) -> Iterator[Work]:
    """Three methods on five folds of `size` pictures in all, under the paper's suite."""
    generator = np.random.default_rng(0)
    answers = {row: [_fold(fold, size // 5, generator) for fold in range(5)] for row in ("a", "b", "c")}
    yield lambda: build_rows(answers, "a")


SUBJECTS = {
    "index names": index_names,
    "walk folders": walk_folders,
    "check data": check_files,
    "fill the outbox": fill_outbox,
    "drain the outbox": drain_outbox,
    "use a full outbox": use_full_outbox,
    "open the outbox": open_outbox,
    "report": write_reports,
    "compare": compare_rows,
}


def _outbox(home: Path, boot_id: str = "first") -> Outbox:
    limits = Limits(disk=10**10, memory=10**8)
    return Outbox(home / "events.sqlite", "bench", boot_id, limits, _draft)


def _draft(kind: str, severity: Severity, details: dict[str, object]) -> Draft:
    return Draft(kind, severity, 0, "2026-01-01T00:00:00.000Z", True, details)


def _record(outbox: Outbox, size: int) -> None:
    details: dict[str, object] = {"state": "icy", "was": "wet"}
    for start in range(0, size, EVENTS_AT_ONCE):
        few = min(EVENTS_AT_ONCE, size - start)
        outbox.record([_draft("state", Severity.WARNING, details)] * few)


def _runs_of(condition: str) -> int:
    return 1 if condition == CLEAN else RUNS


def _prediction(labels_N: np.ndarray, generator: np.random.Generator) -> Prediction:
    logits_NC = generator.normal(0, 1, (len(labels_N), len(STATES))).astype(np.float32)
    logits_NC[np.arange(len(labels_N)), labels_N] += 2
    odds_NC = np.exp(logits_NC)
    features_ND = np.zeros((len(labels_N), 8), np.float32)
    return Prediction(odds_NC / odds_NC.sum(axis=1, keepdims=True), logits_NC, features_ND)


def _report(judged: list[Judged]) -> Report:
    subject = Subject(
        name="run",
        kind="run",
        sha256="0",
        method="softmax",
        seed=0,
        recipe_digest="0",
        git_commit=None,
        version="0",
    )
    return Report(
        test_set=PictureSet(kind="folder", split="test", digest="0", as_trained=True),
        entries=tuple(Entry(subject=subject, evaluation=each.evaluation) for each in judged),
        comparisons=compare_with_first(judged, 0),
    )


def _fold(fold: int, size: int, generator: np.random.Generator) -> Answers:
    labels_N = generator.integers(0, len(STATES), size)
    icy_N = labels_N == STATES.index("icy")
    right, missed = {}, {}
    for name in (CLEAN, *SUITES["paper"]):
        right_RN = generator.random((_runs_of(name), size)) < 0.8
        right[name], missed[name] = right_RN, ~right_RN & icy_N
    return Answers(tuple(f"{fold}/{n:07d}" for n in range(size)), labels_N, icy_N, right, missed, {})


@contextmanager
def fresh_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
