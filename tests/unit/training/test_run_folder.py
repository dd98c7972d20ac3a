"""A run's folder belongs to one training and to one recipe."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edge_road.errors import ConfigError
from edge_road.recipe import Recipe, TrainingSettings
from edge_road.run_record import load_recipe
from edge_road.training.run_folder import claimed, newest_unfinished_run

RECIPE = Recipe(name="small", training=TrainingSettings(epochs=3))


def make_run(path: Path, *, finished: bool = False, changed_s: int = 0) -> Path:
    with claimed(path, RECIPE):
        pass
    if finished:
        (path / "run.json").write_text("{}")
    os.utime(path / "recipe.toml", (changed_s, changed_s))
    return path


def test_a_new_run_keeps_its_resolved_recipe(tmp_path: Path) -> None:
    with claimed(tmp_path / "deep" / "run", RECIPE) as run:
        assert load_recipe(run) == RECIPE


def test_two_trainings_in_one_run_are_refused(tmp_path: Path) -> None:
    with claimed(tmp_path / "run", RECIPE):
        second = claimed(tmp_path / "run", RECIPE)
        with pytest.raises(ConfigError, match="another training works in this run") as error:
            second.__enter__()
        assert f"process {os.getpid()}" in str(error.value)
    with claimed(tmp_path / "run", RECIPE):
        pass


def test_a_killed_training_holds_no_lock(tmp_path: Path) -> None:
    code = (
        "import os, signal; from pathlib import Path; from edge_road.recipe import Recipe\n"
        "from edge_road.training.run_folder import claimed\n"
        f"with claimed(Path({str(tmp_path / 'run')!r}), Recipe(name='small', training=dict(epochs=3))):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", code], timeout=60)
    assert killed.returncode == -9
    with claimed(tmp_path / "run", RECIPE) as run:
        assert load_recipe(run) == RECIPE


def test_another_recipe_is_refused_and_the_differences_are_named(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    other = Recipe(name="small", seed=4, training=TrainingSettings(epochs=5))
    with (
        pytest.raises(ConfigError, match=r"another recipe: seed, training\.epochs differ") as error,
        claimed(run, other),
    ):
        pass
    assert "training.epochs = 5" in error.value.details["got"]
    assert "training.epochs = 3" in error.value.details["expected"]
    assert "--run or --resume" in error.value.details["to do"]
    assert load_recipe(run) == RECIPE


@pytest.mark.parametrize("content", ["file", "folder"])
def test_somebody_elses_files_are_left_alone(tmp_path: Path, content: str) -> None:
    place = tmp_path / "thesis"
    if content == "folder":
        place.mkdir()
        (place / "chapter1.txt").write_text("precious")
    else:
        place.write_text("precious")
    with pytest.raises(ConfigError), claimed(place, RECIPE):
        pass
    assert (place / "chapter1.txt" if content == "folder" else place).read_text() == "precious"


@pytest.mark.parametrize("name", [".git/HEAD", ".env.local.bak", ".env"])
def test_somebody_elses_hidden_files_are_left_alone_too(tmp_path: Path, name: str) -> None:
    precious = tmp_path / "project" / name
    precious.parent.mkdir(parents=True)
    precious.write_text("precious")
    with pytest.raises(ConfigError, match="holds something else"), claimed(tmp_path / "project", RECIPE):
        pass
    assert precious.read_text() == "precious"


def test_a_folder_in_which_a_training_was_killed_at_once_can_be_used(tmp_path: Path) -> None:
    for name in (".lock", ".recipe.toml.a1b2"):
        (tmp_path / name).touch()
    with claimed(tmp_path, RECIPE):
        assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "recipe.toml"]


def test_a_new_run_that_fails_before_its_first_checkpoint_goes_away(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such data"), claimed(tmp_path / "run", RECIPE):
        raise ConfigError("no such data")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("work", ["last/epoch-00001.safetensors", "run.json"])
def test_a_run_with_a_checkpoint_or_a_finished_one_stays_when_it_fails(tmp_path: Path, work: str) -> None:
    """A comparison removes the checkpoints of a finished run before it judges it."""

    def fail_after(run: Path) -> None:
        (run / work).parent.mkdir(exist_ok=True)
        (run / work).write_text("hours of work")
        raise ConfigError("the disk is full")

    with pytest.raises(ConfigError), claimed(tmp_path / "run", RECIPE) as run:
        fail_after(run)
    assert (tmp_path / "run" / work).exists()


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    (run / "last").mkdir()
    leftovers = [run / ".metrics.jsonl.a1b2", run / "last" / ".epoch-00002.safetensors.x_y3"]
    for leftover in leftovers:
        leftover.write_text("half")
    (run / ".env.local.bak").write_text("somebody else's")
    with claimed(run, RECIPE):
        assert not any(leftover.exists() for leftover in leftovers)
        assert (run / ".env.local.bak").exists()
        assert (run / "recipe.toml").exists()


def test_resume_finds_the_newest_run_that_is_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGE_ROAD_HOME", str(tmp_path))
    runs = tmp_path / "runs"
    make_run(runs / "small-0001", changed_s=100)
    wanted = make_run(runs / "small-0002", changed_s=200)
    make_run(runs / "small-0003", changed_s=300, finished=True)
    assert newest_unfinished_run() == wanted


def test_resume_with_nothing_to_resume_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGE_ROAD_HOME", str(tmp_path))
    make_run(tmp_path / "runs" / "small-0001", finished=True)
    with pytest.raises(ConfigError, match="there is no unfinished run"):
        newest_unfinished_run()
