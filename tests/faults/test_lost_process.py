"""Several processes train one model: when one dies the others say so, and a restart continues."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
from daemon_harness import NeverConnected, retried_on_a_busy_machine
from tiny_training import write_tiny_recipe

from edge_road import cli

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["edge_road.training.train", "edge_road.training.progress"])


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_recipe(tmp_path_factory.mktemp("recipe"), 10, "workers = 0\n")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def start_pair(recipe: Path, run: Path, before: Callable[[], None] | None = None) -> list[BaseProcess]:
    """As torchrun would; `before` runs in the second process."""
    port = free_port()
    children = [
        processes.Process(target=one_of_two, args=(rank, port, recipe, run, before if rank else None))
        for rank in range(2)
    ]
    for child in children:
        child.start()
    return children


def one_of_two(rank: int, port: int, recipe: Path, run: Path, before: Callable[[], None] | None) -> None:
    sys.stdout = sys.stderr = open(run.parent / f"said-{rank}.txt", "w")  # noqa: SIM115
    place = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": 2,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    os.environ.update({name: str(value) for name, value in place.items()})
    if before is not None:
        before()
    code = cli.command("train", ["--recipe", str(recipe), "--run", str(run)])
    sys.stdout.flush()
    os._exit(code)


def die_in_second_epoch() -> None:
    from edge_road.training.trainer import Trainer

    train_epoch = Trainer._train_epoch

    def fatal(self: Trainer, epoch: int) -> Any:
        if epoch == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return train_epoch(self, epoch)

    Trainer._train_epoch = fatal  # type: ignore[method-assign]


def spoil_a_loss_of_the_second_epoch() -> None:
    from edge_road.training.lesson import Teacher

    loss, count = Teacher.loss, iter(range(1000))

    def spoilt(self: Teacher, *batch: Any) -> Any:
        step = loss(self, *batch)
        return step._replace(total=step.total * float("nan")) if next(count) == 3 else step

    Teacher.loss = spoilt  # type: ignore[method-assign]


def codes(children: list[BaseProcess]) -> list[int | None]:
    for child in children:
        child.join(240)
    return [child.exitcode for child in children]


def test_a_lost_process_is_named_and_the_restarted_pair_ends_as_if_nothing_had_happened(
    recipe: Path, tmp_path: Path
) -> None:
    (tmp_path / "whole").mkdir()
    assert codes(start_pair(recipe, tmp_path / "whole" / "run")) == [0, 0]

    run = tmp_path / "run"
    assert codes(start_pair(recipe, run, die_in_second_epoch)) == [2, -signal.SIGKILL]
    said = (tmp_path / "said-0.txt").read_text()
    assert "another process of this training has ended" in said
    assert "--max-restarts" in said
    assert [path.name for path in (run / "last").iterdir()] == ["epoch-00001.safetensors"]

    assert codes(start_pair(recipe, run)) == [0, 0]
    assert "continuing after epoch 1" in (tmp_path / "said-0.txt").read_text()
    whole = tmp_path / "whole" / "run"
    assert (run / "best.safetensors").read_bytes() == (whole / "best.safetensors").read_bytes()
    assert json.loads((run / "run.json").read_text())["epochs"] == 3


def test_a_bad_loss_in_one_process_sends_both_back_to_the_checkpoint(recipe: Path, tmp_path: Path) -> None:
    assert codes(start_pair(recipe, tmp_path / "run", spoil_a_loss_of_the_second_epoch)) == [0, 0]
    assert "back to epoch 1, with 0.5 of the learning rate" in (tmp_path / "said-0.txt").read_text()
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert len(lines) == 3


def test_processes_without_a_common_folder_are_refused(
    recipe: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert cli.command("train", ["--recipe", str(recipe)]) == 2
    assert "--run-folder DIR" in capsys.readouterr().err


def test_a_batch_that_cannot_be_shared_evenly_is_refused(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert cli.command("train", ["--recipe", str(recipe), "--run", str(tmp_path / "run")]) == 2
    assert "8 for 3 processes" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


KILLED_ONCE = """
import os, signal, sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from edge_road import cli
from edge_road.training.trainer import Trainer
train_epoch = Trainer._train_epoch
def fatal(self, epoch):
    if epoch == 1 and os.environ["RANK"] == "1" and not os.path.exists({mark!r}):
        while not list(Path({run!r}).glob("last/*")):  # the other one writes it
            time.sleep(0.05)
        open({mark!r}, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return train_epoch(self, epoch)
Trainer._train_epoch = fatal
sys.exit(cli.command("train", sys.argv[1:]))
"""


def finished(command: list[str]) -> str:
    """What it said; gloo sometimes never connects on a busy machine: then it is ended."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    try:
        said, _ = process.communicate(timeout=100)
    except subprocess.TimeoutExpired:
        process.terminate()  # it ends its processes
        said = process.communicate(timeout=60)[0]
        kind = NeverConnected if "connectFullMesh failed" in said else AssertionError
        raise kind(f"not finished: {said}") from None
    assert process.returncode == 0, said[-3000:]
    return said


@pytest.mark.slow
@retried_on_a_busy_machine
def test_torchrun_restarts_a_training_whose_process_was_killed(
    recipe: Path, tmp_path: Path, root: Path
) -> None:
    script, run = tmp_path / "killed_once.py", tmp_path / "run"
    script.write_text(KILLED_ONCE.format(root=str(root), run=str(run), mark=str(tmp_path / "killed")))
    launch = ["--nproc-per-node", "2", "--max-restarts", "3", "--monitor-interval", "0.2"]
    launch += ["--master-port", str(free_port()), str(script)]
    wanted = ["--recipe", str(recipe), "--run-folder", str(run)]
    said = finished([sys.executable, "-m", "torch.distributed.run", *launch, *wanted])
    assert "continuing after epoch 1" in said, said[-5000:]
    assert json.loads((run / "run.json").read_text())["epochs"] == 3
