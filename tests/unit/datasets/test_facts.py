"""Colours, depth and orientation are read from headers, and damaged ones do no harm."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("PIL")
from planted_defects import cmyk_jpeg, deep_png, draw_road, huge_png, jpeg, turned_jpeg

from edge_road.datasets.facts import Facts, read_facts

ROAD = draw_road("dry", np.random.default_rng(0), side=40)


def test_an_ordinary_picture_is_upright_rgb_of_8_bits() -> None:
    assert read_facts(jpeg(ROAD)) == Facts(40, 40, 8, False, 1)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_exif_orientation_is_read(orientation: int) -> None:
    assert read_facts(turned_jpeg(ROAD, orientation)).orientation == orientation


def test_print_colours_depth_and_size_are_read() -> None:
    assert read_facts(cmyk_jpeg(ROAD)).cmyk
    assert read_facts(deep_png(ROAD)).bits == 16
    facts = read_facts(huge_png())
    assert facts.width * facts.height == 400_000_000


def test_whatever_the_bytes_there_is_an_answer() -> None:
    rng = np.random.default_rng(0)
    for whole in (turned_jpeg(ROAD), deep_png(ROAD)):
        for length in range(0, len(whole), 7):
            read_facts(whole[:length])
        for _ in range(300):
            damaged = bytearray(whole)
            damaged[int(rng.integers(min(200, len(whole))))] = int(rng.integers(256))
            read_facts(bytes(damaged))
    assert read_facts(b"") == read_facts(b"no picture") == Facts()
