"""`pool.json`: what several runs say together.

It holds no time and no path, so that equal measurements give equal bytes. Fields: docs/evaluation.md.
"""

from __future__ import annotations

import json
from typing import Literal

from pydantic import Field

from edge_road import __version__
from edge_road.config import StrictModel
from edge_road.evaluation.lab_result import CurvatureResult


class PooledSeparation(StrictModel):
    """Of one rule on one kind of strange picture, or on the mean of all kinds: means over the runs."""

    auroc: float
    deviation: float | None
    """of the AUROC over the runs; none of a single one"""
    caught: float
    """share refused where 95 % of the roads pass"""


class StrangersRow(StrictModel):
    name: str
    runs: int
    roads: int
    """test pictures in all"""
    kinds: dict[str, dict[str, PooledSeparation]]
    means: dict[str, PooledSeparation]
    confidence: float | None
    radii: float | None
    """refusing below this confidence or beyond so many radii lets 95 % of the familiar roads pass (means
    over runs); none where more than 5 % of the outputs are not finite"""
    distance_limit: float | None
    """95 % of the familiar roads lie within so many radii: the limit of distance alone"""
    limits_from: str
    """what the familiar roads are; not the test pictures, unless there are no others"""
    at_limits: dict[str, float] | None
    """what `refused` is at `confidence` and `radii`"""
    at_distance_limit: dict[str, float] | None
    """... and beyond `distance_limit` alone"""
    refused: dict[str, float]
    """at the limits of a vehicle: the share of each kind, and of `roads`, that gets no answer"""

    @property
    def best(self) -> str:
        return max(self.means, key=lambda rule: self.means[rule].auroc)


class CurvatureRow(StrictModel):
    name: str
    runs: int
    pictures: int
    medians: tuple[float, ...]
    """of each run"""
    pooled: CurvatureResult
    """over all pictures of all runs"""
    flatter: float | None
    """share of the pictures on which the loss is flatter than the reference's; none for itself"""
    flatter_low: float | None
    flatter_high: float | None
    """its 95 % Wilson interval"""


class LayersRow(StrictModel):
    """Of the first run: how well the classes lie apart in each layer, by silhouette in [-1, 1]."""

    name: str
    clean: dict[str, float | None]
    noisy: dict[str, float | None]
    """none where a single class was drawn"""


class Pooled(StrictModel):
    schema_name: Literal["edge_road.pool/1"] = Field(default="edge_road.pool/1", alias="schema")
    version: str = __version__
    seed: int
    reference: str
    limits: tuple[float, float]
    """confidence and radii of the vehicle that `refused` is counted at"""
    strangers: tuple[StrangersRow, ...] = ()
    curvature: tuple[CurvatureRow, ...] = ()
    layers: tuple[LayersRow, ...] = ()

    def to_json(self) -> str:
        return json.dumps(self.model_dump(mode="json", by_alias=True), indent=2, allow_nan=False) + "\n"
