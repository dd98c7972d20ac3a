"""A real convolutional ONNX graph of a few kilobytes, to quantise, run, damage and refuse."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

SIZE = (16, 24)


def conv_graph(batch: int | str = "N", seed: int = 0, classes: int = 3, features: int = 8) -> ModelProto:
    """Cast, transpose, conv, depthwise conv, pooling, two linear layers, temperature, softmax."""
    rng = np.random.default_rng(seed)
    weights = {
        "scale": np.float32(255.0),
        "temperature": np.float32(2.0),
        "stem": rng.normal(0, 0.5, (6, 3, 3, 3)),
        "stem_bias": rng.normal(0, 0.1, 6),
        "depthwise": rng.normal(0, 0.5, (6, 1, 3, 3)),
        "point": rng.normal(0, 0.5, (6, 6, 1, 1)),
        "feature": rng.normal(0, 0.7, (features, 6)),
        "classifier": rng.normal(0, 2.0, (features, classes)),
        "classifier_bias": rng.normal(0, 0.1, classes),
    }
    nodes = [
        helper.make_node("Cast", ["images"], ["pixels"], "Cast_0", to=TensorProto.FLOAT),
        helper.make_node("Transpose", ["pixels"], ["planes"], "Transpose_1", perm=[0, 3, 1, 2]),
        helper.make_node("Div", ["planes", "scale"], ["unit"], "Div_2"),
        helper.make_node("Conv", ["unit", "stem", "stem_bias"], ["a"], "Conv_3", pads=[1, 1, 1, 1]),
        helper.make_node("HardSwish", ["a"], ["b"], "HardSwish_4"),
        helper.make_node("Conv", ["b", "depthwise"], ["c"], "Conv_5", group=6),
        helper.make_node("Conv", ["c", "point"], ["d"], "Conv_6"),
        helper.make_node("Add", ["d", "c"], ["e"], "Add_7"),
        helper.make_node("GlobalAveragePool", ["e"], ["f"], "GlobalAveragePool_8"),
        helper.make_node("Flatten", ["f"], ["g"], "Flatten_9"),
        helper.make_node("Gemm", ["g", "feature"], ["features"], "Gemm_10", transB=1),
        helper.make_node("Gemm", ["features", "classifier", "classifier_bias"], ["logits"], "Gemm_11"),
        helper.make_node("Div", ["logits", "temperature"], ["cooled"], "Div_12"),
        helper.make_node("Softmax", ["cooled"], ["probabilities"], "Softmax_13", axis=1),
    ]
    widths = {"probabilities": classes, "logits": classes, "features": features}
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("images", TensorProto.UINT8, [batch, *SIZE, 3])],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [batch, w]) for n, w in widths.items()],
        [numpy_helper.from_array(np.asarray(w, np.float32), name) for name, w in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def conv_bytes(batch: int | str = "N", **options: int) -> bytes:
    return bytes(conv_graph(batch, **options).SerializeToString())


def noise_images(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, *SIZE, 3), dtype=np.uint8)
