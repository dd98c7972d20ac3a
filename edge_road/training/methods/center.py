"""Center loss (Wen et al. 2016; compared with in large_margin_discriminative_loss, 7.5)."""

from __future__ import annotations

import torch
from torch import Tensor

from edge_road.nn.gather import gather_with_gradient
from edge_road.nn.losses import membership
from edge_road.nn.model import RoadModel
from edge_road.recipe_method import CenterMethod
from edge_road.training.methods.base import Method, Step, step_of


class Center(Method):
    """Features are drawn to centres, and the centres follow: they are state, not parameters."""

    centers_CD: Tensor

    def __init__(self, settings: CenterMethod, classes: int, features: int) -> None:
        super().__init__(settings, classes, features)
        self.settings = settings
        self.register_buffer("centers_CD", torch.zeros(classes, features))

    def forward(
        self, model: RoadModel, images_BCHW: Tensor, labels_B: Tensor, generator: torch.Generator
    ) -> Step:
        """Their Eq. 5: weight / 2 times the mean squared distance."""
        q_BD, logits_BC = model(images_BCHW)
        distance = (q_BD - self.centers_CD[labels_B]).square().sum(dim=1).mean()
        if self.training:
            self._follow(gather_with_gradient(q_BD.detach()), gather_with_gradient(labels_B))
        terms = {
            "softmax": self.cross_entropy(logits_BC, labels_B),
            "center": self.settings.weight / 2 * distance,
        }
        return step_of(terms, logits_BC)

    def _follow(self, q_BD: Tensor, labels_B: Tensor) -> None:
        """Their Eq. 4: by the sum of the gaps over one more than their number, so absent classes stay."""
        members_CB = membership(labels_B, len(self.centers_CD), q_BD.dtype)
        counts_C1 = members_CB.sum(dim=1, keepdim=True)
        gaps_CD = (members_CB @ q_BD - counts_C1 * self.centers_CD) / (1 + counts_C1)
        # One bad batch must not spoil the centres for good.
        self.centers_CD = self.centers_CD + self.settings.rate * gaps_CD.nan_to_num(0.0, 0.0, 0.0)
