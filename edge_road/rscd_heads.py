"""The 27 RSCD labels as three questions: friction, material, unevenness; what a label hides is masked."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from edge_road.conditions import LOOSE, PAVED, RSCD_LABELS, STATE_OF_FRICTION, UNEVENNESS, RscdLabel

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

FRICTIONS = tuple(STATE_OF_FRICTION)
MATERIALS = (*PAVED, *LOOSE)
HEADS = {"friction": FRICTIONS, "material": MATERIALS, "unevenness": UNEVENNESS}
MASKED = -1
"""no answer exists: snow and ice hide the material, mud and gravel have no graded unevenness"""


class HeadLabels(NamedTuple):
    """Indices into HEADS, or MASKED."""

    friction_N: npt.NDArray[np.int64]
    material_N: npt.NDArray[np.int64]
    unevenness_N: npt.NDArray[np.int64]


def head_labels(labels27_N: npt.NDArray[np.int64]) -> HeadLabels:
    """From indices into RSCD_CLASSES; a masked label stays masked in every head."""
    import numpy as np

    rows_NH = np.array([_row(label) for label in RSCD_LABELS], dtype=np.int64)[labels27_N]
    rows_NH[labels27_N == MASKED] = MASKED
    return HeadLabels(*rows_NH.T)


def _row(label: RscdLabel) -> tuple[int, int, int]:
    return (
        _index(FRICTIONS, label.friction),
        _index(MATERIALS, label.material),
        _index(UNEVENNESS, label.unevenness),
    )


def _index(names: tuple[str, ...], name: str | None) -> int:
    return MASKED if name is None else names.index(name)
