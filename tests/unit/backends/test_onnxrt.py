"""ONNX Runtime behind the Predictor protocol."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tiny_bundle import write_tiny_bundle
from tiny_onnx import SIZE, conv_bytes, noise_images

from edge_road.backends.onnxrt import LARGEST_BATCH, OnnxPredictor
from edge_road.bundle import load_bundle
from edge_road.conditions import ROAD_CLASSES, ClassList
from edge_road.errors import BackendError
from edge_road.predictor import Predictor


def open_tiny(batch: int | str = "N") -> OnnxPredictor:
    return OnnxPredictor(conv_bytes(batch), ROAD_CLASSES, SIZE, name="tiny")


def test_it_is_a_predictor_and_its_probabilities_are_the_softmax_of_cooled_logits() -> None:
    predictor = open_tiny()
    answer = predictor.predict(noise_images(5))
    powers_NC = np.exp(answer.logits_NC / 2.0)
    assert isinstance(predictor, Predictor)
    np.testing.assert_allclose(
        answer.probabilities_NC, powers_NC / powers_NC.sum(axis=1, keepdims=True), atol=1e-6
    )
    assert answer.features_ND.shape == (5, 8)


@pytest.mark.parametrize("count", [1, LARGEST_BATCH, 2 * LARGEST_BATCH + 3])
def test_many_images_give_what_each_gives_alone(count: int) -> None:
    predictor, images_NHWC = open_tiny(), noise_images(count)
    alone = [predictor.predict(image[None]).logits_NC for image in images_NHWC]
    np.testing.assert_allclose(
        predictor.predict(images_NHWC).logits_NC, np.concatenate(alone), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("batch", [1, 4])
def test_a_graph_of_a_fixed_batch_takes_any_number_of_images(batch: int) -> None:
    images_NHWC = noise_images(6)
    expected = open_tiny().predict(images_NHWC)
    answer = open_tiny(batch).predict(images_NHWC)
    assert len(answer) == 6
    np.testing.assert_allclose(answer.logits_NC, expected.logits_NC, rtol=1e-4, atol=1e-5)


def test_no_images_give_no_answers() -> None:
    answer = open_tiny().predict(noise_images(0))
    assert len(answer) == 0
    assert answer.features_ND.shape == (0, 8)


@pytest.mark.parametrize(
    "images", [noise_images(2)[:, 1:], noise_images(2).astype(np.float32), noise_images(2)[0]]
)
def test_images_of_another_kind_are_refused(images: np.ndarray) -> None:
    with pytest.raises(BackendError, match="wrong kind"):
        open_tiny().predict(images)


def test_a_model_of_another_size_or_class_count_is_refused() -> None:
    with pytest.raises(BackendError, match="other inputs or outputs"):
        OnnxPredictor(conv_bytes(), ROAD_CLASSES, (16, 16), name="tiny")
    with pytest.raises(BackendError, match="other inputs or outputs"):
        OnnxPredictor(conv_bytes(), ClassList(("dry", "icy")), SIZE, name="tiny")


def test_a_provider_that_is_not_there_is_refused() -> None:
    with pytest.raises(BackendError, match="where it was asked to") as caught:
        OnnxPredictor(conv_bytes(), ROAD_CLASSES, SIZE, name="tiny", providers=("TensorrtExecutionProvider",))
    assert caught.value.exit_code == 4


def test_a_silent_fallback_to_the_cpu_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime claims CUDA, opens without an error, and runs on the CPU."""
    import onnxruntime

    session = SimpleNamespace(get_providers=lambda: ["CPUExecutionProvider"])
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr(onnxruntime, "InferenceSession", lambda *_, **__: session)
    with pytest.raises(BackendError, match="where it was asked to") as caught:
        OnnxPredictor(conv_bytes(), ROAD_CLASSES, SIZE, name="tiny", providers=("CUDAExecutionProvider",))
    assert caught.value.details["expected"] == "CUDAExecutionProvider"


def test_a_run_that_fails_inside_the_runtime_is_a_backend_error(monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = open_tiny()

    def broken(*_: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(predictor, "_session", SimpleNamespace(run=broken))
    with pytest.raises(BackendError, match="cannot run") as caught:
        predictor.predict(noise_images(1))
    assert caught.value.details["got"] == "out of memory"


def test_a_bundle_opens_and_its_manifest_must_fit_the_model(tmp_path: Path) -> None:
    bundle = load_bundle(write_tiny_bundle(tmp_path / "good"))
    assert OnnxPredictor.from_bundle(bundle).name == "onnx float32 on CPU"
    other_batch = write_tiny_bundle(tmp_path / "batch", input_shape=(1, 32, 40, 3))
    with pytest.raises(BackendError, match="differ from the manifest"):
        OnnxPredictor.from_bundle(load_bundle(other_batch))
    other_input = write_tiny_bundle(tmp_path / "input", input_name="frames")
    with pytest.raises(BackendError, match="other inputs or outputs"):
        OnnxPredictor.from_bundle(load_bundle(other_input))


def test_importing_the_backend_imports_no_runtime() -> None:
    code = (
        "import sys, edge_road.backends.onnxrt; print({'onnx', 'onnxruntime', 'torch'} & sys.modules.keys())"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert answer.stdout.strip() == "set()"
