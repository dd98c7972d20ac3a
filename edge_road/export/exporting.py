"""From a run to the artefacts of a bundle: each made, checked, measured and judged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edge_road.bundle import Calibration, Precision
from edge_road.errors import GateRefused
from edge_road.export.calibration import activation_reach
from edge_road.export.gate import Parity, Verdict, judge_float, judge_int8
from edge_road.export.material import Material, load_material
from edge_road.export.measure import Measured, compare, measure, open_predictor
from edge_road.export.quantize import quantize, quantized_tensors
from edge_road.export.rtx_check import RtxReport, rtx_check
from edge_road.export.sensitivity import least_sensitive
from edge_road.export.steps import Steps
from edge_road.export.target import Target
from edge_road.export.trt_network import BuildShape
from edge_road.files import sha256
from edge_road.frames import Images


@dataclass(frozen=True, eq=False)
class Judged:
    """One artefact with everything that speaks for or against it."""

    measured: Measured
    parity: Parity
    """float: with torch; int8: with float"""
    rtx: RtxReport | None
    verdict: Verdict


@dataclass(frozen=True, eq=False)
class Export:
    material: Material
    target: Target
    artefacts: dict[Precision, Judged]
    calibration: Calibration | None

    @property
    def released(self) -> dict[Precision, Judged]:
        return {name: judged for name, judged in self.artefacts.items() if judged.verdict.passed}


def export_run(run: Path, target: Target, steps: Steps, data_path: Path | None = None) -> Export:
    """A refused float model is a GateRefused; a refused INT8 model is kept with its reasons."""
    exporter = open_exporter(run, target, steps, data_path)
    onnx_bytes, parity = exporter.make_float(run)
    float32 = exporter.judge_float(onnx_bytes, parity)
    if not target.int8:
        return Export(exporter.material, target, {"float32": float32}, None)
    int8_bytes, calibration = exporter.make_int8(onnx_bytes)
    int8 = exporter.judge_int8(int8_bytes, float32)
    return Export(exporter.material, target, {"float32": float32, "int8": int8}, calibration)


def open_exporter(run: Path, target: Target, steps: Steps, data_path: Path | None) -> Exporter:
    with steps.step("load run and images") as outcome:
        material = load_material(run, target, data_path)
        outcome.text = f"{len(material.training)} training, {len(material.validation)} validation images"
    return Exporter(material, target, steps)


def require_passed(verdict: Verdict) -> None:
    if not verdict.passed:
        raise GateRefused(
            "the float model is refused; nothing was written",
            where="release gate",
            got="; ".join(verdict.reasons),
            fix="export again; if it stays, the backbone does not survive the way to ONNX",
        )


@dataclass(frozen=True, eq=False)
class Exporter:
    material: Material
    target: Target
    steps: Steps

    def make_float(self, run: Path) -> tuple[bytes, Parity]:
        """The ONNX bytes of the run's model, and how they compare with torch."""
        # torch takes seconds to import, so it is imported when a run is really exported.
        from edge_road.export.onnx_graph import export_graph, one_torch_thread
        from edge_road.nn.predictor import load_model, load_run

        record, samples = self.material.record, self.target.samples
        with self.steps.step("export ONNX") as outcome:
            model = load_model(run)
            onnx_bytes = export_graph(model, record.preprocessing, record.classes, self.target.batch)
            outcome.text = f"{len(onnx_bytes) / 1e6:.1f} MB"
        with self.steps.step("compare with torch") as outcome, one_torch_thread():
            images_NHWC = self.material.validation.draw(samples.parity, self.target.seed).images_NHWC
            predictor = open_predictor(onnx_bytes, "float32", self.material)
            parity = compare(load_run(run), predictor, images_NHWC)
            outcome.text = (
                f"{parity.images} images, {parity.differing} other labels, "
                f"|logit difference| <= {parity.logit_difference:.1e}"
            )
        return onnx_bytes, parity

    def judge_float(self, onnx_bytes: bytes, parity: Parity) -> Judged:
        rtx = self._check_rtx(onnx_bytes, "float32")
        verdict = judge_float(parity, rtx, self.target.float_limits)
        require_passed(verdict)
        return Judged(self._measure(onnx_bytes, "float32"), parity, rtx, verdict)

    def make_int8(self, onnx_bytes: bytes) -> tuple[bytes, Calibration]:
        settings = self.target.calibration
        with self.steps.step("calibrate, make INT8") as outcome:
            images_NHWC = self.material.calibration_images(self.target)
            reach = activation_reach(onnx_bytes, quantized_tensors(onnx_bytes), images_NHWC, settings)
            chosen = self._nodes_to_quantize(onnx_bytes, reach, images_NHWC)
            int8_bytes = quantize(onnx_bytes, reach, chosen)
            outcome.text = f"{len(int8_bytes) / 1e6:.1f} MB, {len(chosen)} layers, {len(images_NHWC)} images"
        method = settings.method + (f" {settings.percentile}" if settings.method == "percentile" else "")
        digest = sha256(images_NHWC.tobytes())
        return int8_bytes, Calibration(method=method, images=len(images_NHWC), digest=digest)

    def judge_int8(self, int8_bytes: bytes, reference: Judged) -> Judged:
        rtx = self._check_rtx(int8_bytes, "int8")
        measured = self._measure(int8_bytes, "int8")
        with self.steps.step("compare int8, float32") as outcome:
            images_NHWC = self.material.validation.images_NHWC
            parity = compare(reference.measured.predictor, measured.predictor, images_NHWC)
            outcome.text = f"{parity.agreement:.1%} of {parity.images} labels agree"
        qualities = (reference.measured.quality, measured.quality)
        return Judged(measured, parity, rtx, judge_int8(*qualities, parity, rtx, self.target.int8_limits))

    def _nodes_to_quantize(
        self, onnx_bytes: bytes, reach: dict[str, float], images_NHWC: Images
    ) -> list[str]:
        settings, classes = self.target.calibration, self.material.record.class_list
        count = min(settings.sensitivity_images, len(images_NHWC))
        # Evenly spaced, because the images may be in the order of their classes.
        few = np.linspace(0, len(images_NHWC) - 1, count).astype(int)
        return least_sensitive(onnx_bytes, reach, classes, images_NHWC[few], settings.keep_float)

    def _measure(self, onnx_bytes: bytes, precision: Precision) -> Measured:
        with self.steps.step(f"measure {precision}") as outcome:
            measured = measure(onnx_bytes, precision, self.material, self.target)
            clean, worst = measured.quality.clean.clean, measured.quality.robust.worst
            outcome.text = f"accuracy {clean.accuracy:.1%}"
            if worst is not None:
                outcome.text += f", {worst.accuracy:.1%} under {worst.name}"
        return measured

    def _check_rtx(self, onnx_bytes: bytes, precision: Precision) -> RtxReport | None:
        if not self.target.tensorrt:
            return None
        size, engine = self.material.record.preprocessing, self.target.engine
        batches = (self.target.batch, engine.typical_batch, engine.largest_batch)
        with self.steps.step(f"TensorRT-RTX, {precision}") as outcome:
            report = rtx_check(onnx_bytes, BuildShape(size.height, size.width, *batches))
            outcome.text = report.status
            if report.status == "built":
                outcome.text += f", {report.heavy_kernels} conv/linear kernels"
                outcome.text += f", {report.int8_share:.0%} in INT8" if precision == "int8" else ""
        return report
