"""backend = "auto": everything is timed, and INT8 must earn its place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_bundles import brightness_model, write_small_bundle

from edge_road.backends.fake import FakePredictor
from edge_road.errors import BackendError
from edge_road.runtime import model as models
from edge_road.runtime.model import Candidate, LoadedModel, load_model
from edge_road.runtime.vehicle import Vehicle
from edge_road.trust import DEVELOPMENT

GPU_ONLY = "this machine has no such GPU"


class Named(FakePredictor):
    def __init__(self, candidate: Candidate) -> None:
        super().__init__()
        self.candidate = str(candidate)

    @property
    def name(self) -> str:
        return self.candidate


def chosen(times_ms: dict[str, float], folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which of the candidates serves, when they take so long and all others cannot be had."""
    write_small_bundle(folder / "small", brightness_model())
    blank = load_model(Vehicle(backend="fake"))

    def opened(_bundle: object, candidate: Candidate, _vehicle: object) -> LoadedModel:
        if str(candidate) not in times_ms:
            raise BackendError(GPU_ONLY)
        return replace(blank, predictor=Named(candidate))

    def took(call: Any) -> float:
        return times_ms[call.func.__self__.name]  # the predictor of a bound `predict`

    offered = [Candidate(backend, p) for backend, ps in models.PRECISIONS.items() for p in ps]
    monkeypatch.setattr(models, "candidates", lambda _bundle: offered)
    monkeypatch.setattr(models, "_open", opened)
    monkeypatch.setattr(models, "median_ms", took)
    return load_model(Vehicle(bundle=folder / "small", backend="auto", trust=DEVELOPMENT)).predictor.name


@pytest.mark.parametrize(
    ("times_ms", "serves"),
    [
        ({"tensorrt int8": 0.8, "tensorrt float16": 1.0, "onnx float32": 5.0}, "tensorrt int8"),
        ({"tensorrt int8": 0.95, "tensorrt float16": 1.0, "onnx float32": 5.0}, "tensorrt float16"),
        ({"tensorrt int8": 1.9, "onnx_cuda float16": 2.0, "onnx float32": 9.0}, "onnx_cuda float16"),
        ({"tensorrt int8": 3.0, "onnx_tensorrt int8": 1.0, "onnx float32": 2.0}, "onnx_tensorrt int8"),
        ({"onnx_cuda float16": 1.01, "onnx float32": 1.0}, "onnx float32"),
    ],
)
def test_the_fastest_serves_but_int8_must_save_a_tenth(
    times_ms: dict[str, float], serves: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert chosen(times_ms, tmp_path, monkeypatch) == serves


def test_where_nothing_runs_the_reasons_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BackendError, match="no backend can run this bundle here") as caught:
        chosen({}, tmp_path, monkeypatch)
    assert f"onnx float32: {GPU_ONLY}" in caught.value.details["got"]
