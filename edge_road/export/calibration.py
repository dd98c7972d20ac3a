"""Which images calibrate, and how far the activations of a graph reach on them.

The images come from the training split alone, so that validation and test stay unseen; a share of them
is perturbed, so that the scales also cover what a vehicle's camera delivers at night and in spray.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge_road.backends.onnx_check import check_onnx
from edge_road.backends.onnxrt import INPUT_NAME, open_session
from edge_road.datasets.index import Labels
from edge_road.errors import DataError
from edge_road.evaluation.perturbations import perturb
from edge_road.export.onnx_edit import read_model, write_model
from edge_road.export.reach import SMALLEST_RANGE, reach
from edge_road.export.target import CalibrationSettings
from edge_road.frames import Floats, Images

PIXELS_OF_IMAGE = 32
"""drawn from each image and tensor: neighbours tell nothing new, and all of them fill the memory"""

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


def with_perturbations(
    images_NHWC: Images, labels_N: Labels, settings: CalibrationSettings, seed: int
) -> Images:
    """The calibration images: the same share of every class perturbed, each perturbation equally often."""
    if len(images_NHWC) == 0:
        raise DataError("there are no training images to calibrate with")
    result: Images = images_NHWC.copy()
    for number, name in enumerate(settings.perturbations):
        chosen = _dealt(labels_N, number, settings)
        result[chosen] = perturb(images_NHWC[chosen], name, seed, run=0)
    return result


def _dealt(labels_N: Labels, number: int, settings: CalibrationSettings) -> Positions:
    """The positions of the `number`-th perturbation.

    They are dealt in turn through one class after the other. A slice of each class by itself would be rounded
    to no image where classes are small, and with many of them whole perturbations would be missing.
    """
    by_class_N = np.argsort(labels_N, kind="stable")
    due_N = np.floor(settings.perturbed_share * np.arange(len(labels_N) + 1))
    perturbed = by_class_N[np.diff(due_N) > 0]
    return np.sort(perturbed[number :: len(settings.perturbations)])


@dataclass(frozen=True, eq=False)
class Activation:
    """Values of one inner tensor over the calibration images."""

    samples_SC: Floats
    """a row for each pixel that was drawn"""
    largest: float
    """of |x|, drawn or not"""
    of_pixels: bool
    """several of each image; a pooled vector comes once, and a few images do not show how far it reaches"""


Activations = Mapping[str, Activation]


def sample_activations(
    onnx_bytes: bytes, tensors: Sequence[str], images_NHWC: Images, seed: int = 0
) -> dict[str, Activation]:
    generator = np.random.default_rng(seed)
    largest = dict.fromkeys(tensors, 0.0)
    drawn: dict[str, list[Floats]] = {name: [] for name in tensors}
    for values in _run(onnx_bytes, tensors, images_NHWC):
        for name, value in zip(tensors, values):
            # np.maximum keeps NaN, which the built-in max would drop.
            largest[name] = float(np.maximum(largest[name], np.abs(value).max()))
            pixels_PC = value[0].reshape(value.shape[1], -1).T
            if len(pixels_PC) > PIXELS_OF_IMAGE:
                pixels_PC = pixels_PC[generator.choice(len(pixels_PC), PIXELS_OF_IMAGE, replace=False)]
            drawn[name].append(pixels_PC)
    if broken := [name for name in tensors if not np.isfinite(largest[name])]:
        raise DataError("the model gives infinite or undefined values on training images", got=broken[0])
    return {
        name: Activation(np.concatenate(drawn[name]), largest[name], len(drawn[name][0]) > 1)
        for name in tensors
    }


def activation_reach(activations: Activations, settings: CalibrationSettings) -> dict[str, float]:
    """For every tensor the |x| that becomes 127."""
    return {
        name: reach(activation.samples_SC, activation.largest, settings.method, settings.percentile)
        for name, activation in activations.items()
    }


def largest_values(onnx_bytes: bytes, images_NHWC: Images) -> dict[str, float]:
    """The largest |x| of every inner tensor: what float16 must be able to hold."""
    tensors = [name for node in read_model(onnx_bytes).graph.node[1:] for name in node.output]
    largest = dict.fromkeys(tensors, SMALLEST_RANGE)
    for values in _run(onnx_bytes, tensors, images_NHWC):
        for name, value in zip(tensors, values):
            largest[name] = max(largest[name], float(np.abs(value).max()))
    return largest


def _run(
    onnx_bytes: bytes, tensors: Sequence[str], images_NHWC: Images
) -> Iterable[list[npt.NDArray[np.float32]]]:
    """The values of inner tensors, image by image: they are too large to keep. A fixed batch repeats it."""
    import onnx

    model = read_model(onnx_bytes)
    present = {value.name for value in model.graph.output}
    inner = onnx.shape_inference.infer_shapes(model).graph.value_info
    types = {value.name: value.type.tensor_type.elem_type for value in inner}
    for name in tensors:
        if name not in present:
            described = onnx.helper.make_tensor_value_info(
                name, types.get(name, onnx.TensorProto.FLOAT), None
            )
            model.graph.output.append(described)
    content = write_model(model)
    check_onnx(content, where="the calibration graph")
    session = open_session(content, "the calibration graph")
    batch = session.get_inputs()[0].shape[0]
    copies = batch if isinstance(batch, int) else 1
    for image_HWC in images_NHWC:
        yield session.run(list(tensors), {INPUT_NAME: np.repeat(image_HWC[None], copies, axis=0)})
