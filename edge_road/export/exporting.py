"""From a run to the contents of a bundle: every artefact made, checked, measured and judged."""

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
    with steps.step("load run and images") as outcome:
        material = load_material(run, target, data_path)
        outcome.text = f"{len(material.training)} training, {len(material.validation)} validation images"
    onnx_bytes, parity = export_float(run, material, target, steps)
    artefacts: dict[Precision, Judged] = {
        "float32": _judge_float(onnx_bytes, parity, material, target, steps)
    }
    calibration = None
    if target.int8:
        int8_bytes, calibration = _make_int8(onnx_bytes, material, target, steps)
        artefacts["int8"] = _judge_int8(int8_bytes, artefacts["float32"], material, target, steps)
    return Export(material, target, artefacts, calibration)


def export_float(run: Path, material: Material, target: Target, steps: Steps) -> tuple[bytes, Parity]:
    """The ONNX bytes of the run's model, and how they compare with torch."""
    # torch takes seconds to import, so it is imported when a run is really exported.
    from edge_road.export.onnx_graph import export_graph, one_torch_thread
    from edge_road.nn.predictor import load_model, load_run

    record = material.record
    with steps.step("export ONNX") as outcome:
        onnx_bytes = export_graph(load_model(run), record.preprocessing, record.classes, target.batch)
        outcome.text = f"{len(onnx_bytes) / 1e6:.1f} MB"
    with steps.step("compare with torch") as outcome, one_torch_thread():
        images_NHWC = material.validation.draw(target.samples.parity, target.seed).images_NHWC
        parity = compare(load_run(run), open_predictor(onnx_bytes, "float32", material), images_NHWC)
        outcome.text = (
            f"{parity.images} images, {parity.differing} other labels, "
            f"|logit difference| <= {parity.logit_difference:.1e}"
        )
    return onnx_bytes, parity


def _judge_float(
    onnx_bytes: bytes, parity: Parity, material: Material, target: Target, steps: Steps
) -> Judged:
    rtx = _check_rtx(onnx_bytes, "float32", material, target, steps)
    verdict = judge_float(parity, rtx, target.float_limits)
    require_passed(verdict)
    return Judged(_measure(onnx_bytes, "float32", material, target, steps), parity, rtx, verdict)


def require_passed(verdict: Verdict) -> None:
    if not verdict.passed:
        raise GateRefused(
            "the float model is refused; no bundle was written",
            where="release gate",
            got="; ".join(verdict.reasons),
            fix="export again; if it stays, the backbone does not survive the way to ONNX",
        )


def _make_int8(
    onnx_bytes: bytes, material: Material, target: Target, steps: Steps
) -> tuple[bytes, Calibration]:
    with steps.step("calibrate, make INT8") as outcome:
        images_NHWC = material.calibration_images(target)
        tensors = quantized_tensors(onnx_bytes)
        reach = activation_reach(onnx_bytes, tensors, images_NHWC, target.calibration)
        chosen = _nodes_to_quantize(onnx_bytes, reach, images_NHWC, material, target)
        int8_bytes = quantize(onnx_bytes, reach, chosen)
        outcome.text = f"{len(int8_bytes) / 1e6:.1f} MB, {len(chosen)} layers, {len(images_NHWC)} images"
    settings = target.calibration
    method = settings.method + (f" {settings.percentile}" if settings.method == "percentile" else "")
    digest = sha256(images_NHWC.tobytes())
    return int8_bytes, Calibration(method=method, images=len(images_NHWC), digest=digest)


def _nodes_to_quantize(
    onnx_bytes: bytes, reach: dict[str, float], images_NHWC: Images, material: Material, target: Target
) -> list[str]:
    settings, classes = target.calibration, material.record.class_list
    # Evenly spaced, because the images may be in the order of their classes.
    few = np.linspace(0, len(images_NHWC) - 1, min(settings.sensitivity_images, len(images_NHWC))).astype(int)
    return least_sensitive(onnx_bytes, reach, classes, images_NHWC[few], settings.keep_float)


def _judge_int8(
    int8_bytes: bytes, reference: Judged, material: Material, target: Target, steps: Steps
) -> Judged:
    rtx = _check_rtx(int8_bytes, "int8", material, target, steps)
    measured = _measure(int8_bytes, "int8", material, target, steps)
    with steps.step("compare int8, float32") as outcome:
        images_NHWC = material.validation.images_NHWC
        parity = compare(reference.measured.predictor, measured.predictor, images_NHWC)
        outcome.text = f"{parity.agreement:.1%} of {parity.images} labels agree"
    qualities = (reference.measured.quality, measured.quality)
    return Judged(measured, parity, rtx, judge_int8(*qualities, parity, rtx, target.int8_limits))


def _measure(
    onnx_bytes: bytes, precision: Precision, material: Material, target: Target, steps: Steps
) -> Measured:
    with steps.step(f"measure {precision}") as outcome:
        measured = measure(onnx_bytes, precision, material, target)
        clean, worst = measured.quality.clean.clean, measured.quality.robust.worst
        outcome.text = f"accuracy {clean.accuracy:.1%}"
        if worst is not None:
            outcome.text += f", {worst.accuracy:.1%} under {worst.name}"
    return measured


def _check_rtx(
    onnx_bytes: bytes, precision: Precision, material: Material, target: Target, steps: Steps
) -> RtxReport | None:
    if not target.tensorrt:
        return None
    with steps.step(f"TensorRT-RTX, {precision}") as outcome:
        report = rtx_check(onnx_bytes, build_shape(material, target))
        outcome.text = report.status
        if report.status == "built":
            outcome.text += f", {report.heavy_kernels} conv/linear kernels, {report.int8_share:.0%} in INT8"
    return report


def build_shape(material: Material, target: Target) -> BuildShape:
    preprocessing, engine = material.record.preprocessing, target.engine
    return BuildShape(
        preprocessing.height, preprocessing.width, target.batch, engine.typical_batch, engine.largest_batch
    )
