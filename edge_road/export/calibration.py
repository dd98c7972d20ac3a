"""How far the activations of a graph reach, measured on training images.

The images come from the training split alone, so that validation and test stay unseen; some
carry Gaussian noise, so that the scales also cover what a vehicle's camera delivers at night.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from edge_road.backends.onnx_check import check_onnx
from edge_road.backends.onnxrt import INPUT_NAME
from edge_road.datasets.index import Labels
from edge_road.errors import DataError
from edge_road.export.onnx_edit import read_model, write_model
from edge_road.export.target import CalibrationSettings
from edge_road.frames import Images

BINS = 2048
LEVELS = 127
"""of a symmetric int8: -127 to 127, with zero exactly in the middle"""
MSE_CANDIDATES = 64
SMALLEST_RANGE = 1e-5  # a scale of zero is refused by TensorRT and means nothing

Positions = npt.NDArray[np.int64]


def stratified_positions(labels_N: Labels, count: int, generator: np.random.Generator) -> Positions:
    """`count` positions with every class as often as it can be; all of them when there are fewer."""
    if count >= len(labels_N):
        return np.arange(len(labels_N), dtype=np.int64)
    queues = [generator.permutation(np.flatnonzero(labels_N == c)) for c in np.unique(labels_N)]
    # Take the first of every class, then the second of every class, and so on.
    order = sorted((turn, c) for c, queue in enumerate(queues) for turn in range(len(queue)))
    chosen = [queues[c][turn] for turn, c in order[:count]]
    return np.sort(np.asarray(chosen, dtype=np.int64))


def with_noise(images_NHWC: Images, settings: CalibrationSettings, generator: np.random.Generator) -> Images:
    """The calibration images: a share of them gets Gaussian noise, clipped like a saturated camera."""
    if len(images_NHWC) == 0:
        raise DataError("there are no training images to calibrate with")
    noisy = generator.permutation(len(images_NHWC))[: round(settings.noisy_share * len(images_NHWC))]
    result: Images = images_NHWC.copy()
    for position in np.sort(noisy):
        noise = generator.normal(0.0, settings.sigma * 255.0, result.shape[1:])
        result[position] = np.clip(np.rint(result[position] + noise), 0, 255).astype(np.uint8)
    return result


@dataclass
class Histogram:
    """Counts of |x| in equal bins from 0 to the largest value seen."""

    largest: float
    counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(BINS, np.int64))

    def add(self, values: npt.NDArray[np.float32]) -> None:
        self.counts += np.histogram(np.abs(values), bins=BINS, range=(0.0, self.largest))[0]

    def reach(self, settings: CalibrationSettings) -> float:
        """The |x| that becomes 127; what lies beyond it is clipped."""
        found = (
            _percentile(self, settings.percentile) if settings.method == "percentile" else _least_mse(self)
        )
        return max(found, SMALLEST_RANGE)


def activation_reach(
    onnx_bytes: bytes, tensors: Sequence[str], images_NHWC: Images, settings: CalibrationSettings
) -> dict[str, float]:
    """For every named tensor of the float graph, the |x| that becomes 127."""
    largest = dict.fromkeys(tensors, 0.0)
    for values in _run(onnx_bytes, tensors, images_NHWC):
        for name, value in zip(tensors, values):
            # np.maximum keeps NaN, which the built-in max would drop.
            largest[name] = float(np.maximum(largest[name], np.abs(value).max()))
    if broken := [name for name in tensors if not np.isfinite(largest[name])]:
        raise DataError("the model gives infinite or undefined values on training images", got=broken[0])
    histograms = {name: Histogram(max(reach, SMALLEST_RANGE)) for name, reach in largest.items()}
    for values in _run(onnx_bytes, tensors, images_NHWC):
        for name, value in zip(tensors, values):
            histograms[name].add(value)
    return {name: histogram.reach(settings) for name, histogram in histograms.items()}


def _run(
    onnx_bytes: bytes, tensors: Sequence[str], images_NHWC: Images
) -> Iterable[list[npt.NDArray[np.float32]]]:
    """The values of inner tensors, image by image: they are too large to keep."""
    import onnx
    import onnxruntime

    model = read_model(onnx_bytes)
    for name in tensors:
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    content = write_model(model)
    check_onnx(content, where="the calibration graph")
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    for image_HWC in images_NHWC:
        yield session.run(list(tensors), {INPUT_NAME: image_HWC[None]})


def _percentile(histogram: Histogram, percentile: float) -> float:
    share = np.cumsum(histogram.counts) / max(1, histogram.counts.sum())
    first = int(np.searchsorted(share, percentile / 100.0))
    return histogram.largest * min(first + 1, BINS) / BINS


def _least_mse(histogram: Histogram) -> float:
    """The reach with the least mean squared error of rounding and clipping together."""
    width = histogram.largest / BINS
    centres = (np.arange(BINS) + 0.5) * width
    candidates = histogram.largest * np.arange(1, MSE_CANDIDATES + 1) / MSE_CANDIDATES
    errors = [float(histogram.counts @ _squared_error(centres, reach)) for reach in candidates]
    return float(candidates[int(np.argmin(errors))])


def _squared_error(values: npt.NDArray[np.floating], reach: float) -> npt.NDArray[np.floating]:
    step = reach / LEVELS
    return np.asarray((values - np.minimum(np.rint(values / step), LEVELS) * step) ** 2)
