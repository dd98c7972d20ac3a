"""The part of a recipe that says where pictures and labels come from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Union

from pydantic import Field, model_validator

from edge_road.config import GrownModel, Positive

Relabelling = Literal["as_is", "friction6", "state3"]


class TrainShare(GrownModel):
    """What every kind of data knows."""

    NEW_KEYS: ClassVar[tuple[str, ...]] = ("train_share",)

    train_share: float = Field(default=1.0, gt=0.0, le=1.0)
    """of each class, so many of the training pictures, drawn by the seed; validation and test stay whole"""


class SyntheticData(TrainShare):
    """Rendered road scenes, the embedded default."""

    kind: Literal["synthetic"] = "synthetic"
    labels: Literal["road", "rscd"] = "road"
    """road: dash-camera views as dry, wet, icy; rscd: patches with the 27 RSCD labels"""
    train: int = Field(default=1200, ge=3)
    """pictures to train on"""
    validation: int = Field(default=300, ge=3)
    """pictures to choose by"""
    test: int = Field(default=300, ge=3)
    """pictures of the final score"""
    height: int = Field(default=192, ge=32, le=1080)
    """of the rendered pictures, in pixels"""
    width: int = Field(default=256, ge=32, le=1920)
    """likewise"""
    seed: int = 0
    """of the scenes"""


class DrawnSplits(TrainShare):
    """Train, validation and test by a seeded draw in which every class keeps its share."""

    validation: Positive = 0.2
    """share of all pictures"""
    test: Positive = 0.2
    """share of all pictures"""
    seed: int = 0
    """of the draw"""
    folds: int = Field(default=0, ge=0, le=100)
    """0: one split; else cross-validation: that many test parts, which replace the share `test`"""
    fold: int = Field(default=0, ge=0)
    """which of the parts is the test set; each fold draws its own validation pictures"""

    @model_validator(mode="after")
    def _folds_count_from_two(self) -> DrawnSplits:
        if self.folds == 1:
            raise ValueError("folds must be 0 (one split), or 2 or more")
        if self.fold >= max(1, self.folds):
            raise ValueError(f"fold must be below folds: 0 to {max(1, self.folds) - 1}")
        return self

    @model_validator(mode="after")
    def _leaves_training_images(self) -> DrawnSplits:
        if self.validation + self.test_share >= 0.9:
            raise ValueError("validation and test together must leave 10 % or more for training")
        return self

    @property
    def test_share(self) -> float:
        return 1 / self.folds if self.folds else self.test


class FolderData(DrawnSplits):
    """One folder per class (`dry/ wet/ icy/`), split by a seeded, stratified draw."""

    kind: Literal["folder"]
    path: Path
    """the folder; a relative one counts from the recipe's folder"""
    classes: tuple[str, ...] = ("dry", "wet", "icy")
    """names of the folders, in the order of the model's outputs"""
    labels: Relabelling = "as_is"
    """friction6, state3: coarser classes made of the folders' ones"""


class CsvData(DrawnSplits):
    """A table `file,label[,split][,group]`; without `split` a draw, in which no group is torn apart."""

    kind: Literal["csv"]
    path: Path
    """the table; a relative path counts from the recipe's folder"""
    root: Path = Path()
    """where the files lie, from the table's own folder"""
    classes: tuple[str, ...] = ("dry", "wet", "icy")
    """labels of the table, in the order of the model's outputs"""
    labels: Relabelling = "as_is"
    """friction6, state3: coarser classes made of the table's ones"""


class RscdData(TrainShare):
    """RSCD as published: `train/<class>/`, `vali_20k/`, `test_50k/`, labels from file names."""

    kind: Literal["rscd"]
    path: Path
    """the folder; a relative one counts from the recipe's folder"""
    split: Literal["official", "per_day"] = "official"
    """official: at random, so that one drive lies on both sides; per_day: no day in two splits"""
    validation: Positive = 0.1
    """share of the per-day split"""
    test: Positive = 0.1
    """share of the per-day split"""
    seed: int = 0
    """of the per-day split"""
    labels: Literal["rscd27", "friction6", "state3"] = "rscd27"
    """the 27 classes as published, or six frictions or three states made of them"""

    @model_validator(mode="after")
    def _leaves_training_images(self) -> RscdData:
        if self.validation + self.test >= 0.9:
            raise ValueError("validation and test together must leave 10 % or more for training")
        return self


class ShardData(TrainShare):
    """A folder that `edge-road data pack` wrote: any of the other kinds, in few large files."""

    NEW_KEYS = ("train_share", "labels")

    kind: Literal["shards"]
    path: Path
    """the folder; a relative one counts from the recipe's folder"""
    labels: Relabelling = "as_is"
    """friction6, state3: coarser classes made of the packed ones"""


class Cifar10Data(TrainShare):
    """The folder `cifar-10-batches-bin` of CIFAR-10's binary version."""

    kind: Literal["cifar10"]
    path: Path
    """the folder; a relative one counts from the recipe's folder"""
    validation: float = Field(default=0.1, gt=0.0, le=0.5)
    """share of the training pictures; the test pictures are the official ones"""
    seed: int = 0
    """of the validation draw"""


class SvhnData(TrainShare):
    """A folder with SVHN's cropped digits: train_32x32.mat and test_32x32.mat."""

    kind: Literal["svhn"]
    path: Path
    """the folder; a relative one counts from the recipe's folder"""
    validation: float = Field(default=0.1, gt=0.0, le=0.5)
    """share of the training pictures; the test pictures are the official ones"""
    seed: int = 0
    """of the validation draw"""


DataSettings = Annotated[
    Union[SyntheticData, FolderData, CsvData, RscdData, ShardData, Cifar10Data, SvhnData],
    Field(discriminator="kind"),
]
