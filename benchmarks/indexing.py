"""One million names like RSCD's: listed, labelled, split officially and by day, and digested.

python benchmarks/indexing.py --names 1000000 [--files]

Without --files the names are handed over as a listing would; with it empty files are written below a
temporary folder first and the folders are walked. Each step tells its time and the peak memory so far.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import TypeVar

import numpy as np

from edge_road.conditions import RSCD_LABELS, ClassList
from edge_road.datasets.counts import count_table
from edge_road.datasets.folder import files_below
from edge_road.datasets.index import RoadDataset, Split
from edge_road.datasets.opening import open_dataset
from edge_road.datasets.rscd import FOLDERS, day_of, index_names, per_day_splits
from edge_road.recipe_data import RscdData
from edge_road.synthetic.rscd_tree import rscd_file_name

SHARES = {"train": 0.93, "validation": 0.02, "test": 0.05}
Answer = TypeVar("Answer")


def main() -> None:
    chosen = _parser().parse_args()
    names = generate_names(chosen.names)
    print(f"{chosen.names:,} names; {peak_mb():.0f} MB before", flush=True)
    if chosen.files:
        with tempfile.TemporaryDirectory() as folder:
            write_files(Path(folder), names)
            names.clear()
            official = timed("walk, label", lambda: open_dataset(RscdData(kind="rscd", path=Path(folder))))
    else:
        official = timed("label", lambda: label_all(names))
    settings = RscdData(kind="rscd", path=Path(), split="per_day")
    splits = timed("split by day", lambda: per_day_splits(dict(official.splits), settings))
    by_day = files_below(Path(), official.classes, splits)
    timed("digest", lambda: by_day.digest)
    assert_no_day_crosses(splits)
    print(count_table(by_day))


def generate_names(count: int) -> dict[str, list[str]]:
    """split -> names; in the training folder each in the folder of its class."""
    generator = np.random.default_rng(0)
    labels = [RSCD_LABELS[i] for i in generator.integers(len(RSCD_LABELS), size=count)]
    parts = generator.choice(len(SHARES), size=count, p=list(SHARES.values()))
    names: dict[str, list[str]] = {split: [] for split in SHARES}
    for label, part in zip(labels, parts):
        split = list(SHARES)[part]
        inside = f"{label.name.replace('-', '_')}/" if split == "train" else ""
        names[split].append(f"{FOLDERS[split]}/{inside}{rscd_file_name(label, generator)}")
    return names


def label_all(names: dict[str, list[str]]) -> RoadDataset:
    splits: dict[str, Split] = {}
    for split, keys in names.items():
        named = index_names(sorted(keys))
        assert not named.faults, named.faults[0]
        splits[split] = named.split
    return files_below(Path(), ClassList(tuple(label.name for label in RSCD_LABELS)), splits)


def write_files(folder: Path, names: dict[str, list[str]]) -> None:
    for label in RSCD_LABELS:
        (folder / "train" / label.name.replace("-", "_")).mkdir(parents=True)
    for split, keys in names.items():
        (folder / FOLDERS[split]).mkdir(exist_ok=True)
        for key in keys:
            (folder / key).touch()


def assert_no_day_crosses(splits: dict[str, Split]) -> None:
    days = [{day_of(key) for key in split.keys} for split in splits.values()]
    assert sum(map(len, days)) == len(set.union(*days))


def timed(what: str, work: Callable[[], Answer]) -> Answer:
    start, worked = perf_counter(), process_time()
    answer = work()
    took, busy = perf_counter() - start, process_time() - worked
    print(f"{what:<14}{took:>8.1f} s{busy:>8.1f} s of work{peak_mb():>8.0f} MB peak", flush=True)
    return answer


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--names", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--files", action="store_true", help="write empty files and walk the folders")
    return parser


if __name__ == "__main__":
    main()
