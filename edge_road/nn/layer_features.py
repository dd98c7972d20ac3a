"""What every stage of a model makes of pictures, as one vector a picture.

robust_discriminative_noise, 7.5: the output of a stage is averaged over its places, as pooling does at
the end of the network. Shape suffixes: B batch, C channels, H height, W width, N pictures.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from edge_road.frames import Floats
from edge_road.nn.backbone import stages
from edge_road.nn.model import RoadModel

FEATURES = "features"
"""the last of the layers, in which the loss works"""
MOST_STAGES = 6


def chosen_stages(model: RoadModel) -> dict[str, nn.Module]:
    """At most six, evenly spread, with the last one always among them."""
    found = stages(model.backbone)
    picked = sorted({round(i) for i in np.linspace(0, len(found) - 1, min(len(found), MOST_STAGES))})
    return {f"stage {i + 1}": found[i] for i in picked}


@torch.no_grad()
def layer_features(model: RoadModel, images_NCHW: Tensor, batch: int = 8) -> dict[str, Floats]:
    """Layer -> one vector for each picture; pixels in [0, 1], the model in eval mode."""
    parts: dict[str, list[Tensor]] = {}
    with _heard(chosen_stages(model), parts):
        for images_BCHW in torch.split(images_NCHW, batch):
            parts.setdefault(FEATURES, []).append(model(images_BCHW).features_BD)
    order = [*(name for name in parts if name != FEATURES), FEATURES]
    return {name: torch.cat(parts[name]).float().cpu().numpy() for name in order}


@contextmanager
def _heard(layers: dict[str, nn.Module], parts: dict[str, list[Tensor]]) -> Iterator[None]:
    """While this lasts, the averaged output of each layer is appended to its part."""

    def listener(name: str) -> Any:
        def hear(module: nn.Module, inputs: Any, output_BCHW: Tensor) -> None:
            parts.setdefault(name, []).append(output_BCHW.mean(dim=(2, 3)))

        return hear

    hooks = [layer.register_forward_hook(listener(name)) for name, layer in layers.items()]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
