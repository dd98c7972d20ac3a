"""A graph computed by torch is the graph that ONNX Runtime computes."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from tiny_onnx import conv_bytes, conv_graph, noise_images

from edge_road.errors import BackendError
from edge_road.nn.onnx_twin import OPERATORS, OnnxTwin


def test_it_gives_the_outputs_of_onnx_runtime() -> None:
    images_NHWC = noise_images(3)
    session = onnxruntime.InferenceSession(conv_bytes(), providers=["CPUExecutionProvider"])
    logits_NC, features_ND = session.run(["logits", "features"], {"images": images_NHWC})
    with torch.no_grad():
        said = OnnxTwin(conv_bytes(), {})(torch.from_numpy(images_NHWC))
    np.testing.assert_allclose(said[0].numpy(), logits_NC, atol=1e-4)
    np.testing.assert_allclose(said[1].numpy(), features_ND, atol=1e-4)


def test_an_operator_that_it_does_not_know_is_named() -> None:
    graph = conv_graph()
    graph.graph.node[4].op_type = "Erf"
    with pytest.raises(BackendError) as refusal:
        OnnxTwin(graph.SerializeToString(), {})
    assert refusal.value.details["got"] == "Erf"


def _alone(
    operator: str, arrays: list[np.ndarray], outputs: int = 1, **attributes: object
) -> list[np.ndarray]:
    names = [f"x{number}" for number in range(len(arrays))]
    results = [f"y{number}" for number in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(operator, names, results, **attributes)],
        "alone",
        [helper.make_tensor_value_info(names[0], TensorProto.FLOAT, arrays[0].shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in results],
        [numpy_helper.from_array(array, name) for array, name in zip(arrays[1:], names[1:])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(results, {names[0]: arrays[0]}))


RNG = np.random.default_rng(0)
PLANES = RNG.normal(0, 2, (2, 4, 6, 5)).astype(np.float32)
ROWS = RNG.normal(0, 2, (3, 6)).astype(np.float32)


@pytest.mark.parametrize(
    ("operator", "arrays", "attributes"),
    [
        (
            "Conv",
            [PLANES, RNG.normal(0, 1, (2, 4, 3, 3)).astype(np.float32)],
            {"pads": [0, 0, 1, 1], "strides": [2, 2]},
        ),
        (
            "Conv",
            [PLANES, RNG.normal(0, 1, (4, 1, 3, 3)).astype(np.float32)],
            {"pads": [1, 1, 1, 1], "group": 4},
        ),
        ("MaxPool", [PLANES], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}),
        ("HardSigmoid", [PLANES], {"alpha": 1 / 6, "beta": 0.5}),
        ("Clip", [PLANES, np.float32(0.0), np.float32(1.5)], {}),
        ("ReduceMean", [PLANES, np.array([2, 3])], {"keepdims": 1}),
        ("Reshape", [PLANES, np.array([0, -1])], {}),
        ("Gemm", [ROWS, RNG.normal(0, 1, (6, 2)).astype(np.float32), np.ones(2, np.float32)], {}),
        ("Split", [ROWS, np.array([1, 2, 3])], {"axis": 1}),
        ("Sigmoid", [PLANES], {}),
        ("LogSoftmax", [ROWS], {"axis": 1}),
        ("Flatten", [PLANES], {"axis": 1}),
        ("GlobalAveragePool", [PLANES], {}),
    ],
)
def test_each_operator_alone(operator: str, arrays: list[np.ndarray], attributes: dict[str, object]) -> None:
    wanted = _alone(operator, arrays, outputs=3 if operator == "Split" else 1, **attributes)
    found = OPERATORS[operator]([torch.tensor(array) for array in arrays], attributes)
    for one, other in zip(found if isinstance(found, tuple) else [found], wanted):
        np.testing.assert_allclose(one.numpy(), other, atol=1e-5)
