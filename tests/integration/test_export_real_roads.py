"""MobileNetV3 on real photographs: what its float and INT8 exports keep, and what it says of two videos."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from pathlib import Path

import av
import pytest
from tiny_run import write_fitted_run

from edge_road.bundle import Bundle, load_bundle
from edge_road.cli import command
from edge_road.frames import Frame
from edge_road.recipe import ModelSettings
from edge_road.recipe_data import FolderData
from edge_road.runtime.decision import Past, decide, rules_for
from edge_road.runtime.model import load_model
from edge_road.runtime.perception import perception_of
from edge_road.runtime.vehicle import Vehicle
from edge_road.trust import DEVELOPMENT

pytestmark = [pytest.mark.shared_data, pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def bundle(
    shared_data: Path, shared_weights: Path, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Bundle:
    """A linear probe on ImageNet features, exported for the default target."""
    place = tmp_path_factory.mktemp("roads")
    data = FolderData(kind="folder", path=shared_data / "road3")
    weights = str(shared_weights / "tf_mobilenetv3_small_100.safetensors")
    run = write_fitted_run(place / "probe", data, ModelSettings(weights=weights), size=192)
    target = str(root / "export" / "targets" / "vehicle.toml")
    assert command("to-trt", [str(run), "--target", target, "--out", str(place / "bundle")]) == 0
    return load_bundle(place / "bundle")


def test_the_model_is_a_real_one(bundle: Bundle) -> None:
    report = json.loads(bundle.contents["report.json"])
    assert report["artefacts"]["float32"]["clean"]["clean"]["accuracy"] >= 0.9


def test_torch_and_onnx_agree_on_200_real_images(bundle: Bundle) -> None:
    parity = json.loads(bundle.contents["report.json"])["artefacts"]["float32"]["parity"]
    assert parity["images"] == 200
    assert parity["differing"] == 0
    assert parity["logit_difference"] <= 1e-4


def test_int8_agrees_with_float_on_98_percent_and_is_released(bundle: Bundle) -> None:
    int8 = json.loads(bundle.contents["report.json"])["artefacts"]["int8"]
    assert int8["parity"]["images"] >= 200
    assert int8["parity"]["differing"] <= 0.02 * int8["parity"]["images"]
    assert int8["released"], int8["reasons"]
    assert "int8" in bundle.manifest.artefacts


@pytest.mark.parametrize(
    ("name", "least_dry"), [("udacity*.mp4", 0.97), ("intel*.mp4", 0.5)], ids=["dash camera", "fixed camera"]
)
def test_real_videos_of_dry_roads_are_told_dry_or_doubted_and_never_anything_else(
    bundle: Bundle, shared_data: Path, name: str, least_dry: float
) -> None:
    """Other cameras than those of the photographs: the one over the road looks at it from the side."""
    vehicle = Vehicle(bundle=bundle.path, backend="onnx", trust=DEVELOPMENT)
    model = load_model(vehicle)
    perception, past = perception_of(vehicle, model), Past()
    rules, told = rules_for(vehicle.decision, model.confidence_threshold, period_s=0.04), Counter[str]()
    with av.open(str(next((shared_data / "video").glob(name)))) as video:
        for number, frame in enumerate(video.decode(video=0)):
            picture = Frame(frame.to_ndarray(format="rgb24"), number, (25 + number) * 40_000_000)
            evidence = perception.judge(perception.view(picture))
            past, decision = decide(past, evidence, picture.captured_mono_ns, rules)
            told[decision.state] += 1
    assert set(told) == {"dry", "unknown"}
    assert told["dry"] >= least_dry * sum(told.values())


@pytest.mark.skipif(importlib.util.find_spec("tensorrt_rtx") is None, reason="TensorRT-RTX is not installed")
def test_tensorrt_rtx_builds_all_and_runs_every_layer_but_the_depthwise_ones_in_int8(bundle: Bundle) -> None:
    artefacts = json.loads(bundle.contents["report.json"])["artefacts"]
    assert artefacts["float32"]["tensorrt_rtx"]["status"] == "built"
    assert artefacts["int8"]["tensorrt_rtx"]["status"] == "built"
    assert artefacts["float16"]["tensorrt_rtx"]["status"] == "built"
    assert artefacts["int8"]["tensorrt_rtx"]["int8_share"] >= 44 / 55 - 1e-9
    assert artefacts["int8"]["tensorrt_rtx"]["int8_work"]["share"] == pytest.approx(0.87, abs=0.005)
    assert artefacts["int8"]["tensorrt_rtx"]["int8_work"]["in_float"] == []
