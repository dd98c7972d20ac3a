"""What can be judged: the model of a run or those of a bundle, each with the data it was made with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from edge_road import workspace
from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.bundle import MANIFEST_FILE, Manifest, Precision, load_bundle
from edge_road.bundle import Artefact as Shipped
from edge_road.config import check_settings
from edge_road.datasets import RoadDataset, open_dataset
from edge_road.datasets.guess import settings_at
from edge_road.datasets.undivided import open_undivided
from edge_road.errors import ConfigError, DataError, suggestion
from edge_road.evaluation.report import Subject
from edge_road.predictor import Predictor
from edge_road.preprocess import Preprocessing
from edge_road.recipe import Recipe
from edge_road.recipe_data import DataSettings
from edge_road.run_record import RECORD_FILE, RunRecord, load_recipe, load_record

TORCH_BATCH = 8  # as many as stay in the caches of a processor


@dataclass(frozen=True, eq=False)
class Artefact:
    subject: Subject
    open: Callable[[], Predictor]
    """the same again, for another process"""
    predictor: Predictor
    preprocessing: Preprocessing
    data: DataSettings
    data_digest: str
    shipped: Shipped | None
    """what a bundle says of this model file; a run has nothing of the kind"""
    run: Path | None = None
    delta_v: float | None = None
    """radius that its training gave to a class, where the method has one"""


def find_place(text: str) -> Path:
    """A folder, or the name of one among the runs and bundles."""
    places = (Path(text), workspace.runs() / text, workspace.bundles() / text)
    for place in places:
        if (place / RECORD_FILE).is_file() or (place / MANIFEST_FILE).is_file():
            return place
    known = [path.parent.name for path in workspace.runs().glob(f"*/{RECORD_FILE}")]
    known += [path.parent.name for path in workspace.bundles().glob(f"*/{MANIFEST_FILE}")]
    raise ConfigError(
        "neither a finished run nor a bundle",
        got=text,
        expected=f"a folder with {RECORD_FILE} or {MANIFEST_FILE}",
        fix=suggestion(text, known),
    )


def open_artefacts(place: Path, precisions: Sequence[Precision] = ()) -> list[Artefact]:
    """A run is one artefact; a bundle is one for each of its precisions, or of those that are wanted."""
    return _open_bundle(place, precisions) if (place / MANIFEST_FILE).is_file() else [_open_run(place)]


def _open_run(run: Path) -> Artefact:
    record, recipe = load_record(run), load_recipe(run)
    reopen = partial(run_predictor, run)
    return Artefact(
        _subject(run, "run", record.weights_sha256, record),
        reopen,
        reopen(),
        record.preprocessing,
        recipe.data,
        record.data_digest,
        shipped=None,
        run=run,
        delta_v=getattr(recipe.method, "delta_v", None),
    )


def run_predictor(run: Path) -> Predictor:
    """One thread, whatever the number of processes: then each gives the same bits."""
    import torch

    from edge_road.nn.predictor import load_run

    torch.set_num_threads(1)
    predictor = load_run(run)
    predictor.batch_size = TORCH_BATCH
    return predictor


def bundle_predictor(place: Path, precision: Precision) -> Predictor:
    return OnnxPredictor.from_bundle(load_bundle(place), precision, threads=1)


def _open_bundle(place: Path, precisions: Sequence[Precision]) -> list[Artefact]:
    bundle = load_bundle(place)
    manifest = bundle.manifest
    recipe = check_settings(Recipe, manifest.recipe, where=place / MANIFEST_FILE)
    return [
        Artefact(
            _subject(place, "bundle", manifest.files[artefact.file].sha256, manifest),
            partial(bundle_predictor, place, precision),
            OnnxPredictor.from_bundle(bundle, precision, threads=1),
            manifest.preprocessing,
            recipe.data,
            manifest.data_digest,
            shipped=artefact,
        )
        for precision in precisions or manifest.artefacts
        for artefact in [bundle.artefact(precision)]
    ]


def _subject(place: Path, kind: Literal["run", "bundle"], sha256: str, made: RunRecord | Manifest) -> Subject:
    return Subject(
        name=place.resolve().name,
        kind=kind,
        sha256=sha256,
        method=made.method,
        seed=made.seed,
        recipe_digest=made.recipe_digest,
        git_commit=made.git_commit,
        version=made.version,
    )


def data_settings(artefacts: Sequence[Artefact], path: Path | None = None) -> DataSettings:
    """Those of the first recipe, or of what lies at `path`."""
    first = artefacts[0]
    if path is None:
        return first.data
    return settings_at(path.expanduser(), first.data, first.predictor.classes.names)


def _is_here(settings: DataSettings) -> bool:
    path: Path | None = getattr(settings, "path", None)
    return path is None or path.expanduser().exists()


def open_data_of(
    artefacts: Sequence[Artefact], settings: DataSettings, *, as_made: bool, whole: bool = False
) -> RoadDataset:
    """Pictures that suit all artefacts; `as_made`: the very ones that they were made with.

    `whole`: others may have classes with too few pictures for three splits, or with none.
    """
    if as_made and not _is_here(settings):
        raise DataError(
            "the pictures that the model was made with are not here",
            where=artefacts[0].subject.name,
            got=f"no {getattr(settings, 'path', '')}",
            fix="say where they are, or which others to judge on, with --data",
        )
    dataset = open_dataset(settings) if as_made else _open_others(settings, whole)
    for artefact in artefacts:
        if dataset.classes != artefact.predictor.classes:
            raise DataError(
                "the model and the pictures have different classes",
                where=artefact.subject.name,
                got=", ".join(dataset.classes.names),
                expected=", ".join(artefact.predictor.classes.names),
            )
        if as_made and dataset.digest != artefact.data_digest:
            raise DataError(
                "these are not the pictures that the model was made with",
                where=artefact.subject.name,
                got=f"digest {dataset.digest[:16]}...",
                expected=f"digest {artefact.data_digest[:16]}...",
                fix="bring the pictures back, or say which ones to judge on with --data",
            )
    return dataset


def _open_others(settings: DataSettings, whole: bool) -> RoadDataset:
    try:
        return open_dataset(settings)
    except DataError as error:
        undivided = open_undivided(settings)
        if undivided is None:
            raise
        if not whole:
            error.details["to do"] = "judge all of these pictures together: --split all"
            raise
        return undivided
