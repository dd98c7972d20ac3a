"""One picture made of many, for reports and documentation."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from edge_road.errors import DataError
from edge_road.frames import Image

_GAP_PX = 4
_CAPTION_PX = 18
_PAPER, _INK = 255, (40, 40, 40)


def contact_sheet(images: Sequence[Image], columns: int, captions: Sequence[str] = ()) -> Image:
    """Tiles from left to right, top to bottom; every tile has the size of the largest picture."""
    if not images or columns < 1:
        raise DataError(
            "a contact sheet needs pictures and columns", got=f"{len(images)} in {columns} columns"
        )
    if captions and len(captions) != len(images):
        raise DataError("one caption a picture", got=f"{len(captions)} captions, {len(images)} pictures")
    tall = max(image.shape[0] for image in images) + (_CAPTION_PX if captions else 0)
    wide = max(image.shape[1] for image in images)
    rows = -(-len(images) // columns)
    sheet = np.full(
        (rows * (tall + _GAP_PX) + _GAP_PX, columns * (wide + _GAP_PX) + _GAP_PX, 3), _PAPER, dtype=np.uint8
    )
    for number, image in enumerate(images):
        row, column = divmod(number, columns)
        top, left = _GAP_PX + row * (tall + _GAP_PX), _GAP_PX + column * (wide + _GAP_PX)
        sheet[top : top + image.shape[0], left : left + image.shape[1]] = image
        if captions:
            _write(sheet, captions[number], left, top + tall - _CAPTION_PX, wide)
    return sheet


def _write(sheet: Image, caption: str, left: int, top: int, width: int) -> None:
    """In a window of its own, so that a long caption is cut instead of running into the next."""
    window = sheet[top : top + _CAPTION_PX, left : left + width]
    place = (1, _CAPTION_PX - 5)
    cv2.putText(window, caption, place, cv2.FONT_HERSHEY_SIMPLEX, 0.4, _INK, 1, cv2.LINE_AA)
