"""A bundle whose model tells the state by brightness: real ONNX, real files, nothing to train."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from edge_road import __version__
from edge_road.bundle import Artefact, Manifest, Probe, record_files, write_bundle
from edge_road.evaluation.smoke import SMOKE_TESTS
from edge_road.frames import Images
from edge_road.preprocess import Preprocessing
from edge_road.recipe import Recipe

LEVELS = (40, 125, 210)
SIZE = (32, 40)
CLASSES = ("dry", "wet", "icy")


def grey_pictures(count: int = 30) -> tuple[Images, np.ndarray]:
    labels_N = np.arange(count) % 3
    images_NHWC = np.empty((count, *SIZE, 3), np.uint8)
    images_NHWC[:] = np.array(LEVELS, np.uint8)[labels_N][:, None, None, None]
    return images_NHWC, labels_N


def brightness_model(levels: tuple[int, ...] = LEVELS, int8_step: float | None = None) -> bytes:
    """logits = -|mean brightness - level| / 20; with a step, the brightness passes through INT8.

    A step of 2 holds 0 to 254; a smaller one saturates, as a wrong scale does.
    """
    constants = {
        "picture_axes": np.array([1, 2]),
        "colour_axis": np.array([1]),
        "levels": np.array([levels], np.float32),
        "slope": np.array(-0.05, np.float32),
    }
    nodes = [
        helper.make_node("Cast", ["images"], ["pixels"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["pixels", "picture_axes"], ["features"], keepdims=0),
        helper.make_node("ReduceMean", ["features", "colour_axis"], ["brightness"], keepdims=1),
        *_through_int8("brightness", "rounded", constants, int8_step),
        helper.make_node("Sub", ["rounded" if int8_step else "brightness", "levels"], ["offset"]),
        helper.make_node("Abs", ["offset"], ["distance"]),
        helper.make_node("Mul", ["distance", "slope"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "brightness",
        [helper.make_tensor_value_info("images", TensorProto.UINT8, ["N", *SIZE, 3])],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 3])
            for name in ("probabilities", "logits", "features")
        ],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _through_int8(source: str, result: str, constants: dict[str, Any], step: float | None) -> list[Any]:
    if step is None:
        return []
    constants |= {"step": np.array(step, np.float32), "zero": np.array(0, np.int8)}
    return [
        helper.make_node("QuantizeLinear", [source, "step", "zero"], ["codes"]),
        helper.make_node("DequantizeLinear", ["codes", "step", "zero"], [result]),
    ]


def write_tiny_bundle(
    path: Path,
    recipe: Recipe | None = None,
    *,
    smoke_limits: dict[str, float] | None = None,
    data_digest: str = "0" * 64,
    levels: tuple[int, ...] = LEVELS,
    int8_step: float | None = None,
    **changes: Any,
) -> Path:
    images_NHWC, labels_N = grey_pictures(12)
    probe = Probe(images_NHWC, labels_N, {})
    contents = {"model.onnx": brightness_model(levels), "probe.npz": probe.to_bytes()}
    if int8_step:
        contents["model.int8.onnx"] = brightness_model(levels, int8_step)
    artefact = Artefact(
        file="model.onnx",
        temperature=1.0,
        confidence_threshold=0.5,
        centroids=((0.0, 0.0, 0.0),) * 3,
        radii=(1.0,) * 3,
    )
    values: dict[str, Any] = {
        "name": path.name,
        "version": __version__,
        "classes": CLASSES,
        "preprocessing": Preprocessing(height=SIZE[0], width=SIZE[1]),
        "input_name": "images",
        "input_shape": (0, *SIZE, 3),
        "outputs": {"probabilities": (3,), "logits": (3,), "features": (3,)},
        "artefacts": {
            "float32": artefact,
            **({"int8": artefact.model_copy(update={"file": "model.int8.onnx"})} if int8_step else {}),
        },
        "calibration": None,
        "smoke_limits": dict.fromkeys(SMOKE_TESTS, 0.0) if smoke_limits is None else smoke_limits,
        "method": "softmax",
        "seed": 0,
        "recipe": (recipe or Recipe(name="tiny")).model_dump(mode="json"),
        "recipe_digest": "1" * 64,
        "data_digest": data_digest,
        "git_commit": None,
        "files": record_files(contents),
    }
    write_bundle(path, Manifest(**{**values, **changes}), contents)
    return path
