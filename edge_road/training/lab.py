"""The measures that need a torch model, of one run on a few pictures.

Shape suffixes: B batch, N pictures, R noisy runs, C classes or channels, H height, W width, D features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from edge_road.evaluation.lab_result import (
    AttackScore,
    CountGroup,
    CurvatureResult,
    GeometryResult,
    LabResult,
    SurfaceResult,
    ThicknessResult,
)
from edge_road.evaluation.metrics import Labels
from edge_road.frames import Images
from edge_road.nn import curvature as nn_curvature
from edge_road.nn import geometry as nn_geometry
from edge_road.nn.attacks import PAPER_BUDGETS, Budget, frozen_logits, pgd
from edge_road.nn.flatness import flatness
from edge_road.nn.model import RoadModel
from edge_road.nn.surface import loss_surface
from edge_road.nn.thickness import boundary_thickness

BATCH = 8
NOISY_RUNS = 10
SIGMA = 40 / 255
DELTA_V = 0.5
PORTIONS = tuple(round(0.1 * step, 1) for step in range(1, 11))
MOST_FOR_THICKNESS = 32
SURFACE_POINTS = 15
SURFACE_REACH = 0.2  # of the length of the noise: farther out every surface is rough
Progress = Callable[[str], None]


@dataclass(frozen=True)
class LabBench:
    """A model in eval mode and pictures, with all that several measures share."""

    model: RoadModel
    images_NCHW: Tensor
    labels_N: Tensor
    class_names: Sequence[str]
    seed: int
    sigma: float = SIGMA
    delta_v: float = DELTA_V

    def generator(self, stream: int) -> torch.Generator:
        return torch.Generator().manual_seed((1000 * self.seed + stream) % 2**63)

    def batches(self) -> list[tuple[Tensor, Tensor]]:
        return list(zip(torch.split(self.images_NCHW, BATCH), torch.split(self.labels_N, BATCH)))

    @cached_property
    def features_ND(self) -> Tensor:
        return self._ask(self.images_NCHW)[0]

    @cached_property
    def noisy(self) -> tuple[Tensor, Tensor]:
        """Features and correctness of every noisy run."""
        generator = self.generator(1)
        runs = [self._ask(self._noised(generator)) for _ in range(NOISY_RUNS)]
        right_RN = torch.stack([logits_NC.argmax(dim=1) == self.labels_N for _, logits_NC in runs])
        return torch.stack([features_ND for features_ND, _ in runs]), right_RN

    def mean_loss(self) -> float:
        return float(cross_entropy(self._ask(self.images_NCHW)[1], self.labels_N))

    def _noised(self, generator: torch.Generator) -> Tensor:
        noise_NCHW = torch.randn(self.images_NCHW.shape, generator=generator)
        return (self.images_NCHW + self.sigma * noise_NCHW).clamp(0, 1)

    @torch.no_grad()
    def _ask(self, images_NCHW: Tensor) -> tuple[Tensor, Tensor]:
        outputs = [self.model(batch_BCHW) for batch_BCHW in torch.split(images_NCHW, BATCH)]
        return torch.cat([o.features_BD for o in outputs]), torch.cat([o.logits_BC for o in outputs])


def run_lab(
    model: RoadModel,
    images_NHWC: Images,
    labels_N: Labels,
    class_names: Sequence[str],
    seed: int = 0,
    delta_v: float = DELTA_V,
    progress: Progress = lambda measure: None,
) -> LabResult:
    """All measures; the model comes back as it was, in eval mode."""
    images_NCHW = pixels(images_NHWC)
    wanted = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    model.eval().requires_grad_(False)
    bench = LabBench(model, images_NCHW, torch.from_numpy(labels_N), class_names, seed, delta_v=delta_v)
    try:
        return _measure(bench, progress)
    finally:
        for parameter, gradient in wanted:
            parameter.requires_grad_(gradient)


def pixels(images_NHWC: Images) -> Tensor:
    """NCHW in [0, 1]."""
    return torch.from_numpy(np.ascontiguousarray(images_NHWC.transpose(0, 3, 1, 2))).float() / 255


def _measure(bench: LabBench, progress: Progress) -> LabResult:
    progress("attacks")
    attacks = tuple(attack_score(bench, budget) for budget in PAPER_BUDGETS)
    progress("curvature")
    curvature_N = curvatures(bench)
    progress("thickness, flatness, geometry")
    return LabResult(
        pictures=len(bench.labels_N),
        attacks=attacks,
        curvature=curvature_result(curvature_N, bench.noisy[1], bench.sigma),
        surface=_surface(bench, curvature_N),
        thickness=_thickness(bench),
        flatness=tuple(flatness(bench.model, bench.mean_loss, bench.generator(2))),
        geometry=_geometry(bench),
    )


def attack_score(bench: LabBench, budget: Budget) -> AttackScore:
    """Right is what was right before, too: of three classes a wrong one may lose more than the right one."""
    scaled = budget.scaled_to(bench.images_NCHW[0].numel())
    logits_of = frozen_logits(bench.model)
    right = 0
    for images_BCHW, labels_B in bench.batches():
        attacked_BCHW = pgd(logits_of, images_BCHW, labels_B, scaled)
        with torch.no_grad():
            said_2B = torch.stack([logits_of(x).argmax(dim=1) for x in (images_BCHW, attacked_BCHW)])
        right += int((said_2B == labels_B).all(dim=0).sum())
    share = right / len(bench.labels_N)
    return AttackScore(name=budget.name, eps=scaled.eps, steps=budget.steps, accuracy=share)


def curvatures(bench: LabBench) -> Tensor:
    logits_of, generator = frozen_logits(bench.model), bench.generator(3)
    parts = [nn_curvature.input_curvature(logits_of, x, y, generator) for x, y in bench.batches()]
    return torch.cat(parts).double()


def curvature_result(curvature_N: Tensor, right_RN: Tensor, sigma: float) -> CurvatureResult:
    portions = torch.tensor(PORTIONS, dtype=torch.float64)
    retained = nn_curvature.retained_accuracy(curvature_N, right_RN, portions)
    lowest = nn_curvature.lowest_share(curvature_N)
    five = torch.quantile(lowest, torch.tensor([0, 0.25, 0.5, 0.75, 1], dtype=lowest.dtype)).tolist()
    return CurvatureResult(
        median=float(curvature_N.quantile(0.5)),
        lowest=(five[0], five[1], five[2], five[3], five[4]),
        mean_of_lowest=float(lowest.mean()),
        sigma=sigma,
        noisy_runs=len(right_RN),
        retained=tuple(zip(PORTIONS, retained.tolist())),
        groups=tuple(
            CountGroup(times_right=count, pictures=pictures, curvature=mean)
            for count, pictures, mean in nn_curvature.curvature_by_count(curvature_N, right_RN)
        ),
        correlation=nn_curvature.count_correlation(curvature_N, right_RN),
    )


def _surface(bench: LabBench, curvature_N: Tensor) -> SurfaceResult:
    """Of the picture of median curvature: neither the nicest nor the worst."""
    position = int(curvature_N.argsort()[len(curvature_N) // 2])
    image_CHW, label = bench.images_NCHW[position], int(bench.labels_N[position])
    reach = SURFACE_REACH * bench.sigma * image_CHW.numel() ** 0.5
    surface = loss_surface(
        frozen_logits(bench.model), image_CHW, label, bench.generator(4), reach, SURFACE_POINTS
    )
    return SurfaceResult(
        picture=position,
        label=bench.class_names[label],
        offsets=tuple(round(value, 4) for value in surface.offsets_S.tolist()),
        loss=tuple(tuple(round(value, 5) for value in row) for row in surface.loss_SS.tolist()),
    )


def _thickness(bench: LabBench) -> ThicknessResult | None:
    found = [
        value
        for images_BCHW, labels_B in bench.batches()[: MOST_FOR_THICKNESS // BATCH]
        for value in boundary_thickness(frozen_logits(bench.model), images_BCHW, labels_B)
    ]
    return ThicknessResult(mean=sum(found) / len(found), pictures=len(found)) if found else None


def _geometry(bench: LabBench) -> GeometryResult:
    features_ND, labels_N = bench.features_ND, bench.labels_N
    classifier, classes = bench.model.classifier, len(bench.class_names)
    centroids_CD = nn_geometry.centroids_of(features_ND, labels_N, classes)
    margin_N, margin_C = nn_geometry.class_margins(features_ND, labels_N, classifier.weight, classifier.bias)
    eta_N = nn_geometry.stability(features_ND, bench.noisy[0], 2 * bench.delta_v)
    centroid_C = nn_geometry.centroid_margins(centroids_CD, classifier.weight, classifier.bias)
    present_C = torch.bincount(labels_N, minlength=classes) > 0
    centroid_C = torch.where(present_C, centroid_C, torch.nan)
    return GeometryResult(
        dispersion=_by_class(bench, nn_geometry.class_dispersion(features_ND, labels_N, classes)),
        margin=_by_class(bench, margin_C),
        median_margin=float(margin_N.quantile(0.5)),
        centroid_margin=_by_class(bench, centroid_C),
        delta_v=bench.delta_v,
        within=nn_geometry.share_within(features_ND, labels_N, centroids_CD, bench.delta_v),
        stability=float(eta_N.mean()),
        sigma=bench.sigma,
    )


def _by_class(bench: LabBench, values_C: Tensor) -> dict[str, float | None]:
    """None where a class has no pictures."""
    return {n: v if v == v else None for n, v in zip(bench.class_names, values_C.tolist())}
