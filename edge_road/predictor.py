"""The one shape of everything that classifies: torch, ONNX Runtime, TensorRT or a fake."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from edge_road.conditions import ClassList
from edge_road.frames import Images, Prediction


@runtime_checkable
class Predictor(Protocol):
    """uint8 RGB images of `height` x `width` in, a `Prediction` out. Not thread-safe."""

    @property
    def name(self) -> str:
        """What runs where, e.g. `onnx float32 on CPU`."""
        ...

    @property
    def classes(self) -> ClassList: ...

    @property
    def size(self) -> tuple[int, int]:
        """(height, width) of the images it takes."""
        ...

    def predict(self, images_NHWC: Images) -> Prediction: ...
