"""Every method trains on rendered roads, lowers its loss, and comes back from checkpoint, ONNX and judge."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.datasets import load_prepared, open_dataset
from edge_road.evaluation.judge import judge
from edge_road.export.onnx_graph import export_graph
from edge_road.files import sha256
from edge_road.nn.model import RoadModel, build_model
from edge_road.nn.predictor import load_model, load_run
from edge_road.preprocess import Preprocessing
from edge_road.recipe import Recipe
from edge_road.run_record import CHECKPOINT_FOLDER, RECORD_FILE, WEIGHTS_FILE, RunRecord, load_record
from edge_road.training.methods import METHODS, build_method
from edge_road.training.progress import Rows
from edge_road.training.train import train

DATA = {"kind": "synthetic", "train": 24, "validation": 6, "test": 9, "height": 48, "width": 48}


class Notes(Rows):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)

    def epoch(self, record: object, is_best: bool) -> None:
        pass


def recipe_of(method: dict[str, object]) -> Recipe:
    still = {"color_jitter": 0.0, "rotation_degrees": 0.0, "perspective": 0.0, "flip": 0.0}
    return Recipe.model_validate(
        {
            "name": "round_trip",
            "data": DATA,
            "input": {"height": 32, "width": 32},
            "model": {"backbone": "test_efficientnet", "features": 8},
            "method": method,
            "augment": still,
            "optimizer": {"learning_rate": 3e-3, "schedule": "constant"},
            "training": {"epochs": 6, "batch_size": 12, "threads": 1, "workers": 0},
        }
    )


@pytest.mark.parametrize(
    "method",
    [*({"name": name} for name in METHODS), {"name": "discriminative", "perturbation": "spider"}],
    ids=lambda method: "+".join(method.values()),
)
def test_a_method_learns_and_round_trips(method: dict[str, object], tmp_path: Path) -> None:
    recipe, run = recipe_of(method), tmp_path / "run"
    train(recipe, run, Notes())
    record = load_record(run)
    torch.manual_seed(recipe.seed)
    fresh = build_model(recipe.model, 3)
    assert loss_of(recipe, trained(recipe, run)) < loss_of(recipe, fresh)

    assert_comes_back_from_its_checkpoint(recipe, run)
    assert_onnx_says_the_same(run, record)


def test_a_resnet_for_small_pictures_is_mixed_inside_and_round_trips(tmp_path: Path) -> None:
    small = recipe_of({"name": "nfm"}).model_dump()
    small["model"] |= {"backbone": "resnet18", "stem": "small"}
    small["training"] |= {"epochs": 1}
    recipe, run = Recipe.model_validate(small), tmp_path / "run"
    train(recipe, run, Notes())
    record = load_record(run)
    assert (record.stem, load_model(run).backbone.conv1.kernel_size) == ("small", (3, 3))
    assert_comes_back_from_its_checkpoint(recipe, run)
    assert_onnx_says_the_same(run, record)


def trained(recipe: Recipe, run: Path) -> RoadModel:
    """As the last epoch left it, whichever was the best."""
    (checkpoint,) = sorted((run / CHECKPOINT_FOLDER).glob("*.safetensors"))[-1:]
    tensors = load_file(checkpoint)
    model = build_model(recipe.model, 3)
    model.load_state_dict({k.removeprefix("model/"): t for k, t in tensors.items() if k.startswith("model/")})
    return model


@torch.no_grad()
def loss_of(recipe: Recipe, model: RoadModel) -> float:
    """Of all training pictures, over the same few draws for every model."""
    preprocessing = Preprocessing(height=32, width=32)
    images_NHWC, labels_N = load_prepared(open_dataset(recipe.data), "train", preprocessing)
    images_BCHW = torch.from_numpy(images_NHWC).permute(0, 3, 1, 2).float() / 255
    draws = [torch.Generator().manual_seed(seed) for seed in range(4)]
    method = build_method(recipe.method, classes=3, features=8)
    return sum(float(method(model, images_BCHW, torch.from_numpy(labels_N), draw).total) for draw in draws)


def assert_comes_back_from_its_checkpoint(recipe: Recipe, run: Path) -> None:
    """As after a kill between the last checkpoint and the record."""
    weights = (run / WEIGHTS_FILE).read_bytes()
    record = load_record(run)
    (run / RECORD_FILE).unlink()
    (run / WEIGHTS_FILE).unlink()
    notes = Notes()
    train(recipe, run, notes)
    assert f"continuing after epoch {recipe.training.epochs}" in notes.texts
    assert sha256((run / WEIGHTS_FILE).read_bytes()) == sha256(weights)
    assert load_record(run).model_copy(update={"git_commit": record.git_commit}) == record


def assert_onnx_says_the_same(run: Path, record: RunRecord) -> None:
    images_NHWC, labels_N = load_prepared(
        open_dataset(recipe_of({"name": "softmax"}).data), "test", record.preprocessing
    )
    content = export_graph(load_model(run), record.preprocessing, record.classes)
    onnx = OnnxPredictor(content, record.class_list, (32, 32), name="round trip")
    ours, theirs = load_run(run).predict(images_NHWC), onnx.predict(images_NHWC)
    assert np.abs(ours.logits_NC - theirs.logits_NC).max() < 1e-3
    assert np.abs(ours.features_ND - theirs.features_ND).max() < 1e-3
    judged, as_trained = (
        judge(artefact, images_NHWC, labels_N, ["gaussian_40"], runs=1) for artefact in (onnx, load_run(run))
    )
    assert judged.images == 9
    assert judged.confusion == as_trained.confusion
    assert judged.perturbed[0].accuracy == as_trained.perturbed[0].accuracy
