"""Points on spheres stay within a camera's range and keep their distance all the same."""

from __future__ import annotations

import pytest
import torch

from edge_road.nn.noise import add_sphere_noise, at_distance

IMAGES = torch.rand(6, 3, 16, 12, generator=torch.Generator().manual_seed(3))


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def distances(images: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    return (images - others).flatten(1).norm(dim=1)


def test_the_distance_is_the_radius_although_pixels_saturate() -> None:
    radius = torch.tensor([0.0, 0.5, 2.0, 5.0, 8.0, 10.0])  # a value moves by 0.42 at 10, on average
    noisy = add_sphere_noise(IMAGES, radius, seeded())
    assert noisy.min() >= 0.0
    assert noisy.max() <= 1.0
    assert distances(noisy, IMAGES).tolist() == pytest.approx(radius.tolist(), rel=2e-3)


def test_plain_clipping_would_fall_short() -> None:
    direction = torch.randn(IMAGES.shape, generator=seeded())
    unit = direction / direction.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
    clipped = (IMAGES + 8.0 * unit).clamp(0.0, 1.0)
    assert distances(clipped, IMAGES).max() < 7.5


def test_the_direction_is_kept_where_nothing_saturates() -> None:
    grey = torch.full((2, 3, 4, 4), 0.5)
    direction = torch.randn(grey.shape, generator=seeded())
    moved = at_distance(grey, direction, torch.tensor([0.1, 0.2])) - grey
    for change, way, radius in zip(moved, direction, (0.1, 0.2)):
        assert torch.allclose(change, radius * way / way.norm(), atol=1e-6)


def test_a_radius_beyond_the_farthest_corner_ends_there() -> None:
    noisy = add_sphere_noise(IMAGES, torch.full((6,), 1e3), seeded())
    assert torch.isin(noisy, torch.tensor([0.0, 1.0])).float().mean() > 0.99


def test_the_generator_alone_decides() -> None:
    radius = torch.full((6,), 3.0)
    assert torch.equal(
        add_sphere_noise(IMAGES, radius, seeded(1)), add_sphere_noise(IMAGES, radius, seeded(1))
    )
    assert not torch.equal(
        add_sphere_noise(IMAGES, radius, seeded(1)), add_sphere_noise(IMAGES, radius, seeded(2))
    )
