"""A data set in few large files: tar shards that WebDataset reads, with an index for picture by picture.

shards.json names classes and shards; beside `train-000000.tar` lies `train-000000.json` with the place
and checksum of every picture. Keys, labels, splits, order and bytes are those of the packed data set.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from pydantic import Field, ValidationError, model_validator

from edge_road.conditions import ClassList
from edge_road.config import StrictModel
from edge_road.datasets.decode import decode_image
from edge_road.datasets.index import SPLITS, RoadDataset, Split
from edge_road.datasets.listing import check_folder
from edge_road.datasets.relabel import relabelled
from edge_road.errors import DataError
from edge_road.frames import Image
from edge_road.recipe_data import ShardData
from edge_road.settings_errors import first_fault

SHARDS_FILE = "shards.json"
_FILE_NAME = r"^(train|validation|test)-\d{6}\.tar$"


class Shard(StrictModel):
    file: str = Field(pattern=_FILE_NAME)
    split: Literal["train", "validation", "test"]
    samples: int = Field(ge=1)
    file_bytes: int = Field(ge=1)

    @property
    def index_file(self) -> str:
        return self.file.removesuffix(".tar") + ".json"


class ShardSet(StrictModel):
    schema_version: Literal[1] = 1
    classes: tuple[str, ...]
    origin: str = ""
    digest: str
    """of the packed data set"""
    shards: tuple[Shard, ...]


class ShardIndex(StrictModel):
    """One entry a sample, in the order of the tar file."""

    keys: list[str]
    labels: list[int]
    positions: list[int]
    """in the packed split"""
    offsets: list[int]
    sizes: list[int]
    crc32: list[int]

    @model_validator(mode="after")
    def _columns_are_alike(self) -> ShardIndex:
        columns = (self.labels, self.positions, self.offsets, self.sizes, self.crc32)
        if any(len(column) != len(self.keys) for column in columns):
            raise ValueError("columns of different length")
        if min(min(column, default=0) for column in columns) < 0:
            raise ValueError("a negative number")
        return self


class Place(NamedTuple):
    """Where a picture's bytes lie."""

    path: Path
    offset: int
    size: int
    crc32: int


def open_shards(settings: ShardData, path: Path) -> RoadDataset:
    check_folder(path, "the shards' folder")
    shards = _load(ShardSet, path / SHARDS_FILE)
    indexes = [_open_index(path, shard, len(shards.classes)) for shard in shards.shards]
    splits = {name: _split(name, shards, indexes) for name in SPLITS}
    places = _places(path, shards, indexes)
    content = _content_from(places)
    dataset = RoadDataset(ClassList(shards.classes), splits, _reader(content), shards.origin, content)
    if dataset.digest != shards.digest:
        raise _unfit(path / SHARDS_FILE, "its shards are not those that were packed together")
    return relabelled(dataset, settings.labels)


def _open_index(folder: Path, shard: Shard, classes: int) -> ShardIndex:
    path = folder / shard.file
    try:
        size = path.stat().st_size
    except OSError as error:
        raise _unfit(path, error.strerror) from None
    if size != shard.file_bytes:
        raise DataError(
            "a shard is cut" if size < shard.file_bytes else "a shard has grown",
            where=path,
            got=f"{size} bytes",
            expected=f"{shard.file_bytes} bytes",
            fix="copy it again from where it was packed",
        )
    index = _load(ShardIndex, folder / shard.index_file)
    ends = [offset + length for offset, length in zip(index.offsets, index.sizes)]
    if len(index.keys) != shard.samples or max(ends) > size or max(index.labels) >= classes:
        raise _unfit(folder / shard.index_file, "it does not fit its shard")
    return index


def _split(name: str, shards: ShardSet, indexes: list[ShardIndex]) -> Split:
    parts = [index for shard, index in zip(shards.shards, indexes) if shard.split == name]
    keys = [key for part in parts for key in part.keys]
    labels_N = np.array([label for part in parts for label in part.labels], dtype=np.int64)
    order = np.argsort(np.array([i for part in parts for i in part.positions], dtype=np.int64))
    return Split(tuple(keys), labels_N).take(order)


def _places(folder: Path, shards: ShardSet, indexes: list[ShardIndex]) -> dict[str, Place]:
    return {
        key: Place(folder / shard.file, offset, size, crc)
        for shard, index in zip(shards.shards, indexes)
        for key, offset, size, crc in zip(index.keys, index.offsets, index.sizes, index.crc32)
    }


def _content_from(places: dict[str, Place]) -> Callable[[str], bytes]:
    def content(key: str) -> bytes:
        place = places[key]
        found = _read_at(place)
        if zlib.crc32(found) != place.crc32:
            raise DataError(
                "the picture's bytes have changed", where=f"{place.path} at {place.offset}", got=key
            )
        return found

    return content


def _read_at(place: Place) -> bytes:
    """Opened anew each time: threads and forked workers share no position."""
    try:
        descriptor = os.open(place.path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise DataError("the shard cannot be read", where=place.path, got=error.strerror) from None
    try:
        return os.pread(descriptor, place.size, place.offset)
    finally:
        os.close(descriptor)


def _reader(content: Callable[[str], bytes]) -> Callable[[str], Image]:
    return lambda key: decode_image(content(key), key)


Document = TypeVar("Document", bound=StrictModel)


def _load(kind: type[Document], path: Path) -> Document:
    try:
        return kind.model_validate_json(path.read_bytes())
    except OSError as error:
        raise _unfit(path, error.strerror) from None
    except ValidationError as error:
        raise _unfit(path, first_fault(error)) from None


def _unfit(path: Path, got: str | None) -> DataError:
    return DataError(
        "the shards cannot be used", where=path, got=got, fix="copy them again, or: edge-road data pack"
    )
