"""Drawings of trees, once a process: premultiplied grey and opacity, to be tinted where they stand."""

from __future__ import annotations

from functools import cache

import cv2
import numpy as np

from edge_road.synthetic.colours import Field

TALL, WIDE = 128, 96
PER_KIND = 4
KINDS = ("leafy", "conifer", "bare")


@cache
def tree(kind: str, number: int) -> Field:
    """rows x columns x (shade, opacity), 0 to 1; the trunk's foot is the middle of the last row."""
    rng = np.random.default_rng((KINDS.index(kind), number))
    canvas = np.zeros((TALL * 2, WIDE * 2, 2), dtype=np.uint8)
    _DRAWERS[kind](canvas, rng)
    small = cv2.resize(canvas, (WIDE, TALL), interpolation=cv2.INTER_AREA)
    return np.asarray(small, dtype=np.float32) / 255


def _leafy(canvas: cv2.typing.MatLike, rng: np.random.Generator) -> None:
    cv2.line(canvas, (WIDE, 2 * TALL), (WIDE, TALL), (70, 255), 9)
    for _ in range(170):
        angle, radius = rng.uniform(0, 2 * np.pi), np.sqrt(rng.random())
        x, y = WIDE + 70 * radius * np.cos(angle), 0.72 * TALL + 72 * radius * np.sin(angle)
        # Light falls from above: the lower and the earlier leaves are darker.
        shade = int(np.clip(190 - 0.75 * y + rng.normal(0, 22), 30, 230))
        cv2.circle(canvas, (int(x), int(y)), int(rng.uniform(7, 17)), (shade, 255), -1)


def _conifer(canvas: cv2.typing.MatLike, rng: np.random.Generator) -> None:
    cv2.line(canvas, (WIDE, 2 * TALL), (WIDE, TALL), (60, 255), 7)
    for y in np.linspace(2 * TALL - 22, 8, 60):
        reach = (y / (2 * TALL)) * 72 * rng.uniform(0.75, 1.1)
        shade = int(np.clip(120 + rng.normal(0, 25), 40, 220))
        for side in (-1, 1):
            tip = (int(WIDE + side * reach), int(y + 14))
            cv2.line(canvas, (WIDE, int(y)), tip, (shade, 255), 6)


def _bare(canvas: cv2.typing.MatLike, rng: np.random.Generator) -> None:
    def branch(x: float, y: float, angle: float, length: float, thick: float) -> None:
        if length < 7:
            return
        end_x, end_y = x + length * np.sin(angle), y - length * np.cos(angle)
        cv2.line(
            canvas, (int(x), int(y)), (int(end_x), int(end_y)), (int(rng.uniform(70, 130)), 255), int(thick)
        )
        for turn in (rng.uniform(-0.75, -0.2), rng.uniform(0.2, 0.75)):
            branch(end_x, end_y, angle + turn, length * rng.uniform(0.62, 0.8), max(thick * 0.68, 1))

    branch(WIDE, 2 * TALL, 0.0, 66, 9)


_DRAWERS = {"leafy": _leafy, "conifer": _conifer, "bare": _bare}
