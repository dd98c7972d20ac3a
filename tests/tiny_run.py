"""A finished run without training: a backbone as it is, and a classifier fitted to its features."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import torch
from safetensors.torch import save

from edge_road.config import settings_digest, write_settings
from edge_road.datasets.opening import open_dataset
from edge_road.datasets.prepared import load_prepared
from edge_road.files import sha256, write_atomically
from edge_road.frames import Images
from edge_road.nn.model import RoadModel, build_model
from edge_road.preprocess import Preprocessing
from edge_road.recipe import InputSettings, ModelSettings, Recipe
from edge_road.recipe_data import DataSettings, FolderData
from edge_road.run_record import RECIPE_FILE, WEIGHTS_FILE, RunRecord, write_record

LOOKS = {"dry": (120, 25, 0), "wet": (60, 5, 25), "icy": (205, 12, 10)}
"""brightness, grain and blue tint"""


def draw_pictures(folder: Path, count: int = 40, side: int = 72) -> Path:
    rng = np.random.default_rng(0)
    for name, (brightness, grain, tint) in LOOKS.items():
        (folder / name).mkdir(parents=True)
        for number in range(count):
            picture = rng.normal(brightness + rng.normal(0, 8), grain, (side, side, 3))
            picture[..., 2] += tint
            pixels = np.clip(picture, 0, 255).astype(np.uint8)
            cv2.imwrite(str(folder / name / f"{number:03d}.png"), pixels[..., ::-1])
    return folder


def write_tiny_run(run: Path, pictures: Path) -> Path:
    model = ModelSettings(backbone="mobilenetv3_small_050", features=16)
    return write_fitted_run(run, FolderData(kind="folder", path=pictures), model, size=64)


def write_fitted_run(run: Path, data: DataSettings, settings: ModelSettings, *, size: int) -> Path:
    torch.manual_seed(0)
    recipe = Recipe(name="fitted", data=data, model=settings, input=InputSettings(height=size, width=size))
    dataset = open_dataset(data)
    model = build_model(settings, len(dataset.classes))
    mean, std = model.normalisation
    preprocessing = Preprocessing(height=size, width=size, mean=mean, std=std)
    images_NHWC, labels_N = load_prepared(dataset, "train", preprocessing)
    _fit_layers(model.eval(), images_NHWC, labels_N)
    return write_run(run, recipe, model, preprocessing)


def write_run(run: Path, recipe: Recipe, model: RoadModel, preprocessing: Preprocessing) -> Path:
    """What training leaves behind when it has finished."""
    weights = save({name: value.contiguous() for name, value in model.state_dict().items()})
    write_atomically(run / WEIGHTS_FILE, weights)
    return write_run_without_weights(run, recipe, preprocessing, sha256(weights))


def write_run_without_weights(
    run: Path, recipe: Recipe, preprocessing: Preprocessing, weights_sha256: str = "1" * 64
) -> Path:
    dataset = open_dataset(recipe.data)
    write_settings(recipe, run / RECIPE_FILE)
    record = RunRecord(
        name=recipe.name,
        classes=dataset.classes.names,
        backbone=recipe.model.backbone,
        features=recipe.model.features,
        preprocessing=preprocessing,
        method="softmax",
        seed=0,
        data_digest=dataset.digest,
        recipe_digest=settings_digest(recipe),
        weights_sha256=weights_sha256,
        git_commit=None,
        version="0.1.0",
        epochs=1,
        best_epoch=1,
        validation_accuracy=1.0,
    )
    write_record(run, record)
    return run


def _batches(images_NHWC: Images) -> list[torch.Tensor]:
    pixels_NCHW = torch.from_numpy(images_NHWC).permute(0, 3, 1, 2)
    return [batch.float() / 255 for batch in pixels_NCHW.split(32)]


@torch.no_grad()
def _fit_layers(model: RoadModel, images_NHWC: Images, labels_N: np.ndarray) -> None:
    """The feature layer becomes the leading components of the pooled vectors, the classifier a ridge fit."""
    rows = [torch.relu(model.backbone((b - model.mean) / model.std)) for b in _batches(images_NHWC)]
    pooled_NP = torch.cat(rows).double()
    centre_P = pooled_NP.mean(dim=0)
    _, spread, axes_KP = torch.linalg.svd(pooled_NP - centre_P, full_matrices=False)
    count = model.feature_layer.out_features
    weight_DP = axes_KP[:count] / (spread[:count, None] / len(pooled_NP) ** 0.5 + 1e-3)
    model.feature_layer.weight.copy_(weight_DP)
    model.feature_layer.bias.copy_(-weight_DP @ centre_P)
    features_ND = (pooled_NP - centre_P) @ weight_DP.T
    wanted_NC = torch.nn.functional.one_hot(torch.from_numpy(labels_N)).double() * 10 - 5
    system_DD = features_ND.T @ features_ND + 0.05 * len(features_ND) * torch.eye(count).double()
    model.classifier.weight.copy_(torch.linalg.solve(system_DD, features_ND.T @ wanted_NC).T)
    model.classifier.bias.copy_(wanted_NC.mean(dim=0))
