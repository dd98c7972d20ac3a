"""A split in memory: every picture decoded or rendered, cut and resized to the model's size."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from edge_road.datasets.index import Labels, RoadDataset
from edge_road.errors import DataError
from edge_road.frames import Images
from edge_road.preprocess import Preprocessing

LARGEST_BAD_SHARE = 0.01
_log = logging.getLogger(__name__)


def load_prepared(
    dataset: RoadDataset, split_name: str, preprocessing: Preprocessing, workers: int = 2
) -> tuple[Images, Labels]:
    """In the order of the split; unreadable pictures are left out and listed, above 1 % they stop it."""
    split = dataset.splits[split_name]
    images_NHWC = np.empty((len(split), preprocessing.height, preprocessing.width, 3), dtype=np.uint8)

    def fill(position: int) -> str | None:
        try:
            images_NHWC[position] = preprocessing.prepare(dataset.read(split.keys[position]))
        except DataError as error:
            return f"{split.keys[position]}: {error.details.get('got', error.what)}"
        return None

    with ThreadPoolExecutor(max(1, workers)) as pool:
        reasons = list(pool.map(fill, range(len(split))))
    good = np.array([reason is None for reason in reasons], dtype=bool)
    if good.all():
        return images_NHWC, split.labels_N
    _report_bad(split_name, [reason for reason in reasons if reason is not None], len(split))
    return images_NHWC[good], split.labels_N[good]


def _report_bad(split_name: str, bad: list[str], total: int) -> None:
    listed = "\n    ".join(bad[:100] + (["..."] if len(bad) > 100 else []))
    what = f"{len(bad)} of {total} pictures of the {split_name} split cannot be used"
    if len(bad) > LARGEST_BAD_SHARE * total:
        raise DataError(
            what, got=listed, expected=f"at most {LARGEST_BAD_SHARE:.0%}", fix="repair or remove them"
        )
    _log.warning("%s and are left out:\n    %s", what, listed)
