"""Layers fitted to their quantised inputs, and channels brought together before they share a scale."""

from __future__ import annotations

import numpy as np
import pytest

from edge_road.export.balance import balance
from edge_road.export.refit import refit, weight_scales

RNG = np.random.default_rng(0)
WEIGHT_OI = RNG.normal(0, 0.3, (12, 20)).astype(np.float32)
BIAS_O = RNG.normal(0, 0.1, 12).astype(np.float32)


MIXING = np.random.default_rng(1).normal(size=(6, 20))


def mixed_samples(count: int = 4000, narrowest: float = 0.05) -> np.ndarray:
    """Correlated, positive, and of different widths, like activations behind a ReLU."""
    sources = RNG.normal(size=(count, 6)) @ MIXING
    return (np.maximum(sources, 0) * np.geomspace(narrowest, 5, 20)).astype(np.float32)


def error(
    samples_SI: np.ndarray, scale: float, values: np.ndarray, scales: np.ndarray, bias: np.ndarray
) -> float:
    seen_SI = np.clip(np.rint(samples_SI / scale), -127, 127) * scale
    wanted_SO = samples_SI @ WEIGHT_OI.T + BIAS_O
    return float(np.square(seen_SI @ (values * scales[:, None]).T + bias - wanted_SO).mean())


def test_a_fitted_layer_loses_less_than_a_rounded_one_on_images_it_has_not_seen() -> None:
    samples_SI, others_SI = mixed_samples(narrowest=5), mixed_samples(narrowest=5)
    # A calibrator clips some; what is clipped shows in channels that go along with it.
    scale = float(np.quantile(samples_SI, 0.99)) / 127
    scales_O = weight_scales(WEIGHT_OI)
    rounded = np.rint(WEIGHT_OI / scales_O[:, None])
    fitted = refit(WEIGHT_OI, BIAS_O, samples_SI, scale)
    plain = error(others_SI, scale, rounded, scales_O, BIAS_O)
    assert error(others_SI, scale, fitted.values_OI, fitted.scales_O, fitted.bias_O) < 0.8 * plain


def test_the_mean_of_every_output_stays_what_it_was() -> None:
    samples_SI = mixed_samples()
    scale = float(samples_SI.max()) / 40  # clips and rounds heavily
    fitted = refit(WEIGHT_OI, BIAS_O, samples_SI, scale)
    seen_SI = np.clip(np.rint(samples_SI / scale), -127, 127) * scale
    got_SO = seen_SI @ (fitted.values_OI * fitted.scales_O[:, None]).T + fitted.bias_O
    np.testing.assert_allclose(
        got_SO.mean(axis=0), (samples_SI @ WEIGHT_OI.T + BIAS_O).mean(axis=0), atol=1e-4
    )


def test_with_few_samples_only_the_bias_moves() -> None:
    fitted = refit(WEIGHT_OI, BIAS_O, mixed_samples(30), 0.1)
    scales_O = weight_scales(WEIGHT_OI)
    np.testing.assert_array_equal(fitted.values_OI, np.rint(WEIGHT_OI / scales_O[:, None]))
    assert (fitted.bias_O != BIAS_O).all()


@pytest.mark.parametrize("fill", [0.0, 3.0])
def test_inputs_that_never_change_do_no_harm(fill: float) -> None:
    fitted = refit(WEIGHT_OI, BIAS_O, np.full((200, 20), fill, np.float32), 0.05)
    assert np.isfinite(fitted.bias_O).all()
    assert np.isfinite(balance(np.full((200, 20), fill, np.float32)).gain_C).all()


def test_a_balanced_layer_computes_what_it_computed() -> None:
    samples_SI = mixed_samples()
    found = balance(samples_SI)
    weight_OI, bias_O = found.undo(WEIGHT_OI, BIAS_O)
    got_SO = found.apply(samples_SI) @ weight_OI.T + bias_O
    np.testing.assert_allclose(got_SO, samples_SI @ WEIGHT_OI.T + BIAS_O, atol=1e-3)


def test_balanced_channels_use_both_signs_and_are_closer_in_width() -> None:
    samples_SI = mixed_samples()
    balanced_SI = balance(samples_SI).apply(samples_SI)
    assert np.abs(balanced_SI).max() == pytest.approx(1.0, abs=0.01)
    assert balanced_SI.min() < -0.9
    before, after = np.ptp(samples_SI, axis=0), np.ptp(balanced_SI, axis=0)
    assert after.max() / after.min() == pytest.approx((before.max() / before.min()) ** 0.5, rel=0.05)
