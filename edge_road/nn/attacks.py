"""Projected gradient descent in L2 and Linf: the worst picture within a budget (Madry et al., 2018).

Pictures are RGB in [0, 1] and stay there. Budgets of the papers: spider_label_smoothing, E.1.1.
Its printed L2 step, 1/800 over 20 steps, cannot reach eps = 0.5; the step here is 2.5 eps / steps.
Shape suffixes: B batch, C classes or channels, H height, W width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

Norm = Literal["L2", "Linf"]
Logits = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Budget:
    norm: Norm
    eps: float
    steps: int
    step_of_eps: float = 2.5
    """a step is so many eps / steps: the boundary is reached from anywhere inside"""

    @property
    def step(self) -> float:
        return self.step_of_eps * self.eps / self.steps

    @property
    def name(self) -> str:
        eps = f"{self.eps:g}" if self.norm == "L2" else f"{self.eps * 255:g}/255"
        return f"PGD-{self.steps} {self.norm} {eps}"

    def scaled_to(self, values: int, reference: int = 32 * 32 * 3) -> Budget:
        """An L2 radius grows with the root of the number of values; the papers' are for 32x32x3."""
        if self.norm == "Linf":
            return self
        return Budget(self.norm, self.eps * (values / reference) ** 0.5, self.steps, self.step_of_eps)


PAPER_BUDGETS = (
    Budget("L2", 0.5, 20),
    Budget("Linf", 1 / 255, 2),
    Budget("Linf", 3 / 255, 3),
    Budget("Linf", 8 / 255, 7),
)


def pgd(
    logits_of: Logits,
    images_BCHW: Tensor,
    labels_B: Tensor,
    budget: Budget,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Untargeted; the best picture on the way, by its loss. A generator asks for a random start."""
    start_BCHW = (
        torch.zeros_like(images_BCHW) if generator is None else _inside(images_BCHW, budget, generator)
    )
    shift_BCHW = (images_BCHW + start_BCHW).clamp(0, 1) - images_BCHW
    best_BCHW, worst_B = images_BCHW.clone(), torch.full_like(images_BCHW[:, 0, 0, 0], -torch.inf)
    for step in range(budget.steps + 1):
        loss_B, gradient_BCHW = losses_and_gradients(logits_of, images_BCHW + shift_BCHW, labels_B)
        better_B = loss_B > worst_B
        worst_B = torch.where(better_B, loss_B, worst_B)
        best_BCHW = torch.where(better_B[:, None, None, None], images_BCHW + shift_BCHW, best_BCHW)
        if step < budget.steps:
            moved_BCHW = project(shift_BCHW + budget.step * _uphill(gradient_BCHW, budget.norm), budget)
            shift_BCHW = (images_BCHW + moved_BCHW).clamp(0, 1) - images_BCHW
    return best_BCHW


def losses_and_gradients(logits_of: Logits, images_BCHW: Tensor, labels_B: Tensor) -> tuple[Tensor, Tensor]:
    """The cross-entropy of each picture, and its gradient with respect to that picture."""
    with torch.enable_grad():
        pixels_BCHW = images_BCHW.detach().requires_grad_(True)
        loss_B = cross_entropy(logits_of(pixels_BCHW), labels_B, reduction="none")
        (gradient_BCHW,) = torch.autograd.grad(loss_B.sum(), pixels_BCHW)
    return loss_B.detach(), gradient_BCHW


def project(shift_BCHW: Tensor, budget: Budget) -> Tensor:
    """Back into the ball."""
    if budget.norm == "Linf":
        return shift_BCHW.clamp(-budget.eps, budget.eps)
    return shift_BCHW * (budget.eps / _lengths(shift_BCHW).clamp(min=budget.eps))


def frozen_logits(model: nn.Module) -> Logits:
    """Logits of a road model; its weights want no gradient, so none are kept."""
    return lambda images_BCHW: model(images_BCHW).logits_BC


def _uphill(gradient_BCHW: Tensor, norm: Norm) -> Tensor:
    if norm == "Linf":
        return gradient_BCHW.sign()
    return gradient_BCHW / _lengths(gradient_BCHW).clamp(min=torch.finfo(gradient_BCHW.dtype).tiny)


def _lengths(shift_BCHW: Tensor) -> Tensor:
    length_B111: Tensor = torch.linalg.vector_norm(shift_BCHW, dim=(1, 2, 3), keepdim=True)
    return length_B111


def _inside(images_BCHW: Tensor, budget: Budget, generator: torch.Generator) -> Tensor:
    """Uniform in the ball."""
    shape = images_BCHW.shape
    if budget.norm == "Linf":
        return budget.eps * (2 * torch.rand(shape, generator=generator, dtype=images_BCHW.dtype) - 1)
    direction_BCHW = torch.randn(shape, generator=generator, dtype=images_BCHW.dtype)
    values = direction_BCHW[0].numel()
    radius_B = budget.eps * torch.rand(shape[0], generator=generator, dtype=images_BCHW.dtype) ** (1 / values)
    return _uphill(direction_BCHW, "L2") * radius_B[:, None, None, None]
