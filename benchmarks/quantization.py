"""Recipes for INT8 side by side on one run: naive ONNX Runtime, our calibrators, refit, search.

    python benchmarks/quantization.py RUN [--data DIR] [--target FILE]

Every model is compared with the float one on validation images, clean and under the perturbations of the
smoke test; the last columns tell what a real TensorRT makes of it. Without a run, a small one is drawn.
"""
# ruff: noqa: E402

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[1] / "tests")]

import numpy as np

from benchmarks.int8_recipes import Workshop
from edge_road.evaluation.perturbations import CLEAN, perturb
from edge_road.evaluation.smoke import SMOKE_TESTS
from edge_road.export.exporting import Exporter, open_exporter
from edge_road.export.measure import open_predictor
from edge_road.export.rtx_check import rtx_check
from edge_road.export.steps import Steps, table_lines
from edge_road.export.target import CalibrationMethod, Target, load_target
from edge_road.export.trt_network import BuildShape
from edge_road.export.work import multiply_adds, share_of_work
from edge_road.frames import Images

METHODS: tuple[CalibrationMethod, ...] = ("min-max", "entropy", "percentile", "mse")
HEADER = (
    *("recipe", "agree", "perturbed", "logit error", "perturbed", "accuracy", "MB"),
    *("INT8 kernels", "of the work"),
)


class Bench:
    def __init__(self, exporter: Exporter, run: Path) -> None:
        self.exporter, self.target = exporter, exporter.target
        self.float_bytes, _ = exporter.make_float(run)
        self.workshop = Workshop(exporter, self.float_bytes)
        self.sets = list(self._judged_images())
        self.float_logits = [self._logits(self.float_bytes, images) for images in self.sets]

    def _judged_images(self) -> Iterator[Images]:
        validation = self.exporter.material.validation
        yield validation.images_NHWC
        few = validation.draw(self.target.samples.robustness, self.target.seed).images_NHWC
        for name in SMOKE_TESTS:
            if name != CLEAN:
                yield perturb(few, name, self.target.seed, 0)

    def _logits(self, content: bytes, images_NHWC: Images) -> np.ndarray:
        return open_predictor(content, "int8", self.exporter.material).predict(images_NHWC).logits_NC

    def ours(self, method: CalibrationMethod, *, refit: bool, keep_float: int = 0) -> bytes:
        """As the export makes it, float16 between and the last bias fitted."""
        changes = {"method": method, "refit": refit, "keep_float": keep_float}
        settings = self.target.calibration.model_copy(update=changes)
        return self.workshop.with_target(quantization="mixed", calibration=settings)

    def row(self, title: str, make: Callable[[], bytes]) -> tuple[str, ...]:
        content = make()
        agree, errors, accuracy = [], [], 0.0
        for number, (images, before) in enumerate(zip(self.sets, self.float_logits)):
            after = self._logits(content, images)
            agree.append(float((after.argmax(1) == before.argmax(1)).mean()))
            errors.append(float(np.abs(after - before).mean()))
            if number == 0:
                accuracy = float((after.argmax(1) == self.exporter.material.validation.labels_N).mean())
        return (
            title,
            f"{agree[0]:.2%}",
            f"{np.mean(agree[1:]):.2%}",
            f"{errors[0]:.3f}",
            f"{np.mean(errors[1:]):.3f}",
            f"{accuracy:.2%}",
            f"{len(content) / 1e6:.2f}",
            *self._built(content),
        )

    def _built(self, content: bytes) -> tuple[str, str]:
        size = self.exporter.material.record.preprocessing
        report = rtx_check(content, BuildShape(size.height, size.width))
        if report.status != "built":
            return report.status, "-"
        work = share_of_work(multiply_adds(self.float_bytes), report.int8_nodes)
        return f"{report.int8_kernels} of {report.heavy_kernels}", f"{work:.0%}"


def recipes(bench: Bench) -> dict[str, Callable[[], bytes]]:
    return {
        "ONNX Runtime, defaults": lambda: bench.workshop.onnx_runtime(symmetric=False),
        "ONNX Runtime, symmetric": lambda: bench.workshop.onnx_runtime(symmetric=True),
        **{method: lambda method=method: bench.ours(method, refit=False) for method in METHODS},
        "mse, 3 worst in float": lambda: bench.ours("mse", refit=False, keep_float=3),
        **{f"{method}, refit": lambda method=method: bench.ours(method, refit=True) for method in METHODS},
        "mse, refit, 3 in float": lambda: bench.ours("mse", refit=True, keep_float=3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--target")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run, target = options.run, load_target(options.target)
        if run is None:
            run, target = _drawn_run(Path(folder)), Target(name="small")
        bench = Bench(open_exporter(run, target, Steps(), options.data), run)
        rows = []
        for title, make in recipes(bench).items():
            rows.append(bench.row(title, make))
            print(f"  {title}", flush=True)
    print("\n".join(table_lines(HEADER, rows)))


def _drawn_run(folder: Path) -> Path:
    from tiny_run import draw_pictures, write_tiny_run

    return write_tiny_run(folder / "run", draw_pictures(folder / "pictures"))


if __name__ == "__main__":
    main()
