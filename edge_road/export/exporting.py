"""From a run to the artefacts of a bundle: each made, checked, measured and judged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edge_road.bundle import Calibration, Precision
from edge_road.errors import BackendError, DataError, GateRefused
from edge_road.export.calibration import largest_values, sample_activations
from edge_road.export.coverage import excess_noise
from edge_road.export.depthwise import all_layers
from edge_road.export.footprint import Footprint, footprint
from edge_road.export.gate import (
    NOT_FINITE,
    Built,
    Parity,
    Verdict,
    judge_float,
    judge_machine,
    judge_reduced,
)
from edge_road.export.half import to_float16
from edge_road.export.last_bias import with_fitted_bias
from edge_road.export.material import Material, load_material
from edge_road.export.measure import DIGITS, Measured, compare, measure, open_predictor, parity_of
from edge_road.export.quantize import Int8Layers, int8_layers, quantize, quantized_tensors
from edge_road.export.rtx_check import RtxReport, rtx_check
from edge_road.export.sensitivity import Sensitivity, agreement_trial, by_sensitivity, fewest_float
from edge_road.export.steps import Steps
from edge_road.export.target import Target
from edge_road.export.trt_network import BuildShape
from edge_road.export.work import Int8Work, int8_work, int8_work_share
from edge_road.files import sha256
from edge_road.frames import Images

RANGE_IMAGES = 16
"""that tell whether float16 can hold the activations"""
WORST = 10
"""layers that are told of as the most sensitive"""
NOT_MEASURED = Verdict()
OTHER_COMPUTATION = "export again; if it stays, the backbone does not survive the way to ONNX"


@dataclass(frozen=True, eq=False)
class Judged:
    """One artefact with everything that speaks for or against it."""

    measured: Measured
    parity: Parity
    """float32: with torch; others: with float32"""
    rtx: RtxReport | None
    verdict: Verdict
    """the same on every machine"""
    machine: Verdict = NOT_MEASURED
    """time and memory here"""
    footprint: Footprint | None = None
    work: Int8Work | None = None
    """of an INT8 model that TensorRT-RTX built"""

    @property
    def released(self) -> bool:
        return self.verdict.passed and self.machine.passed

    @property
    def reasons(self) -> tuple[str, ...]:
        return (*self.verdict.reasons, *self.machine.reasons)


@dataclass(frozen=True, eq=False)
class Export:
    material: Material
    target: Target
    artefacts: dict[Precision, Judged]
    calibration: Calibration | None
    sensitivity: Sensitivity | None = None
    """of the INT8 model's layers, where some were looked for to stay in float"""

    @property
    def released(self) -> dict[Precision, Judged]:
        return {name: judged for name, judged in self.artefacts.items() if judged.released}


def export_run(run: Path, target: Target, steps: Steps, data_path: Path | None = None) -> Export:
    """A refused float model is a GateRefused; a refused other one is kept with its reasons."""
    exporter = open_exporter(run, target, steps, data_path)
    onnx_bytes, parity = exporter.make_float(run)
    float32 = exporter.judge_float(onnx_bytes, parity)
    artefacts: dict[Precision, Judged] = {"float32": float32}
    calibration = sensitivity = None
    if target.float16:
        artefacts["float16"] = exporter.judge_reduced(exporter.make_float16(onnx_bytes), "float16", float32)
    if target.int8:
        int8_bytes, calibration, sensitivity = exporter.make_int8(onnx_bytes)
        artefacts["int8"] = exporter.judge_reduced(int8_bytes, "int8", float32)
    return Export(exporter.material, target, artefacts, calibration, sensitivity)


def open_exporter(run: Path, target: Target, steps: Steps, data_path: Path | None) -> Exporter:
    with steps.step("load run and images") as outcome:
        material = load_material(run, target, data_path)
        outcome.text = f"{len(material.training)} training, {len(material.validation)} validation images"
    return Exporter(material, target, steps)


def require_passed(verdict: Verdict, fix: str = OTHER_COMPUTATION) -> None:
    if not verdict.passed:
        raise GateRefused(
            "the float model is refused; nothing was written",
            where="release gate",
            got="; ".join(verdict.reasons),
            fix=fix,
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
            backbone = self.material.recipe.model.backbone
            onnx_bytes = export_graph(
                model, record.preprocessing, record.classes, self.target.batch, backbone
            )
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
        machine, found = self._judge_machine(onnx_bytes, "float32")
        require_passed(machine, fix="a smaller model, or wider machine_limits in the target")
        measured = self._measure(onnx_bytes, "float32")
        if not measured.finite:
            require_passed(Verdict(refusals=(NOT_FINITE,)))
        return Judged(measured, parity, rtx, verdict, machine, found)

    def make_float16(self, onnx_bytes: bytes) -> bytes:
        with self.steps.step("make float16") as outcome:
            half_bytes = to_float16(onnx_bytes, self._largest_values(onnx_bytes))
            outcome.text = f"{len(half_bytes) / 1e6:.1f} MB"
        return half_bytes

    def make_int8(self, onnx_bytes: bytes) -> tuple[bytes, Calibration, Sensitivity | None]:
        images_NHWC = self.material.calibration_images(self.target)
        train = self.target.quantization == "qat"
        layers = self._train(onnx_bytes) if train else self._calibrate(onnx_bytes, images_NHWC)
        with self.steps.step("make INT8") as outcome:
            kept, sensitivity = self._float_layers(onnx_bytes, layers, images_NHWC)
            chosen = [name for name in layers if name not in kept]
            int8_bytes = quantize(onnx_bytes, layers, chosen)
            if self.target.float16:
                int8_bytes = to_float16(int8_bytes, self._largest_values(onnx_bytes))
            classes, met_NHWC = self.material.record.class_list, self.material.perturbed_images(self.target)
            int8_bytes = with_fitted_bias(onnx_bytes, int8_bytes, classes, met_NHWC)
            share = int8_work_share(int8_bytes)
            outcome.text = f"{len(int8_bytes) / 1e6:.1f} MB, {len(chosen)} layers, {share:.0%} of the work"
        digest = sha256(images_NHWC.tobytes())
        calibration = Calibration(method=_method(self.target), images=len(images_NHWC), digest=digest)
        return int8_bytes, calibration, sensitivity

    def _calibrate(self, onnx_bytes: bytes, images_NHWC: Images) -> Int8Layers:
        settings = self.target.calibration
        with self.steps.step("calibrate") as outcome:
            if self.target.quantization == "all":
                layers = all_layers(onnx_bytes, images_NHWC, settings, self.target.seed)
            else:
                tensors = quantized_tensors(onnx_bytes)
                activations = sample_activations(onnx_bytes, tensors, images_NHWC, self.target.seed)
                layers = int8_layers(onnx_bytes, activations, settings)
            outcome.text = f"{len(images_NHWC)} images, {len(layers)} layers, {settings.method}"
        return layers

    def _train(self, onnx_bytes: bytes) -> Int8Layers:
        """With INT8 in the graph; depthwise layers too."""
        from edge_road.export.onnx_graph import one_torch_thread
        from edge_road.export.qat import train_int8

        with self.steps.step("train INT8") as outcome, one_torch_thread():
            trained = train_int8(onnx_bytes, self.material, self.target)
            before, best = trained.errors[0], min(trained.errors)
            outcome.text = f"{self.target.qat.epochs} epochs, error {before:.4f} to {best:.4f}"
        return trained.layers

    def judge_reduced(self, onnx_bytes: bytes, precision: Precision, reference: Judged) -> Judged:
        """Of a float16 or INT8 model, against the float one."""
        rtx = self._check_rtx(onnx_bytes, precision)
        measured = self._measure(onnx_bytes, precision)
        before, after = reference.measured.quality, measured.quality
        limits = self.target.int8_limits if precision == "int8" else self.target.float16_limits
        float_bytes, work = reference.measured.onnx_bytes, None
        if precision == "int8" and rtx is not None and rtx.status == "built":
            work = int8_work(rtx, float_bytes, onnx_bytes)
        noise, finite = self._noise(onnx_bytes, measured.finite)
        built = Built(len(onnx_bytes) / len(float_bytes), rtx, work.share if work else None, noise, finite)
        verdict = judge_reduced(before, after, built, limits)
        machine, found = self._judge_machine(onnx_bytes, precision)
        parity = parity_of(reference.measured.validation, measured.validation)
        return Judged(measured, parity, rtx, verdict, machine, found, work)

    def _noise(self, onnx_bytes: bytes, finite: bool) -> tuple[float | None, bool]:
        """Of the INT8 scales; and whether all is finite, inside too."""
        try:
            noise = excess_noise(onnx_bytes, self.material.coverage_images(self.target))
        except DataError:
            return None, False
        return None if noise is None else round(noise, DIGITS), finite

    def _float_layers(
        self, onnx_bytes: bytes, layers: Int8Layers, images_NHWC: Images
    ) -> tuple[set[str], Sensitivity | None]:
        """Besides the depthwise ones: a fixed number of the most sensitive, or as few as agreement allows."""
        settings, classes = self.target.calibration, self.material.record.class_list
        fixed = self.target.quantization == "mixed" and settings.keep_float > 0
        if not fixed and self.target.quantization != "search":
            return set(), None
        count = min(settings.sensitivity_images, len(images_NHWC))
        # Evenly spaced, because the images may be in the order of their classes.
        few = np.linspace(0, len(images_NHWC) - 1, count).astype(int)
        ranking = by_sensitivity(onnx_bytes, layers, classes, images_NHWC[few])
        order, worst = [name for name, _ in ranking], tuple(ranking[:WORST])
        rows = [(name, f"{damage:.4f}") for name, damage in worst]
        self.steps.table(("most sensitive layer", "logit error alone"), rows)
        if fixed:
            return set(order[: settings.keep_float]), Sensitivity(worst)
        judge = agreement_trial(onnx_bytes, layers, classes, self.material.search_images(self.target))
        wanted = self.target.int8_limits.agreement
        choice, trials = fewest_float(order, judge, wanted, settings.most_float)
        header = ("float layers", "the last of them", "agreement", "logit error")
        self.steps.table(header, [trial.row for trial in trials])
        return set(choice.kept_float), Sensitivity(worst, tuple(trials))

    def _largest_values(self, onnx_bytes: bytes) -> dict[str, float]:
        return largest_values(onnx_bytes, self.material.training.draw(RANGE_IMAGES, 0).images_NHWC)

    def _measure(self, onnx_bytes: bytes, precision: Precision) -> Measured:
        with self.steps.step(f"measure {precision}") as outcome:
            measured = measure(onnx_bytes, precision, self.material, self.target)
            clean, worst = measured.quality.clean.clean, measured.quality.robust.worst
            outcome.text = f"accuracy {clean.accuracy:.1%}"
            if worst is not None:
                outcome.text += f", {worst.accuracy:.1%} under {worst.name}"
        return measured

    def _judge_machine(self, onnx_bytes: bytes, precision: Precision) -> tuple[Verdict, Footprint | None]:
        limits, size = self.target.machine_limits, self.material.record.preprocessing
        if not limits.measure:
            return NOT_MEASURED, None
        with self.steps.step(f"time {precision}") as outcome:
            found = footprint(onnx_bytes, (size.height, size.width), self.target.batch)
            measured = None if isinstance(found, str) else found
            outcome.text = (
                "failed"
                if measured is None
                else (f"{measured.latency_ms:.1f} ms, {measured.memory_mb:.0f} MB (ONNX Runtime, one thread)")
            )
        return judge_machine(found, limits), measured

    def _check_rtx(self, onnx_bytes: bytes, precision: Precision) -> RtxReport | None:
        if not self.target.tensorrt:
            return None
        size, engine = self.material.record.preprocessing, self.target.engine
        batches = (self.target.batch, engine.typical_batch, engine.largest_batch)
        with self.steps.step(f"TensorRT-RTX, {precision}") as outcome:
            report = rtx_check(onnx_bytes, BuildShape(size.height, size.width, *batches))
            if report.status == "not installed" and self.target.tensorrt == "required":
                raise _no_judge(report)
            outcome.text = report.status
            if report.status == "built":
                outcome.text += f", {report.heavy_kernels} conv/linear kernels"
                outcome.text += f", {report.int8_share:.0%} in INT8" if precision == "int8" else ""
        return report


def _no_judge(report: RtxReport) -> BackendError:
    return BackendError(
        "the target requires the verdict of TensorRT-RTX",
        where='target, tensorrt = "required"',
        got=report.reasons[0],
        fix="install tensorrt-rtx-cu13 (x86-64 Linux), or tensorrt = true to do without",
    )


def _method(target: Target) -> str:
    settings = target.calibration
    words = [settings.method + (f" {settings.percentile}" if settings.method == "percentile" else "")]
    trained = [f"{target.qat.epochs} epochs of training"] if target.quantization == "qat" else []
    return ", ".join([*words, *(["refit"] if settings.refit else []), *trained])
