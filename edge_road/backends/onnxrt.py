"""ONNX Runtime as a `Predictor`: from verified bytes in memory, never from a path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from edge_road.backends.onnx_check_apart import begin_check
from edge_road.bundle import Bundle, Precision
from edge_road.conditions import ClassList
from edge_road.errors import BackendError
from edge_road.frames import Images, Prediction, join

INPUT_NAME = "images"
OUTPUT_NAMES = ("probabilities", "logits", "features")
CPU = ("CPUExecutionProvider",)
# On a CPU 1 to 16 images at once take the same time each, and 64 take 40 % more (caches).
LARGEST_BATCH = 8


class OnnxPredictor:
    """One session; the thread count is set, idle threads sleep, the provider is the one asked for."""

    def __init__(
        self,
        model_bytes: bytes,
        classes: ClassList,
        size: tuple[int, int],
        *,
        name: str,
        threads: int = 1,
        providers: Sequence[str] = CPU,
        largest_batch: int = LARGEST_BATCH,
    ) -> None:
        """`largest_batch` images go through at once; the runtime keeps the memory that they took."""
        checked = begin_check(model_bytes, where=name)
        import_module("onnxruntime")  # meanwhile; it gets to see nothing before the verdict
        checked()
        self._name, self._classes, self._size, self._largest_batch = name, classes, size, largest_batch
        self._session = open_session(model_bytes, name, threads, providers)
        self._batch, self._features = self._check_interface()

    @classmethod
    def from_bundle(
        cls,
        bundle: Bundle,
        precision: Precision = "float32",
        threads: int = 1,
        providers: Sequence[str] = CPU,
        largest_batch: int = LARGEST_BATCH,
    ) -> OnnxPredictor:
        manifest = bundle.manifest
        if manifest.input_name != INPUT_NAME or set(manifest.outputs) != set(OUTPUT_NAMES):
            raise BackendError(
                "the bundle describes a model with other inputs or outputs",
                where=bundle.path,
                got=f"{manifest.input_name} -> {', '.join(manifest.outputs)}",
                expected=f"{INPUT_NAME} -> {', '.join(OUTPUT_NAMES)}",
            )
        predictor = cls(
            bundle.model_bytes(precision),
            manifest.class_list,
            (manifest.preprocessing.height, manifest.preprocessing.width),
            name=f"onnx {precision} on {_short(providers[0])}",
            threads=threads,
            providers=providers,
            largest_batch=largest_batch,
        )
        predictor._check_manifest(manifest.input_shape, manifest.outputs["features"])
        return predictor

    @property
    def name(self) -> str:
        return self._name

    @property
    def classes(self) -> ClassList:
        return self._classes

    @property
    def size(self) -> tuple[int, int]:
        return self._size

    def predict(self, images_NHWC: Images) -> Prediction:
        if images_NHWC.dtype != np.uint8 or images_NHWC.shape[1:] != (*self._size, 3):
            raise BackendError(
                "images of the wrong kind",
                where=self._name,
                got=f"{images_NHWC.dtype} {images_NHWC.shape}",
                expected=f"uint8 (any, {self._size[0]}, {self._size[1]}, 3)",
            )
        if len(images_NHWC) == 0:
            classes, features = np.zeros((0, len(self._classes)), np.float32), (0, self._features)
            return Prediction(classes, classes, np.zeros(features, np.float32))
        step = self._batch or self._largest_batch
        return join([self._run(images_NHWC[i : i + step]) for i in range(0, len(images_NHWC), step)])

    def _run(self, images_NHWC: Images) -> Prediction:
        """One call; a graph of a fixed batch gets its last batch filled up with black images."""
        count = len(images_NHWC)
        if missing := max(0, self._batch - count):
            black = np.zeros((missing, *images_NHWC.shape[1:]), np.uint8)
            images_NHWC = np.concatenate([images_NHWC, black])
        try:
            feed = {INPUT_NAME: np.ascontiguousarray(images_NHWC)}
            outputs = self._session.run(list(OUTPUT_NAMES), feed)
        except Exception as error:  # the runtime's errors share no narrower base
            raise BackendError("the model cannot run", where=self._name, got=_one_line(error)) from None
        probabilities_NC, logits_NC, features_ND = (output[:count] for output in outputs)
        return Prediction(probabilities_NC, logits_NC, features_ND)

    def _check_interface(self) -> tuple[int, int]:
        """The fixed batch size (0: any) and the number of features."""
        inputs = _described(self._session.get_inputs, self._name)
        outputs = _described(self._session.get_outputs, self._name)
        batch = (*inputs.get(INPUT_NAME, ("", ()))[1], 0)[0]
        features = (0, *outputs.get("features", ("", ()))[1])[-1]
        expected_inputs = {INPUT_NAME: ("tensor(uint8)", (batch, *self._size, 3))}
        columns = {"probabilities": len(self._classes), "logits": len(self._classes), "features": features}
        expected_outputs = {o: ("tensor(float)", (batch, columns[o])) for o in OUTPUT_NAMES}
        if inputs != expected_inputs or outputs != expected_outputs or features < 1:
            raise BackendError(
                "the ONNX model has other inputs or outputs than it should",
                where=self._name,
                got=f"{inputs} -> {outputs}",
                expected=f"{expected_inputs} -> {expected_outputs} (0: any)",
            )
        return batch, features

    def _check_manifest(self, input_shape: tuple[int, ...], features: tuple[int, ...]) -> None:
        got = ((self._batch, *self._size, 3), (self._features,))
        if got != (input_shape, features):
            raise BackendError(
                "the model's shapes differ from the manifest's",
                where=self._name,
                got=f"input {got[0]}, features {got[1]}",
                expected=f"input {input_shape}, features {features}",
            )


def open_session(model_bytes: bytes, name: str, threads: int = 1, providers: Sequence[str] = CPU) -> Any:
    """With the options that every figure of ours is measured with; the model must have been checked."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_mem_pattern = False  # one block for all tensors, beside the others: 5 MB for no time
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Fused INT8 kernels saturate on processors without VNNI; unfused Q/DQ computes what TensorRT does.
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    _check_providers(onnxruntime.get_available_providers(), providers, name)
    try:
        session = onnxruntime.InferenceSession(model_bytes, options, providers=list(providers))
    except Exception as error:  # the runtime's errors share no narrower base
        raise BackendError("ONNX Runtime refuses the model", where=name, got=_one_line(error)) from None
    session._model_bytes = None  # kept to open the model once more elsewhere, which must never happen
    # The runtime falls back to the CPU without an error when a provider cannot start.
    _check_providers(session.get_providers(), providers, name)
    return session


def _check_providers(present: Sequence[str], wanted: Sequence[str], name: str) -> None:
    if missing := [provider for provider in wanted if provider not in present]:
        raise BackendError(
            "ONNX Runtime would not run the model where it was asked to",
            where=name,
            got=", ".join(present),
            expected=", ".join(missing),
            fix="install the runtime for this device, or ask for CPUExecutionProvider",
        )


def _described(tensors: Callable[[], Any], name: str) -> dict[str, tuple[str, tuple[int, ...]]]:
    """name -> type and sizes; a damaged name may not even be text."""
    try:
        return {tensor.name: (tensor.type, _sizes(tensor.shape)) for tensor in tensors()}
    except UnicodeDecodeError as error:
        raise BackendError("the ONNX model has a name that is no text", where=name, got=error) from None


def _sizes(shape: Sequence[Any]) -> tuple[int, ...]:
    """A named or missing size stands for any."""
    return tuple(size if isinstance(size, int) else 0 for size in shape)


def _short(provider: str) -> str:
    return provider.removesuffix("ExecutionProvider")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
