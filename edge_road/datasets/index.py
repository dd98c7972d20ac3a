"""What every data set looks like from outside: classes, three splits of keys and labels, pictures."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from edge_road.conditions import ClassList
from edge_road.frames import Image

SPLITS = ("train", "validation", "test")
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Split:
    """Keys name pictures (a path below the data set's folder, or a scene); labels are class indices."""

    keys: tuple[str, ...]
    labels_N: Labels

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, positions: npt.NDArray[np.int64]) -> Split:
        return Split(tuple(self.keys[i] for i in positions), self.labels_N[positions])


@dataclass(frozen=True)
class Fault:
    """An entry of a data set that cannot be a sample."""

    key: str
    reason: str
    fix: str | None = None


@dataclass(frozen=True, eq=False)
class RoadDataset:
    classes: ClassList
    splits: Mapping[str, Split]
    read: Callable[[str], Image]
    """key -> decoded RGB picture at its own size; raises DataError for a damaged one"""
    origin: str = ""
    """what the keys alone do not tell of the pictures, e.g. the seed of rendered ones"""
    content: Callable[[str], bytes] | None = None
    """key -> the bytes of the picture's file, where pictures are files"""

    @cached_property
    def digest(self) -> str:
        """Changes when a picture is added, removed, renamed, relabelled or moved to another split."""
        state = hashlib.sha256("|".join((*self.classes.names, self.origin)).encode())
        for name in SPLITS:
            split = self.splits[name]
            for key, label in sorted(zip(split.keys, split.labels_N.tolist())):
                state.update(f"\n{name}\t{key}\t{label}".encode())
        return state.hexdigest()
