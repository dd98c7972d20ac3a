"""What predictors say of perturbed pictures: in this process, or in several with the same result."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edge_road.errors import BackendError
from edge_road.evaluation.perturbations import CLEAN, perturb, perturbation
from edge_road.frames import Images, Prediction, join
from edge_road.predictor import Predictor

BATCH = 64
Answers = Mapping[str, Sequence[Prediction]]
"""condition -> one prediction for each run; features are kept of the first one where asked for"""
Progress = Callable[[str], None]
_MOST_PROCESSES = 8  # each holds a model and, for a run, torch: 0.7 GB
_LEAST_FOR_A_PROCESS = 2000  # pictures: fewer are answered before a second process has started


@dataclass(frozen=True)
class Task:
    """One pass over the pictures."""

    source: int
    condition: str
    run: int


@dataclass(frozen=True, eq=False)
class Source:
    """A predictor that another process can open for itself, and its pictures at model size."""

    open: Callable[[], Predictor]
    images_NHWC: Images


def tasks_of(source: int, names: Sequence[str], runs: int) -> list[Task]:
    """The clean pictures, then every perturbation; one without chance runs once."""
    times = {name: runs if perturbation(name).random else 1 for name in names}
    return [Task(source, CLEAN, 0)] + [Task(source, n, run) for n in times for run in range(times[n])]


def answers_of(
    predictor: Predictor,
    images_NHWC: Images,
    names: Sequence[str],
    runs: int,
    seed: int,
    batch_size: int = BATCH,
    progress: Progress = lambda name: None,
    features_of: Collection[str] = (CLEAN,),
) -> Answers:
    answers: dict[str, list[Prediction]] = {}
    for task in tasks_of(0, names, runs):
        if task.run == 0:
            progress(task.condition)
        prediction = answer(predictor, images_NHWC, task, seed, batch_size, features_of)
        answers.setdefault(task.condition, []).append(prediction)
    return answers


def answers_of_all(
    sources: Sequence[Source],
    names: Sequence[str],
    runs: int,
    seed: int,
    jobs: int,
    progress: Progress = lambda name: None,
) -> list[Answers]:
    """The same for any number of jobs: every pass is seeded by itself and has its own batches."""
    if jobs == 1:
        return [
            answers_of(source.open(), source.images_NHWC, names, runs, seed, progress=progress)
            for source in sources
        ]
    tasks = [task for number in range(len(sources)) for task in tasks_of(number, names, runs)]
    found = _answer_in_processes(sources, tasks, seed, jobs, progress)
    answers: list[dict[str, list[Prediction]]] = [{} for _ in sources]
    for task in tasks:
        answers[task.source].setdefault(task.condition, []).append(found[task])
    return list(answers)


def best_jobs(sources: Sequence[Source], names: Sequence[str], runs: int) -> int:
    """One process for each processor that we may use, as far as there is work and memory for them."""
    pictures = sum(len(tasks_of(0, names, runs)) * len(source.images_NHWC) for source in sources)
    return max(1, min(len(os.sched_getaffinity(0)), pictures // _LEAST_FOR_A_PROCESS, _MOST_PROCESSES))


def answer(
    predictor: Predictor,
    images_NHWC: Images,
    task: Task,
    seed: int,
    batch_size: int = BATCH,
    features_of: Collection[str] = (CLEAN,),
) -> Prediction:
    prediction = _predict(predictor, _batches(images_NHWC, task, seed, batch_size))
    wanted = task.run == 0 and task.condition in features_of
    return prediction if wanted else _without_features(prediction)


def _batches(images_NHWC: Images, task: Task, seed: int, batch_size: int) -> Iterator[Images]:
    for start in range(0, len(images_NHWC), batch_size):
        batch_NHWC = images_NHWC[start : start + batch_size]
        if task.condition == CLEAN:
            yield batch_NHWC
        else:
            yield perturb(batch_NHWC, task.condition, seed, task.run, first=start)


def _predict(predictor: Predictor, batches: Iterator[Images]) -> Prediction:
    """The next batch is made in a second thread while the predictor is busy with this one."""
    predictions = []
    with ThreadPoolExecutor(1) as maker:
        coming = maker.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = maker.submit(next, batches, None)
            predictions.append(predictor.predict(batch))
    return join(predictions)


def _without_features(prediction: Prediction) -> Prediction:
    """All that is left of the features is whether they were finite: many runs must fit into memory."""
    finite_N = np.isfinite(prediction.features_ND).all(axis=1)
    marks_N1 = np.where(finite_N, 0.0, np.nan).astype(np.float32)[:, None]
    return Prediction(prediction.probabilities_NC, prediction.logits_NC, marks_N1)


def _answer_in_processes(
    sources: Sequence[Source], tasks: Sequence[Task], seed: int, jobs: int, progress: Progress
) -> dict[Task, Prediction]:
    with tempfile.TemporaryDirectory(prefix="edge_road_") as folder:
        paths = [Path(folder) / f"{number}.npy" for number in range(len(sources))]
        for path, source in zip(paths, sources):
            np.save(path, source.images_NHWC)
        opens = [source.open for source in sources]
        # spawn: a forked child inherits the locks, but not the threads, of torch and ONNX Runtime.
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(jobs, context, _start_worker, (opens, paths, seed))
        try:
            futures = {pool.submit(_answer_task, task): task for task in tasks}
            return _collect(futures, progress)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _collect(futures: Mapping[Future[Prediction], Task], progress: Progress) -> dict[Task, Prediction]:
    found: dict[Task, Prediction] = {}
    try:
        for future in as_completed(futures):
            found[futures[future]] = future.result()
            progress(futures[future].condition)
    except BrokenProcessPool:
        raise BackendError(
            "a process that judges has died",
            got=f"after {len(found)} of {len(futures)} passes",
            fix="look at the memory; --jobs 1 needs the least",
        ) from None
    return found


class _Worker:
    """What one process holds: the predictor that it used last, and where the pictures lie."""

    opens: Sequence[Callable[[], Predictor]] = ()
    paths: Sequence[Path] = ()
    seed = 0
    opened: tuple[int, Predictor, Images] | None = None


def _start_worker(opens: Sequence[Callable[[], Predictor]], paths: Sequence[Path], seed: int) -> None:
    import signal

    import cv2

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who waits for us
    cv2.setNumThreads(1)
    _Worker.opens, _Worker.paths, _Worker.seed = opens, paths, seed


def _answer_task(task: Task) -> Prediction:
    if _Worker.opened is None or _Worker.opened[0] != task.source:
        images_NHWC = np.load(_Worker.paths[task.source], mmap_mode="r")
        _Worker.opened = (task.source, _Worker.opens[task.source](), images_NHWC)
    _, predictor, images_NHWC = _Worker.opened
    return answer(predictor, images_NHWC, task, _Worker.seed)
