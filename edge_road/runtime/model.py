"""The model that a vehicle asks for: verified, self-tested, ready to judge."""

from __future__ import annotations

from dataclasses import dataclass

from edge_road.backends.probe_check import check_probe
from edge_road.bundle import load_bundle
from edge_road.predictor import Predictor
from edge_road.preprocess import Preprocessing
from edge_road.runtime.vehicle import Vehicle
from edge_road.workspace import newest_bundle


@dataclass(frozen=True)
class LoadedModel:
    predictor: Predictor
    preprocessing: Preprocessing
    digest: str
    confidence_threshold: float


def load_model(vehicle: Vehicle) -> LoadedModel:
    if vehicle.backend == "fake":
        return _fake()
    from edge_road.backends.onnxrt import OnnxPredictor

    bundle = load_bundle(vehicle.bundle or newest_bundle())
    artefact = bundle.artefact(vehicle.precision)
    predictor = OnnxPredictor.from_bundle(bundle, vehicle.precision, vehicle.threads)
    check_probe(predictor, bundle.probe(), vehicle.precision)
    return LoadedModel(predictor, bundle.manifest.preprocessing, bundle.digest, artefact.confidence_threshold)


def _fake() -> LoadedModel:
    from edge_road.backends.fake import FakePredictor

    predictor = FakePredictor()
    height, width = predictor.size
    return LoadedModel(predictor, Preprocessing(height=height, width=width), "fake", 0.6)
