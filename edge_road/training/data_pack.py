"""Writes a data set as WebDataset shards: few large files instead of a million small ones."""

from __future__ import annotations

import os
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np

from edge_road.datasets.balance import Positions
from edge_road.datasets.index import SPLITS, RoadDataset, Split
from edge_road.datasets.shards import SHARDS_FILE, Shard, ShardIndex, ShardSet
from edge_road.errors import DataError
from edge_road.files import new_folder, write_atomically
from edge_road.frames import Image

DEFAULT_SHARD_BYTES = 256 * 10**6
Progress = Callable[[int], object]


def pack(
    dataset: RoadDataset,
    path: Path,
    *,
    shard_bytes: int = DEFAULT_SHARD_BYTES,
    seed: int = 0,
    progress: Progress = lambda done: None,
) -> ShardSet:
    """The files' own bytes (PNG for what has no file), shuffled, so that a reader may go straight through."""
    if path.exists():
        raise DataError(
            "will not write over what is there", where=path, fix="name a folder that does not exist"
        )
    try:
        with new_folder(path) as folder:
            shards = [
                shard
                for name in SPLITS
                for shard in _pack_split(dataset, name, folder, shard_bytes, seed, progress)
            ]
            packed = ShardSet(
                classes=dataset.classes.names,
                origin=dataset.origin,
                digest=dataset.digest,
                shards=tuple(shards),
            )
            write_atomically(folder / SHARDS_FILE, packed.model_dump_json(indent=1).encode())
    except OSError as error:
        raise DataError("the shards cannot be written", where=path, got=error.strerror) from None
    return packed


def _pack_split(
    dataset: RoadDataset, name: str, folder: Path, shard_bytes: int, seed: int, progress: Progress
) -> Iterator[Shard]:
    split = dataset.splits[name]
    order = np.random.default_rng((seed, SPLITS.index(name))).permutation(len(split))
    position = 0
    for number in range(len(split)):
        if position == len(order):
            return
        path = folder / f"{name}-{number:06d}.tar"
        written = _write_shard(dataset, split, order[position:], path, shard_bytes)
        taken = order[position : position + written]
        position += written
        progress(written)
        yield _index_shard(path, name, split, taken)


def _write_shard(dataset: RoadDataset, split: Split, order: Positions, path: Path, most: int) -> int:
    """Samples until the shard is full; how many there were."""
    from webdataset.writer import TarWriter

    written = 0
    with open(path, "wb") as file:
        with TarWriter(file, encoder=False, mtime=0.0) as writer:
            for position in order:
                suffix, content = _file_of(dataset, split.keys[position])
                label = str(split.labels_N[position]).encode()
                writer.write({"__key__": f"{position:09d}", suffix: content, "cls": label})
                written += 1
                if file.tell() >= most:
                    break
        file.flush()
        os.fsync(file.fileno())
    return written


def _file_of(dataset: RoadDataset, key: str) -> tuple[str, bytes]:
    """A picture's suffix and bytes."""
    if dataset.content is None:
        return "png", _png(dataset.read(key))
    return key.rsplit(".", 1)[-1].lower(), dataset.content(key)


def _png(image: Image) -> bytes:
    encoded, content = cv2.imencode(".png", cv2.cvtColor(image, cv2.COLOR_RGB2BGR))
    assert encoded, "PNG encoding of an RGB picture cannot fail"
    return content.tobytes()


def _index_shard(path: Path, name: str, split: Split, taken: Positions) -> Shard:
    offsets, sizes, checksums = [], [], []
    with tarfile.open(path) as tar, open(path, "rb") as file:
        for member in tar:
            if not member.name.endswith(".cls"):
                file.seek(member.offset_data)
                offsets.append(member.offset_data)
                sizes.append(member.size)
                checksums.append(zlib.crc32(file.read(member.size)))
    index = ShardIndex(
        keys=[split.keys[position] for position in taken],
        labels=split.labels_N[taken].tolist(),
        positions=taken.tolist(),
        offsets=offsets,
        sizes=sizes,
        crc32=checksums,
    )
    shard = Shard.model_validate(
        {"file": path.name, "split": name, "samples": len(taken), "file_bytes": path.stat().st_size}
    )
    write_atomically(path.parent / shard.index_file, index.model_dump_json().encode())
    return shard
