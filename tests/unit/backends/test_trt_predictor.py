"""An engine behind the one Predictor protocol: on a stand-in that is as asynchronous as a GPU."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from fake_cuda import FakeDriver, install_fake_gpu, remove_gpu
from fake_tensorrt import install_fake_tensorrt, plan_of
from tiny_onnx import SIZE, conv_bytes, noise_images

from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.backends.trt import TrtPredictor, import_tensorrt
from edge_road.conditions import ROAD_CLASSES
from edge_road.errors import BackendError
from edge_road.predictor import Predictor


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    install_fake_tensorrt(monkeypatch)
    return install_fake_gpu(monkeypatch)


def predictor_of(plan: bytes, features: int = 8) -> TrtPredictor:
    return TrtPredictor(plan, ROAD_CLASSES, SIZE, features, name="trt")


def reference(onnx_bytes: bytes) -> OnnxPredictor:
    return OnnxPredictor(onnx_bytes, ROAD_CLASSES, SIZE, name="onnx")


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("count", [0, 1, 3, 4, 9])
def test_any_number_of_images_gives_what_the_onnx_model_gives(count: int) -> None:
    predictor = predictor_of(plan_of(conv_bytes()))
    assert isinstance(predictor, Predictor)
    images_NHWC = noise_images(count)
    answer, expected = predictor.predict(images_NHWC), reference(conv_bytes()).predict(images_NHWC)
    np.testing.assert_allclose(answer.logits_NC, expected.logits_NC, atol=1e-5)
    np.testing.assert_allclose(answer.probabilities_NC, expected.probabilities_NC, atol=1e-6)
    np.testing.assert_allclose(answer.features_ND, expected.features_ND, atol=1e-5)


@pytest.mark.usefixtures("gpu")
def test_an_engine_of_a_fixed_batch_is_filled_up() -> None:
    predictor = predictor_of(plan_of(conv_bytes(2), fixed=True))
    images_NHWC = noise_images(3)
    expected = reference(conv_bytes()).predict(images_NHWC)
    np.testing.assert_allclose(predictor.predict(images_NHWC).logits_NC, expected.logits_NC, atol=1e-5)


def test_a_batch_size_that_repeats_becomes_one_launch(gpu: FakeDriver) -> None:
    predictor = predictor_of(plan_of(conv_bytes()))
    frames = [noise_images(1, seed) for seed in range(4)]
    answers = [predictor.predict(frame).logits_NC for frame in frames]
    assert predictor.captured
    assert gpu.launches == 3
    for frame, answer in zip(frames, answers):
        np.testing.assert_allclose(answer, reference(conv_bytes()).predict(frame).logits_NC, atol=1e-5)


def test_captured_work_is_never_used_for_another_batch_size(gpu: FakeDriver) -> None:
    predictor = predictor_of(plan_of(conv_bytes()))
    for count in (1, 1, 3, 3, 1, 2):
        images_NHWC = noise_images(count, seed=count)
        expected = reference(conv_bytes()).predict(images_NHWC).logits_NC
        np.testing.assert_allclose(predictor.predict(images_NHWC).logits_NC, expected, atol=1e-5)
    assert not gpu.graphs


def test_where_capture_is_not_possible_kernels_start_one_by_one(gpu: FakeDriver) -> None:
    gpu.refuses_capture = True
    predictor = predictor_of(plan_of(conv_bytes()))
    images_NHWC = noise_images(1)
    first, *others = (predictor.predict(images_NHWC).logits_NC for _ in range(3))
    assert not predictor.captured
    assert gpu.launches == 0
    for other in others:
        np.testing.assert_array_equal(first, other)


@pytest.mark.usefixtures("gpu")
def test_earlier_answers_stay_as_they_were() -> None:
    predictor = predictor_of(plan_of(conv_bytes()))
    first = predictor.predict(noise_images(1, 1))
    kept = first.logits_NC.copy()
    predictor.predict(noise_images(1, 2))
    np.testing.assert_array_equal(first.logits_NC, kept)


def test_memory_is_made_once_and_given_back(gpu: FakeDriver) -> None:
    predictor = predictor_of(plan_of(conv_bytes()))
    blocks = len(gpu.memory)
    for count in (1, 4, 1, 1):
        predictor.predict(noise_images(count))
    assert len(gpu.memory) == blocks == 8
    predictor.close()
    assert (gpu.memory, gpu.contexts) == ({}, 0)


def test_a_forgotten_predictor_gives_its_memory_back_too(gpu: FakeDriver) -> None:
    predictor = predictor_of(plan_of(conv_bytes()))
    del predictor
    gc.collect()
    assert (gpu.memory, gpu.contexts) == ({}, 0)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    "images_NHWC", [np.zeros((1, *SIZE, 3), np.float32), np.zeros((1, 8, 8, 3), np.uint8)]
)
def test_images_of_the_wrong_kind_are_refused(images_NHWC: np.ndarray) -> None:
    with pytest.raises(BackendError, match="wrong kind"):
        predictor_of(plan_of(conv_bytes())).predict(images_NHWC)


@pytest.mark.usefixtures("gpu")
def test_an_engine_with_other_outputs_is_refused() -> None:
    with pytest.raises(BackendError, match="other inputs or outputs"):
        predictor_of(plan_of(conv_bytes()), features=9)


@pytest.mark.usefixtures("gpu")
def test_what_is_no_plan_is_refused() -> None:
    with pytest.raises(BackendError, match="cannot load"):
        predictor_of(b"not a plan")


def test_a_driver_that_refuses_names_the_call(gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "cuMemAlloc_v2", lambda *_: 2)
    with pytest.raises(BackendError, match="refuses a call") as caught:
        predictor_of(plan_of(conv_bytes()))
    assert "cuMem" in caught.value.details["where"]
    assert caught.value.details["got"] == "CUDA error 2"


def test_without_a_gpu_no_object_of_tensorrt_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    module = install_fake_tensorrt(monkeypatch)
    remove_gpu(monkeypatch)
    monkeypatch.setattr(module, "Runtime", lambda *_: pytest.fail("it would crash"))
    with pytest.raises(BackendError, match="needs a GPU") as caught:
        predictor_of(b"plan")
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("version", ["8.6.1", "10.2.0", "12.0.0"])
def test_other_versions_are_refused(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    install_fake_tensorrt(monkeypatch, version)
    with pytest.raises(BackendError, match="not supported"):
        import_tensorrt()
