"""From a recipe's [data] to a data set."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from edge_road.datasets.cifar import open_cifar10
from edge_road.datasets.csv_index import open_csv
from edge_road.datasets.folder import open_folder
from edge_road.datasets.index import RoadDataset
from edge_road.datasets.rendered import open_rendered
from edge_road.datasets.rscd import open_rscd
from edge_road.datasets.shards import open_shards
from edge_road.datasets.svhn import open_svhn
from edge_road.datasets.train_share import with_train_share
from edge_road.recipe_data import DataSettings, SyntheticData

OPENERS: dict[str, Callable[[Any, Path], RoadDataset]] = {
    "folder": open_folder,
    "csv": open_csv,
    "rscd": open_rscd,
    "shards": open_shards,
    "cifar10": open_cifar10,
    "svhn": open_svhn,
}


def open_dataset(settings: DataSettings, base: Path | None = None) -> RoadDataset:
    """A relative path counts from `base`, else from the current folder."""
    return with_train_share(_open(settings, base), settings.train_share, getattr(settings, "seed", 0))


def _open(settings: DataSettings, base: Path | None) -> RoadDataset:
    if isinstance(settings, SyntheticData):
        return open_rendered(settings)
    return OPENERS[settings.kind](settings, (base or Path.cwd()) / settings.path.expanduser())
