"""Means over the pictures seen so far in an epoch, kept where the network runs.

Asking a GPU for a number makes it wait; sums and the first bad batch stay there until somebody
looks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch import distributed as dist

from edge_road.nn.gather import is_distributed

_NONE = 2**62


class Tally:
    def __init__(self, device: torch.device, losses: Sequence[str] = ()) -> None:
        """`losses` are named beforehand where a process may have no picture to tell them by."""
        self.seconds = 0.0
        self.images = 0
        self.batches = 0
        self._names = ("correct", *losses)
        self._sums = torch.zeros(len(self._names), dtype=torch.float64, device=device)
        self._first_bad = torch.tensor(_NONE, device=device)

    @torch.no_grad()
    def add(self, logits_BC: Tensor, labels_B: Tensor, losses: Mapping[str, Tensor]) -> None:
        """Float64 sums of float32 values; `losses` has the same names each time."""
        self._names = ("correct", *losses)
        values = torch.stack([loss.detach().double() for loss in losses.values()])
        bad = torch.where(values.isfinite().all(), _NONE, self.batches)
        self._first_bad = torch.minimum(self._first_bad, bad)
        correct = (logits_BC.argmax(dim=1) == labels_B).sum().double()
        self._sums = self._sums + torch.cat([correct[None], values * len(labels_B)])
        self.images += len(labels_B)
        self.batches += 1

    def first_bad(self) -> int | None:
        """The first batch, counted from 0, in which a loss of any process is no finite number."""
        first = self._first_bad.clone()
        if is_distributed():
            dist.all_reduce(first, op=dist.ReduceOp.MIN)
        return None if int(first) == _NONE else int(first)

    def join(self) -> None:
        """Add up the tallies of all processes."""
        if is_distributed():
            joint = torch.cat([self._sums, self._sums.new_tensor([self.images])])
            dist.all_reduce(joint)
            self._sums, self.images = joint[:-1], int(joint[-1])

    @property
    def sums(self) -> dict[str, float]:
        return dict(zip(self._names, self._sums.tolist()))

    @property
    def accuracy(self) -> float:
        return self.sums["correct"] / self.images

    @property
    def losses(self) -> dict[str, float]:
        return {name: total / self.images for name, total in self.sums.items() if name != "correct"}
