"""From a recipe's [data] to a data set."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from edge_road.datasets.csv_index import open_csv
from edge_road.datasets.folder import open_folder
from edge_road.datasets.index import RoadDataset
from edge_road.datasets.rendered import open_rendered
from edge_road.datasets.rscd import open_rscd
from edge_road.recipe_data import DataSettings, SyntheticData

OPENERS: dict[str, Callable[[Any, Path], RoadDataset]] = {
    "folder": open_folder,
    "csv": open_csv,
    "rscd": open_rscd,
}


def open_dataset(settings: DataSettings, base: Path | None = None) -> RoadDataset:
    """A relative path counts from `base`, else from the current folder."""
    if isinstance(settings, SyntheticData):
        return open_rendered(settings)
    return OPENERS[settings.kind](settings, (base or Path.cwd()) / settings.path.expanduser())
