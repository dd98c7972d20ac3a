"""Labels that a simple classifier, trained without the picture in question, does not believe.

Confident learning (Northcutt, Jiang and Chuang 2021): a label is suspect when another class reaches
the mean confidence that its own members get. A ranking for a person to look through, not a verdict.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from edge_road.datasets.index import Labels
from edge_road.frames import Floats
from edge_road.training.data_check.findings import Finding

FOLDS = 5
MOST_PICTURES = 20_000


def rank_suspects(
    features_ND: Floats, labels_N: Labels, keys: Sequence[str], classes: Sequence[str], seed: int = 0
) -> list[Finding]:
    """The most doubtful first; nothing when fewer than two classes have enough pictures."""
    counts_C = np.bincount(labels_N, minlength=len(classes))
    large = np.flatnonzero(counts_C >= FOLDS)
    kept = np.flatnonzero(np.isin(labels_N, large))
    if len(large) < 2:
        return []
    dense_N = np.searchsorted(large, labels_N[kept])
    probabilities_NC = held_out_probabilities(features_ND[kept], dense_N, seed)
    findings = []
    for position in suspects(dense_N, probabilities_NC):
        said = int(probabilities_NC[position].argmax())
        reason = (
            f"labelled {classes[large[dense_N[position]]]} "
            f"({probabilities_NC[position, dense_N[position]]:.0%}), "
            f"looks like {classes[large[said]]} ({probabilities_NC[position, said]:.0%})"
        )
        findings.append(Finding("label_suspect", keys[kept[position]], reason))
    return findings


def held_out_probabilities(features_ND: Floats, labels_N: Labels, seed: int) -> npt.NDArray[np.float64]:
    """Logistic regression; each picture is judged by a model that has not seen it."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=200, class_weight="balanced"))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    probabilities = cross_val_predict(model, features_ND, labels_N, cv=folds, method="predict_proba")
    return np.asarray(probabilities, dtype=np.float64)


def suspects(labels_N: Labels, probabilities_NC: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Positions, the least confident label first; cleanlab's choice where it is installed."""
    try:
        from cleanlab.filter import find_label_issues
    except ImportError:
        return confident_suspects(labels_N, probabilities_NC)
    ranked = find_label_issues(
        labels_N, probabilities_NC, return_indices_ranked_by="self_confidence", n_jobs=1
    )
    return np.asarray(ranked, dtype=np.int64)


def confident_suspects(labels_N: Labels, probabilities_NC: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    classes = range(probabilities_NC.shape[1])
    thresholds_C = np.array([probabilities_NC[labels_N == c, c].mean() for c in classes])
    confident_NC = np.where(probabilities_NC >= thresholds_C, probabilities_NC, 0.0)
    said_N = confident_NC.argmax(axis=1)
    doubted = np.flatnonzero(confident_NC.any(axis=1) & (said_N != labels_N))
    own = probabilities_NC[doubted, labels_N[doubted]]
    return doubted[np.argsort(own, kind="stable")]
