"""Mean corruption error: how much of a baseline's errors a model makes (Hendrycks and Dietterich, 2019).

CE of a corruption = sum over severities of the model's errors / the same sum of the baseline's;
mCE = the mean of CE over the corruptions. 1 is as many errors as the baseline, less is better.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from edge_road.config import StrictModel
from edge_road.errors import ConfigError
from edge_road.evaluation.perturbations import COMMON, Family
from edge_road.evaluation.scores import Score

Errors = Mapping[str, float]
"""family -> error, the mean over severities 1 to 5"""


class CorruptionErrors(StrictModel):
    relative: dict[str, float | None]
    """CE by corruption; none where the baseline makes no error"""
    mean: float | None
    """mCE; none unless every corruption has its CE"""


def corruption_errors(scores: Iterable[Score], families: Sequence[Family] = COMMON) -> dict[str, float]:
    """Of the families that were measured at all five severities."""
    errors = {score.name: 1.0 - score.accuracy for score in scores}
    return {
        family.name: sum(errors[name] for name in family.names) / len(family.names)
        for family in families
        if errors.keys() >= set(family.names)
    }


def mean_corruption_error(
    scores: Iterable[Score], baseline: Errors | Path, families: Sequence[Family] = COMMON
) -> CorruptionErrors:
    """Against another model's errors: its report.json, or the errors themselves."""
    base = load_baseline(baseline, families) if isinstance(baseline, Path) else baseline
    errors = corruption_errors(scores, families)
    _check_complete("model", errors, families)
    _check_complete("baseline", base, families)
    relative = {name: errors[name] / base[name] if base[name] > 0 else None for name in errors}
    known = [value for value in relative.values() if value is not None]
    return CorruptionErrors(
        relative=relative, mean=sum(known) / len(known) if len(known) == len(relative) else None
    )


def load_baseline(path: Path, families: Sequence[Family] = COMMON) -> dict[str, float]:
    from edge_road.evaluation.report import load_report  # a report may hold our figures itself

    entries = load_report(path).entries
    if len(entries) != 1:
        raise ConfigError(
            "a baseline is one model", where=path, got=f"{len(entries)} of them", fix="judge one on its own"
        )
    errors = corruption_errors(entries[0].evaluation.perturbed, families)
    _check_complete("baseline", errors, families)
    return errors


def _check_complete(whose: str, errors: Errors, families: Sequence[Family]) -> None:
    missing = [family.name for family in families if family.name not in errors]
    if missing:
        raise ConfigError(
            f"the {whose} was not judged under every corruption at every severity",
            got=f"nothing for {', '.join(missing)}",
            fix="evaluate_road.py --perturbations common",
        )
