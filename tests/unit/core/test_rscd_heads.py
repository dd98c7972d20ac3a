"""27 flat labels and three masked heads say the same."""

from __future__ import annotations

import numpy as np
import pytest

from edge_road.conditions import RSCD_LABELS
from edge_road.rscd_heads import HEADS, MASKED, head_labels

ALL_27 = np.arange(27)


def test_each_label_becomes_its_friction_material_and_unevenness() -> None:
    heads = dict(zip(HEADS, head_labels(ALL_27)))
    for index, label in enumerate(RSCD_LABELS):
        answers = {
            head: HEADS[head][i] if (i := labels_N[index]) != MASKED else None
            for head, labels_N in heads.items()
        }
        assert answers == {
            "friction": label.friction,
            "material": label.material,
            "unevenness": label.unevenness,
        }


def test_snow_and_ice_have_no_material_and_loose_ground_no_unevenness() -> None:
    heads = head_labels(ALL_27)
    assert (heads.friction_N != MASKED).all()
    assert (heads.material_N == MASKED).sum() == 3
    assert (heads.unevenness_N == MASKED).sum() == 3 + 3 * 2


def test_no_two_labels_have_the_same_answers() -> None:
    assert len(set(zip(*head_labels(ALL_27)))) == 27


def test_a_masked_label_is_masked_in_every_head_and_a_foreign_one_is_refused() -> None:
    assert [head.tolist() for head in head_labels(np.array([MASKED]))] == [[MASKED]] * 3
    with pytest.raises(IndexError):
        head_labels(np.array([27]))
