"""A layer's INT8 weights, chosen so that its outputs on quantised inputs stay what they were.

Rounding each weight to the nearest step is not the best a layer can do. With x the inputs that the float
network gives and x_q what INT8 makes of them, over the calibration images:
1. least squares: W' = argmin |W x - W' x_q|^2 + ridge |W - W'|^2, with the mean error moved into the bias
   (bias correction, Nagel et al. 2019, Eq. 17);
2. rounding column by column, each error passed on to the columns that are still free, weighted by the
   covariance of x_q (optimal brain surgeon, Hassibi and Stork 1993; as in GPTQ, Frantar et al. 2022, Eq. 2).
Every layer is fitted for itself, so one pass over the images serves them all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge_road.export.reach import LEVELS, SMALLEST_RANGE, half_scales

RIDGE = 0.01
"""as a share of the mean square of the inputs"""
LEAST_SAMPLES = 3
"""for each input channel; with fewer the fit would follow the sample and not the layer"""

Matrix = npt.NDArray[np.float64]
Float32s = npt.NDArray[np.float32]
Int8s = npt.NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Fitted:
    values_OI: Int8s
    scales_O: Float32s
    bias_O: Float32s


def refit(weight_OI: Float32s, bias_O: Float32s, samples_SI: Float32s, scale: float) -> Fitted:
    """`scale` is the step of the quantised inputs."""
    inputs_SI = samples_SI.astype(np.float64)
    seen_SI = np.clip(np.rint(inputs_SI / scale), -LEVELS, LEVELS) * scale
    weight, wanted_SO = weight_OI.astype(np.float64), inputs_SI @ weight_OI.astype(np.float64).T
    scales_O = weight_scales(weight_OI)
    if enough_samples(samples_SI):
        weight = _least_squares(weight, wanted_SO, seen_SI)
        scales_O = weight_scales(weight.astype(np.float32))
        values_OI = _round_in_turn(weight, scales_O, seen_SI)
    else:
        values_OI = np.clip(np.rint(weight / scales_O[:, None]), -LEVELS, LEVELS)
    rounded = values_OI * scales_O[:, None].astype(np.float64)
    shift_O = (wanted_SO - seen_SI @ rounded.T).mean(axis=0)
    return Fitted(values_OI.astype(np.int8), scales_O, (bias_O + shift_O).astype(np.float32))


def enough_samples(samples_SI: Float32s) -> bool:
    return bool(len(samples_SI) >= LEAST_SAMPLES * samples_SI.shape[1])


def weight_scales(weight_OI: Float32s) -> Float32s:
    """Symmetric per output channel: the largest |w| of a channel becomes 127."""
    largest_O = np.maximum(np.abs(weight_OI).reshape(len(weight_OI), -1).max(axis=1), SMALLEST_RANGE)
    return half_scales(largest_O / LEVELS)


def _least_squares(weight: Matrix, wanted_SO: Matrix, seen_SI: Matrix) -> Matrix:
    centred_SI = seen_SI - seen_SI.mean(axis=0)
    gram_II, ridge = _gram(centred_SI)
    cross_OI = wanted_SO.T @ centred_SI / len(seen_SI) + ridge * weight
    return np.asarray(np.linalg.solve(gram_II, cross_OI.T).T)


def _gram(rows_SI: Matrix) -> tuple[Matrix, float]:
    """Mean products of the inputs, with the ridge that keeps the matrix regular."""
    gram_II = rows_SI.T @ rows_SI / len(rows_SI)
    ridge = RIDGE * max(float(gram_II.trace()) / len(gram_II), SMALLEST_RANGE**2)
    return gram_II + ridge * np.eye(len(gram_II)), ridge


def _round_in_turn(weight: Matrix, scales_O: Float32s, seen_SI: Matrix) -> Matrix:
    upper_II = np.linalg.cholesky(np.linalg.inv(_gram(seen_SI)[0])).T
    free, values = weight.copy(), np.empty_like(weight)
    for column in range(weight.shape[1]):
        values[:, column] = np.clip(np.rint(free[:, column] / scales_O), -LEVELS, LEVELS)
        error_O = (free[:, column] - values[:, column] * scales_O) / upper_II[column, column]
        free[:, column:] -= np.outer(error_O, upper_II[column, column:])
    return values
