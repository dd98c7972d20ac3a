"""Kill a training at any moment, resume it, and the result is that of an uninterrupted one, bit for bit."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from tiny_training import write_tiny_recipe

from edge_road import cli

# Each training is a process of its own, forked from a clean one that has done the slow imports.
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["edge_road.training.train", "edge_road.training.progress"])


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_recipe(tmp_path_factory.mktemp("recipe"), 12)


@pytest.fixture(scope="module")
def whole(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that nothing interrupts."""
    run = tmp_path_factory.mktemp("whole") / "run"
    assert ended(start(recipe, run)) == 0
    return run


def start(recipe: Path, run: Path, before: Callable[..., None] | None = None, *values: Any) -> BaseProcess:
    child = processes.Process(target=child_main, args=(recipe, run, before, values))
    child.start()
    return child


def child_main(recipe: Path, run: Path, before: Callable[..., None] | None, values: tuple[Any, ...]) -> None:
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if before is not None:
        before(*values)
    sys.exit(cli.command("train", ["--recipe", str(recipe), "--run", str(run)]))


def ended(child: BaseProcess) -> int | None:
    child.join(120)
    return child.exitcode


def die_at_file_operation(number: int) -> None:
    """SIGKILL ourselves just before the given rename, sync or removal."""
    count = iter(range(1, 10_000))

    def fatal(operation: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            if next(count) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return operation(*arguments, **options)

        return run

    for name in ("replace", "fsync", "unlink"):
        setattr(os, name, fatal(getattr(os, name)))


def allow_files_of(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def notes(checkpoint: Path) -> dict[str, Any]:
    with safe_open(checkpoint, "pt") as file:
        found: dict[str, Any] = json.loads(file.metadata()["edge_road"])
    return found


def untimed(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in line.items() if k not in ("seconds", "images_per_s")} for line in lines]


def metrics(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def assert_same(run: Path, whole: Path) -> None:
    for name in ("best.safetensors", "recipe.toml"):
        assert (run / name).read_bytes() == (whole / name).read_bytes(), name
    assert record(run) == record(whole)
    assert untimed(metrics(run)) == untimed(metrics(whole))
    assert names_below(run) == names_below(whole), "no file is missing and no leftover remains"
    for ours, theirs in zip(sorted((run / "last").iterdir()), sorted((whole / "last").iterdir())):
        assert untimed(notes(ours)["history"]) == untimed(notes(theirs)["history"])
        left, right = load_file(ours), load_file(theirs)
        del left["edge_road_sha256"], right["edge_road_sha256"]  # covers the timings, too
        assert left.keys() == right.keys()
        assert all(torch.equal(left[name], right[name]) for name in left)


def record(run: Path) -> dict[str, Any]:
    """Without the commit, which may move on while a training waits to be resumed."""
    found: dict[str, Any] = json.loads((run / "run.json").read_bytes())
    del found["git_commit"]
    return found


def names_below(run: Path) -> set[str]:
    files = {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()}
    return {name for name in files if not name.startswith("tensorboard")}


def kill_at_every_file_operation(recipe: Path, run: Path) -> int:
    """Each process lives for one operation more than the one before it, until one reaches the end."""
    for operation in range(1, 100):
        code = ended(start(recipe, run, die_at_file_operation, operation))
        if code == 0:
            return operation - 1
        assert code == -signal.SIGKILL
    raise AssertionError("it never came to an end")


@pytest.mark.slow
def test_killed_at_every_file_operation_of_its_beginning(recipe: Path, whole: Path, tmp_path: Path) -> None:
    """Recipe, first metrics, first best weights, first checkpoint; then it makes headway."""
    assert kill_at_every_file_operation(recipe, tmp_path / "run") >= 12
    assert_same(tmp_path / "run", whole)


@pytest.mark.slow
def test_killed_at_every_file_operation_of_its_end(recipe: Path, whole: Path, tmp_path: Path) -> None:
    """Resuming, last epoch, last checkpoint, record."""
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    max((run / "last").iterdir()).unlink()
    (run / "run.json").unlink()
    assert kill_at_every_file_operation(recipe, run) >= 9
    assert_same(run, whole)


@pytest.mark.slow
def test_killed_at_random_moments(recipe: Path, whole: Path, tmp_path: Path) -> None:
    generator = np.random.default_rng(os.getpid())
    for _ in range(8):
        child = start(recipe, tmp_path / "run")
        child.join(float(generator.uniform(0.05, 1.5)))
        child.kill()
        child.join()
    assert ended(start(recipe, tmp_path / "run")) == 0
    assert_same(tmp_path / "run", whole)


@pytest.mark.slow
def test_the_script_itself_killed_and_resumed_by_name(
    recipe: Path, whole: Path, tmp_path: Path, root: Path
) -> None:
    environment = {**os.environ, "EDGE_ROAD_HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    script = [sys.executable, str(root / "training" / "train_road.py")]
    first = subprocess.Popen(
        [*script, "--recipe", str(recipe)], env=environment, stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert first.stdout is not None
    for line in first.stdout:
        if line.strip().startswith("1/3"):
            first.kill()
    assert first.wait() == -signal.SIGKILL
    done = subprocess.run(
        [*script, "--resume"], env=environment, capture_output=True, text=True, timeout=200, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert_same(tmp_path / "runs" / "tiny-0001", whole)


def test_a_full_disk_stops_with_a_reason_and_the_run_continues_later(
    recipe: Path, whole: Path, tmp_path: Path
) -> None:
    """The weights fit, the larger checkpoint does not."""
    size = (whole / "best.safetensors").stat().st_size + 1000
    run = tmp_path / "run"
    assert ended(start(recipe, run, allow_files_of, size)) == 2
    assert not run.exists(), "nothing half-written stays"
    assert ended(start(recipe, run)) == 0
    assert_same(run, whole)
