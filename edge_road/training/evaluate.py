"""The command that judges runs and bundles under perturbation and writes a report."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import get_args

import numpy as np

from edge_road import workspace
from edge_road.bundle import Precision
from edge_road.datasets import RoadDataset, Split
from edge_road.datasets.index import SPLITS
from edge_road.datasets.prepared import Prepared, prepare_split
from edge_road.errors import DataError
from edge_road.evaluation.answers import Source, answers_of_all, best_jobs
from edge_road.evaluation.comparison import compare_with_first
from edge_road.evaluation.judge import DEFAULT_RUNS, Judged, check_images, sum_up
from edge_road.evaluation.mce import Errors, load_baseline
from edge_road.evaluation.notes import notes_of
from edge_road.evaluation.page import title_of
from edge_road.evaluation.perturbations import DIALS, FAMILIES, PERTURBATIONS, SUITES, expand
from edge_road.evaluation.report import Entry, PictureSet, Report, write_report
from edge_road.evaluation.report_text import as_text
from edge_road.files import check_writable
from edge_road.run_record import RECORD_FILE
from edge_road.training.artefacts import Artefact, data_settings, find_place, open_artefacts, open_data_of
from edge_road.training.command_line import show_line, whole_number
from edge_road.training.examine import Examination, Wishes, draw

ALL_SPLITS = "all"
LAB_PICTURES = 32
LEAST_SIDE = 32


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    baseline = load_baseline(chosen.baseline) if chosen.baseline else None
    names = _perturbation_names(chosen, baseline)
    places = [find_place(text) for text in chosen.subjects] or [workspace.newest_run()]
    artefacts = [artefact for place in places for artefact in open_artefacts(place, chosen.precision)]
    settings = data_settings(artefacts, chosen.data)
    dataset = open_data_of(artefacts, settings, as_made=chosen.data is None, whole=chosen.split == ALL_SPLITS)
    split = choose_pictures(dataset, chosen.split, chosen.images, chosen.seed)
    sizes = dict.fromkeys(artefact.preprocessing for artefact in artefacts)
    prepared = {size: prepare_split(dataset, split, size) for size in sizes}
    pictures = [prepared[artefact.preprocessing] for artefact in artefacts]
    folder = chosen.out or _report_folder(places)
    check_writable(folder)
    judged = _judge_all(artefacts, pictures, names, chosen)
    wishes = Wishes(chosen.split, chosen.seed, chosen.ood, chosen.lab, baseline)
    entries = [
        Examination(artefact, each, prepared, dataset, wishes, show_line).entry()
        for artefact, each, prepared in zip(artefacts, judged, pictures)
    ]
    as_trained = all(artefact.data_digest == dataset.digest for artefact in artefacts)
    test_set = PictureSet(
        kind=settings.kind, split=chosen.split, digest=dataset.digest, as_trained=as_trained
    )
    report = Report(
        test_set=test_set,
        notes=(*_notes(entries, test_set), *_not_measured(entries, wishes)),
        entries=tuple(entries),
        comparisons=compare_with_first(judged, chosen.seed),
    )
    show_line("")
    paths = write_report(folder, report, [p.images_NHWC for p in pictures])
    print(as_text(report), *paths, sep="\n")
    return 0


def choose_pictures(dataset: RoadDataset, split: str, most: int | None, seed: int) -> Split:
    """A split or all three; at most `most` of its pictures, drawn by `seed`."""
    parts = [dataset.splits[name] for name in (SPLITS if split == ALL_SPLITS else (split,))]
    keys = tuple(key for part in parts for key in part.keys)
    whole = Split(keys, np.concatenate([part.labels_N for part in parts]))
    if len(whole) == 0:
        raise DataError(
            "there are no pictures to judge with",
            where=f"the {split} split",
            fix="choose another with --split, or other pictures with --data",
        )
    return draw(whole, most, seed)


def _judge_all(
    artefacts: Sequence[Artefact],
    pictures: Sequence[Prepared],
    names: Sequence[str],
    chosen: argparse.Namespace,
) -> list[Judged]:
    for artefact, prepared in zip(artefacts, pictures):
        check_images(artefact.predictor, prepared.images_NHWC, prepared.labels_N)
    check_perturbable(pictures, names)
    sources = [Source(a.open, p.images_NHWC) for a, p in zip(artefacts, pictures)]
    jobs = chosen.jobs or best_jobs(sources, names, chosen.runs)
    answers = answers_of_all(
        sources, names, chosen.runs, chosen.seed, jobs, lambda condition: show_line(title_of(condition))
    )
    return [
        sum_up(
            artefact.predictor.name,
            artefact.predictor.classes,
            each,
            prepared.labels_N,
            chosen.runs,
            chosen.seed,
            prepared.keys,
        )
        for artefact, each, prepared in zip(artefacts, answers, pictures)
    ]


def check_perturbable(pictures: Sequence[Prepared], names: Sequence[str]) -> None:
    for prepared in pictures:
        height, width = prepared.images_NHWC.shape[1:3]
        if names and min(height, width) < LEAST_SIDE:
            raise DataError(
                "the model's pictures are too small to be perturbed: patches and blurs would cover them",
                got=f"{height} x {width}",
                expected=f"{LEAST_SIDE} a side or more",
                fix="judge clean pictures only, with --perturbations ''",
            )


def _notes(entries: Sequence[Entry], test_set: PictureSet) -> tuple[str, ...]:
    lines = [
        line
        for entry in entries
        for line in notes_of(
            entry.title, entry.evaluation, as_trained=test_set.as_trained, split=test_set.split
        )
    ]
    return tuple(dict.fromkeys(lines))


def _not_measured(entries: Sequence[Entry], wishes: Wishes) -> Iterator[str]:
    """What was asked for, and why it is not there."""
    for entry in entries:
        if wishes.ood and entry.ood is None:
            yield (
                f"{entry.title}: strange pictures were not judged; this takes the data set that a run was "
                "trained on, or a bundle, and two pictures or more."
            )
        if wishes.lab and entry.lab is None:
            yield f"{entry.title}: no laboratory, which needs the gradients of a run."


def _report_folder(places: Sequence[Path]) -> Path:
    """Beside a run's other files; a bundle is sealed, so its report lies outside."""
    if len(places) == 1 and (places[0] / RECORD_FILE).is_file():
        return places[0]
    names = dict.fromkeys(place.resolve().name for place in places)
    return workspace.home() / "reports" / "+".join(names)[:100]


def _perturbation_names(chosen: argparse.Namespace, baseline: Errors | None) -> list[str]:
    """Those asked for, those that a baseline needs; none by default where only strangers are asked for."""
    if chosen.perturbations is None:
        names = [] if chosen.ood else list(PERTURBATIONS)
    else:
        names = expand(name.strip() for name in chosen.perturbations.split(",") if name.strip())
    return expand([*names, "common"]) if baseline else names


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Judge runs and bundles on pictures they have not seen, clean and under perturbation, "
        "and write report.json and report.html. Several are compared side by side.",
        epilog=f"suites of perturbations: {', '.join(SUITES)}; the default: {', '.join(PERTURBATIONS)}; "
        f"in severities, as fog:1 to fog:5: {', '.join(FAMILIES)}; "
        f"with a value, as gaussian:25: {', '.join(DIALS)}",
    )
    _add_subjects(parser.add_argument)
    _add_measures(parser.add_argument)
    return parser


def _add_subjects(add: Callable[..., object]) -> None:
    """What is judged, and on which pictures."""
    add("subjects", nargs="*", metavar="RUN_OR_BUNDLE", help="folders or names; default: the newest run")
    add(
        "--precision",
        choices=get_args(Precision),
        action="append",
        default=[],
        metavar="P",
        help="of bundles only this model, e.g. int8",
    )
    other = "judge on other pictures: class folders, a table, shards, RSCD (default: the recipe's)"
    add("--data", type=Path, metavar="PATH", help=other)
    add(
        "--split",
        choices=(*SPLITS, ALL_SPLITS),
        default="test",
        help="default: test; all: also of classes with few or none",
    )
    add("--images", type=whole_number(1), metavar="N", help="at most so many pictures, drawn by the seed")
    where = "of the report (default: the run's, or in reports/)"
    add("--out", type=Path, metavar="DIR", help=where)


def _add_measures(add: Callable[..., object]) -> None:
    runs = "of every random perturbation (default: %(default)s)"
    add("--runs", type=whole_number(1), default=DEFAULT_RUNS, metavar="N", help=runs)
    add("--perturbations", metavar="A,B,...", help="names and suites (see below); '' for clean only")
    mce = "report.json of one model judged under `common`: give the mean corruption error against it"
    add("--baseline", type=Path, metavar="REPORT", help=mce)
    ood = "how well confidence and distance tell pictures without a road (alone: no perturbations)"
    add("--ood", action="store_true", help=ood)
    lab = "of runs, on N pictures (default: %(const)s): attacks, curvature, thickness, flatness, geometry"
    add("--lab", type=whole_number(1), nargs="?", const=LAB_PICTURES, default=0, metavar="N", help=lab)
    jobs = "processes (default: as many as there is work for)"
    add("--jobs", type=whole_number(1), metavar="N", help=jobs)
    add("--seed", type=whole_number(0), default=0, metavar="N", help="of the perturbations")
