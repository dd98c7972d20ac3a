"""Measures runs one after the other and puts them together by row: figures by name, and the tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edge_road.training.pool import figures
from edge_road.training.pool.curvature import CurvatureSample, curvature_row, curvature_sample
from edge_road.training.pool.layers import LayerSample, layer_sample, layers_row
from edge_road.training.pool.members import Member, members_of
from edge_road.training.pool.result import Pooled
from edge_road.training.pool.strangers import StrangerSample, stranger_sample, strangers_row
from edge_road.training.pool.wanted import Wanted


@dataclass(eq=False)
class Samples:
    """By row, in the order in which rows came."""

    strangers: dict[str, list[StrangerSample]] = field(default_factory=dict)
    curvature: dict[str, list[CurvatureSample]] = field(default_factory=dict)
    layers: dict[str, LayerSample] = field(default_factory=dict)
    classes: dict[str, Sequence[str]] = field(default_factory=dict)

    def add(self, member: Member, wanted: Wanted, kept: Path, show: Callable[[str], None]) -> None:
        row, title = member.row, member.artefact.subject.name
        self.classes[row] = member.artefact.predictor.classes.names
        if "strangers" in wanted.measures:
            show(f"{title}: strangers")
            sample = stranger_sample(member, wanted.seed, lambda step: show(f"{title}: {step}"))
            self.strangers.setdefault(row, []).append(sample)
        if member.run is None:  # an exported file has neither gradients nor inner layers
            return
        if "curvature" in wanted.measures:
            show(f"{title}: curvature")
            found = curvature_sample(member, wanted.images, wanted.seed, kept)
            self.curvature.setdefault(row, []).append(found)
        if "layers" in wanted.measures and row not in self.layers:
            show(f"{title}: layers")
            self.layers[row] = layer_sample(member, wanted.seed)


def take_samples(
    places: Sequence[Path],
    wanted: Wanted,
    kept: Path,
    show: Callable[[str], None] = lambda line: None,
    rows: Mapping[Path, str] | None = None,
) -> Samples:
    """`kept` is the folder of what need not be measured twice."""
    samples = Samples()
    for member in members_of(places, rows):
        samples.add(member, wanted, kept, show)
    return samples


def put_together(samples: Samples, wanted: Wanted, reference: str) -> Pooled:
    base = samples.curvature.get(reference, [])
    return Pooled(
        seed=wanted.seed,
        reference=reference,
        limits=wanted.limits,
        strangers=tuple(strangers_row(n, found, wanted.limits) for n, found in samples.strangers.items()),
        curvature=tuple(curvature_row(n, found, base) for n, found in samples.curvature.items()),
        layers=tuple(layers_row(name, found) for name, found in samples.layers.items()),
    )


def draw_figures(samples: Samples, pooled: Pooled) -> dict[str, bytes]:
    """File name -> PNG."""
    drawn = {}
    if pooled.curvature:
        drawn["curvature.png"] = figures.curvature_boxes(pooled.curvature)
        drawn["retained.png"] = figures.retained_curves(pooled.curvature)
    for row, sample in samples.layers.items():
        name = re.sub(r"[^a-z0-9_.=-]+", "-", row.lower())
        drawn[f"layers-{name}.png"] = figures.layer_maps(row, sample, samples.classes[row])
    return drawn
