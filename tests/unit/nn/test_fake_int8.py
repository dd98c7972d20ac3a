"""An INT8 layer in training: the same steps as the exported one, and gradients that mean something."""

from __future__ import annotations

import numpy as np
import torch

from edge_road.nn.fake_int8 import FakeInt8, LayerValues, rounded


def test_rounding_is_that_of_quantize_and_dequantize_linear() -> None:
    values = np.random.default_rng(0).normal(0, 2, 500).astype(np.float32)
    steps = np.clip(np.rint(values / np.float32(0.02)), -127, 127)
    found = rounded(torch.from_numpy(values), torch.tensor(0.02))
    np.testing.assert_array_equal(found.numpy(), (steps * np.float32(0.02)).astype(np.float32))


def test_half_a_step_goes_to_the_even_one_as_in_onnx() -> None:
    assert rounded(torch.tensor([0.5, 1.5, -2.5]), torch.tensor(1.0)).tolist() == [0.0, 2.0, -2.0]


def test_the_gradient_passes_rounding_and_stops_at_the_ends() -> None:
    values = torch.tensor([0.3, 126.6, 130.0, -500.0], requires_grad=True)
    torch.autograd.backward(rounded(values, torch.tensor(1.0)).sum())
    assert values.grad is not None
    assert values.grad.tolist() == [1.0, 1.0, 0.0, 0.0]


def test_the_gradient_of_the_step_is_that_of_lsq() -> None:
    """Esser et al. 2020, Eq. 3: round(v/s) - v/s inside, the last level outside."""
    scale = torch.tensor(0.5, requires_grad=True)
    torch.autograd.backward(rounded(torch.tensor([0.6, 1000.0]), scale).sum())
    assert scale.grad is not None
    np.testing.assert_allclose(float(scale.grad), (1 - 0.6 / 0.5) + 127, rtol=1e-6)


def test_what_was_put_in_comes_out_when_nothing_was_learnt() -> None:
    values = LayerValues("x", 0.125, np.ones((2, 3), np.float32), np.ones(2, np.float32), 0, None)
    layer = FakeInt8(values, torch.nn.Parameter(torch.tensor(0.125).log()), channels_first=False)
    learnt = layer.learnt()
    np.testing.assert_allclose(learnt.input_scale, 0.125, rtol=1e-6)
    np.testing.assert_array_equal(learnt.weight, values.weight)
    assert learnt.bias_O is None
