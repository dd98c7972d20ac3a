"""How sure a loss is: two models on the same images, image by image.

260 images cannot tell a loss of one point from chance, so a figure travels with its 95 % interval
(paired bootstrap, Efron 1979) and with the probability that chance alone gives as large a loss
(sign-flip test, Fisher 1935: where the models differ, either could have been the better one).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edge_road.config import StrictModel

RESAMPLES = 4000
MOST_ENUMERATED = 12
"""images that differ; up to here every pattern of signs is counted, above they are drawn"""
_ROUNDING = 1e-12

Bools = npt.NDArray[np.bool_]
Floats64 = npt.NDArray[np.float64]


class Loss(StrictModel):
    """What the second model loses against the first, as a mean over images."""

    value: float
    low: float
    high: float
    """95 % interval of `value`"""
    chance: float
    """probability of at least this loss if both models were equally good"""
    images: int


def paired_loss(before_RN: Bools, after_RN: Bools, seed: int = 0) -> Loss:
    """`True` is good. Rows are conditions of the same N images: an image counts once, with its mean."""
    differences_N = (before_RN.astype(np.float64) - after_RN.astype(np.float64)).mean(axis=0)
    generator = np.random.default_rng(seed)
    low, high = _interval(differences_N, generator)
    return Loss(
        value=round(float(differences_N.mean()), 6),
        low=round(low, 6),
        high=round(high, 6),
        chance=round(_chance(differences_N, generator), 6),
        images=len(differences_N),
    )


def _interval(differences_N: Floats64, generator: np.random.Generator) -> tuple[float, float]:
    """A resample of N images draws each distinct difference so and so often: a multinomial count."""
    values_K, counts_K = np.unique(differences_N, return_counts=True)
    total = len(differences_N)
    drawn_SK = generator.multinomial(total, counts_K / total, size=RESAMPLES)
    low, high = np.quantile(drawn_SK @ values_K / total, (0.025, 0.975))
    return float(low), float(high)


def _chance(differences_N: Floats64, generator: np.random.Generator) -> float:
    sizes_K = np.abs(differences_N[differences_N != 0])
    if len(sizes_K) <= MOST_ENUMERATED:
        patterns_S = np.arange(2 ** len(sizes_K))
        signs_SK = 1.0 - 2.0 * ((patterns_S[:, None] >> np.arange(len(sizes_K))) & 1)
    else:
        signs_SK = generator.choice((-1.0, 1.0), size=(RESAMPLES, len(sizes_K)))
    sums_S = signs_SK @ sizes_K
    return float((sums_S >= differences_N.sum() - _ROUNDING).mean())
