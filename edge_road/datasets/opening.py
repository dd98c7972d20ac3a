"""From a recipe's [data] to a data set."""

from __future__ import annotations

from pathlib import Path

from edge_road.datasets.folder import open_folder
from edge_road.datasets.index import RoadDataset
from edge_road.datasets.rendered import open_rendered
from edge_road.datasets.rscd import open_rscd
from edge_road.recipe_data import DataSettings, FolderData, SyntheticData


def open_dataset(settings: DataSettings, base: Path | None = None) -> RoadDataset:
    """A relative path counts from `base`, else from the current folder."""
    if isinstance(settings, SyntheticData):
        return open_rendered(settings)
    path = (base or Path.cwd()) / settings.path.expanduser()
    return open_folder(settings, path) if isinstance(settings, FolderData) else open_rscd(settings, path)
