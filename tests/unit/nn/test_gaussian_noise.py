"""Noise comes from the generator alone, has the asked size, and stays within a camera's range."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import kstest

from edge_road.nn.noise import add_gaussian_noise, normal_like

GREY = torch.full((4, 3, 64, 64), 0.5)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_same_generator_state_gives_the_same_noise() -> None:
    assert torch.equal(add_gaussian_noise(GREY, 0.1, seeded(3)), add_gaussian_noise(GREY, 0.1, seeded(3)))
    assert not torch.equal(add_gaussian_noise(GREY, 0.1, seeded(3)), add_gaussian_noise(GREY, 0.1, seeded(4)))


def test_the_global_seed_is_neither_used_nor_moved() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    add_gaussian_noise(GREY, 0.1, seeded())
    assert torch.equal(torch.get_rng_state(), before)


def test_sigma_is_the_standard_deviation_in_pixel_units() -> None:
    noise = add_gaussian_noise(GREY, 0.05, seeded()) - GREY
    assert noise.std().item() == pytest.approx(0.05, rel=0.02)
    assert noise.mean().item() == pytest.approx(0.0, abs=0.001)


def test_noisy_images_saturate_like_a_camera() -> None:
    noisy = add_gaussian_noise(GREY, 1.0, seeded())
    assert noisy.min() == 0.0
    assert noisy.max() == 1.0


def test_the_clean_images_stay_clean_and_no_noise_changes_nothing() -> None:
    images = GREY.clone()
    assert torch.equal(add_gaussian_noise(images, 0.0, seeded()), GREY)
    add_gaussian_noise(images, 0.3, seeded())
    assert torch.equal(images, GREY)


def test_the_memory_layout_does_not_change_the_noise_and_is_kept() -> None:
    images = torch.rand(2, 3, 8, 6)
    last = images.contiguous(memory_format=torch.channels_last)
    noisy = add_gaussian_noise(last, 0.1, seeded())
    assert torch.equal(noisy, add_gaussian_noise(images, 0.1, seeded()))
    assert noisy.is_contiguous(memory_format=torch.channels_last)


def test_many_numbers_are_the_same_with_any_number_of_threads() -> None:
    values, threads = torch.empty(3, 400, 700), torch.get_num_threads()
    drawn = []
    try:
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            drawn.append(normal_like(values, seeded()))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(drawn[0], drawn[1])
    assert torch.equal(drawn[0], drawn[2])


def test_many_numbers_are_normal_and_no_part_repeats_another() -> None:
    generator = seeded()
    first, second = (normal_like(torch.empty(1_000_003), generator) for _ in range(2))
    assert kstest(first.numpy(), "norm").pvalue > 0.01
    assert len(torch.cat([first, second]).unique()) > 1_800_000
