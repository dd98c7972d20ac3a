from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge_road.bundle import Artefact, Manifest, Probe, load_bundle, record_files, write_bundle
from edge_road.errors import BundleError, EdgeRoadError
from edge_road.preprocess import Preprocessing


def small_bundle(path: Path) -> str:
    """A bundle whose model is not one: enough for everything but running it."""
    probe = Probe(
        np.zeros((2, 32, 32, 3), np.uint8), np.array([0, 1]), {"float32": np.zeros((2, 3), np.float32)}
    )
    contents = {"model.onnx": b"model bytes", "probe.npz": probe.to_bytes(), "report.json": b"{}"}
    artefact = Artefact(
        file="model.onnx",
        temperature=1.0,
        confidence_threshold=0.5,
        centroids=((0.0,), (1.0,), (2.0,)),
        radii=(1.0, 1.0, 1.0),
    )
    manifest = Manifest(
        name="small",
        version="0",
        classes=("dry", "wet", "icy"),
        preprocessing=Preprocessing(height=32, width=32),
        input_name="images",
        input_shape=(0, 32, 32, 3),
        outputs={"probabilities": (3,), "logits": (3,), "features": (1,)},
        artefacts={"float32": artefact},
        calibration=None,
        smoke_limits={},
        method="softmax",
        seed=0,
        recipe={},
        recipe_digest="0",
        data_digest="0",
        git_commit=None,
        files=record_files(contents),
    )
    return write_bundle(path, manifest, contents)


@pytest.fixture(scope="module")
def bundle_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundles") / "small"
    small_bundle(path)
    return path


def test_a_bundle_is_read_back_as_it_was_written(bundle_path: Path) -> None:
    bundle = load_bundle(bundle_path)
    assert bundle.model_bytes("float32") == b"model bytes"
    assert bundle.probe().images_NHWC.shape == (2, 32, 32, 3)
    assert bundle.manifest.class_list.states == ("dry", "wet", "icy")


def test_equal_content_gives_an_equal_digest(tmp_path: Path, bundle_path: Path) -> None:
    assert small_bundle(tmp_path / "again") == load_bundle(bundle_path).digest


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_any_flipped_bit_is_refused(bundle_path: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["model.onnx", "probe.npz", "report.json"]))
    path = bundle_path / name
    original = path.read_bytes()
    damaged = bytearray(original)
    damaged[data.draw(st.integers(0, len(original) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(damaged)
    try:
        with pytest.raises(BundleError, match="cut or changed"):
            load_bundle(bundle_path)
    finally:
        path.write_bytes(original)


@pytest.mark.parametrize("name", ["model.onnx", "probe.npz", "manifest.json"])
def test_a_missing_or_cut_file_is_refused(tmp_path: Path, name: str) -> None:
    small_bundle(tmp_path / "b")
    path = tmp_path / "b" / name
    content = path.read_bytes()
    for keep in range(0, len(content), max(1, len(content) // 50)):
        path.write_bytes(content[:keep])
        with pytest.raises(BundleError):
            load_bundle(tmp_path / "b")
    path.unlink()
    with pytest.raises(BundleError, match="cannot be read"):
        load_bundle(tmp_path / "b")


def test_what_to_do_about_a_file_that_cannot_be_read_depends_on_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    def advice(path: Path) -> str:
        with pytest.raises(BundleError, match="cannot be read") as caught:
            load_bundle(path)
        return caught.value.details["to do"]

    small_bundle(tmp_path / "b")
    assert "to_trt.py" in advice(tmp_path / "nothing here")
    (tmp_path / "b" / "model.onnx").unlink()
    assert "copy the bundle again" in advice(tmp_path / "b")
    monkeypatch.setattr(os, "open", refuse)
    assert "chmod" in advice(tmp_path / "b")


@pytest.mark.parametrize("name", ["../model.onnx", "/etc/hostname", "a/b", "..", ""])
def test_a_manifest_cannot_point_outside_its_folder(tmp_path: Path, name: str) -> None:
    small_bundle(tmp_path / "b")
    path = tmp_path / "b" / "manifest.json"
    values = json.loads(path.read_text())
    values["files"][name] = values["files"]["model.onnx"]
    path.write_text(json.dumps(values))
    with pytest.raises(BundleError, match="own folder"):
        load_bundle(tmp_path / "b")


def test_unknown_precision_names_what_is_there(bundle_path: Path) -> None:
    with pytest.raises(BundleError, match="float32"):
        load_bundle(bundle_path).model_bytes("int8")


def test_a_probe_with_pickled_objects_is_refused() -> None:
    import io

    buffer = io.BytesIO()
    np.savez(buffer, images=np.array([{"code": 1}], dtype=object), labels=np.zeros(1))
    with pytest.raises(BundleError, match="probe"):
        Probe.from_bytes(buffer.getvalue())


def test_a_manifest_must_describe_the_files_it_is_written_with(tmp_path: Path) -> None:
    small_bundle(tmp_path / "b")
    manifest = load_bundle(tmp_path / "b").manifest
    with pytest.raises(EdgeRoadError, match="does not describe"):
        write_bundle(tmp_path / "c", manifest, {"model.onnx": b"other"})
    assert not (tmp_path / "c").exists()
