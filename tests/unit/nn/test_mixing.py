"""A batch mixed with itself at any layer of the families that are known."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from edge_road.nn.backbone import build_backbone, inner_stages
from edge_road.nn.mixing import Mixture, Noise, PublishedNoise, changed_at, draw_mixture

FAMILIES = {
    "mobilenetv3_small_050": 5,
    "torchvision/mobilenet_v3_small": 12,
    "test_efficientnet": 4,
    "torchvision/efficientnet_b0": 8,
    "resnet18": 3,
    "torchvision/resnet18": 3,
    "test_vit": 0,
}


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_mixture_is_a_share_of_each_and_the_rest_of_its_partner() -> None:
    mixture = Mixture(torch.tensor([2, 0, 1]), 0.75)
    mixed = mixture.of(torch.tensor([[4.0], [8.0], [16.0]]))
    assert mixed.flatten().tolist() == [7.0, 7.0, 14.0]


def test_partners_are_a_permutation_and_shares_follow_beta() -> None:
    generator = seeded()
    drawn = [draw_mixture(8, 0.2, generator, torch.device("cpu")) for _ in range(300)]
    assert all(sorted(mixture.partner_B.tolist()) == list(range(8)) for mixture in drawn)
    shares = torch.tensor([mixture.share for mixture in drawn])
    # The variance of Beta(a, a) is 1 / (4 (2 a + 1)).
    assert shares.mean().item() == pytest.approx(0.5, abs=0.06)
    assert shares.var().item() == pytest.approx(1 / 5.6, abs=0.03)


def test_noise_has_the_levels_of_equation_2() -> None:
    values = torch.full((200, 100), 3.0)
    noisy = Noise(add=0.4, mult=0.2).on(values, seeded())
    assert noisy.mean().item() == pytest.approx(3.0, abs=0.02)
    assert noisy.var().item() == pytest.approx(0.4**2 + (0.2 * 3.0) ** 2, rel=0.03)


def test_published_noise_is_smaller_and_its_factors_are_bounded() -> None:
    generator, ones = seeded(), torch.ones(50, 50)
    factors = [PublishedNoise(mult=0.5).on(ones, generator) for _ in range(100)]
    assert all((factor - 1).abs().max() <= 0.5 for factor in factors)
    spreads = torch.tensor([(factor - 1).abs().max() for factor in factors])
    assert spreads.mean().item() == pytest.approx(0.5 * 2 / 7, rel=0.15)  # the mean of Beta(2, 5)


def test_no_noise_draws_nothing() -> None:
    generator = seeded()
    before = generator.get_state()
    values = torch.rand(4, 4)
    assert Noise().on(values, generator) is values
    assert torch.equal(generator.get_state(), before)


def test_the_change_happens_at_the_layer_and_only_within() -> None:
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    network, x = nn.Sequential(first, second), torch.rand(3, 2)

    def double(values: Tensor) -> Tensor:
        return 2 * values

    expected = {first: second(2 * first(x)), None: second(first(2 * x))}
    for layer, output in expected.items():
        with changed_at(network, layer, double):
            assert torch.equal(network(x), output)
    assert torch.equal(network(x), second(first(x)))


def test_the_layer_is_free_again_after_an_error() -> None:
    network = nn.Sequential(nn.Linear(2, 2))
    with pytest.raises(RuntimeError, match="mat1"), changed_at(network, network[0], lambda values: values):
        network(torch.rand(3, 5))
    assert not network[0]._forward_hooks


@pytest.mark.parametrize(("name", "count"), FAMILIES.items())
def test_every_inner_stage_of_a_family_is_passed_once_and_in_order(name: str, count: int) -> None:
    module = build_backbone(name).module.eval()
    stages = inner_stages(module)
    assert len(stages) == count
    passed: list[int] = []
    for number, stage in enumerate(stages):
        stage.register_forward_hook(lambda *_, number=number: passed.append(number))
    if stages:
        with torch.inference_mode():
            module(torch.zeros(1, 3, 32, 32))
    assert passed == list(range(count))
