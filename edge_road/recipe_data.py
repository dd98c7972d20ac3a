"""The part of a recipe that says where pictures and labels come from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Union

from pydantic import Field, model_validator

from edge_road.config import Positive, StrictModel


class SyntheticData(StrictModel):
    """Rendered road scenes, the embedded default."""

    kind: Literal["synthetic"] = "synthetic"
    labels: Literal["road", "rscd"] = "road"
    """road: dash-camera views as dry, wet, icy; rscd: patches with the 27 RSCD labels"""
    train: int = Field(default=1200, ge=3)
    validation: int = Field(default=300, ge=3)
    test: int = Field(default=300, ge=3)
    height: int = Field(default=192, ge=32, le=1080)
    width: int = Field(default=256, ge=32, le=1920)
    seed: int = 0


class FolderData(StrictModel):
    """One folder per class (`dry/ wet/ icy/`), split by a seeded, stratified draw."""

    kind: Literal["folder"]
    path: Path
    classes: tuple[str, ...] = ("dry", "wet", "icy")
    validation: Positive = 0.2
    test: Positive = 0.2
    seed: int = 0
    folds: int = Field(default=0, ge=0, le=100)
    """0: one split; else cross-validation: that many test parts, which replace the share `test`"""
    fold: int = Field(default=0, ge=0)
    """which of the parts is the test set; each fold draws its own validation pictures"""

    @model_validator(mode="after")
    def _folds_count_from_two(self) -> FolderData:
        if self.folds == 1:
            raise ValueError("folds must be 0 (one split), or 2 or more")
        if self.fold >= max(1, self.folds):
            raise ValueError(f"fold must be below folds: 0 to {max(1, self.folds) - 1}")
        return self

    @model_validator(mode="after")
    def _leaves_training_images(self) -> FolderData:
        if self.validation + self.test_share >= 0.9:
            raise ValueError("validation and test together must leave 10 % or more for training")
        return self

    @property
    def test_share(self) -> float:
        return 1 / self.folds if self.folds else self.test


class RscdData(StrictModel):
    """RSCD as published: `train/<class>/`, `vali_20k/`, `test_50k/`, labels from file names."""

    kind: Literal["rscd"]
    path: Path


DataSettings = Annotated[Union[SyntheticData, FolderData, RscdData], Field(discriminator="kind")]
