"""What an export works with: the run, and the samples of its images that each step looks at."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from edge_road.bundle import Manifest
from edge_road.config import check_settings
from edge_road.datasets.index import Labels, RoadDataset, Split
from edge_road.datasets.opening import open_dataset
from edge_road.datasets.prepared import load_prepared
from edge_road.errors import DataError
from edge_road.export.calibration import stratified_positions, with_perturbations
from edge_road.export.target import Target
from edge_road.frames import Images
from edge_road.recipe import Recipe
from edge_road.recipe_data import DataSettings, SyntheticData
from edge_road.run_record import RunRecord, load_recipe, load_record


@dataclass(frozen=True, eq=False)
class Sample:
    images_NHWC: Images
    labels_N: Labels

    def __len__(self) -> int:
        return len(self.labels_N)

    def draw(self, count: int, seed: int) -> Sample:
        """`count` of them, every class as often as it can be."""
        positions = stratified_positions(self.labels_N, count, np.random.default_rng(seed))
        return Sample(self.images_NHWC[positions], self.labels_N[positions])


@dataclass(frozen=True, eq=False)
class Material:
    record: RunRecord
    recipe: Recipe
    training: Sample
    validation: Sample
    """the test images stay unseen: they are for the final report alone"""

    def calibration_images(self, target: Target) -> Images:
        drawn = self.training.draw(target.calibration.images, target.seed)
        return with_perturbations(drawn.images_NHWC, drawn.labels_N, target.calibration, target.seed)

    def perturbed_images(self, target: Target) -> Images:
        """All training images that the export looks at, each perturbed: many lie near a fence."""
        settings = target.calibration.model_copy(update={"perturbed_share": 1.0})
        return with_perturbations(self.training.images_NHWC, self.training.labels_N, settings, target.seed)

    def search_images(self, target: Target) -> Images:
        """Validation images, half of them perturbed: choices are made on validation."""
        return self._as_met(target.calibration.search_images, target)

    def coverage_images(self, target: Target) -> Images:
        """A few of the same kind, to see whether scales fit the road."""
        return self._as_met(target.samples.coverage, target)

    def _as_met(self, count: int, target: Target) -> Images:
        drawn = self.validation.draw(count, target.seed)
        return with_perturbations(drawn.images_NHWC, drawn.labels_N, target.calibration, target.seed)


def load_material(run: Path, target: Target, data_path: Path | None = None) -> Material:
    record, recipe = load_record(run), load_recipe(run)
    dataset = open_dataset(relocated(recipe.data, data_path))
    _check_unchanged(dataset, record)
    return Material(
        record,
        recipe,
        _load(dataset, "train", record, max(target.samples.geometry, target.calibration.images), target.seed),
        _load(dataset, "validation", record, target.samples.gate, target.seed),
    )


def load_all_images(manifest: Manifest, path: Path, most: int = 2000) -> Sample:
    """Images of a folder like the one that a bundle was trained on, whatever split they would be in."""
    recipe = check_settings(Recipe, manifest.recipe, where="the recipe in the manifest")
    dataset = open_dataset(relocated(recipe.data, path))
    if dataset.classes.names != manifest.classes:
        raise _other_classes(dataset, manifest.classes)
    splits = [split for split in dataset.splits.values() if len(split)]
    keys = tuple(key for split in splits for key in split.keys)
    every = Split(keys, np.concatenate([split.labels_N for split in splits]))
    positions = stratified_positions(every.labels_N, most, np.random.default_rng(0))
    drawn = replace(dataset, splits={**dataset.splits, "test": every.take(positions)})
    return Sample(*load_prepared(drawn, "test", manifest.preprocessing, workers=os.cpu_count() or 1))


def _load(dataset: RoadDataset, name: str, record: RunRecord, count: int, seed: int) -> Sample:
    """Only the drawn images are decoded: a data set may hold a million."""
    split = dataset.splits[name]
    positions = stratified_positions(split.labels_N, count, np.random.default_rng(seed))
    drawn = replace(dataset, splits={**dataset.splits, name: split.take(positions)})
    return Sample(*load_prepared(drawn, name, record.preprocessing, workers=os.cpu_count() or 1))


def relocated(settings: DataSettings, path: Path | None) -> DataSettings:
    if path is None:
        return settings
    if isinstance(settings, SyntheticData):
        raise DataError("this run was trained on rendered scenes, which have no folder", got=f"--data {path}")
    return settings.model_copy(update={"path": path})


def _check_unchanged(dataset: RoadDataset, record: RunRecord) -> None:
    if dataset.classes.names != record.classes:
        raise _other_classes(dataset, record.classes)
    if dataset.digest != record.data_digest:
        raise DataError(
            "the images have changed since the run was trained",
            got=f"digest {dataset.digest[:16]}...",
            expected=f"digest {record.data_digest[:16]}...",
            fix="bring the images back, name their folder with --data, or train again",
        )


def _other_classes(dataset: RoadDataset, expected: tuple[str, ...]) -> DataError:
    return DataError(
        "the images have other classes than the model",
        got=", ".join(dataset.classes.names),
        expected=", ".join(expected),
    )
