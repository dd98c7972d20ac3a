"""A report as one HTML page that needs nothing but itself."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import cv2

from edge_road.evaluation import plots
from edge_road.evaluation.perturbations import CLEAN, find_perturbation, perturb
from edge_road.evaluation.report import Entry, Report
from edge_road.evaluation.scores import Mistake, Score
from edge_road.frames import Image, Images

MOST_MISTAKES = 24
LARGEST_SIDE_PX = 240
NOT_MEASURED = "–"


def render_page(report: Report, pictures: Sequence[Images]) -> str:
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters["percent"] = percent
    template = resources.files(__package__).joinpath("report.html").read_text(encoding="utf-8")
    return environment.from_string(template).render(
        report=report,
        entries=[_entry_view(entry, images) for entry, images in zip(report.entries, pictures)],
        rows=rows_of(report),
        noise_plot=_noise_plot(report),
        examples=_examples(report, pictures[0]),
        recall_classes=report.entries[0].evaluation.classes,
    )


def percent(share: float | None, digits: int = 1) -> str:
    return NOT_MEASURED if share is None else f"{100 * share:.{digits}f} %"


def _entry_view(entry: Entry, images_NHWC: Images) -> Mapping[str, Any]:
    evaluation = entry.evaluation
    shown = evaluation.mistakes[:MOST_MISTAKES]
    title = f"Confusion of {entry.title}"
    worst = evaluation.worst
    return {
        "title": entry.title,
        "subject": entry.subject,
        "evaluation": evaluation,
        "worst": worst,
        "worst_title": title_of(worst.name) if worst else None,
        "confusion": plots.confusion_plot(evaluation.classes, evaluation.confusion, title),
        "mistakes": [
            (mistake, _caption(mistake), data_uri(images_NHWC[mistake.position])) for mistake in shown
        ],
        "more_mistakes": len(evaluation.mistakes) - len(shown),
    }


def title_of(condition: str) -> str:
    """A report of another version may name perturbations that this one does not know."""
    known = find_perturbation(condition)
    return known.title if known else condition


def rows_of(report: Report) -> list[tuple[str, list[Score | None]]]:
    """One row per condition, in the order of the first entry that has it."""
    by_entry = [
        {score.name: score for score in (entry.evaluation.clean, *entry.evaluation.perturbed)}
        for entry in report.entries
    ]
    names = dict.fromkeys(name for scores in by_entry for name in scores)
    return [(title_of(name), [scores.get(name) for scores in by_entry]) for name in names]


def _noise_plot(report: Report) -> str | None:
    curves = {entry.title: _noise_curve(entry) for entry in report.entries}
    return plots.noise_plot(curves) if any(len(curve) > 1 for curve in curves.values()) else None


def _noise_curve(entry: Entry) -> plots.Curve:
    clean = entry.evaluation.clean
    curve = [(0.0, clean.accuracy, clean.accuracy_std)]
    for score in entry.evaluation.perturbed:
        known = find_perturbation(score.name)
        if known and known.family == "gaussian" and known.level is not None:
            curve.append((known.level, score.accuracy, score.accuracy_std))
    return sorted(curve)


def _examples(report: Report, images_NHWC: Images) -> list[tuple[str, str]]:
    """The first picture under each perturbation, as its first run showed it."""
    evaluation = report.entries[0].evaluation
    examples = [(CLEAN, data_uri(images_NHWC[0]))]
    for score in evaluation.perturbed:
        if find_perturbation(score.name):
            perturbed_NHWC = perturb(images_NHWC[:1], score.name, evaluation.seed, run=0)
            examples.append((title_of(score.name), data_uri(perturbed_NHWC[0])))
    return examples


def _caption(mistake: Mistake) -> str:
    if mistake.said is None:
        return "no finite output"
    return f"said {mistake.said}, {percent(mistake.confidence, digits=0)}"


def data_uri(image: Image) -> str:
    scale = min(1.0, LARGEST_SIDE_PX / max(image.shape[:2]))
    size = (max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale)))
    small = image if scale == 1.0 else cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    _, content = cv2.imencode(".jpg", small[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 80])
    return "data:image/jpeg;base64," + base64.b64encode(content.tobytes()).decode()
