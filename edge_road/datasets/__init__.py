"""Road pictures with labels and splits: folders, RSCD, rendered scenes."""

from edge_road.datasets.index import RoadDataset, Split
from edge_road.datasets.opening import open_dataset
from edge_road.datasets.prepared import load_prepared

__all__ = ["RoadDataset", "Split", "load_prepared", "open_dataset"]
