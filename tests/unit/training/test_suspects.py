"""A ranking of doubtful labels, with cleanlab and without it."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest

from edge_road.training.data_check.suspects import disbelieved, rank_suspects, suspects


def clusters(flips: int = 10) -> tuple[np.ndarray, np.ndarray, list[int]]:
    rng = np.random.default_rng(0)
    labels_N = np.repeat(np.arange(3), 70)
    features_ND = rng.normal(0, 1, (210, 8)).astype(np.float32)
    features_ND[:, :3] += 4 * np.eye(3)[labels_N]
    flipped = rng.choice(210, flips, replace=False)
    labels_N[flipped] = (labels_N[flipped] + 1) % 3
    return features_ND, labels_N.astype(np.int64), flipped.tolist()


@pytest.mark.parametrize("with_cleanlab", [True, False])
def test_flipped_labels_rank_first(with_cleanlab: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if with_cleanlab:
        pytest.importorskip("cleanlab")
    else:
        forbid(monkeypatch, "cleanlab")
    features_ND, labels_N, flipped = clusters()
    keys = [str(i) for i in range(len(labels_N))]
    ranked = [int(f.file) for f in rank_suspects(features_ND, labels_N, keys, ("dry", "wet", "icy"))]
    assert len(set(ranked[:10]) & set(flipped)) >= 9


def forbid(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    real = builtins.__import__

    def importing(name: str, *rest: Any, **named: Any) -> Any:
        if name.split(".")[0] == package:
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", importing)


def test_our_own_ranking_agrees_with_cleanlabs_on_clear_cases() -> None:
    pytest.importorskip("cleanlab")
    labels_N = np.array([0] * 10 + [1] * 10)
    probabilities_NC = np.where(np.eye(2)[labels_N] > 0, 0.9, 0.1)
    probabilities_NC[3], probabilities_NC[15] = (0.02, 0.98), (0.95, 0.05)
    assert disbelieved(labels_N, probabilities_NC).tolist() == [3, 15]
    assert suspects(labels_N, probabilities_NC).tolist() == [3, 15]


def test_classes_of_a_handful_are_left_out_and_one_class_alone_is_not_judged() -> None:
    features_ND, labels_N, _ = clusters(0)
    keys = [str(i) for i in range(len(labels_N))]
    labels_N[:3] = 3
    ranked = rank_suspects(features_ND, labels_N, keys, ("dry", "wet", "icy", "ice"))
    assert {"0", "1", "2"}.isdisjoint(finding.file for finding in ranked)
    assert rank_suspects(features_ND, np.zeros(210, np.int64), keys, ("dry", "wet")) == []
