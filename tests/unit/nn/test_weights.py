"""Pretrained weights: what fits is loaded whole, what does not is named, and nothing is unpickled."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import timm
import torch
from safetensors.torch import load_file, save, save_file
from torch import Tensor
from torchvision import models

from edge_road.errors import ConfigError
from edge_road.nn import weights
from edge_road.nn.model import RoadModel, build_model
from edge_road.recipe import ModelSettings

SMALL = "tf_mobilenetv3_small_100"
TORCHVISION_SMALL = "torchvision/mobilenet_v3_small"


def build(file: Path | str, backbone: str = SMALL) -> RoadModel:
    return build_model(ModelSettings(backbone=backbone, features=16, weights=str(file)), 3)


def tensors_of(backbone: str) -> dict[str, Tensor]:
    torch.manual_seed(9)
    network = (
        models.get_model(backbone.removeprefix("torchvision/"))
        if backbone.startswith("torchvision/")
        else timm.create_model(backbone)
    )
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}


def assert_backbone_is(model: RoadModel, tensors: dict[str, Tensor]) -> None:
    ours = model.backbone.state_dict()
    assert all(torch.equal(tensor, tensors[name]) for name, tensor in ours.items())


@pytest.mark.parametrize("backbone", [SMALL, TORCHVISION_SMALL, "resnet18", "torchvision/resnet18"])
def test_a_published_file_loads_without_its_imagenet_head(backbone: str, tmp_path: Path) -> None:
    tensors = tensors_of(backbone)
    save_file(tensors, tmp_path / "weights.safetensors")
    model = build(tmp_path / "weights.safetensors", backbone)
    assert_backbone_is(model, tensors)
    assert len(tensors) - len(model.backbone.state_dict()) == 2  # the head's weight and bias


def test_a_file_without_any_head_loads_too(tmp_path: Path) -> None:
    tensors = {n: t for n, t in tensors_of(SMALL).items() if not n.startswith("classifier.")}
    save_file(tensors, tmp_path / "weights.safetensors")
    assert_backbone_is(build(tmp_path / "weights.safetensors"), tensors)


def test_the_weights_of_a_run_are_a_beginning_for_another_with_other_classes(tmp_path: Path) -> None:
    settings = ModelSettings(backbone=SMALL, features=32)
    run = build_model(settings, 27).state_dict()
    save_file(run, tmp_path / "best.safetensors")
    inside = {name.removeprefix("backbone."): t for name, t in run.items() if name.startswith("backbone.")}
    assert_backbone_is(build(tmp_path / "best.safetensors"), inside)
    with pytest.raises(ConfigError, match="not those of this model"):
        build(tmp_path / "best.safetensors", "resnet18")


def test_wrong_weights_are_named_and_none_of_them_is_loaded(tmp_path: Path) -> None:
    tensors = tensors_of(SMALL)
    del tensors["bn1.weight"]
    tensors["conv_stem.weight"] = torch.zeros(16, 3, 5, 5)
    tensors["surprise.weight"] = torch.zeros(1)
    save_file(tensors, tmp_path / "weights.safetensors")
    model = build("none")
    before = {name: tensor.clone() for name, tensor in model.backbone.state_dict().items()}
    with pytest.raises(ConfigError, match="not those of this model") as caught:
        weights.load_strictly(model.backbone, tensors, where="weights.safetensors", model=SMALL)
    text = str(caught.value)
    assert "wrong shape: conv_stem.weight 16x3x5x5 instead of 16x3x3x3" in text
    assert "missing: bn1.weight" in text
    assert "surprise.weight" in text
    assert_backbone_is(model, before)


def test_the_weights_of_another_architecture_are_refused_in_a_few_lines(tmp_path: Path) -> None:
    save_file(tensors_of("resnet18"), tmp_path / "resnet18.safetensors")
    with pytest.raises(ConfigError) as caught:
        build(tmp_path / "resnet18.safetensors")
    text = str(caught.value)
    assert "missing: conv_stem.weight" in text
    assert "unexpected: conv1.weight" in text
    assert "more" in text
    assert len(text) < 1000
    assert caught.value.exit_code == 2


def test_only_the_head_may_be_left_out_of_the_file_knowingly(tmp_path: Path) -> None:
    tensors = tensors_of(SMALL) | {"classifier_2.weight": torch.zeros(1)}
    save_file(tensors, tmp_path / "weights.safetensors")
    with pytest.raises(ConfigError, match=r"unexpected: classifier_2\.weight"):
        build(tmp_path / "weights.safetensors")


@pytest.mark.parametrize("kept", [0, 4, 8, 100, 5000, -1])
def test_a_cut_file_is_refused(kept: int, tmp_path: Path) -> None:
    (tmp_path / "cut.safetensors").write_bytes(save(tensors_of(SMALL))[:kept])
    with pytest.raises(ConfigError, match="not a whole safetensors file"):
        build(tmp_path / "cut.safetensors")


@pytest.mark.parametrize("content", [b"hello, this is no model at all", b"\xff" * 64, b'{"a": 1}'])
def test_a_file_of_another_kind_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "other.safetensors").write_bytes(content)
    with pytest.raises(ConfigError, match="not a whole safetensors file"):
        build(tmp_path / "other.safetensors")


class Malicious:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (self.marker,)  # type: ignore[return-value]


def test_a_pickle_is_recognised_and_never_run(tmp_path: Path) -> None:
    marker = tmp_path / "it-ran"
    torch.save({"weight": Malicious(marker)}, tmp_path / "model.pth")
    with pytest.raises(ConfigError, match="pickled"):
        build(tmp_path / "model.pth")
    assert not marker.exists()


@pytest.mark.parametrize("name", ["no/such/file.safetensors", "Hub", "."])
def test_weights_that_are_not_there_say_what_may_be_given(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot read the weights") as caught:
        build(name)
    assert "none or hub" in str(caught.value)


def test_without_a_network_the_hub_error_says_what_was_tried_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise ConnectionError("Name or service not known")

    monkeypatch.setattr(weights, "hf_hub_download", unreachable)
    with pytest.raises(ConfigError, match="could not be fetched") as caught:
        build("hub")
    text = str(caught.value)
    assert "timm/tf_mobilenetv3_small_100.in1k" in text
    assert "Name or service not known" in text
    assert "--weights FILE.safetensors" in text


def test_torchvision_without_a_network_names_the_address(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise OSError("unreachable")

    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    monkeypatch.setattr(torch.hub, "download_url_to_file", unreachable)
    with pytest.raises(ConfigError, match=r"mobilenet_v3_small-\w+\.pth"):
        build("hub", TORCHVISION_SMALL)


def test_a_backbone_without_published_weights_says_so() -> None:
    with pytest.raises(ConfigError, match="no weights are published"):
        build("hub", "convnext_atto_rms")


def test_hub_weights_of_timm_come_through_the_hubs_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tensors = tensors_of(SMALL)
    asked: list[tuple[str, str]] = []

    def cached(repository: str, file: str) -> str:
        asked.append((repository, file))
        save_file(tensors, tmp_path / file)
        return str(tmp_path / file)

    monkeypatch.setattr(weights, "hf_hub_download", cached)
    assert_backbone_is(build("hub"), tensors)
    assert asked == [("timm/tf_mobilenetv3_small_100.in1k", "model.safetensors")]


def test_hub_weights_of_torchvision_come_from_its_cache_and_are_not_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    published = models.get_model_weights("mobilenet_v3_small").DEFAULT
    file = tmp_path / "checkpoints" / Path(published.url).name
    file.parent.mkdir()
    tensors = tensors_of(TORCHVISION_SMALL)
    torch.save(tensors, file)
    assert_backbone_is(build("hub", TORCHVISION_SMALL), tensors)

    marker = tmp_path / "it-ran"
    torch.save(tensors | {"extra": Malicious(marker)}, file)
    with pytest.raises(ConfigError, match="could not be fetched"):
        build("hub", TORCHVISION_SMALL)
    assert not marker.exists()


REAL = ["tf_mobilenetv3_small_100", "tf_mobilenetv3_large_minimal_100", "tf_efficientnet_lite0"]


@pytest.mark.parametrize("name", REAL)
def test_the_real_files_load_strictly_and_miss_nothing_but_the_head(name: str, shared_weights: Path) -> None:
    file = shared_weights / f"{name}.safetensors"
    model = build(file, name).eval()
    tensors = load_file(file)
    assert_backbone_is(model, tensors)
    whole = timm.create_model(name).eval()
    whole.load_state_dict(tensors, strict=True)
    images = torch.rand(2, 3, 224, 224)
    with torch.inference_mode():
        pooled = model.backbone((images - model.mean) / model.std)
        logits = pooled @ tensors["classifier.weight"].T + tensors["classifier.bias"]
        assert torch.allclose(logits, whole((images - 0.5) / 0.5), atol=1e-4)


@pytest.mark.parametrize("name", REAL)
def test_the_real_weights_tell_roads_apart_where_random_ones_do_not(
    name: str, shared_weights: Path, shared_data: Path
) -> None:
    folders = [shared_data / "road3" / state for state in ("dry", "wet", "icy")]
    files = [file for folder in folders for file in sorted(folder.iterdir())[::4][:40]]
    labels = torch.arange(120) // 40
    pixels = np.stack([cv2.resize(cv2.imread(str(file)), (128, 128))[..., ::-1] for file in files])
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255
    torch.manual_seed(0)
    trained, random = (
        neighbour_accuracy(build(file, name), images, labels)
        for file in (shared_weights / f"{name}.safetensors", "none")
    )
    assert trained >= 0.7
    assert trained >= random + 0.15


def neighbour_accuracy(model: RoadModel, images: Tensor, labels: Tensor) -> float:
    """Share of images whose most similar other image has the same label."""
    with torch.inference_mode():
        pooled = model.eval().backbone((images - model.mean) / model.std)
    unit = torch.nn.functional.normalize(pooled - pooled.mean(dim=0))
    nearest = (unit @ unit.T).fill_diagonal_(-2).argmax(dim=1)
    return (labels[nearest] == labels).float().mean().item()


def test_weights_that_are_no_numbers_are_refused_before_they_spoil_a_training(tmp_path: Path) -> None:
    tensors = tensors_of(SMALL)
    tensors["conv_stem.weight"][0, 0, 0, 0] = float("nan")
    save_file(tensors, tmp_path / "weights.safetensors")
    with pytest.raises(ConfigError, match="not finite") as error:
        build(tmp_path / "weights.safetensors")
    assert error.value.details["got"] == "conv_stem.weight"


def test_a_device_under_the_name_of_weights_is_not_read() -> None:
    with pytest.raises(ConfigError) as error:
        build("/dev/zero")
    assert error.value.details["got"] == "not a plain file"
