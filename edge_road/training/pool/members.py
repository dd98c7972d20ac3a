"""Which runs and bundles are put together, under which name, and the test pictures of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edge_road.datasets import RoadDataset
from edge_road.datasets.prepared import Prepared, prepare_split
from edge_road.run_record import RECORD_FILE
from edge_road.training.artefacts import Artefact, find_place, open_artefacts, open_data_of
from edge_road.training.examine import draw

PART = re.compile(r"-(fold|seed)\d+$")
"""how `compare` ends the names of runs that belong together"""


@dataclass(frozen=True, eq=False)
class Member:
    """One artefact, with the very data set that it was made with."""

    row: str
    artefact: Artefact
    dataset: RoadDataset

    @property
    def run(self) -> Path | None:
        return self.artefact.run

    def test_pictures(self, most: int | None, seed: int) -> Prepared:
        """Drawn by the seed alone: two methods on one fold are asked about the same ones."""
        split = draw(self.dataset.splits["test"], most, seed)
        return prepare_split(self.dataset, split, self.artefact.preprocessing)


def places_of(texts: Sequence[str]) -> list[Path]:
    """Runs and bundles; the folder of a comparison stands for all its finished runs."""
    return [place for text in texts for place in _expanded(text)]


def _expanded(text: str) -> list[Path]:
    if (Path(text) / "runs").is_dir():
        found = sorted(path.parent for path in Path(text).glob(f"runs/*/{RECORD_FILE}"))
        if found:
            return found
    return [find_place(text)]


def members_of(places: Sequence[Path], rows: Mapping[Path, str] | None = None) -> Iterator[Member]:
    """One after the other: many models need not be in memory together. `rows` names some of them."""
    for place in places:
        for artefact in open_artefacts(place):
            dataset = open_data_of([artefact], artefact.data, as_made=True)
            yield Member((rows or {}).get(place) or row_of(artefact), artefact, dataset)


def row_of(artefact: Artefact) -> str:
    """The name without its fold or seed, else the method; models of a bundle are told apart."""
    name = artefact.subject.name
    row = PART.sub("", name) if PART.search(name) else artefact.subject.method
    return row if artefact.run else f"{row}, {artefact.predictor.name}"
