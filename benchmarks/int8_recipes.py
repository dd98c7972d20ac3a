"""Ways to make an INT8 model of one run: those of others, and ours."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from edge_road.errors import BackendError
from edge_road.export.exporting import Exporter
from edge_road.frames import Images

MODELOPT_CHILD = """
import sys
import numpy
from modelopt.onnx.quantization import quantize
quantize(sys.argv[1], quantize_mode="int8", calibration_data={"images": numpy.load(sys.argv[2])},
         calibration_eps=["cpu"], output_path=sys.argv[3])
"""
TIME_LIMIT_S = 1800


@dataclass(frozen=True, eq=False)
class Workshop:
    """One run with its float model, and where other people's tools lie."""

    exporter: Exporter
    float_bytes: bytes
    modelopt: Path | None = None
    """packages that modelopt's ONNX part needs and ours has not, as `pip install --target` puts them"""

    def images(self) -> Images:
        return self.exporter.material.calibration_images(self.exporter.target)

    def with_target(self, **changes: object) -> bytes:
        target = self.exporter.target.model_copy(update=changes)
        return replace(self.exporter, target=target).make_int8(self.float_bytes)[0]

    def onnx_runtime(self, *, symmetric: bool) -> bytes:
        """ONNX Runtime's own quantiser: its defaults, or symmetric min-max of every operator."""
        from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

        class Reader(CalibrationDataReader):
            def __init__(self, images_NHWC: Images) -> None:
                self.left = iter(images_NHWC)

            def get_next(self) -> dict[str, Images] | None:
                image_HWC = next(self.left, None)
                return None if image_HWC is None else {"images": image_HWC[None]}

        options = {"ActivationSymmetric": True, "WeightSymmetric": True, "QuantizeBias": False}
        with tempfile.TemporaryDirectory() as folder:
            source, result = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
            source.write_bytes(self.float_bytes)
            quantize_static(
                source,
                result,
                Reader(self.images()),
                activation_type=QuantType.QInt8 if symmetric else QuantType.QUInt8,
                extra_options=options if symmetric else {},
            )
            return result.read_bytes()

    def modelopt_default(self) -> bytes:
        """In a process of its own, with the versions that it asks for."""
        paths = [str(self.modelopt)] if self.modelopt else []
        surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        with tempfile.TemporaryDirectory() as folder:
            source, images, result = (
                Path(folder) / name for name in ("float.onnx", "images.npy", "int8.onnx")
            )
            source.write_bytes(self.float_bytes)
            np.save(images, self.images())
            words = [sys.executable, "-c", MODELOPT_CHILD, str(source), str(images), str(result)]
            child = subprocess.run(
                words, capture_output=True, env=surroundings, timeout=TIME_LIMIT_S, cwd=folder, check=False
            )
            if child.returncode != 0 or not result.is_file():
                lines = child.stderr.decode(errors="replace").strip().splitlines()
                raise BackendError(
                    "modelopt gave no model", got=(lines or ["no message"])[-1][:300], fix="see --modelopt"
                )
            return result.read_bytes()


@dataclass(frozen=True)
class Int8Recipe:
    title: str
    make: Callable[[Workshop], bytes]


FLOAT = "float32"
RECIPES: dict[str, Int8Recipe] = {
    FLOAT: Int8Recipe("float32", lambda shop: shop.float_bytes),
    "ort": Int8Recipe("ONNX Runtime, defaults", lambda shop: shop.onnx_runtime(symmetric=False)),
    "ort_symmetric": Int8Recipe("ONNX Runtime, symmetric", lambda shop: shop.onnx_runtime(symmetric=True)),
    "modelopt": Int8Recipe("modelopt, defaults", lambda shop: shop.modelopt_default()),
    "mixed": Int8Recipe("ours, depthwise in float16", lambda shop: shop.with_target(quantization="mixed")),
    "search": Int8Recipe("ours, sensitivity search", lambda shop: shop.with_target(quantization="search")),
    "all": Int8Recipe("ours, every layer INT8", lambda shop: shop.with_target(quantization="all")),
    "qat": Int8Recipe("ours, every layer INT8, trained", lambda shop: shop.with_target(quantization="qat")),
}
