"""The command that checks a bundle: its bytes, its outputs on this machine, its gate."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.backends.probe_check import check_probe
from edge_road.bundle import MANIFEST_FILE, REPORT_FILE, Bundle, Precision, load_bundle
from edge_road.config import check_settings
from edge_road.errors import BundleError, GateRefused
from edge_road.evaluation.scores import Evaluation
from edge_road.export.gate import Built, Check, Quality, Verdict, judge_reduced
from edge_road.export.gate_file import refuse_unknown_schema
from edge_road.export.material import load_all_images
from edge_road.export.measure import quality_of
from edge_road.export.target import Target
from edge_road.logs import safe_text
from edge_road.trust import DEVELOPMENT, SIGNATURE_FILE, Trust
from edge_road.workspace import newest_bundle

FIGURES = ("accuracy", "ice missed", "worst perturbation")
HEADER = ("model", "MB", "off by", *FIGURES, "gate at export")


class _Judged(BaseModel):
    """The part of a stored judgement that is looked at again."""

    model_config = ConfigDict(allow_inf_nan=False)
    reasons: tuple[str, ...] = ()
    """against it, those of the machine that exported too"""
    verdict: Verdict
    clean: Evaluation
    robust: Evaluation


_UNNAMED = {MANIFEST_FILE, SIGNATURE_FILE}
_SCHEMAS = ("edge_road.export_report/1",)


class _Report(BaseModel):
    artefacts: dict[Precision, _Judged]
    target: dict[str, Any] = {}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    path: Path = options.bundle or newest_bundle()
    keys = tuple(options.trusted_key)
    bundle = load_bundle(path, Trust(trusted_keys=keys) if keys else DEVELOPMENT)
    report = _read_report(bundle)
    print(f"bundle {path}\n  digest {bundle.digest}\n  {bundle.trust_text}")
    print(f"  {len(bundle.contents)} files, as the manifest says")
    if foreign := sorted({inner.name for inner in path.iterdir()} - bundle.contents.keys() - _UNNAMED):
        print(f"  not the bundle's and never read: {safe_text(', '.join(foreign))[:200]}")
    print()
    threads = os.cpu_count() or 1
    predictors = {p: OnnxPredictor.from_bundle(bundle, p, threads) for p in bundle.manifest.artefacts}
    _print_table([HEADER, *(_row(bundle, p, predictors[p], report.artefacts[p]) for p in predictors)])
    for precision in report.artefacts.keys() - predictors.keys():
        print(f"\n{precision} was refused at export: {'; '.join(report.artefacts[precision].reasons)}")
    if options.data:
        _require_passed(bundle, _judge_anew(bundle, predictors, report, options.data))
    _require_passed(bundle, {name: report.artefacts[name].verdict for name in predictors})
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Check a bundle: its bytes, its outputs on this machine, its gate.",
    )
    parser.add_argument(
        "bundle", nargs="?", type=Path, metavar="BUNDLE", help="folder of the bundle (the newest)"
    )
    parser.add_argument(
        "--trusted-key",
        action="append",
        default=[],
        metavar="KEY",
        help="who must have signed it (repeatable)",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="hold the gate once more, on these images")
    return parser


def _read_report(bundle: Bundle) -> _Report:
    where = bundle.path / REPORT_FILE
    try:
        values = json.loads(bundle.contents[REPORT_FILE])
        refuse_unknown_schema(values.get("schema_name"), _SCHEMAS, where)
        report = _Report.model_validate(values)
    except (AttributeError, KeyError, ValueError, ValidationError) as error:
        raise BundleError("the report of the bundle cannot be read", where=where, got=error) from None
    if unjudged := sorted(bundle.manifest.artefacts.keys() - report.artefacts.keys()):
        raise BundleError("a model was never judged", where=bundle.path, got=", ".join(unjudged))
    return report


def _row(bundle: Bundle, precision: Precision, predictor: OnnxPredictor, judged: _Judged) -> tuple[str, ...]:
    off_by = check_probe(predictor, bundle.probe(), precision)
    size = len(bundle.model_bytes(precision)) / 1e6
    gate = "passed" if judged.verdict.passed else "REFUSED"
    figures = (*_figures(judged.clean), _worst(judged.robust))
    return (precision, f"{size:.1f}", f"{off_by:.1e}", *figures, gate)


def _figures(evaluation: Evaluation) -> tuple[str, str]:
    score = evaluation.clean
    missed = f"{score.danger.rate:.1%} of {score.danger.icy}" if score.danger else "no ice seen"
    return f"{score.accuracy:.1%}", missed


def _worst(evaluation: Evaluation) -> str:
    worst = evaluation.worst
    return f"{worst.accuracy:.1%} {worst.name}" if worst else "-"


def _judge_anew(
    bundle: Bundle, predictors: dict[Precision, OnnxPredictor], report: _Report, path: Path
) -> dict[Precision, Verdict]:
    """Of each model against float32 on these images, with the limits it was exported with."""
    target = check_settings(Target, report.target, where="the target in the bundle's report")
    sample = load_all_images(bundle.manifest, path)
    print(f"\n{len(sample)} images of {path}")
    found = {name: quality_of(predictor, sample, target) for name, predictor in predictors.items()}
    others: list[Precision] = [name for name in found if name != "float32" and "float32" in found]
    verdicts = {name: _verdict(bundle, name, found, target) for name in others}
    rows = [("model", *FIGURES, "accuracy at export", "gate here")]
    for name, quality in found.items():
        before = f"{report.artefacts[name].clean.clean.accuracy:.1%}"
        gate = "-" if name not in verdicts else "passed" if verdicts[name].passed else "REFUSED"
        rows.append((name, *_figures(quality.clean), _worst(quality.robust), before, gate))
    _print_table(rows)
    for name, verdict in verdicts.items():
        print(f"\n{name} against float32")
        _print_table([(_word(check), check.text) for check in verdict.checks])
    return verdicts


def _verdict(bundle: Bundle, name: Precision, found: dict[Precision, Quality], target: Target) -> Verdict:
    size = len(bundle.model_bytes(name)) / len(bundle.model_bytes("float32"))
    limits = target.int8_limits if name == "int8" else target.float16_limits
    return judge_reduced(found["float32"], found[name], Built(size, rtx=None), limits)


def _word(check: Check) -> str:
    return "left to chance" if check.forgiven else "passed" if check.passed else "BREACHED"


def _require_passed(bundle: Bundle, verdicts: dict[Precision, Verdict]) -> None:
    breaches = [f"{name}: {reason}" for name, verdict in verdicts.items() for reason in verdict.reasons]
    if breaches:
        raise GateRefused("a model does not meet its target", where=bundle.path, got="; ".join(breaches))


def _print_table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
