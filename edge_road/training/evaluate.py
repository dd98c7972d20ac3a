"""The command that judges runs and bundles under perturbation and writes a report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from edge_road import workspace
from edge_road.datasets import RoadDataset, Split
from edge_road.datasets.index import SPLITS
from edge_road.datasets.prepared import Prepared, prepare_split
from edge_road.evaluation.judge import DEFAULT_RUNS, judge
from edge_road.evaluation.mce import Errors, load_baseline, mean_corruption_error
from edge_road.evaluation.page import percent, rows_of, title_of
from edge_road.evaluation.perturbations import DIALS, FAMILIES, PERTURBATIONS, SUITES, expand
from edge_road.evaluation.report import Entry, PictureSet, Report, write_report
from edge_road.evaluation.scores import Score
from edge_road.run_record import RECORD_FILE
from edge_road.training.artefacts import Artefact, data_settings, find_place, open_artefacts, open_data_of

ALL_SPLITS = "all"


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    names = _perturbation_names(chosen.perturbations)
    baseline = load_baseline(chosen.baseline) if chosen.baseline else None
    if baseline:
        names = expand([*names, "common"])
    places = [find_place(text) for text in chosen.subjects] or [workspace.newest_run()]
    artefacts = [artefact for place in places for artefact in open_artefacts(place)]
    settings = data_settings(artefacts, chosen.data)
    dataset = open_data_of(artefacts, settings, as_made=chosen.data is None)
    split = choose_pictures(dataset, chosen.split, chosen.images, chosen.seed)
    sizes = dict.fromkeys(artefact.preprocessing for artefact in artefacts)
    prepared = {size: prepare_split(dataset, split, size) for size in sizes}
    pictures = [prepared[artefact.preprocessing] for artefact in artefacts]
    judged = [_judge(a, p, names, chosen.runs, chosen.seed) for a, p in zip(artefacts, pictures)]
    as_trained = all(artefact.data_digest == dataset.digest for artefact in artefacts)
    test_set = PictureSet(
        kind=settings.kind, split=chosen.split, digest=dataset.digest, as_trained=as_trained
    )
    report = Report(test_set=test_set, entries=tuple(judged))
    folder = chosen.out or _report_folder(places)
    paths = write_report(folder, report, [p.images_NHWC for p in pictures])
    print(_table(report), *_mce_lines(report, baseline), *paths, sep="\n")
    return 0


def choose_pictures(dataset: RoadDataset, split: str, most: int | None, seed: int) -> Split:
    """A split or all three; at most `most` of its pictures, drawn by `seed`."""
    parts = [dataset.splits[name] for name in (SPLITS if split == ALL_SPLITS else (split,))]
    keys = tuple(key for part in parts for key in part.keys)
    whole = Split(keys, np.concatenate([part.labels_N for part in parts]))
    if most is None or most >= len(whole):
        return whole
    return whole.take(np.sort(np.random.default_rng(seed).permutation(len(whole))[:most]))


def _judge(artefact: Artefact, prepared: Prepared, names: Sequence[str], runs: int, seed: int) -> Entry:
    def progress(condition: str) -> None:
        _show(f"{artefact.subject.name}, {artefact.predictor.name}: {title_of(condition)}")

    evaluation = judge(
        artefact.predictor,
        prepared.images_NHWC,
        prepared.labels_N,
        names,
        runs,
        seed,
        keys=prepared.keys,
        progress=progress,
    )
    _show("")
    return Entry(subject=artefact.subject, evaluation=evaluation)


def _show(line: str) -> None:
    """One line that the next one replaces; only a person at a terminal needs it."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)


def _report_folder(places: Sequence[Path]) -> Path:
    """Beside a run's other files; a bundle is sealed, so its report lies outside."""
    if len(places) == 1 and (places[0] / RECORD_FILE).is_file():
        return places[0]
    names = dict.fromkeys(place.resolve().name for place in places)
    return workspace.home() / "reports" / "+".join(names)[:100]


def _table(report: Report) -> str:
    titles = [entry.title for entry in report.entries]
    lines = [f"[{number}] {title}" for number, title in enumerate(titles, start=1)]
    lines.append(f"{report.entries[0].evaluation.images} pictures of the {report.test_set.split} split")
    lines.append(
        " " * 26 + "".join(f"{f'[{n}] accuracy':>20}{'danger':>9}" for n in range(1, len(titles) + 1))
    )
    for title, scores in rows_of(report):
        lines.append(f"{title:<26}" + "".join(_cells(score) for score in scores))
    return "\n".join(lines)


def _mce_lines(report: Report, baseline: Errors | None) -> list[str]:
    """What share of the baseline's errors each makes under the common corruptions."""
    if baseline is None:
        return []
    errors = [mean_corruption_error(entry.evaluation.perturbed, baseline) for entry in report.entries]
    return [f"[{n}] mCE against the baseline {percent(each.mean)}" for n, each in enumerate(errors, start=1)]


def _cells(score: Score | None) -> str:
    if score is None:
        return f"{'–':>20}{'–':>9}"
    spread = "" if score.accuracy_std is None else f"± {100 * score.accuracy_std:.1f}"
    danger = percent(score.danger.rate if score.danger else None)
    return f"{percent(score.accuracy):>13}{spread:>7}{danger:>9}"


def _perturbation_names(text: str | None) -> list[str]:
    if text is None:
        return list(PERTURBATIONS)
    return expand(name.strip() for name in text.split(",") if name.strip())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="evaluate_road.py",
        description="Judge runs and bundles on pictures they have not seen, clean and under perturbation, "
        "and write report.json and report.html. Several are compared side by side.",
        epilog=f"suites of perturbations: {', '.join(SUITES)}; the default: {', '.join(PERTURBATIONS)}; "
        f"in severities, as fog:1 to fog:5: {', '.join(FAMILIES)}; "
        f"with a value, as gaussian:25: {', '.join(DIALS)}",
    )
    parser.add_argument(
        "subjects", nargs="*", metavar="RUN_OR_BUNDLE", help="folders or names; default: the newest run"
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="PATH",
        help="judge on other pictures: class folders or RSCD (default: the recipe's)",
    )
    parser.add_argument("--split", choices=(*SPLITS, ALL_SPLITS), default="test", help="default: test")
    parser.add_argument(
        "--images", type=_number(1), metavar="N", help="at most so many pictures, drawn by the seed"
    )
    parser.add_argument(
        "--runs",
        type=_number(1),
        default=DEFAULT_RUNS,
        metavar="N",
        help="of every random perturbation (default: %(default)s)",
    )
    parser.add_argument(
        "--perturbations", metavar="A,B,...", help="names and suites (see below); '' for clean only"
    )
    parser.add_argument(
        "--baseline",
        type=Path,
        metavar="REPORT",
        help="report.json of one model judged under `common`: give the mean corruption error against it",
    )
    parser.add_argument("--seed", type=_number(0), default=0, metavar="N", help="of the perturbations")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder of the report (default: the run's, or reports/ for bundles)",
    )
    return parser


def _number(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"{least} or more, not {text}")
        return int(text)

    return number
