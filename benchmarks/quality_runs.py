"""The rivals of the quality benchmark, each as a finished run: what is finished is not made again."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import torch
from safetensors.torch import load_file, save

import edge_road
from benchmarks.peers.setup import python_of_peers
from benchmarks.quality_timm import Samples, Wishes, train_with_timm
from benchmarks.training_loops import train_with_ultralytics
from edge_road import workspace
from edge_road.conditions import STATES
from edge_road.config import settings_digest, write_settings
from edge_road.datasets import RoadDataset, open_dataset
from edge_road.files import new_folder, sha256, write_atomically
from edge_road.nn.backbone import build_backbone
from edge_road.preprocess import Preprocessing
from edge_road.recipe import Recipe
from edge_road.run_record import RECIPE_FILE, RECORD_FILE, WEIGHTS_FILE, RunRecord, write_record
from edge_road.synthetic.scenes import render_scene
from edge_road.training.recipes import Wishes as RecipeWishes
from edge_road.training.recipes import read_recipe

ROOT = Path(__file__).resolve().parents[1]
OURS, TIMM, PEER = "edge_road", "timm", "Ultralytics"
PASSES = 2
"""our recipe shows each picture clean and noisy: the others get twice the epochs, so all see as many"""


@dataclass(frozen=True)
class Contest:
    """One seed: the same pictures, split, network, first weights and number of pictures seen."""

    home: Path
    data: Path
    weights: str
    seed: int
    epochs: int | None = None
    overrides: tuple[str, ...] = ()
    threads: int = 1

    @property
    def recipe(self) -> Recipe:
        settings = [f"seed={self.seed}", *self.overrides]
        wishes = RecipeWishes("road_small", data=self.data, weights=self.weights, epochs=self.epochs)
        wishes.overrides.extend(settings)
        return read_recipe(wishes)

    def run_of(self, rival: str) -> Path:
        return self.home / f"seed{self.seed}" / rival

    def finished(self, rival: str) -> bool:
        return (self.run_of(rival) / RECORD_FILE).is_file()


def train_all(contest: Contest) -> dict[str, Path]:
    """Run folders by rival; ours continues where it was interrupted, the others begin again."""
    rivals = {OURS: _train_ours, TIMM: _train_timm}
    if python_of_peers() is not None:
        rivals[PEER] = _train_ultralytics
    for name, train in rivals.items():
        if not contest.finished(name):
            print(f"  training: {name}, seed {contest.seed}", flush=True)
            train(contest)
    return {name: contest.run_of(name) for name in rivals}


def _train_ours(contest: Contest) -> None:
    words = ["--recipe", "road_small", "--data", str(contest.data), "--weights", contest.weights]
    if contest.epochs:
        words += ["--epochs", str(contest.epochs)]
    for override in (f"seed={contest.seed}", f"training.threads={contest.threads}", *contest.overrides):
        words += ["--set", override]
    run = contest.run_of(OURS)
    command([sys.executable, "training/train_road.py", *words, "--run", str(run)])


def _train_timm(contest: Contest) -> None:
    torch.set_num_threads(contest.threads)
    recipe = contest.recipe
    dataset = open_dataset(recipe.data)
    weights, accuracy = train_with_timm(
        Wishes(
            train=_samples(dataset, "train", contest.data),
            validation=_samples(dataset, "validation", contest.data),
            backbone=recipe.model.backbone,
            weights=_file(contest.weights),
            classes=len(dataset.classes),
            size=recipe.input.height,
            batch=recipe.training.batch_size,
            epochs=PASSES * recipe.training.epochs,
            seed=contest.seed,
        )
    )
    _write_run(contest, TIMM, dataset, save(weights), accuracy)


def _train_ultralytics(contest: Contest) -> None:
    python = python_of_peers()
    assert python is not None
    recipe = contest.recipe
    dataset = open_dataset(recipe.data)
    home = contest.run_of(PEER)
    _link_pictures(dataset, contest.data, home / "pictures")
    wishes = {
        "data": str(home / "pictures"),
        "backbone": recipe.model.backbone,
        "weights": _file(contest.weights),
        "classes": len(dataset.classes),
        "size": recipe.input.height,
        "batch": recipe.training.batch_size,
        "epochs": PASSES * recipe.training.epochs,
        "threads": contest.threads,
        "seed": contest.seed,
        "home": str(home / "own"),
        "out": str(home / "best_epoch.safetensors"),
    }
    found = train_with_ultralytics(python, wishes)
    _write_run(contest, PEER, dataset, save(load_file(str(wishes["out"]))), found["accuracy"])


def _write_run(contest: Contest, rival: str, dataset: RoadDataset, weights: bytes, accuracy: float) -> None:
    """As our own trainer leaves it, so that one laboratory judges and exports all of them."""
    run = contest.run_of(rival)
    recipe = contest.recipe.model_copy(update={"name": rival.lower()})
    backbone = build_backbone(recipe.model.backbone)
    write_atomically(run / WEIGHTS_FILE, weights)
    write_settings(recipe, run / RECIPE_FILE)
    record = RunRecord(
        name=recipe.name,
        classes=dataset.classes.names,
        backbone=recipe.model.backbone,
        features=recipe.model.features,
        preprocessing=Preprocessing(**recipe.input.model_dump(), mean=backbone.mean, std=backbone.std),
        method="softmax",
        seed=contest.seed,
        data_digest=dataset.digest,
        recipe_digest=settings_digest(recipe),
        weights_sha256=sha256(weights),
        git_commit=workspace.git_commit(),
        version=edge_road.__version__,
        epochs=PASSES * recipe.training.epochs,
        best_epoch=1,
        validation_accuracy=accuracy,
    )
    write_record(run, record)


def _samples(dataset: RoadDataset, split: str, data: Path) -> Samples:
    found = dataset.splits[split]
    return [(data / key, int(label)) for key, label in zip(found.keys, found.labels_N)]


def _link_pictures(dataset: RoadDataset, data: Path, folder: Path) -> None:
    """Classes are numbered by the order of their names there, and named to keep ours."""
    for ours, theirs in (("train", "train"), ("validation", "val")):
        for path, label in _samples(dataset, ours, data):
            link = folder / theirs / f"{label}_{dataset.classes.names[label]}" / path.name
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.exists():
                link.symlink_to(path.resolve())


def _file(weights: str) -> str | None:
    return None if weights == "none" else weights


def render_roads(folder: Path, of_each: int = 200, side: int = 250) -> Path:
    """Pictures to try it with where there are no photographs; made once."""
    if not folder.is_dir():
        with new_folder(folder) as place:
            for label, state in enumerate(STATES):
                (place / state).mkdir()
                for number in range(of_each):
                    picture = render_scene(state, np.random.default_rng((label, number)), side, side)
                    cv2.imwrite(str(place / state / f"{number:04d}.jpg"), picture[..., ::-1])
    return folder


def command(words: list[str]) -> None:
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    if done.returncode not in (0, 6):  # 6: the gate refused a model, which is a result
        raise RuntimeError(f"{' '.join(words)}\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}")
