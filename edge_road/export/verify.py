"""The command that checks a bundle: its bytes, its outputs on this machine, its gate."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.backends.probe_check import check_probe
from edge_road.bundle import MANIFEST_FILE, REPORT_FILE, Bundle, Precision, load_bundle
from edge_road.errors import BundleError, GateRefused
from edge_road.evaluation.judge import judge
from edge_road.evaluation.scores import Evaluation
from edge_road.export.gate import Verdict
from edge_road.export.gate_file import refuse_unknown_schema
from edge_road.export.material import load_all_images
from edge_road.logs import safe_text
from edge_road.trust import DEVELOPMENT, SIGNATURE_FILE, Trust
from edge_road.workspace import newest_bundle

HEADER = ("model", "MB", "off by", "accuracy", "ice missed", "worst perturbation", "gate")


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
        _judge_anew(bundle, predictors, options.data)
    _require_gate(bundle, report)
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
    parser.add_argument("--data", type=Path, metavar="DIR", help="judge the models on these images too")
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


def _judge_anew(bundle: Bundle, predictors: dict[Precision, OnnxPredictor], path: Path) -> None:
    sample = load_all_images(bundle.manifest, path)
    print(f"\n{len(sample)} images of {path}")
    rows = [("model", "accuracy", "ice missed")]
    for precision, predictor in predictors.items():
        rows.append((precision, *_figures(judge(predictor, sample.images_NHWC, sample.labels_N, ()))))
    _print_table(rows)


def _require_gate(bundle: Bundle, report: _Report) -> None:
    breaches = [
        f"{precision}: {reason}"
        for precision in bundle.manifest.artefacts
        for reason in report.artefacts[precision].verdict.reasons
    ]
    if breaches:
        raise GateRefused("a model does not meet its target", where=bundle.path, got="; ".join(breaches))


def _print_table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
