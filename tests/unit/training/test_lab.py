"""Measures of one run, on networks whose answers are worked out by hand."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from edge_road.nn.attacks import Budget
from edge_road.nn.model import Output
from edge_road.training.lab import LabBench, attack_score


class Seesaw(nn.Module):
    """The brighter the picture, the less of the second class and the more of the third; the first stays."""

    def forward(self, images_BCHW: Tensor) -> Output:
        shift_B = images_BCHW.mean(dim=(1, 2, 3)) - 0.5
        logits_BC = torch.stack([0 * shift_B, 0.06 - 0.7 * shift_B, -0.12 + 1.1 * shift_B], dim=1)
        return Output(logits_BC, logits_BC)


def test_a_wrong_picture_does_not_become_right_by_an_attack() -> None:
    """The loss of the first class grows, and yet it leads by a hundredth in the end."""
    model, grey = Seesaw(), torch.full((1, 3, 4, 4), 0.5)
    assert model(grey).logits_BC.argmax() == 1
    assert model(grey + 0.1).logits_BC.argmax() == 0
    bench = LabBench(model, grey, torch.tensor([0]), "abc", seed=0)  # type: ignore[arg-type]
    assert attack_score(bench, Budget("Linf", 0.1, 5)).accuracy == 0.0
