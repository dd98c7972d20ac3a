"""Quantisation-aware training: every layer INT8, fine-tuned until it answers as the float model does.

The start is what calibration alone gives; the state that follows the float model best on validation images is
kept, so training never makes it worse there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from onnx import NodeProto, TensorProto

from edge_road.export.calibration import with_perturbations
from edge_road.export.depthwise import all_layers
from edge_road.export.material import Material
from edge_road.export.measure import open_predictor
from edge_road.export.onnx_edit import read_model
from edge_road.export.quantize import (
    Int8Layer,
    Int8Layers,
    balanced_name,
    bias_of,
    output_axis,
)
from edge_road.export.reach import LEVELS, half_scales
from edge_road.export.target import Target
from edge_road.frames import Images
from edge_road.nn.distill import Taught, fine_tune
from edge_road.nn.fake_int8 import LayerValues
from edge_road.nn.onnx_twin import OnnxTwin


@dataclass(frozen=True, eq=False)
class Trained:
    layers: dict[str, Int8Layer]
    errors: list[float]
    """against the float model on validation images: before training, and after each epoch"""


def train_int8(onnx_bytes: bytes, material: Material, target: Target) -> Trained:
    """Layers for `quantize`: all that a graph has, depthwise ones too."""
    start = all_layers(onnx_bytes, material.calibration_images(target), target.calibration, target.seed)
    twin = twin_of(onnx_bytes, start)
    teacher = open_predictor(onnx_bytes, "float32", material)

    def taught(images_NHWC: Images) -> Taught:
        said = teacher.predict(images_NHWC)
        return Taught(images_NHWC, said.logits_NC, said.features_ND)

    errors = fine_tune(
        twin,
        lambda epoch: taught(_lesson(material, target, epoch)),
        taught(material.search_images(target)),
        epochs=target.qat.epochs,
        batch_size=target.qat.batch_size,
        learning_rate=target.qat.learning_rate,
        seed=target.seed,
    )
    return Trained(learnt_layers(twin, start), errors)


def learnt_layers(twin: OnnxTwin, start: Int8Layers) -> dict[str, Int8Layer]:
    return {name: _as_layer(values, start[name]) for name, values in twin.learnt().items()}


def _lesson(material: Material, target: Target, epoch: int) -> Images:
    """The training pictures of an epoch: half of them mirrored, a share of them perturbed."""
    generator = np.random.default_rng((target.seed, epoch))
    order = generator.permutation(len(material.training))
    images_NHWC = material.training.images_NHWC[order]
    mirrored = generator.random(len(order)) < 0.5
    images_NHWC[mirrored] = images_NHWC[mirrored][:, :, ::-1]
    labels_N = material.training.labels_N[order]
    return with_perturbations(images_NHWC, labels_N, target.calibration, target.seed + epoch)


def twin_of(onnx_bytes: bytes, layers: Int8Layers) -> OnnxTwin:
    """What `quantize` makes of the graph, in torch."""
    graph = read_model(onnx_bytes).graph
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    chosen = [node for node in graph.node if node.name in layers]
    return OnnxTwin(onnx_bytes, {n.name: _as_values(n, layers[n.name], tensors) for n in chosen})


def _as_values(node: NodeProto, layer: Int8Layer, tensors: Mapping[str, TensorProto]) -> LayerValues:
    axis, found = output_axis(node), layer.balance
    shape = [-1 if dimension == axis else 1 for dimension in range(layer.values.ndim)]
    bias_O = layer.bias_O
    if bias_O is None and node.op_type != "MatMul":
        bias_O = bias_of(node, tensors, len(layer.scales_O))
    return LayerValues(
        input_name=balanced_name(node.input[0], found),
        input_scale=layer.input_scale,
        weight=layer.values * layer.scales_O.reshape(shape),
        scales_O=layer.scales_O,
        output_axis=axis,
        bias_O=bias_O,
        gain_C=None if found is None else found.gain_C,
        shift_C=None if found is None or found.keeps_zero else found.shift_C,
    )


def _as_layer(learnt: LayerValues, start: Int8Layer) -> Int8Layer:
    shape = [-1 if dimension == learnt.output_axis else 1 for dimension in range(learnt.weight.ndim)]
    steps = np.rint(learnt.weight / learnt.scales_O.reshape(shape))
    values = np.clip(steps, -LEVELS, LEVELS).astype(np.int8)
    scale = float(half_scales(np.array(learnt.input_scale)))
    return replace(start, input_scale=scale, values=values, bias_O=learnt.bias_O)
