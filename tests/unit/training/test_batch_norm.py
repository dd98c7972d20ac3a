"""After settling, a model normalises clean pictures by their own statistics."""

from __future__ import annotations

import torch
from torch import nn

from edge_road.training.batch_norm import settle_batch_norm
from edge_road.training.batches import Batch


def batches(count: int) -> list[Batch]:
    generator = torch.Generator().manual_seed(0)
    return [
        Batch(torch.randn(16, 3, 4, 4, generator=generator) * 2 + 5, torch.zeros(16)) for _ in range(count)
    ]


def test_running_statistics_become_the_plain_average_over_the_batches() -> None:
    norm = nn.BatchNorm2d(3)
    norm.running_mean.fill_(100.0)
    seen = batches(5)
    settle_batch_norm(norm, seen, lambda batch: norm(batch.images_BCHW))
    images = torch.stack([batch.images_BCHW for batch in seen])
    torch.testing.assert_close(norm.running_mean, images.mean(dim=(0, 1, 3, 4)))
    torch.testing.assert_close(norm.running_var, images.transpose(1, 2).flatten(2).var(dim=2).mean(dim=0))


def test_nothing_else_changes() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5))
    model[1].momentum = 0.03
    before = {name: p.clone() for name, p in model.named_parameters()}
    random_state = torch.get_rng_state()
    settle_batch_norm(model, batches(2), lambda batch: model(batch.images_BCHW))
    assert all(torch.equal(before[name], p) for name, p in model.named_parameters())
    assert model[1].momentum == 0.03
    assert not any(module.training for module in model.modules())
    assert torch.equal(random_state, torch.get_rng_state()), "dropout must rest meanwhile"
