"""Two workers share a study: hopeless trials are pruned, the best recipe trains as it is."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import optuna
import pytest

from edge_road import cli
from edge_road.config import load_settings
from edge_road.errors import TrainingError
from edge_road.recipe import Recipe
from edge_road.training.recipes import Wishes, read_recipe
from edge_road.training.search import parse_ranges
from edge_road.training.tune import Tuning

RECIPE = """
name = "tiny"
[data]
kind = "folder"
path = "{photos}"
[input]
height = 32
width = 32
[model]
backbone = "mobilenetv3_small_050"
features = 8
[method]
name = "discriminative"
[augment]
color_jitter = 0
rotation_degrees = 0
perspective = 0
[optimizer]
schedule = "constant"
learning_rate = 1e-2
[training]
epochs = 3
batch_size = 16
batch_norm = "clean"
threads = 1
workers = 0
device = "cpu"
"""

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["edge_road.training.train", "edge_road.training.progress", "optuna"])


def recipe_beside_photos(folder: Path) -> Path:
    """Three colours under noise: easy to learn at a good rate, impossible at a tiny one."""
    generator = np.random.default_rng(0)
    for channel, name in enumerate(("dry", "wet", "icy")):
        (folder / "photos" / name).mkdir(parents=True)
        for number in range(20):
            picture = generator.integers(0, 120, (32, 32, 3), dtype=np.uint8)
            picture[..., channel] += 100
            cv2.imwrite(str(folder / "photos" / name / f"{number}.png"), picture)
    path = folder / "tiny.toml"
    path.write_text(RECIPE.format(photos=folder / "photos"))
    return path


def worker(home: Path, arguments: list[str], number: int) -> None:
    os.environ["EDGE_ROAD_HOME"] = str(home)
    with open(home / f"worker-{number}.txt", "w") as file, contextlib.redirect_stdout(file):
        code = cli.command("tune", arguments)
    os._exit(code)


@pytest.mark.slow
def test_two_workers_end_a_study_with_pruned_trials_and_a_best_recipe_that_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipe_beside_photos(tmp_path)
    storage = f"sqlite:///{tmp_path / 'shared.db'}"
    varied = ["--over", "optimizer.learning_rate=log:1e-7:2e-2", "--over", "method.delta_d=1:6"]
    varied += ["--set", f"seed={2**40}"]  # numpy's old generators stop at 32 bits
    arguments = ["--recipe", str(recipe), *varied, "--trials", "8", "--storage", storage]
    children = [processes.Process(target=worker, args=(tmp_path, arguments, n)) for n in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join(240)
    said = [(tmp_path / f"worker-{number}.txt").read_text() for number in range(2)]
    assert [child.exitcode for child in children] == [0, 0], said
    assert all("trial " in text for text in said), "both took part"

    study = optuna.load_study(study_name="tiny", storage=storage)
    states = [trial.state.name for trial in study.trials]
    assert len(states) == 8
    assert set(states) == {"COMPLETE", "PRUNED"}
    rate = Recipe.model_validate(read_recipe(Wishes(recipe=str(recipe))).model_dump()).optimizer.learning_rate
    assert study.trials[0].params["optimizer.learning_rate"] == rate, "the recipe as it is goes first"

    best = tmp_path / "studies" / "tiny" / "best.toml"
    tuned = load_settings(Recipe, best)
    assert tuned.optimizer.learning_rate == pytest.approx(study.best_params["optimizer.learning_rate"])
    assert getattr(tuned.method, "delta_d") == pytest.approx(study.best_params["method.delta_d"])  # noqa: B009
    monkeypatch.setenv("EDGE_ROAD_HOME", str(tmp_path))
    run = tmp_path / "again"
    assert cli.command("train", ["--recipe", str(best), "--run", str(run)]) == 0
    assert (run / "run.json").is_file()


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("method.delta_dd=1:6", "did you mean 'delta_d'?"),
        ("method.delta_d=6:1", "this is no range"),
        ("method.sigma=log:0:1", "this is no range"),
        ("method.sigma=0.1:1.5", "less than or equal to 1"),
        ("method.centroids=naive,sideways", "sideways"),
        ("training.epochs=int:1.5:3", "this is no range"),
    ],
)
def test_a_range_that_no_trial_could_use_is_refused_before_any_training(
    option: str,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("EDGE_ROAD_HOME", str(tmp_path))
    assert cli.command("tune", ["--recipe", "synthetic", "--over", option]) == 2
    assert reason in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_range_that_has_too_much_confidence_for_the_classes_is_refused_before_any_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EDGE_ROAD_HOME", str(tmp_path))
    words = ["--recipe", "synthetic", "--method", "spider", "--over", "method.xi=0.1:0.9"]
    assert cli.command("tune", words) == 2
    assert "below 0.6667 = 1 - 1/3 classes" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_values_that_do_not_go_together_cost_a_trial_and_not_the_worker(tmp_path: Path) -> None:
    ranges = parse_ranges(["method.perturbation=gaussian,spider", "method.xi=0.1:0.9"])
    tuning = Tuning(Wishes(recipe="synthetic"), ranges, ("clean",), trials=1)
    trial = optuna.trial.FixedTrial({"method.perturbation": "spider", "method.xi": 0.9})
    with pytest.raises(TrainingError, match="the confidence at radius tau"):
        tuning._train(SimpleNamespace(), trial, tmp_path / "trial")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["../elsewhere", "a/b", ".."])
def test_a_study_stays_in_its_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EDGE_ROAD_HOME", str(tmp_path / "home"))
    words = ["--recipe", "synthetic", "--over", "method.sigma=0.1:0.2", "--study", name]
    assert cli.command("tune", words) == 2
    assert "a study is a name" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_trial_of_a_worker_that_died_is_given_up_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGE_ROAD_HOME", str(tmp_path))
    tuning = Tuning(Wishes(recipe="synthetic"), parse_ranges(["method.sigma=0.1:0.2"]), ("clean",), trials=2)
    tuning.folder = tmp_path
    study = tuning._open(f"sqlite:///{tmp_path / 'study.db'}")
    dead = tuning._next(study)
    tuning.held.close()  # as the kernel does
    alive = tuning._next(study)
    held = tuning.held
    replacement = tuning._next(study)
    assert [dead.number, alive.number, replacement.number] == [0, 1, 2]
    assert [trial.state.name for trial in study.trials] == ["FAIL", "RUNNING", "RUNNING"]
    assert tuning._next(study) is None, "two are wanted, and two are under way"
    held.close()


def fail(*_: object) -> float:
    raise TrainingError("the loss is no longer a finite number")


def test_a_study_takes_no_trials_of_another_question_and_a_storage_must_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EDGE_ROAD_HOME", str(tmp_path))
    monkeypatch.setattr(Tuning, "_train", fail)
    arguments = ["--recipe", "synthetic", "--trials", "1", "--over"]
    assert cli.command("tune", [*arguments, "method.sigma=0.1:0.2"]) == 2
    assert "no trial came to its end" in capsys.readouterr().err
    assert cli.command("tune", [*arguments, "method.sigma=0.1:0.3"]) == 2
    assert "another over" in capsys.readouterr().err
    assert cli.command("tune", [*arguments, "method.sigma=0.1:0.2", "--storage", "nonsense"]) == 2
    assert "the study cannot be opened" in capsys.readouterr().err


def test_trials_that_always_fail_come_to_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EDGE_ROAD_HOME", str(tmp_path))
    monkeypatch.setattr(Tuning, "_train", fail)
    arguments = ["--recipe", "synthetic", "--trials", "3", "--over", "method.sigma=0.1:0.2"]
    assert cli.command("tune", arguments) == 2
    assert "3 fail" in capsys.readouterr().err


def test_nothing_to_vary_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.command("tune", ["--recipe", "synthetic"]) == 2
    assert "nothing to vary" in capsys.readouterr().err


def test_ranges_may_stand_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    space = tmp_path / "space.toml"
    space.write_text("[over]\n'method.delta_d' = '9:3'\n")
    assert cli.command("tune", ["--recipe", "synthetic", "--space", str(space)]) == 2
    assert "method.delta_d=9:3" in capsys.readouterr().err


def test_the_recipe_goes_first_also_in_keys_that_it_does_not_write(tmp_path: Path) -> None:
    ranges = parse_ranges(
        ["data.train_share=0.1:1", "augment.padded_crop=int:0:8", "model.stem=standard,small"]
    )
    tuning = Tuning(Wishes(recipe=str(recipe_beside_photos(tmp_path))), ranges, (), 1)
    assert tuning._own_values() == {
        "data.train_share": 1.0,
        "augment.padded_crop": 0,
        "model.stem": "standard",
    }
