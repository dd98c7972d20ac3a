"""Textures repeat without a seam, wherever they are looked up."""

from __future__ import annotations

import numpy as np
import pytest

from edge_road.synthetic import tiles

ALL = [tiles.noise(1), tiles.ridges(2), tiles.stones(3)]


@pytest.mark.parametrize("tile", ALL)
def test_one_period_further_there_is_the_same_value(tile: tiles.Tile) -> None:
    x, y = np.random.default_rng(0).random((2, 20, 30)).astype(np.float32)
    there = tile.at(x + 3, y - 2)
    np.testing.assert_allclose(there, tile.at(x, y), atol=0.02)


@pytest.mark.parametrize("tile", ALL)
def test_the_seam_is_no_rougher_than_the_rest(tile: tiles.Tile) -> None:
    along = np.linspace(0, 1, 400, dtype=np.float32)[None, :]
    step = np.float32(0.25 / tiles.SIZE)
    at_seam = np.abs(tile.at(along * 0 + step, along) - tile.at(along * 0 - step, along)).max()
    in_middle = max(
        float(np.abs(tile.at(along * 0 + x + step, along) - tile.at(along * 0 + x - step, along)).max())
        for x in (0.2, 0.4, 0.6, 0.8)
    )
    assert at_seam <= 1.5 * in_middle


def test_noise_has_zero_mean_and_unit_variance_in_its_band() -> None:
    values = tiles.noise(5, coarsest=1 / 4, finest=1 / 16).values[:-1, :-1]
    assert abs(float(values.mean())) < 1e-4
    assert float(values.std()) == pytest.approx(1, abs=1e-4)
    power = np.abs(np.fft.rfft2(values)) ** 2
    cycles = np.hypot(np.fft.fftfreq(tiles.SIZE)[:, None], np.fft.rfftfreq(tiles.SIZE)[None, :]) * tiles.SIZE
    inside = (cycles >= 4) & (cycles <= 16)
    assert power[inside].sum() > 0.999 * power.sum()


def test_ridges_are_thin_lines_between_nothing() -> None:
    values = tiles.ridges(2).values
    assert values.min() == 0
    assert values.max() <= 1
    assert 0.01 < float((values > 0.5).mean()) < 0.15


def test_different_seeds_give_different_textures() -> None:
    assert not np.allclose(tiles.noise(1).values, tiles.noise(2).values)
