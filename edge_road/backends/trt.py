"""TensorRT as a `Predictor`: buffers made once, asynchronous execution, CUDA graphs where possible."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from edge_road.backends.cuda import CapturedWork, Cuda, require_gpu
from edge_road.backends.onnxrt import INPUT_NAME, OUTPUT_NAMES
from edge_road.conditions import ClassList
from edge_road.errors import BackendError, DeviceError
from edge_road.frames import Images, Prediction, join

OLDEST = (10, 3)
NEWEST_MAJOR = 11
Flavour = Literal["tensorrt", "tensorrt_rtx"]


def import_tensorrt(flavour: Flavour = "tensorrt") -> ModuleType:
    """The vendor's module, in a version that we know."""
    try:
        module: ModuleType = _import_rtx() if flavour == "tensorrt_rtx" else _import_standard()
    except (ImportError, OSError) as error:  # there, but without the libraries it needs
        raise BackendError(
            "TensorRT's Python module cannot be imported",
            where=flavour,
            got=error,
            fix="on a Jetson: sudo apt install python3-libnvinfer, and a venv with --system-site-packages",
        ) from None
    version = tuple(int(part) for part in re.findall(r"\d+", module.__version__)[:2])
    if flavour == "tensorrt" and (version < OLDEST or version[0] > NEWEST_MAJOR):
        raise BackendError(
            "this version of TensorRT is not supported",
            got=module.__version__,
            expected=f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST_MAJOR}.x",
        )
    return module


def _import_standard() -> ModuleType:
    import tensorrt

    module: ModuleType = tensorrt
    return module


def _import_rtx() -> ModuleType:
    """TensorRT for RTX GPUs has the same Python interface, and builds without a GPU."""
    import tensorrt_rtx

    module: ModuleType = tensorrt_rtx
    return module


@dataclass(frozen=True)
class _Tensor:
    """One input or output: memory on both sides for the largest batch."""

    name: str
    host: npt.NDArray[np.uint8]
    device: int
    row: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def row_bytes(self) -> int:
        return int(np.prod(self.row)) * self.dtype.itemsize

    def rows(self, count: int) -> npt.NDArray[Any]:
        return self.host[: count * self.row_bytes].view(self.dtype).reshape(count, *self.row)


class TrtPredictor:
    """One engine and one stream. The plan's origin must have been checked before it comes here."""

    def __init__(
        self,
        plan: bytes,
        classes: ClassList,
        size: tuple[int, int],
        features: int,
        *,
        name: str,
        trt: ModuleType | None = None,
        cuda: Cuda | None = None,
        host_code: bool = False,
        dla_core: int | None = None,
    ) -> None:
        self._name, self._classes, self._size, self._features = name, classes, size, features
        self._trt: Any = trt or import_tensorrt()
        self._cuda = cuda or _open_device()
        # The vendor's objects crash when an object that they came from is freed before them.
        self._logger = self._trt.Logger(self._trt.Logger.Severity.WARNING)
        try:
            self._runtime = self._trt.Runtime(self._logger)
        except Exception as error:  # the bindings have no error of their own: TypeError where CUDA is broken
            raise DeviceError("TensorRT cannot start here", where=name, got=error) from None
        if host_code:
            self._runtime.engine_host_code_allowed = True
        if dla_core is not None:
            self._runtime.DLA_core = dla_core
        self._engine = self._runtime.deserialize_cuda_engine(plan)
        if self._engine is None:
            raise DeviceError(
                "TensorRT cannot load the engine", where=name, fix="free memory, or build it again"
            )
        self._fixed, self._largest = self._check_interface()
        self._context = self._engine.create_execution_context()
        if self._context is None:
            raise DeviceError("TensorRT cannot run the engine", where=name, got="no memory for it")
        self._input, *self._outputs = self._make_tensors()
        self._batch = 0
        self._captured: CapturedWork | None = None
        self._can_capture = True

    @property
    def name(self) -> str:
        return self._name

    @property
    def classes(self) -> ClassList:
        return self._classes

    @property
    def size(self) -> tuple[int, int]:
        return self._size

    @property
    def captured(self) -> bool:
        """Does the whole of a prediction start with one call?"""
        return self._captured is not None

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
        self._cuda.make_current()
        step = self._largest
        return join([self._run(images_NHWC[i : i + step]) for i in range(0, len(images_NHWC), step)])

    def close(self) -> None:
        """In this order: what came last goes first."""
        self._cuda.make_current()
        self._set_aside()
        del self._context, self._engine, self._runtime
        self._cuda.close()

    def inspect(self) -> str:
        """What the engine says of its own layers, as JSON."""
        inspector = self._engine.create_engine_inspector()
        return str(inspector.get_engine_information(self._trt.LayerInformationFormat.JSON))

    def _run(self, images_NHWC: Images) -> Prediction:
        """An engine of a fixed batch gets its last batch filled up with black images."""
        count = len(images_NHWC)
        batch = self._fixed or count
        rows = self._input.rows(batch)
        rows[:count], rows[count:] = images_NHWC, 0
        self._start(batch)
        self._cuda.wait()
        outputs = {tensor.name: tensor.rows(batch)[:count].copy() for tensor in self._outputs}
        return Prediction(*(outputs[name] for name in OUTPUT_NAMES))

    def _start(self, batch: int) -> None:
        """A batch size that comes twice is captured; another one ends the capture."""
        if batch != self._batch:
            self._set_batch(batch)
        elif self._captured is None and self._can_capture:
            self._captured = self._cuda.capture(self._enqueue)
            self._can_capture = self._captured is not None
        if self._captured is not None:
            self._captured.launch()
        else:
            self._enqueue()

    def _set_aside(self) -> None:
        """Captured work holds for one batch size only."""
        if self._captured is not None:
            self._captured.drop()
        self._captured, self._batch = None, 0

    def _set_batch(self, batch: int) -> None:
        self._set_aside()
        if not self._context.set_input_shape(INPUT_NAME, (batch, *self._size, 3)):
            raise BackendError("the engine does not take so many images", where=self._name, got=batch)
        self._batch = batch

    def _enqueue(self) -> None:
        self._cuda.upload(self._input.device, self._input.host, self._batch * self._input.row_bytes)
        if not self._context.execute_async_v3(self._cuda.stream):
            raise DeviceError("the engine cannot run", where=self._name)
        for tensor in self._outputs:
            self._cuda.download(tensor.host, tensor.device, self._batch * tensor.row_bytes)

    def _make_tensors(self) -> list[_Tensor]:
        """The input first; the engine keeps the addresses for good."""
        columns = {"probabilities": len(self._classes), "logits": len(self._classes)}
        rows = {name: (columns.get(name, self._features),) for name in OUTPUT_NAMES}
        tensors = [self._make_tensor(INPUT_NAME, (*self._size, 3), np.dtype(np.uint8))]
        return tensors + [self._make_tensor(n, row, np.dtype(np.float32)) for n, row in rows.items()]

    def _make_tensor(self, name: str, row: tuple[int, ...], dtype: np.dtype[Any]) -> _Tensor:
        size = self._largest * int(np.prod(row)) * dtype.itemsize
        tensor = _Tensor(name, self._cuda.allocate_host(size), self._cuda.allocate(size), row, dtype)
        if not self._context.set_tensor_address(name, tensor.device):
            raise BackendError("TensorRT does not take a buffer", where=self._name, got=name)
        return tensor

    def _check_interface(self) -> tuple[int, int]:
        """The fixed batch size (0: any) and the largest one."""
        engine, trt = self._engine, self._trt
        names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
        shapes = {name: tuple(engine.get_tensor_shape(name)) for name in names}
        types = {name: engine.get_tensor_dtype(name) for name in names}
        batch = (*shapes.get(INPUT_NAME, ()), 0)[0]
        columns = dict.fromkeys(OUTPUT_NAMES, len(self._classes)) | {"features": self._features}
        expected = {INPUT_NAME: (batch, *self._size, 3)} | {n: (batch, c) for n, c in columns.items()}
        dtypes = dict.fromkeys(OUTPUT_NAMES, trt.DataType.FLOAT) | {INPUT_NAME: trt.DataType.UINT8}
        is_input = {name: engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT for name in names}
        if shapes != expected or types != dtypes or is_input != {n: n == INPUT_NAME for n in expected}:
            raise BackendError(
                "the engine has other inputs or outputs than it should",
                where=self._name,
                got=", ".join(f"{n} {shapes[n]} {types[n]}" for n in names),
                expected=", ".join(f"{n} {shape}" for n, shape in expected.items()),
            )
        if batch > 0:
            return batch, batch
        least, _, most = (int(next(iter(s))) for s in engine.get_tensor_profile_shape(INPUT_NAME, 0))
        return (most if least == most else 0), most


def _open_device() -> Cuda:
    require_gpu()
    return Cuda()
