"""Whether two models differ: a paired bootstrap over the pictures that both have answered."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edge_road.config import StrictModel
from edge_road.errors import DataError

DRAWS = 10_000
LEVEL = 0.95
Shares = npt.NDArray[np.generic]


class Difference(StrictModel):
    """A share of `a` minus that of `b`, with the interval that holds 95 % of the draws."""

    difference: float
    low: float
    high: float

    @property
    def significant(self) -> bool:
        """Zero lies outside."""
        return self.low > 0.0 or self.high < 0.0


def paired_bootstrap(
    correct_a_N: Shares, correct_b_N: Shares, generator: np.random.Generator, draws: int = DRAWS
) -> Difference:
    """Percentile interval (Efron and Tibshirani, 1993, chapter 13) of the mean difference.

    Both answered the same pictures, so pictures are drawn, not answers: what is hard for both
    cancels. An entry is right or wrong, or the share of runs in which the picture was right.
    A draw is the number of times that each distinct difference comes up (a multinomial), which
    costs the same for ten pictures as for a million.
    """
    gain_N = _gains(correct_a_N, correct_b_N)
    value_V, count_V = np.unique(gain_N, return_counts=True)
    picked_DV = generator.multinomial(len(gain_N), count_V / len(gain_N), size=draws)
    means_D = picked_DV @ value_V / len(gain_N)
    low, high = np.quantile(means_D, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Difference(difference=float(gain_N.mean()), low=float(low), high=float(high))


def _gains(correct_a_N: Shares, correct_b_N: Shares) -> npt.NDArray[np.float64]:
    a_N, b_N = (np.asarray(correct, dtype=np.float64) for correct in (correct_a_N, correct_b_N))
    if a_N.shape != b_N.shape or a_N.ndim != 1 or a_N.size == 0:
        raise DataError(
            "two models are compared on the same pictures",
            got=f"answers of shapes {a_N.shape} and {b_N.shape}",
            expected="one for each picture, and at least one",
        )
    if not (np.isfinite(a_N).all() and np.isfinite(b_N).all()):
        raise DataError("an answer is right or wrong", got="one that is not a number")
    # Shares over runs such as 0.1 + 0.2 differ in the last bit: equal ones must count as one.
    return np.round(a_N - b_N, 9)
