"""Labels that a simple classifier, trained without the picture in question, does not believe.

Ranked by self-confidence, the held-out probability of the given label (Northcutt, Jiang and Chuang
2021). A ranking for a person to look through, not a verdict: most of its end will be right.
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
LARGEST_SHARE = 0.1


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
    most = max(20, int(LARGEST_SHARE * len(kept)))
    for position in suspects(dense_N, probabilities_NC)[:most]:
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
    """Positions where another class is likelier, the least believed label first; cleanlab's if installed."""
    try:
        from cleanlab.filter import find_label_issues
    except ImportError:
        return disbelieved(labels_N, probabilities_NC)
    ranked = find_label_issues(
        labels_N,
        probabilities_NC,
        filter_by="predicted_neq_given",
        return_indices_ranked_by="self_confidence",
        n_jobs=1,
    )
    return np.asarray(ranked, dtype=np.int64)


def disbelieved(labels_N: Labels, probabilities_NC: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    doubted = np.flatnonzero(probabilities_NC.argmax(axis=1) != labels_N)
    return doubted[np.argsort(probabilities_NC[doubted, labels_N[doubted]], kind="stable")]
