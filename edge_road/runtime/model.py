"""The model that a vehicle asks for: verified, self-tested, ready to judge."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from edge_road.backends.probe_check import check_probe
from edge_road.backends.timing import best_precision, median_ms
from edge_road.bundle import Bundle, Precision, load_bundle
from edge_road.errors import BackendError, BundleError
from edge_road.predictor import Predictor
from edge_road.preprocess import Preprocessing
from edge_road.runtime.evidence import Loaded
from edge_road.runtime.geometry import Geometry
from edge_road.runtime.vehicle import Backend, Vehicle
from edge_road.workspace import newest_bundle

log = logging.getLogger(__name__)

PROVIDERS: dict[Backend, tuple[str, ...]] = {
    "onnx": ("CPUExecutionProvider",),
    "onnx_cuda": ("CUDAExecutionProvider",),
    "onnx_tensorrt": ("TensorrtExecutionProvider",),
}
# What is worth measuring where. On a CPU the INT8 file of TensorRT is two to three times slower.
PRECISIONS: dict[Backend, tuple[Precision, ...]] = {
    "tensorrt": ("int8", "float16", "float32"),
    "onnx_tensorrt": ("int8", "float16", "float32"),
    "onnx_cuda": ("float16", "float32"),
    "onnx": ("float32",),
}


@dataclass(frozen=True)
class LoadedModel:
    predictor: Predictor
    preprocessing: Preprocessing
    digest: str
    confidence_threshold: float
    geometry: Geometry | None = None
    self_test: Callable[[], object] = lambda: None
    """raises when the model does not give its own outputs (any more)"""


@dataclass(frozen=True)
class Candidate:
    backend: Backend
    precision: Precision

    def __str__(self) -> str:
        return f"{self.backend} {self.precision}"


def facts(model: LoadedModel) -> Loaded:
    return Loaded(
        predictor=model.predictor.name,
        model_digest=model.digest,
        confidence_threshold=model.confidence_threshold,
    )


def load_model(vehicle: Vehicle) -> LoadedModel:
    if vehicle.backend == "fake":
        return _fake()
    bundle = load_bundle(vehicle.bundle or newest_bundle(), vehicle.trust)
    log.info("bundle %s, %s", bundle.digest[:16], bundle.trust_text)
    if vehicle.backend == "auto":
        return _best(bundle, vehicle)
    if vehicle.backend == "tensorrt":
        return _engine_or_onnx(bundle, vehicle)
    return _open(bundle, Candidate(vehicle.backend, vehicle.precision), vehicle)


def _best(bundle: Bundle, vehicle: Vehicle) -> LoadedModel:
    """Everything that bundle and machine offer is opened, self-tested and timed; `best_precision` chooses."""
    fastest: dict[Precision, LoadedModel] = {}
    times_ms: dict[Precision, float] = {}
    refusals = []
    for candidate in candidates(bundle):
        try:
            model = _open(bundle, candidate, vehicle)
            images_NHWC = bundle.probe().images_NHWC[: max(1, len(vehicle.regions))]
            took_ms = median_ms(partial(model.predictor.predict, images_NHWC))
        except (BackendError, BundleError) as error:
            refusals.append(f"{candidate}: {error.what}")
            continue
        log.info("%s takes %.2f ms", candidate, took_ms)
        if took_ms < times_ms.get(candidate.precision, float("inf")):
            fastest[candidate.precision], times_ms[candidate.precision] = model, took_ms
    if refusals:
        log.info("not to be had here: %s", "; ".join(refusals))
    if not fastest:
        raise BackendError("no backend can run this bundle here", where=bundle.path, got="; ".join(refusals))
    best, reason = best_precision(times_ms)
    log.info("%s serves (%s)", fastest[best].predictor.name, reason)
    return fastest[best]


def candidates(bundle: Bundle) -> Iterator[Candidate]:
    for backend, precisions in PRECISIONS.items():
        for precision in precisions:
            if precision in bundle.manifest.artefacts:
                yield Candidate(backend, precision)


def _engine_or_onnx(bundle: Bundle, vehicle: Vehicle) -> LoadedModel:
    """This device's engine; as long as none serves, ONNX Runtime does, and the log says why."""
    from edge_road.backends.engine_life import open_best
    from edge_road.backends.engine_store import store_of

    bundle.artefact(vehicle.precision)  # a precision that the bundle lacks is a mistake in the vehicle file
    batch = max(1, len(vehicle.regions))
    opened = open_best(bundle, vehicle.precision, store_of(bundle.path), batch=batch, threads=vehicle.threads)
    if opened.degraded:
        log.warning(
            "no %s engine serves (%s); ONNX Runtime does. Build one with: edge-road engine build %s",
            vehicle.precision,
            opened.degraded,
            bundle.path,
        )
    return _loaded(bundle, opened.predictor, opened.precision)


def _open(bundle: Bundle, candidate: Candidate, vehicle: Vehicle) -> LoadedModel:
    bundle.artefact(candidate.precision)
    batch = max(1, len(vehicle.regions))
    return _loaded(bundle, open_predictor(bundle, candidate, vehicle.threads, batch), candidate.precision)


def _loaded(bundle: Bundle, predictor: Predictor, precision: Precision) -> LoadedModel:
    artefact, probe = bundle.artefact(precision), bundle.probe()
    self_test = partial(check_probe, predictor, probe, precision)  # holds no bytes of the bundle's models
    self_test()
    return LoadedModel(
        predictor,
        bundle.manifest.preprocessing,
        bundle.digest,
        artefact.confidence_threshold,
        Geometry.of(artefact),
        self_test,
    )


def open_predictor(bundle: Bundle, candidate: Candidate, threads: int, batch: int = 1) -> Predictor:
    if candidate.backend == "tensorrt":
        from edge_road.backends.engine_life import open_engine
        from edge_road.backends.engine_store import store_of

        return open_engine(bundle, candidate.precision, store_of(bundle.path), batch=batch)
    from edge_road.backends.onnxrt import OnnxPredictor

    providers = PROVIDERS[candidate.backend]
    return OnnxPredictor.from_bundle(bundle, candidate.precision, threads, providers, batch)


def _fake() -> LoadedModel:
    from edge_road.backends.fake import FakePredictor

    predictor = FakePredictor()
    height, width = predictor.size
    return LoadedModel(predictor, Preprocessing(height=height, width=width), "fake", 0.6)
