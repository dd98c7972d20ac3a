"""A report as one HTML page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from edge_road.evaluation import lab_plots, plots
from edge_road.evaluation.ood import RULES
from edge_road.evaluation.page_pictures import Budget, data_uri, examples_of
from edge_road.evaluation.perturbations import CLEAN, FAMILIES, find_perturbation
from edge_road.evaluation.report import Entry, Report
from edge_road.evaluation.scores import Mistake, Score
from edge_road.evaluation.significance import Difference
from edge_road.frames import Images

NOT_MEASURED = "–"
LONGEST_LABEL = 26
NOISE_COLUMNS = (CLEAN, "gaussian_10", "gaussian_30", "gaussian_40", "gaussian_60")


def render_page(report: Report, pictures: Sequence[Images]) -> str:
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters |= {"percent": percent, "points": points, "figure": figure}
    template = resources.files(__package__).joinpath("report.html").read_text(encoding="utf-8")
    budget = Budget.for_entries(len(report.entries))
    labs = {label: entry.lab for label, entry in _labelled(report) if entry.lab}
    return environment.from_string(template).render(
        report=report,
        entries=[_entry_view(entry, images, budget) for entry, images in zip(report.entries, pictures)],
        rows=_row_views(report),
        families=_family_views(report),
        noise_rows=_noise_rows(report),
        noise_plot=_noise_plot(report),
        risk_plot=_risk_plot(report),
        least_joined=plots.LEAST_JOINED,
        lab_plots=_lab_plots(labs),
        rules=RULES,
        examples=examples_of(report, pictures[0], budget),
        recall_classes=report.entries[0].evaluation.classes,
    )


def percent(share: float | None, digits: int = 1) -> str:
    return NOT_MEASURED if share is None else f"{100 * share:.{digits}f} %"


def points(share: float) -> str:
    """A difference of two shares, in percentage points."""
    text = f"{100 * share:+.1f}"
    return "0.0" if float(text) == 0 else text.replace("-", "−")


def figure(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.3g}"


def title_of(condition: str) -> str:
    """A report of another version may name perturbations that this one does not know."""
    known = find_perturbation(condition)
    return known.title if known else condition


def rows_of(report: Report) -> list[tuple[str, list[Score | None]]]:
    """(condition, its scores by entry), in the order of the first entry that has it."""
    by_entry = [
        {score.name: score for score in (entry.evaluation.clean, *entry.evaluation.perturbed)}
        for entry in report.entries
    ]
    names = dict.fromkeys(name for scores in by_entry for name in scores)
    return [(name, [scores.get(name) for scores in by_entry]) for name in names]


def _entry_view(entry: Entry, images_NHWC: Images, budget: Budget) -> Mapping[str, Any]:
    evaluation = entry.evaluation
    shown = evaluation.mistakes[: budget.mistakes]
    worst = evaluation.worst
    return {
        "title": entry.title,
        "subject": entry.subject,
        "evaluation": evaluation,
        "calibration": entry.calibration,
        "abstention": entry.abstention,
        "ood": entry.ood,
        "mce": entry.mce,
        "lab": entry.lab,
        "worst": worst,
        "worst_title": title_of(worst.name) if worst else None,
        "confusion": plots.confusion_plot(
            evaluation.classes, evaluation.confusion, f"Confusion of {entry.title}"
        ),
        "reliability": entry.calibration
        and plots.reliability_plot(entry.calibration, f"Reliability of {entry.title}"),
        "surface": entry.lab and lab_plots.surface_plot(entry.lab.surface, f"Loss around {entry.title}"),
        "mistakes": [
            (mistake, _caption(mistake), data_uri(images_NHWC[mistake.position], budget.side_px))
            for mistake in shown
        ],
        "more_mistakes": len(evaluation.mistakes) - len(shown),
    }


def _labelled(report: Report) -> list[tuple[str, Entry]]:
    """For legends: the number that stands for an entry all over the page, and as much of its name as fits."""
    return [
        (f"[{number}] {entry.subject.name[:LONGEST_LABEL]}", entry)
        for number, entry in enumerate(report.entries, start=1)
    ]


Cell = tuple[Score | None, Difference | None, Difference | None]


def _row_views(report: Report) -> list[tuple[str, list[Cell]]]:
    """What does not stand in the table of severities."""
    grouped = {name for family in _full_families(report) for name in FAMILIES[family].names}
    return [
        (title_of(name), [(score, *_differences(report, i, name)) for i, score in enumerate(scores)])
        for name, scores in rows_of(report)
        if name not in grouped
    ]


def _differences(report: Report, entry: int, name: str) -> tuple[Difference | None, Difference | None]:
    """To the first entry: of the accuracy, and of the danger rate."""
    for comparison in report.comparisons:
        if comparison.entry == entry:
            return comparison.conditions.get(name), comparison.danger.get(name)
    return None, None


def _full_families(report: Report) -> list[str]:
    """Measured at all five severities by every entry."""
    measured = [{score.name for score in entry.evaluation.perturbed} for entry in report.entries]
    return [name for name, family in FAMILIES.items() if all(each >= set(family.names) for each in measured)]


def _family_views(report: Report) -> list[Mapping[str, Any]]:
    scores = [{score.name: score for score in entry.evaluation.perturbed} for entry in report.entries]
    views: list[Mapping[str, Any]] = []
    for name in _full_families(report):
        rows = [[by_name[each] for each in FAMILIES[name].names] for by_name in scores]
        differences = [None, *(each.families.get(name) for each in report.comparisons)]
        means = [sum(score.accuracy for score in row) / len(row) for row in rows]
        views.append({"title": FAMILIES[name].title, "rows": list(zip(rows, means, differences))})
    return views


def _noise_rows(report: Report) -> list[tuple[str, list[Score]]]:
    """The shape of the paper's Table 3: a row for each model, a column for each level of noise."""
    rows = []
    for number, entry in enumerate(report.entries, start=1):
        scores = {score.name: score for score in (entry.evaluation.clean, *entry.evaluation.perturbed)}
        if scores.keys() >= set(NOISE_COLUMNS):
            rows.append((f"[{number}]", [scores[name] for name in NOISE_COLUMNS]))
    return rows if len(rows) > 1 else []


def _noise_plot(report: Report) -> str | None:
    curves = {label: _noise_curve(entry) for label, entry in _labelled(report)}
    return plots.noise_plot(curves) if any(len(curve) > 1 for curve in curves.values()) else None


def _noise_curve(entry: Entry) -> plots.Curve:
    clean = entry.evaluation.clean
    curve = [(0.0, clean.accuracy, clean.accuracy_std)]
    for score in entry.evaluation.perturbed:
        known = find_perturbation(score.name)
        if known and known.family == "gaussian" and known.level is not None:
            curve.append((known.level, score.accuracy, score.accuracy_std))
    return sorted(curve)


def _risk_plot(report: Report) -> str | None:
    curves = {label: entry.abstention for label, entry in _labelled(report) if entry.abstention}
    return plots.risk_plot(curves) if curves else None


def _lab_plots(labs: lab_plots.Labs) -> list[tuple[str, str]]:
    if not labs:
        return []
    return [
        ("Accuracy under noise, flattest pictures first", lab_plots.retained_plot(labs)),
        ("Curvature and being right under noise", lab_plots.groups_plot(labs)),
        ("Curvature without the largest tenth", lab_plots.box_plot(labs)),
        ("Flatness", lab_plots.flatness_plot(labs)),
    ]


def _caption(mistake: Mistake) -> str:
    if mistake.said is None:
        return "no finite output"
    return f"said {mistake.said}, {percent(mistake.confidence, digits=0)}"
