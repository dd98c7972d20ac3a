"""A split in memory: every picture decoded or rendered, cut and resized to the model's size."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from edge_road.datasets.index import Labels, RoadDataset, Split
from edge_road.errors import DataError
from edge_road.frames import Images
from edge_road.preprocess import Preprocessing

LARGEST_BAD_SHARE = 0.01
LARGEST_MEMORY_SHARE = 0.8
_MOST_LISTED = 100
_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Prepared:
    images_NHWC: Images
    labels_N: Labels
    keys: tuple[str, ...]


def load_prepared(
    dataset: RoadDataset, split_name: str, preprocessing: Preprocessing, workers: int = 2
) -> tuple[Images, Labels]:
    """In the order of the split; unreadable pictures are left out and listed, above 1 % they stop it."""
    prepared = prepare_split(dataset, dataset.splits[split_name], preprocessing, workers)
    return prepared.images_NHWC, prepared.labels_N


def prepare_split(
    dataset: RoadDataset, split: Split, preprocessing: Preprocessing, workers: int = 2
) -> Prepared:
    shape = (len(split), preprocessing.height, preprocessing.width, 3)
    _check_memory(shape)
    images_NHWC = np.empty(shape, dtype=np.uint8)

    def fill(position: int) -> None:
        images_NHWC[position] = preprocessing.prepare(dataset.read(split.keys[position]))

    good = _usable(dataset, split, fill, workers)
    if len(good) == len(split):
        return Prepared(images_NHWC, split.labels_N, split.keys)
    kept = split.take(good)
    return Prepared(images_NHWC[good], kept.labels_N, kept.keys)


def check_readable(dataset: RoadDataset, split: Split, workers: int = 2) -> None:
    """Decodes each picture and keeps none: what is damaged is told before hours are spent."""
    _usable(dataset, split, lambda position: dataset.read(split.keys[position]), workers)


def _usable(
    dataset: RoadDataset, split: Split, use: Callable[[int], object], workers: int
) -> npt.NDArray[np.int64]:
    """Positions of the pictures that can be used; tells of the others."""

    def reason(position: int) -> str | None:
        try:
            use(position)
        except DataError as error:
            key = split.keys[position]
            return f"{error.details.get('where', key)}: {error.details.get('got', error.what)}"
        return None

    with ThreadPoolExecutor(max(1, workers)) as pool:
        reasons = list(pool.map(reason, range(len(split))))
    if any(reasons):
        bad = [key for key, reason in zip(split.keys, reasons) if reason]
        _report_bad([reason for reason in reasons if reason], len(split), _splits_of(dataset, bad))
    return np.flatnonzero([reason is None for reason in reasons])


def _splits_of(dataset: RoadDataset, keys: Sequence[str]) -> str:
    found = [name for name, split in dataset.splits.items() if not set(keys).isdisjoint(split.keys)]
    return " and ".join(found)


def _report_bad(bad: list[str], total: int, split_names: str) -> None:
    listed = bad[:_MOST_LISTED] + (["..."] if len(bad) > _MOST_LISTED else [])
    what = f"{len(bad)} of {total} pictures cannot be used"
    if len(bad) > LARGEST_BAD_SHARE * total:
        raise DataError(
            what,
            where=f"the {split_names} split",
            got=f"\n{'':12}".join(listed),
            expected=f"at most {LARGEST_BAD_SHARE:.0%}",
            fix="put readable pictures in their place under the same names (without them the splits of a "
            "run would change); `edge-road data check` lists them all",
        )
    _log.warning("%s and are left out:\n    %s", what, "\n    ".join(listed))


def _check_memory(shape: tuple[int, ...]) -> None:
    """The kernel promises more than it has and then kills; so ask first."""
    needed, free = int(np.prod(shape, dtype=np.int64)), _available_bytes()
    if free is not None and needed > LARGEST_MEMORY_SHARE * free:
        raise DataError(
            "the pictures do not fit into memory",
            got=f"{shape[0]} pictures of {shape[1]} x {shape[2]}: {needed / 1e9:.1f} GB",
            expected=f"less than {LARGEST_MEMORY_SHARE * free / 1e9:.1f} GB",
            fix="use fewer or smaller pictures",
        )


def _available_bytes() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return None
