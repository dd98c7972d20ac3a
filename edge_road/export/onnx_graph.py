"""From a trained RoadModel to one ONNX graph with preprocessing and softmax inside.

uint8 NHWC RGB -> cast, transpose, / 255, normalise (in the model) -> logits, features, and
probabilities = softmax(logits / temperature).

The batch is dynamic: a vehicle classifies several regions in one call, evaluation wants large
batches, ONNX Runtime takes any, and TensorRT takes a range through an optimisation profile
(TensorRT-RTX builds the same kernels for it). A target may fix it instead.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from typing import Any

import torch
from torch import nn

from edge_road import __version__
from edge_road.backends.onnx_check import check_onnx
from edge_road.backends.onnxrt import INPUT_NAME, OUTPUT_NAMES
from edge_road.errors import BackendError
from edge_road.export.onnx_edit import TEMPERATURE, make_anonymous, set_metadata, write_model
from edge_road.nn.model import RoadModel
from edge_road.preprocess import Preprocessing

OPSET = 18
IR_VERSION = 10  # the newest that ONNX Runtime 1.18 and TensorRT 10.3 read


class _Graph(nn.Module):
    temperature: torch.Tensor

    def __init__(self, model: RoadModel) -> None:
        super().__init__()
        self.model = model
        # Not 1: the exporter would drop a division by one.
        self.register_buffer(TEMPERATURE, torch.tensor(2.0))

    def forward(self, images_NHWC: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        # TensorRT knows uint8 at its border only, so the cast comes first. Without contiguous()
        # the transposed strides would turn every pooling into a gather.
        images_NCHW = images_NHWC.to(torch.float32).permute(0, 3, 1, 2).contiguous() / 255
        answer = self.model(images_NCHW)
        probabilities_NC = torch.softmax(answer.logits_BC / self.temperature, dim=1)
        return probabilities_NC, answer.logits_BC, answer.features_BD


def export_graph(
    model: RoadModel,
    preprocessing: Preprocessing,
    classes: tuple[str, ...],
    batch: int = 0,
    backbone: str = "the network",
) -> bytes:
    """ONNX bytes of `model` in eval mode; `batch` 0 stands for any. Equal weights, equal bytes."""
    graph = _Graph(model).eval().cpu()
    # Two images: the exporter takes a batch of one for a constant.
    example = torch.zeros(batch or 2, preprocessing.height, preprocessing.width, 3, dtype=torch.uint8)
    any_batch = None if batch else ({0: torch.export.Dim("N", min=1, max=1024)},)
    try:
        proto = _export(graph, example, any_batch)
    except torch.onnx.OnnxExporterError as error:
        got = str(error.__cause__ or error).strip().splitlines()[:1]
        raise BackendError(
            "torch cannot export this network", where=backbone, got="".join(got), fix="another model.backbone"
        ) from None
    proto.ir_version = min(proto.ir_version, IR_VERSION)
    make_anonymous(proto)
    set_metadata(
        proto,
        {
            "edge_road.version": __version__,
            "edge_road.classes": ",".join(classes),
            "edge_road.preprocessing": preprocessing.model_dump_json(),
        },
    )
    content = write_model(proto)
    _require_opset(check_onnx(content, where=f"the exported graph of {backbone}").opset)
    return content


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Sums in one order, so that a figure of torch is the same in every export of a run."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _export(graph: nn.Module, example: torch.Tensor, dynamic_shapes: Any) -> Any:
    # The exporter tells of its own passes; a failure is an exception.
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), redirect_stderr(StringIO()), torch.no_grad():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            graph,
            (example,),
            dynamo=True,
            opset_version=OPSET,
            external_data=False,
            input_names=[INPUT_NAME],
            output_names=list(OUTPUT_NAMES),
            dynamic_shapes=dynamic_shapes,
            verbose=False,
        )
    if program is None:
        raise BackendError("torch gave no ONNX program")
    return program.model_proto


def _require_opset(opset: int) -> None:
    if opset != OPSET:  # the exporter changes an opset that it cannot serve without an error
        raise BackendError("torch exported another operator set", got=opset, expected=OPSET)
