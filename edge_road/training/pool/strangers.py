"""Pictures without a road, shown to several models: each judged by itself, then the mean of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    """On the whole test split; scales come from the validation split, places from the training split."""
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
    refused = [sample.scores.refused(*limits) for sample in samples]
    return StrangersRow(
        name=name,
        runs=len(samples),
        roads=sum(sample.result.roads for sample in samples),
        kinds={
            kind: {rule: _pooled([s.result.kinds[kind][rule] for s in samples]) for rule in by_rule}
            for kind, by_rule in first.kinds.items()
        },
        means={rule: _pooled([s.result.means[rule] for s in samples]) for rule in first.means},
        confidence=float(np.mean([confidence for confidence, _ in pairs])) if pairs else None,
        radii=float(np.mean([radii for _, radii in pairs])) if pairs else None,
        distance_limit=float(np.mean(alone)) if alone else None,
        refused={kind: float(np.mean([shares[kind] for shares in refused])) for kind in refused[0]},
    )


def _pooled(separations: Sequence[Separation]) -> PooledSeparation:
    aurocs = [separation.auroc for separation in separations]
    return PooledSeparation(
        auroc=float(np.mean(aurocs)),
        deviation=float(np.std(aurocs, ddof=1)) if len(aurocs) > 1 else None,
        caught=float(np.mean([separation.caught for separation in separations])),
    )
