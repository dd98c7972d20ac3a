"""All options of [training] together, from the command line to a run that loads."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from noise_pictures import write_noise

from edge_road import cli
from edge_road.nn.predictor import load_run

RECIPE = """
name = "all"
[data]
kind = "folder"
path = "{photos}"
[input]
height = 32
width = 32
[model]
backbone = "mobilenetv3_small_050"
features = 8
[training]
epochs = 2
patience = 5
batch_size = 8
sampling = "balanced"
class_weights = "balanced"
batch_norm = "separate"
clip_norm = 1.0
ema_decay = 0.9
precision = "bf16"
deterministic = true
device = "cpu"
threads = 1
[optimizer]
learning_rate = 1e-4
"""


def test_a_run_with_every_option_ends_and_loads(tmp_path: Path) -> None:
    write_noise(tmp_path / "photos", {"dry": 16, "wet": 6, "icy": 10})
    recipe, run = tmp_path / "all.toml", tmp_path / "run"
    recipe.write_text(RECIPE.format(photos=tmp_path / "photos"))
    try:
        assert cli.command("train", ["--recipe", str(recipe), "--run", str(run)]) == 0
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(False)
    assert json.loads((run / "run.json").read_text())["epochs"] == 2
    images_NHWC = np.random.default_rng(1).integers(0, 255, (2, 32, 32, 3), dtype=np.uint8)
    predictor = load_run(run)
    assert predictor.name.startswith("torch float32"), "only training computes in bf16"
    assert np.isfinite(predictor.predict(images_NHWC).probabilities_NC).all()
