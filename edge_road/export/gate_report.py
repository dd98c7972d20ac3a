"""The verdict of the gate for people and for other programs: a table, and what stands beside the bundle."""

from __future__ import annotations

from collections.abc import Iterator

from edge_road.bundle import Precision
from edge_road.errors import GateRefused
from edge_road.export.exporting import Export, Judged
from edge_road.export.gate import agreement
from edge_road.export.gate_file import VerifyFile, VerifyOf
from edge_road.export.steps import Steps, table_lines

FALLBACKS: tuple[Precision, ...] = ("int8", "float16", "float32")
"""the fastest first"""
HEADER = (
    *("model", "MB", "agree", "perturbed", "accuracy", "perturbed", "ice missed"),
    *("ECE", "INT8 kernels", "of the work", "ms", "gate"),
)


def gate_lines(export: Export) -> Iterator[str]:
    """A row for each model, then what stood against it or was left to chance."""
    rows = [_row(name, judged, export.artefacts["float32"]) for name, judged in export.artefacts.items()]
    yield from table_lines(HEADER, rows)
    rtx = export.artefacts["float32"].rtx
    if rtx and rtx.status == "not installed":
        yield f"gate: TensorRT-RTX not asked: {rtx.reasons[0]}; the INT8 share was not judged"
    for name, judged in export.artefacts.items():
        yield f"gate: {name} " + ("released" if judged.released else _refused(export, name))
        yield from (f"      {reason}" for reason in judged.reasons)
        yield from (
            f"      left to chance: {check.text}" for check in judged.verdict.checks if check.forgiven
        )
        yield from (f"      not INT8: {layer}" for layer in (judged.work.in_float if judged.work else ()))


def refusal(export: Export) -> GateRefused | None:
    """Of what the target asks for and the bundle lacks."""
    refused = {name: judged for name, judged in export.artefacts.items() if not judged.released}
    if not refused:
        return None
    instead = ", ".join(f"{fallback(export, name)} instead of {name}" for name in refused)
    return GateRefused(
        f"refused and not in the bundle: {', '.join(refused)}",
        where="release gate",
        got="; ".join(f"{name}: {reason}" for name, judged in refused.items() for reason in judged.reasons),
        fix=f"change model, target or calibration; or accept {instead} with --accept-fallback",
    )


def fallback(export: Export, precision: Precision) -> Precision:
    """What a vehicle runs instead of a refused model."""
    slower = FALLBACKS[FALLBACKS.index(precision) + 1 :]
    return next((name for name in slower if name in export.released), "float32")


def verdicts(export: Export, digest: str, steps: Steps) -> VerifyFile:
    return VerifyFile(
        bundle_digest=digest,
        target=export.target.name,
        artefacts={name: _verdict(judged) for name, judged in export.artefacts.items()},
        steps_s=steps.durations_s,
    )


def _refused(export: Export, name: Precision) -> str:
    return f"REFUSED, not in the bundle; instead of it: {fallback(export, name)}"


def _verdict(judged: Judged) -> VerifyOf:
    return VerifyOf(
        released=judged.released,
        reasons=judged.reasons,
        checks=judged.verdict.checks,
        machine=judged.machine.checks,
        footprint=judged.footprint,
    )


def _row(name: Precision, judged: Judged, reference: Judged) -> tuple[str, ...]:
    quality, before = judged.measured.quality, reference.measured.quality
    clean, perturbed = quality.clean.clean, quality.robust_answers
    error, rtx = clean.calibration_error, judged.rtx
    return (
        name,
        f"{len(judged.measured.onnx_bytes) / 1e6:.2f}",
        f"{agreement(before.clean_answers, quality.clean_answers):.1%}",
        f"{agreement(before.robust_answers, perturbed):.1%}" if perturbed.published_RN.size else "-",
        f"{clean.accuracy:.1%}",
        f"{perturbed.right_RN.mean():.1%}" if perturbed.right_RN.size else "-",
        f"{clean.danger.rate:.1%}" if clean.danger else "-",
        "-" if error is None else f"{error:.3f}",
        f"{rtx.int8_kernels} of {rtx.heavy_kernels}" if rtx and rtx.status == "built" else "-",
        f"{judged.work.share:.0%}" if judged.work else "-",
        f"{judged.footprint.latency_ms:.1f}" if judged.footprint else "-",
        "released" if judged.released else "REFUSED",
    )
