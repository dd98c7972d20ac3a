"""Pictures without a road, shown to several models: each judged by itself, then the mean of all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from edge_road.errors import DataError
from edge_road.evaluation.answers import answers_of
from edge_road.evaluation.judge import sum_up
from edge_road.evaluation.ood import OodResult, Separation, StrangerScores, sum_up_strangers
from edge_road.training.examine import Examination, Wishes
from edge_road.training.pool.members import Member
from edge_road.training.pool.result import PooledSeparation, StrangersRow


@dataclass(frozen=True, eq=False)
class StrangerSample:
    """Of one model."""

    scores: StrangerScores
    result: OodResult


def stranger_sample(member: Member, seed: int, progress: Callable[[str], None]) -> StrangerSample:
    """On the whole test split; limits and scales are the validation split's, places the training split's."""
    artefact, pictures = member.artefact, member.test_pictures(None, seed)
    answers = answers_of(artefact.predictor, pictures.images_NHWC, (), 1, seed)
    judged = sum_up(artefact.predictor.name, artefact.predictor.classes, answers, pictures.labels_N, 1, seed)
    examination = Examination(artefact, judged, pictures, member.dataset, Wishes("test", seed), progress)
    scores = examination.stranger_scores()
    if scores is None:
        raise DataError("the model has no finite output on roads", where=artefact.subject.name)
    return StrangerSample(scores, sum_up_strangers(scores))


def strangers_row(name: str, samples: Sequence[StrangerSample], limits: tuple[float, float]) -> StrangersRow:
    first = samples[0].result
    pairs = [found for sample in samples if (found := sample.scores.limits())]
    alone = [far for sample in samples if (far := sample.result.distance_limit) is not None]
    pair = (_mean(sure for sure, _ in pairs), _mean(far for _, far in pairs)) if pairs else None
    distance_limit = _mean(alone) if alone else None
    return StrangersRow(
        name=name,
        runs=len(samples),
        roads=sum(sample.result.roads for sample in samples),
        kinds={
            kind: {rule: _pooled([s.result.kinds[kind][rule] for s in samples]) for rule in by_rule}
            for kind, by_rule in first.kinds.items()
        },
        means={rule: _pooled([s.result.means[rule] for s in samples]) for rule in first.means},
        confidence=pair and pair[0],
        radii=pair and pair[1],
        distance_limit=distance_limit,
        limits_from=" and ".join(sorted({sample.scores.limits_from for sample in samples})),
        at_limits=_refused(samples, *pair) if pair else None,
        at_distance_limit=_refused(samples, 0.0, distance_limit) if distance_limit is not None else None,
        refused=_refused(samples, *limits),
    )


def _refused(samples: Sequence[StrangerSample], confidence: float, radii: float) -> dict[str, float]:
    shares = [sample.scores.refused(confidence, radii) for sample in samples]
    return {kind: _mean(share[kind] for share in shares) for kind in shares[0]}


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _pooled(separations: Sequence[Separation]) -> PooledSeparation:
    aurocs = [separation.auroc for separation in separations]
    return PooledSeparation(
        auroc=_mean(aurocs),
        deviation=float(np.std(aurocs, ddof=1)) if len(aurocs) > 1 else None,
        caught=_mean(separation.caught for separation in separations),
    )
