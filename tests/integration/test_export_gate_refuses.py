"""Ways to spoil an INT8 model that look like success; the gate must refuse each, for its reason.

On a small drawn run, or on a real one that EDGE_ROAD_ROAD3_RUN names.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper
from tiny_run import draw_pictures, write_tiny_run

from edge_road.export.calibration import sample_activations
from edge_road.export.exporting import Exporter, Judged, open_exporter
from edge_road.export.gate import Verdict
from edge_road.export.onnx_edit import read_model, write_model
from edge_road.export.quantize import Int8Layer, int8_layers, quantize, quantized_tensors
from edge_road.export.steps import Steps
from edge_road.export.target import CalibrationSettings, MachineLimits, SampleSettings, Target
from edge_road.export.work import int8_work_share

pytestmark = pytest.mark.timeout(900)

TARGET = Target(
    name="test",
    tensorrt=False,
    float16=False,
    machine_limits=MachineLimits(measure=False),
    samples=SampleSettings(parity=24, robustness=24, gate=60),
    calibration=CalibrationSettings(images=48),  # eight perturbations, three of each
)


class Spoiler:
    """A run's float model, made and measured once, and INT8 models of it."""

    def __init__(self, run: Path, target: Target) -> None:
        self.exporter: Exporter = open_exporter(run, target, Steps(), None)
        self.float_bytes, parity = self.exporter.make_float(run)
        self.reference: Judged = self.exporter.judge_float(self.float_bytes, parity)

    def judge(self, int8_bytes: bytes) -> Verdict:
        return self.exporter.judge_reduced(int8_bytes, "int8", self.reference).verdict

    def with_images(self, images_NHWC: np.ndarray) -> bytes:
        tensors = quantized_tensors(self.float_bytes)
        settings = self.exporter.target.calibration
        layers = int8_layers(
            self.float_bytes, sample_activations(self.float_bytes, tensors, images_NHWC), settings
        )
        return quantize(self.float_bytes, layers, layers)

    def proper(self) -> bytes:
        return self.exporter.make_int8(self.float_bytes)[0]

    def with_random_images(self, levels: int) -> bytes:
        """Noise instead of roads: all scales are those of another world."""
        shape = (24, *self.reference.measured.predictor.size, 3)
        return self.with_images(np.random.default_rng(0).integers(0, levels, shape, dtype=np.uint8))

    def with_one_scale_for_everything(self) -> bytes:
        """Every convolution, depthwise too, min-max per tensor for weights and inputs."""
        nodes = [node for node in read_model(self.float_bytes).graph.node if node.op_type in ("Conv", "Gemm")]
        tensors = list(dict.fromkeys(node.input[0] for node in nodes))
        images_NHWC = self.exporter.material.calibration_images(self.exporter.target)
        activations = sample_activations(self.float_bytes, tensors, images_NHWC)
        weights = {t.name: numpy_helper.to_array(t) for t in read_model(self.float_bytes).graph.initializer}
        layers = {}
        for node in nodes:
            weight = weights[node.input[1]]
            step = max(float(np.abs(weight).max()) / 127, 1e-12)  # a dead layer has only zeros
            values = np.rint(weight / step).astype(np.int8)
            channels = len(weight)
            scale = activations[node.input[0]].largest / 127
            layers[node.name] = Int8Layer(scale, values, np.full(channels, step, np.float32), None)
        return quantize(self.float_bytes, layers, layers)

    def with_swapped_channels(self) -> bytes:
        """Blue for red, in the first layer: what an OpenCV picture does to an RGB model."""
        model = read_model(self.proper())
        first = next(node for node in model.graph.node if node.op_type == "Conv")
        name = first.input[1].removesuffix("_dq") + "_q"
        tensor = next(t for t in model.graph.initializer if t.name == name)
        values = numpy_helper.to_array(tensor)[:, ::-1]
        tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return write_model(model)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Spoiler:
    if real := os.environ.get("EDGE_ROAD_ROAD3_RUN"):
        return Spoiler(Path(real), Target(name="test", tensorrt=False, float16=False))
    place = tmp_path_factory.mktemp("gate")
    run = write_tiny_run(place / "tiny", draw_pictures(place / "pictures"))
    return Spoiler(run, TARGET)


def test_the_proper_recipe_is_released(tiny: Spoiler) -> None:
    verdict = tiny.judge(tiny.proper())
    assert verdict.passed, verdict.reasons


def test_swapped_channels_are_refused_for_their_labels(tiny: Spoiler) -> None:
    verdict = tiny.judge(tiny.with_swapped_channels())
    assert verdict.reasons[0].startswith("agreement")


def test_one_scale_for_everything_is_refused(tiny: Spoiler) -> None:
    verdict = tiny.judge(tiny.with_one_scale_for_everything())
    assert any(reason.startswith("agreement") for reason in verdict.reasons)


@pytest.mark.parametrize("levels", [4, 256], ids=["covered camera", "white noise"])
def test_random_calibration_images_are_refused_whatever_the_labels_say(tiny: Spoiler, levels: int) -> None:
    """Labels may agree by luck; scales that were not made for the road never do."""
    verdict = tiny.judge(tiny.with_random_images(levels))
    assert any(reason.startswith("excess noise of scales not made") for reason in verdict.reasons)


def test_the_search_shows_its_trials(tiny: Spoiler, capsys: pytest.CaptureFixture[str]) -> None:
    settings = TARGET.calibration.model_copy(update={"sensitivity_images": 2, "search_images": 12})
    target = TARGET.model_copy(update={"quantization": "search", "calibration": settings})
    int8_bytes, _, found = replace(tiny.exporter, target=target).make_int8(tiny.float_bytes)
    text = capsys.readouterr().out
    assert "float layers  the last of them  agreement  logit error" in text
    assert found is not None
    damages = [damage for _, damage in found.worst]
    assert len(damages) == 10
    assert damages == sorted(damages, reverse=True)
    assert all(name in text for name, _ in found.worst)
    assert found.trials[0].kept_float == ()
    assert int8_work_share(int8_bytes) > 0.5
