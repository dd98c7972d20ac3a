from __future__ import annotations

import numpy as np
import pytest

from edge_road.errors import DataError
from edge_road.synthetic.sheet import contact_sheet


def plain(shade: int, height: int = 20, width: int = 30) -> np.ndarray:
    return np.full((height, width, 3), shade, dtype=np.uint8)


def test_pictures_stand_side_by_side_and_then_below() -> None:
    sheet = contact_sheet([plain(10), plain(20), plain(30)], columns=2)
    assert sheet.shape == (4 + 2 * 24, 4 + 2 * 34, 3)
    assert (sheet[4:24, 4:34] == 10).all()
    assert (sheet[4:24, 38:68] == 20).all()
    assert (sheet[28:48, 4:34] == 30).all()
    assert (sheet[28:48, 38:68] == 255).all()


def test_pictures_of_different_sizes_share_the_largest_tile() -> None:
    sheet = contact_sheet([plain(10, 20, 30), plain(20, 40, 10)], columns=2)
    assert sheet.shape == (48, 4 + 2 * 34, 3)
    assert (sheet[4:44, 38:48] == 20).all()


def test_a_long_caption_does_not_run_into_the_next_tile() -> None:
    pictures = [plain(10), plain(20)]
    alone = contact_sheet(pictures, 2, ["a caption far longer than its picture", ""])
    none = contact_sheet(pictures, 2, ["", ""])
    assert (alone[:, 36:] == none[:, 36:]).all()
    assert (alone != none).any()


@pytest.mark.parametrize(("count", "columns", "captions"), [(0, 2, []), (2, 0, []), (2, 2, ["one"])])
def test_impossible_sheets_are_refused(count: int, columns: int, captions: list[str]) -> None:
    with pytest.raises(DataError):
        contact_sheet([plain(1)] * count, columns, captions)
