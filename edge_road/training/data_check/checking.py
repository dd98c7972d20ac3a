"""The whole check: names, then every file once, then comparisons between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import cv2
import numpy as np
import numpy.typing as npt

from edge_road.datasets.balance import class_counts
from edge_road.datasets.index import SPLITS, RoadDataset
from edge_road.errors import DataError
from edge_road.frames import Floats
from edge_road.recipe_data import DataSettings
from edge_road.training.data_check.duplicates import duplicate_findings, exact_groups, near_groups
from edge_road.training.data_check.findings import CheckReport, Finding, sorted_findings
from edge_road.training.data_check.inspect import (
    FEATURES,
    THUMB_SIDE,
    Fingerprint,
    findings_of_pixels,
    fingerprint_of,
    inspect,
)
from edge_road.training.data_check.survey import Survey, survey
from edge_road.training.data_check.suspects import FOLDS, MOST_PICTURES, rank_suspects

DEFAULT_LIMIT = 0.01
_CHUNK = 2048

Progress = Callable[[int], object]


@dataclass(eq=False)
class Fingerprints:
    """Of the readable pictures, as arrays: a million of them are a few hundred megabytes."""

    positions: list[int] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    hashes: list[int] = field(default_factory=list)
    thumbs_NT: list[npt.NDArray[np.uint8]] = field(default_factory=list)
    features: dict[int, Floats] = field(default_factory=dict)
    """position -> features, of a sample"""

    def add(self, position: int, fingerprint: Fingerprint, *, sampled: bool) -> None:
        self.positions.append(position)
        self.digests.append(fingerprint.sha256)
        self.hashes.append(fingerprint.phash)
        self.thumbs_NT.append(fingerprint.thumb.reshape(-1))
        if sampled:
            self.features[position] = fingerprint.features


def check_data(
    settings: DataSettings,
    *,
    limit: float = DEFAULT_LIMIT,
    workers: int = 2,
    seed: int = 0,
    progress: Progress = lambda done: None,
) -> tuple[CheckReport, RoadDataset]:
    cv2.setNumThreads(1)  # our own threads share the cores
    found = survey(settings)
    findings = list(found.findings)
    prints, of_files = _scan(found, workers, seed, progress)
    findings += of_files
    findings += _duplicates(found, prints, seed)
    suspects, note = _suspects(found, prints, seed)
    report = CheckReport(
        source=str(getattr(settings, "path", settings.kind)),
        pictures=len(found.keys) + sum(finding.kind == "no_label" for finding in findings),
        counts=_counts(found.dataset),
        findings=sorted_findings([*findings, *suspects]),
        limit=limit,
        notes=(note,),
    )
    return report, found.dataset


def _scan(found: Survey, workers: int, seed: int, progress: Progress) -> tuple[Fingerprints, list[Finding]]:
    prints, findings = Fingerprints(), []
    sampled = _sample(len(found.keys), seed)
    look = partial(_look, found.dataset)
    with ThreadPoolExecutor(max(1, workers)) as pool:
        for position, (fingerprint, of_file) in enumerate(_in_chunks(pool, look, found.keys)):
            findings += of_file
            if fingerprint is not None:
                prints.add(position, fingerprint, sampled=position in sampled)
            progress(1)
    return prints, findings


def _look(dataset: RoadDataset, key: str) -> tuple[Fingerprint | None, list[Finding]]:
    try:
        if dataset.content is not None:
            return inspect(key, dataset.content(key))
        image = dataset.read(key)
    except DataError as error:
        return None, [Finding("unreadable", key, error.details.get("got", error.what))]
    return fingerprint_of(image, image.tobytes()), findings_of_pixels(key, image)


def _in_chunks(
    pool: ThreadPoolExecutor,
    look: Callable[[str], tuple[Fingerprint | None, list[Finding]]],
    keys: Sequence[str],
) -> Iterator[tuple[Fingerprint | None, list[Finding]]]:
    """`pool.map` asks for everything at once; a million waiting tasks are gigabytes."""
    for start in range(0, len(keys), _CHUNK):
        yield from pool.map(look, keys[start : start + _CHUNK])


def _sample(count: int, seed: int) -> set[int]:
    if count <= MOST_PICTURES:
        return set(range(count))
    return set(np.random.default_rng(seed).choice(count, MOST_PICTURES, replace=False).tolist())


def _duplicates(found: Survey, prints: Fingerprints, seed: int) -> list[Finding]:
    positions = np.array(prints.positions, dtype=np.int64)
    keys = [found.keys[position] for position in prints.positions]
    labels_N, splits_N = found.labels_N[positions], found.splits_N[positions]
    exact = exact_groups(prints.digests)
    findings = duplicate_findings(exact, keys, labels_N, splits_N, near=False)
    copies = {finding.file for finding in findings}
    single = np.array([i for i, key in enumerate(keys) if key not in copies], dtype=np.int64)
    hashes_N = np.array(prints.hashes, dtype=np.uint64)[single]
    thumbs_NT = np.array(prints.thumbs_NT, dtype=np.uint8).reshape(-1, THUMB_SIDE**2)[single]
    near = near_groups(hashes_N, thumbs_NT, seed)
    return findings + duplicate_findings(
        near, [keys[i] for i in single], labels_N[single], splits_N[single], near=True
    )


def _suspects(found: Survey, prints: Fingerprints, seed: int) -> tuple[list[Finding], str]:
    positions = np.array(list(prints.features), dtype=np.int64)
    features_ND = np.array(list(prints.features.values()), dtype=np.float32).reshape(-1, FEATURES)
    keys = [found.keys[position] for position in positions]
    names = found.dataset.classes.names
    if np.count_nonzero(np.bincount(found.labels_N[positions], minlength=len(names)) >= FOLDS) < 2:
        return [], f"labels were not judged: fewer than two classes have {FOLDS} readable pictures"
    try:
        suspects = rank_suspects(features_ND, found.labels_N[positions], keys, names, seed)
    except ModuleNotFoundError as error:
        return [], f"labels were not judged: the package '{error.name}' is not installed"
    sampled = "" if len(positions) == len(prints.positions) else f", a sample of {len(positions):,}"
    return suspects, (
        f"labels were judged by a logistic regression on coarse colour and texture{sampled}, each "
        "picture by a model that had not seen it: suspects are ranked for a person to look at, most "
        "of them may be right"
    )


def _counts(dataset: RoadDataset) -> dict[str, dict[str, int]]:
    names = dataset.classes.names
    return {
        split: dict(zip(names, class_counts(dataset.splits[split].labels_N, len(names)).tolist()))
        for split in SPLITS
    }
