"""Real bundles for tests of the runtime, made without training."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from edge_road.backends.fake import LEVEL_OF_STATE, SHARPNESS
from edge_road.backends.onnxrt import INPUT_NAME, OnnxPredictor
from edge_road.bundle import PROBE_FILE, Artefact, Manifest, Probe, record_files, write_bundle
from edge_road.conditions import STATES, ClassList
from edge_road.frames import Floats, Images
from edge_road.preprocess import Preprocessing

Size = tuple[int, int]


def write_small_bundle(
    path: Path,
    model: bytes,
    classes: tuple[str, ...] = STATES,
    size: Size = (32, 32),
    features: int = 3,
    logits_NC: Floats | None = None,
    smoke_limits: dict[str, float] | None = None,
) -> str:
    """A complete bundle around an ONNX model; `logits_NC` replaces the true outputs of the probe frames."""
    predictor = OnnxPredictor(model, ClassList(classes), size, name="small")
    images_NHWC = _images(size)
    if logits_NC is None:
        logits_NC = predictor.predict(images_NHWC).logits_NC
    probe = Probe(images_NHWC, np.zeros(len(images_NHWC), np.int64), {"float32": logits_NC})
    contents = {"model.onnx": model, PROBE_FILE: probe.to_bytes()}
    artefact = Artefact(
        file="model.onnx",
        temperature=1.0,
        confidence_threshold=0.6,
        centroids=((0.0,) * features,) * len(classes),
        radii=(1e6,) * len(classes),  # any picture is familiar
    )
    manifest = Manifest(
        name="small",
        version="0",
        classes=classes,
        preprocessing=Preprocessing(height=size[0], width=size[1], shrink="halves"),
        input_name=INPUT_NAME,
        input_shape=(0, *size, 3),
        outputs={"probabilities": (len(classes),), "logits": (len(classes),), "features": (features,)},
        artefacts={"float32": artefact},
        calibration=None,
        smoke_limits=smoke_limits or {},
        method="softmax",
        seed=0,
        recipe={},
        recipe_digest="0",
        data_digest="0",
        git_commit=None,
        files=record_files(contents),
    )
    return write_bundle(path, manifest, contents)


def brightness_model(classes: tuple[str, ...] = STATES, size: Size = (32, 32)) -> bytes:
    """The fake backend's rule as an ONNX graph: the state is the nearest level of brightness."""
    from onnx import TensorProto, helper, numpy_helper

    levels_C = np.array([[LEVEL_OF_STATE[state] for state in ClassList(classes).states]], np.float32)
    constants = {"levels": levels_C, "sharpness": np.array(-SHARPNESS, np.float32)}
    nodes = [
        helper.make_node("Cast", [INPUT_NAME], ["pixels"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["pixels"], ["features"], axes=[1, 2], keepdims=0),
        helper.make_node("ReduceMean", ["features"], ["grey"], axes=[1], keepdims=1),
        helper.make_node("Sub", ["grey", "levels"], ["difference"]),
        helper.make_node("Abs", ["difference"], ["distance"]),
        helper.make_node("Mul", ["distance", "sharpness"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
    ]
    columns = {"probabilities": len(classes), "logits": len(classes), "features": 3}
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", c]) for n, c in columns.items()]
    graph = helper.make_graph(
        nodes,
        "brightness",
        [helper.make_tensor_value_info(INPUT_NAME, TensorProto.UINT8, ["N", *size, 3])],
        outputs,
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def _images(size: Size) -> Images:
    return np.random.default_rng(0).integers(0, 256, (4, *size, 3), dtype=np.uint8)
