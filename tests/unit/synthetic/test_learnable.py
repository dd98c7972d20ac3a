"""A small network learns the rendered roads from few scenes, and then understands drives.

A linear model on mean colour stays below 75 % (test_scenes.py); together they bound the difficulty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import cv2
import numpy as np
import pytest

from edge_road.conditions import STATES
from edge_road.synthetic.drives import Drive, random_drive
from edge_road.synthetic.scenes import render_scene

torch = pytest.importorskip("torch")
timm = pytest.importorskip("timm")

SIZE, CUT, BATCH, EPOCHS, TRAIN, HELD_OUT = 104, 92, 32, 12, 768, 240
Classifier = Callable[[np.ndarray], np.ndarray]


def scenes(split: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    labels = np.arange(count) % len(STATES)
    pictures = [
        render_scene(STATES[label], np.random.default_rng((split, i))) for i, label in enumerate(labels)
    ]
    return np.stack([shrunk(picture) for picture in pictures]), labels


def shrunk(picture: np.ndarray) -> np.ndarray:
    return cv2.resize(picture, (SIZE, SIZE), interpolation=cv2.INTER_AREA)


def to_tensor(pictures_NHWC: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(pictures_NHWC).permute(0, 3, 1, 2).float() / 127.5 - 1


def batches(pictures: np.ndarray, labels: np.ndarray) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Each batch is cut out at a random place and mirrored every other time."""
    rng = np.random.default_rng(0)
    for _ in range(EPOCHS):
        for chosen in rng.permutation(len(labels)).reshape(-1, BATCH):
            top, left = rng.integers(0, SIZE - CUT, 2)
            images = to_tensor(pictures[chosen, top : top + CUT, left : left + CUT])
            yield images.flip(3) if rng.random() < 0.5 else images, torch.from_numpy(labels[chosen])


@pytest.fixture(scope="module")
def classify() -> Classifier:
    """MobileNetV3-small from scratch, as the demo trains it but shorter."""
    torch.manual_seed(0)
    pictures, labels = scenes(1, TRAIN)
    network = timm.create_model("tf_mobilenetv3_small_100", num_classes=len(STATES))
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=0.02)
    steps = EPOCHS * TRAIN // BATCH
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps, pct_start=0.1)
    network.train()
    for images, targets in batches(pictures, labels):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(images), targets).backward()
        optimizer.step()
        schedule.step()
    network.eval()
    return lambda held_out: network(to_tensor(held_out)).argmax(dim=1).numpy()


@pytest.mark.slow
def test_a_small_network_learns_the_states_from_few_scenes(classify: Classifier) -> None:
    pictures, labels = scenes(2, HELD_OUT)
    with torch.no_grad():
        assert (classify(pictures) == labels).mean() >= 0.8


@pytest.mark.slow
def test_what_was_learnt_from_scenes_holds_on_drives(classify: Classifier) -> None:
    """Away from changes, over several roads."""
    frames, states = [], []
    for drive in (random_drive(seed, 40) for seed in range(6)):
        for number in away_from_changes(drive):
            frames.append(shrunk(drive.frame(number)))
            states.append(STATES.index(drive.state_at(number / drive.fps)))
    with torch.no_grad():
        assert (classify(np.stack(frames)) == np.array(states)).mean() >= 0.8


def away_from_changes(drive: Drive) -> list[int]:
    numbers = range(0, drive.frames, 16)
    surroundings = {n: {drive.state_at(max(n / drive.fps + s, 0) % 40) for s in (-1, 0, 1)} for n in numbers}
    return [number for number, states in surroundings.items() if len(states) == 1]
