"""Three questions in place of 27 classes: friction, material, unevenness (RSCD).

Shape suffixes: B batch, A answers of all questions, C classes, D features.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from edge_road.conditions import RSCD_CLASSES
from edge_road.rscd_heads import HEADS, MASKED, head_labels


class RscdHeads(nn.Module):
    """Log-probabilities of the 27 classes, each the sum over the questions that its label answers.

    Snow and ice answer friction alone, mud and gravel no unevenness: cross-entropy on a class is the
    sum of the heads' own ones, without those that its label masks. The probabilities add up to 1.
    """

    answers_AC: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.sizes = [len(answers) for answers in HEADS.values()]
        self.linear = nn.Linear(features, sum(self.sizes))
        self.register_buffer("answers_AC", _answers_of_classes(), persistent=False)

    def forward(self, features_BD: Tensor) -> Tensor:
        heads = torch.split(self.linear(features_BD), self.sizes, dim=1)
        log_probabilities_BA = torch.cat([head.log_softmax(dim=1) for head in heads], dim=1)
        return log_probabilities_BA @ self.answers_AC

    @property
    def weight(self) -> Tensor:
        """As of a linear classifier: exact between labels that answer the same questions."""
        return self.answers_AC.T @ self.linear.weight

    @property
    def bias(self) -> Tensor:
        return self.answers_AC.T @ self.linear.bias


def _answers_of_classes() -> Tensor:
    """1 where a class's label gives that answer."""
    labels = head_labels(np.arange(len(RSCD_CLASSES)))
    rows = []
    for answers, label_C in zip(HEADS.values(), labels):
        rows.append((np.arange(len(answers))[:, None] == label_C) & (label_C != MASKED))
    return torch.from_numpy(np.concatenate(rows).astype(np.float32))
