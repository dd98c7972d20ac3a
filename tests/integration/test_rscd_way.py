"""The 27-class way from a tree of patches to road states, with a model small enough to learn little."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from daemon_harness import Daemon

from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.bundle import load_bundle
from edge_road.cli import command
from edge_road.conditions import RSCD_CLASSES, STATES, state_of
from edge_road.datasets.decode import read_image
from edge_road.synthetic.rscd_tree import write_rscd_tree

pytest.importorskip("torch")

RECIPE = """
name = "rscd_tiny"
[data]
kind = "rscd"
path = "rscd"
[input]
height = 64
width = 48
[model]
backbone = "mobilenetv3_small_050"
features = 16
[method]
name = "softmax"
[augment]
rotation_degrees = 0.0
perspective = 0.0
color_jitter = 0.0
[optimizer]
name = "adamw"
learning_rate = 3e-3
head_factor = 3.0
schedule = "cosine"
[training]
epochs = 20
batch_size = 32
threads = 1
device = "cpu"
"""
TARGET = """
name = "test"
tensorrt = false
float16 = false
[samples]
parity = 24
robustness = 24
[calibration]
images = 54
[machine_limits]
measure = false
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EDGE_ROAD_HOME", str(tmp_path))
    write_rscd_tree(tmp_path / "rscd", 8, np.random.default_rng(0), 2, height=90, width=60)
    (tmp_path / "tiny.toml").write_text(RECIPE)
    (tmp_path / "test.toml").write_text(TARGET)
    return tmp_path


@pytest.mark.slow
def test_27_classes_become_three_states_on_the_road(home: Path) -> None:
    assert command("train", ["--recipe", str(home / "tiny.toml")]) == 0
    assert command("to-trt", ["--target", str(home / "test.toml"), "--accept-fallback"]) == 0
    patches = patches_by_state(home / "rscd" / "train", home / "drive")
    vehicle = {
        "precision": "float32",
        "trust": {"allow_unsigned": True},
        "decision": {"confidence": 0.4},
        "source": {"kind": "images", "path": str(patches), "fps": 10},
    }
    with Daemon(home, vehicle=vehicle) as daemon:
        assert daemon.finish() == 0, daemon.stderr
    seen = [m for m in daemon.messages if m.regions]
    told = [state for state, _ in groupby(m.state for m in seen if m.state != "unknown")]
    assert told == list(STATES), daemon.stderr
    said_MS = np.array([[m.regions[0].probabilities[state] for state in STATES] for m in seen])
    expected_NS = sums_by_state(home / "bundles" / "rscd_tiny-0001", patches)
    distances_MN = np.abs(said_MS[:, None] - expected_NS[None]).max(axis=-1)
    assert distances_MN.min(axis=1).max() <= 1e-3


def patches_by_state(train: Path, folder: Path) -> Path:
    """Three seconds of each; such as it has learnt, because the way is tested and not the skill."""
    folder.mkdir()
    for number, state in enumerate(STATES):
        of_state = [
            p
            for name in RSCD_CLASSES
            if state_of(name) == state
            for p in sorted(train.glob(f"*/*-{name}.jpg"))
        ]
        for place in range(30):
            patch = of_state[place * len(of_state) // 30]
            (folder / f"{number}{place:02d}.jpg").symlink_to(patch)
    return folder


def sums_by_state(bundle_path: Path, patches: Path) -> np.ndarray:
    bundle = load_bundle(bundle_path)
    assert bundle.manifest.classes == RSCD_CLASSES
    images_NHWC = np.stack(
        [bundle.manifest.preprocessing.prepare(read_image(p)) for p in sorted(patches.iterdir())]
    )
    probabilities_NC = OnnxPredictor.from_bundle(bundle, "float32").predict(images_NHWC).probabilities_NC
    columns = [[c for c, name in enumerate(RSCD_CLASSES) if state_of(name) == state] for state in STATES]
    return np.stack([probabilities_NC[:, of_state].sum(axis=1) for of_state in columns], axis=1)
