"""Flatness puts the weights back and grows with the radius; thickness of a known boundary."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from edge_road.nn.attacks import Budget
from edge_road.nn.flatness import flatness, stepped
from edge_road.nn.thickness import boundary_thickness, segment_thickness


def fitted_net() -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(0)
    x, y = torch.randn(60, 4), torch.arange(60) % 3
    x[torch.arange(60), y] += 4
    net = nn.Linear(4, 3)
    optimiser = torch.optim.Adam(net.parameters(), 0.1)
    for _ in range(25):
        optimiser.zero_grad()
        cross_entropy(net(x), y).backward()
        optimiser.step()
    return net, x, y


def test_loss_grows_with_the_radius_and_the_weights_come_back() -> None:
    net, x, y = fitted_net()
    before = [p.clone() for p in net.parameters()]
    curve = flatness(
        net,
        lambda: float(cross_entropy(net(x), y)),
        torch.Generator().manual_seed(0),
        (0.0, 0.3, 1.0, 3.0),
        20,
    )
    assert [radius for radius, _ in curve] == [0.0, 0.3, 1.0, 3.0]
    assert curve[0][1] == pytest.approx(float(cross_entropy(net(x), y).detach()))
    losses = [loss for _, loss in curve]
    assert losses == sorted(losses)
    assert all(torch.equal(a, b) for a, b in zip(before, net.parameters()))


def test_a_step_has_its_length_and_weights_come_back_after_an_error() -> None:
    net, _, _ = fitted_net()
    before = torch.cat([p.detach().flatten() for p in net.parameters()])
    lengths = []

    def interrupted() -> None:
        with stepped(net, 0.5, torch.Generator().manual_seed(1)):
            moved = torch.cat([p.detach().flatten() for p in net.parameters()])
            lengths.append(float((moved - before).norm()))
            raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError):
        interrupted()
    assert lengths == pytest.approx([0.5], rel=1e-5)
    assert torch.equal(torch.cat([p.detach().flatten() for p in net.parameters()]), before)


class Ramp(nn.Module):
    """Two classes; the probability gap falls linearly with the mean of the picture: tanh(z) = g."""

    def __init__(self, slope: float) -> None:
        super().__init__()
        self.slope = slope

    def forward(self, images_BCHW: Tensor) -> Tensor:
        gap_B = (1 - 2 * images_BCHW.mean(dim=(1, 2, 3))).mul(self.slope)
        return torch.stack([gap_B, -gap_B], dim=1)


def test_thickness_of_a_known_ramp() -> None:
    """p_0 - p_1 = tanh(2 slope (0.5 - t)): between 0 and 0.75 for atanh(0.75) / (2 slope) of the way."""
    start, end = torch.zeros(3, 4, 4, dtype=torch.float64), torch.ones(3, 4, 4, dtype=torch.float64)
    share = float(torch.atanh(torch.tensor(0.75))) / (2 * 4.0)
    length = 48**0.5
    found = segment_thickness(Ramp(4.0), start, end, points=4001)
    assert found == pytest.approx(share * length, rel=0.01)
    assert segment_thickness(Ramp(16.0), start, end, points=4001) < 0.3 * found


def test_only_pictures_whose_class_changes_have_a_boundary() -> None:
    """0.3: right and within reach of the other side; 0.0: out of reach; 0.8: wrong from the start."""
    levels = torch.tensor([0.45, 0.0, 0.8])
    images = levels[:, None, None, None].expand(3, 3, 4, 4).contiguous()
    found = boundary_thickness(Ramp(4.0), images, torch.zeros(3, dtype=torch.int64), Budget("L2", 1.0, 10))
    assert len(found) == 1
    assert found[0] > 0
