"""A report for a terminal."""

from __future__ import annotations

from edge_road.evaluation.comparison import Comparison
from edge_road.evaluation.ood import RULES
from edge_road.evaluation.page import percent, rows_of, title_of
from edge_road.evaluation.report import Entry, Report
from edge_road.evaluation.scores import Score

_NAME_WIDTH = 26


def as_text(report: Report) -> str:
    lines = [f"[{number}] {entry.title}" for number, entry in enumerate(report.entries, start=1)]
    lines.append(f"{report.entries[0].evaluation.images} pictures of {report.test_set.which}")
    lines += [f"! {note}" for note in report.notes]
    lines += _scores(report)
    for number, entry in enumerate(report.entries, start=1):
        lines += _about_entry(f"[{number}]", entry)
    return "\n".join(lines)


def _scores(report: Report) -> list[str]:
    numbers = range(1, len(report.entries) + 1)
    heads = (f"{f'[{n}] accuracy':>20}{'danger':>9}" + ("    difference" if n > 1 else "") for n in numbers)
    lines = [" " * _NAME_WIDTH + "".join(heads)]
    by_entry = {comparison.entry: comparison for comparison in report.comparisons}
    for name, scores in rows_of(report):
        cells = (_cells(score, name, by_entry.get(number)) for number, score in enumerate(scores))
        lines.append(f"{title_of(name):<{_NAME_WIDTH}}" + "".join(cells))
    if by_entry:
        lines.append("difference to [1]; * where 0 lies outside the 95 % interval of a paired bootstrap")
    return lines


def _cells(score: Score | None, name: str, comparison: Comparison | None) -> str:
    accuracy, spread, danger, difference = "–", "", "–", ""
    if score is not None:
        accuracy = percent(score.accuracy)
        spread = "" if score.accuracy_std is None else f"± {100 * score.accuracy_std:.1f}"
        danger = percent(score.danger.rate if score.danger else None)
    if comparison and (found := comparison.conditions.get(name)):
        difference = f"{100 * found.difference:+.1f} {'*' if found.significant else ' '}"
    last = f"{difference:>14}" if comparison else ""
    return f"{accuracy:>13}{spread:>7}{danger:>9}{last}"


def _about_entry(number: str, entry: Entry) -> list[str]:
    lines = []
    if calibration := entry.calibration:
        before, after = calibration.before.calibration_error, calibration.after.calibration_error
        lines.append(
            f"{number} calibration error {percent(before)}, {percent(after)} at temperature "
            f"{calibration.temperature:.2f} ({calibration.fitted_on})"
        )
    if entry.mce is not None:
        lines.append(f"{number} mCE against the baseline {percent(entry.mce.mean)}")
    if entry.ood is not None:
        lines += [f"{number} AUROC against {entry.ood.roads} road pictures", *_ood(entry)]
    if entry.lab is not None:
        attacks = ", ".join(f"{a.name} {percent(a.accuracy)}" for a in entry.lab.attacks)
        lines.append(f"{number} under attack ({entry.lab.pictures} pictures): {attacks}")
        lines.append(f"{number} median input curvature {entry.lab.curvature.median:.4g}")
    return lines


def _ood(entry: Entry) -> list[str]:
    """AUROC, and in brackets the share refused where 95 % of the roads pass."""
    assert entry.ood is not None
    lines = [" " * 16 + "".join(f"{rule:>18}" for rule in RULES)]
    rows = {**entry.ood.kinds, "mean": entry.ood.means}
    for kind, by_rule in rows.items():
        cells = (f"{by_rule[rule].auroc:.3f} ({percent(by_rule[rule].caught, 0)})" for rule in RULES)
        lines.append(f"{kind:<16}" + "".join(f"{cell:>18}" for cell in cells))
    radii = "none" if entry.ood.distance_limit is None else f"{entry.ood.distance_limit:.2f} radii"
    passing = f"95 % of the roads pass at confidence {entry.ood.confidence_limit:.3f}, or within {radii}"
    return [*lines, f"largest mean AUROC: {entry.ood.best}; {passing} (read off {entry.ood.limits_from})"]
