"""A model as a predictor, and the way from a finished run's folder to it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save

from edge_road.conditions import ROAD_CLASSES
from edge_road.errors import BackendError, ConfigError
from edge_road.files import sha256
from edge_road.frames import Images
from edge_road.nn.model import RoadModel, build_model
from edge_road.nn.predictor import TorchPredictor, load_model, load_run
from edge_road.predictor import Predictor
from edge_road.preprocess import Preprocessing
from edge_road.recipe import ModelSettings
from edge_road.run_record import WEIGHTS_FILE, RunRecord, write_record

SIZE = (64, 48)
SETTINGS = ModelSettings(features=16)


@pytest.fixture
def images() -> Images:
    return np.random.default_rng(0).integers(0, 256, (7, *SIZE, 3), dtype=np.uint8)


@pytest.fixture
def model() -> RoadModel:
    """Awake: with settled batch statistics and features that differ from image to image."""
    torch.manual_seed(0)
    model = build_model(SETTINGS, 3)
    torch.nn.init.normal_(model.feature_layer.weight)
    with torch.no_grad():
        for _ in range(20):
            model(torch.rand(8, 3, *SIZE))
    return model


def write_run(run: Path, model: RoadModel, **changes: object) -> Path:
    content = save(model.state_dict())
    run.mkdir()
    (run / WEIGHTS_FILE).write_bytes(content)
    values: dict[str, object] = {
        "name": "test",
        "classes": ("dry", "wet", "icy"),
        "backbone": SETTINGS.backbone,
        "features": SETTINGS.features,
        "preprocessing": Preprocessing(height=SIZE[0], width=SIZE[1]),
        "method": "softmax",
        "seed": 0,
        "data_digest": "",
        "recipe_digest": "",
        "weights_sha256": sha256(content),
        "git_commit": None,
        "version": "0",
        "epochs": 1,
        "best_epoch": 1,
        "validation_accuracy": 0.5,
    }
    write_record(run, RunRecord.model_validate(values | changes))
    return run


def test_the_predictor_says_what_the_model_says(model: RoadModel, images: Images) -> None:
    predictor = TorchPredictor(model, ROAD_CLASSES, SIZE, batch_size=3)
    assert isinstance(predictor, Predictor)
    prediction = predictor.predict(images)
    model.eval()
    with torch.inference_mode():
        features, logits = model(torch.from_numpy(images).permute(0, 3, 1, 2) / 255)
    assert features.std(dim=0).mean() > 0.1
    np.testing.assert_allclose(prediction.features_ND, features.numpy(), atol=1e-4)
    np.testing.assert_allclose(prediction.logits_NC, logits.numpy(), atol=1e-4)
    np.testing.assert_allclose(prediction.probabilities_NC, logits.softmax(1).numpy(), atol=1e-6)
    assert {a.dtype for a in (prediction.features_ND, prediction.probabilities_NC)} == {np.dtype("float32")}
    assert prediction.finite_N.all()


def test_predicting_during_training_leaves_the_model_as_it_was(model: RoadModel, images: Images) -> None:
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.train()
    model.classifier.eval()  # a part that someone has frozen
    TorchPredictor(model, ROAD_CLASSES, SIZE).predict(images)
    assert (model.training, model.backbone.training, model.classifier.training) == (True, True, False)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


def test_the_batch_size_does_not_change_the_labels(model: RoadModel, images: Images) -> None:
    one, many = (
        TorchPredictor(model, ROAD_CLASSES, SIZE, batch_size=size).predict(images) for size in (1, 64)
    )
    np.testing.assert_allclose(one.logits_NC, many.logits_NC, atol=1e-4)


def test_no_images_give_an_empty_prediction(model: RoadModel, images: Images) -> None:
    prediction = TorchPredictor(model, ROAD_CLASSES, SIZE).predict(images[:0])
    assert (prediction.logits_NC.shape, prediction.features_ND.shape) == ((0, 3), (0, 16))


def test_read_only_and_strided_images_are_welcome(model: RoadModel, images: Images) -> None:
    predictor = TorchPredictor(model, ROAD_CLASSES, SIZE)
    mirrored = images[:, :, ::-1]
    mirrored.flags.writeable = False
    expected = predictor.predict(np.ascontiguousarray(mirrored))
    np.testing.assert_array_equal(predictor.predict(mirrored).logits_NC, expected.logits_NC)


def test_images_of_another_size_or_type_are_refused(model: RoadModel, images: Images) -> None:
    predictor = TorchPredictor(model, ROAD_CLASSES, SIZE)
    for wrong in (images[:, :32], images[0], images.astype(np.float32)):
        with pytest.raises(BackendError, match="cannot take these images"):
            predictor.predict(wrong)  # type: ignore[arg-type]


def test_the_name_tells_what_runs_where(model: RoadModel) -> None:
    assert TorchPredictor(model, ROAD_CLASSES, SIZE).name == "torch float32 on cpu"


def test_a_run_comes_back_as_it_was_trained(model: RoadModel, images: Images, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", model)
    predictor = load_run(run)
    assert (predictor.size, predictor.classes) == (SIZE, ROAD_CLASSES)
    expected = TorchPredictor(model, ROAD_CLASSES, SIZE).predict(images)
    np.testing.assert_allclose(predictor.predict(images).logits_NC, expected.logits_NC, atol=1e-4)
    loaded = load_model(run)
    assert not loaded.training
    assert all(torch.equal(model.state_dict()[n], t) for n, t in loaded.state_dict().items())


def test_weights_that_the_record_does_not_name_are_refused(model: RoadModel, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", model)
    content = bytearray((run / WEIGHTS_FILE).read_bytes())
    content[-1] ^= 1
    (run / WEIGHTS_FILE).write_bytes(content)
    with pytest.raises(ConfigError, match="record names") as caught:
        load_run(run)
    assert "sha256" in str(caught.value)


def test_a_record_of_other_classes_than_the_weights_names_the_tensor(
    model: RoadModel, tmp_path: Path
) -> None:
    run = write_run(tmp_path / "run", model, classes=("dry", "icy"))
    with pytest.raises(ConfigError, match=r"classifier\.weight 3x16 instead of 2x16"):
        load_model(run)


def test_a_run_without_its_weights_says_which_file_is_missing(model: RoadModel, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", model)
    (run / WEIGHTS_FILE).unlink()
    with pytest.raises(ConfigError, match=WEIGHTS_FILE):
        load_run(run)


def test_a_folder_that_is_no_finished_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a finished run"):
        load_run(tmp_path)
