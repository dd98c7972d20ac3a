"""What a reader must know before believing a number of the report."""

from __future__ import annotations

from collections.abc import Iterator

from edge_road.evaluation.metrics import wilson_interval
from edge_road.evaluation.scores import Evaluation

FEW_PICTURES = 100
FEW_ICY = 30
_TRAINED_ON = "Some or all of these pictures were used in training: expect less on new ones."
_USED_BEFORE = {
    "train": _TRAINED_ON,
    "all": _TRAINED_ON,
    "validation": "The best epoch, and a bundle's temperature and threshold, were chosen on these pictures: "
    "expect less on new ones.",
}


def notes_of(title: str, evaluation: Evaluation, *, as_trained: bool, split: str) -> list[str]:
    return [
        *_about_pictures(evaluation),
        *_about_outputs(title, evaluation),
        *([] if as_trained else ["The pictures are not of the data set that the model was trained with."]),
        *([_USED_BEFORE[split]] if as_trained and split in _USED_BEFORE else []),
    ]


def _about_pictures(evaluation: Evaluation) -> Iterator[str]:
    """The same words for every model on the same pictures."""
    count = evaluation.images
    if count < FEW_PICTURES:
        low, high = wilson_interval(0.9 * count, count)
        yield (
            f"Only {count} picture{'s' if count != 1 else ''}: the intervals are wide. A model that is right "
            f"on nine of ten of them may be right on {low:.0%} to {high:.0%} of all roads (95 %)."
        )
    missing = [name for name, number in evaluation.images_of_class.items() if number == 0]
    if missing:
        yield f"No picture of {', '.join(missing)}: nothing is known about what was not shown."
    danger = evaluation.clean.danger
    if danger and danger.icy < FEW_ICY:
        yield (
            f"Only {danger.icy} icy picture{'s' if danger.icy != 1 else ''}: the danger rate is known "
            "roughly; look at its interval."
        )


def _about_outputs(title: str, evaluation: Evaluation) -> Iterator[str]:
    scores = (evaluation.clean, *evaluation.perturbed)
    broken = sum(score.not_finite for score in scores)
    if broken:
        total = evaluation.images * sum(score.runs for score in scores)
        yield f"{title}: {broken} of {total} outputs are NaN or infinite, and count as wrong."
