"""Fine-tuning an INT8 twin until it answers as its float model does.

No labels: the twin's logits and features follow those of the float model on the same pictures (logits as
targets: Ba and Caruana 2014, Eq. 1), so that calibrated thresholds and class centroids keep their meaning.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from edge_road.frames import Floats, Images
from edge_road.nn.onnx_twin import OnnxTwin

SCALE_RATE = 0.1
"""learning rate of the logarithm of an input's step, as a multiple of that of weights in steps"""


class Taught(NamedTuple):
    """Pictures and what the float model says of them."""

    images_NHWC: Images
    logits_NC: Floats
    features_ND: Floats


def fine_tune(
    twin: OnnxTwin,
    lessons: Callable[[int], Taught],
    judged: Taught,
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    seed: int,
) -> list[float]:
    """The error on `judged` before and after each epoch; the twin keeps its best state, maybe the first."""
    scales = list(twin.log_scales.values())
    weights = [p for p in twin.parameters() if not any(p is scale for scale in scales)]
    rates = [{"params": weights, "lr": learning_rate}, {"params": scales, "lr": SCALE_RATE * learning_rate}]
    optimizer = torch.optim.Adam(rates)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(1, epochs))
    generator = torch.Generator().manual_seed(seed)
    errors, best = [judged_error(twin, judged, batch_size)], copy.deepcopy(twin.state_dict())
    for epoch in range(epochs):
        for batch in _batches(lessons(epoch), batch_size, generator):
            optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(_error(twin, batch))
            optimizer.step()
        schedule.step()
        errors.append(judged_error(twin, judged, batch_size))
        if errors[-1] <= min(errors):
            best = copy.deepcopy(twin.state_dict())
    twin.load_state_dict(best)
    return errors


@torch.no_grad()
def judged_error(twin: OnnxTwin, judged: Taught, batch_size: int) -> float:
    batches = list(_in_order(judged, np.arange(len(judged.images_NHWC)), batch_size))
    return float(
        np.average([float(_error(twin, b)) for b in batches], weights=[len(b.logits_NC) for b in batches])
    )


def _error(twin: OnnxTwin, batch: Taught) -> Tensor:
    """Squared differences as shares of the float model's squares: both outputs weigh alike."""
    logits_BC, features_BD = twin(torch.from_numpy(batch.images_NHWC))
    pairs = ((logits_BC, batch.logits_NC), (features_BD, batch.features_ND))
    shares = []
    for said, wanted_array in pairs:
        wanted = torch.from_numpy(wanted_array)
        shares.append((said - wanted).square().mean() / wanted.square().mean().clamp_min(1e-12))
    return sum(shares, torch.zeros(()))


def _batches(taught: Taught, batch_size: int, generator: torch.Generator) -> Iterator[Taught]:
    order = torch.randperm(len(taught.images_NHWC), generator=generator).numpy()
    return _in_order(taught, order, batch_size)


def _in_order(taught: Taught, order: np.ndarray, batch_size: int) -> Iterator[Taught]:
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        yield Taught(*(np.ascontiguousarray(part[chosen]) for part in taught))
