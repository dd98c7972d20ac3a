"""`edge-road smoke`: the robustness self-test of a bundle, on the machine that will run it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from edge_road import workspace
from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.bundle import MODEL_FILES, Bundle, Precision, load_bundle
from edge_road.errors import BundleError, ConfigError, GateRefused
from edge_road.evaluation.smoke import SmokeVerdict, smoke_accuracies


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    bundle = load_bundle(chosen.bundle or workspace.newest_bundle())
    verdict = smoke(bundle, chosen.precision, chosen.threads)
    print(_as_json(bundle, chosen.precision, verdict) if chosen.json else _as_table(verdict))
    if not verdict.passed:
        raise GateRefused(
            "the bundle does not keep its accuracy under perturbation on this machine",
            where=f"{bundle.path} ({chosen.precision})",
            got=", ".join(f"{name} {verdict.accuracies[name]:.1%}" for name in verdict.breaches),
            expected=", ".join(f"{name} {verdict.limits[name]:.1%} or more" for name in verdict.breaches),
            fix="keep the bundle that ran before; export this one again",
        )
    return 0


def smoke(bundle: Bundle, precision: Precision = "float32", threads: int = 2) -> SmokeVerdict:
    """Run every test that the bundle's manifest sets a limit for."""
    limits = bundle.manifest.smoke_limits
    if not limits:
        raise BundleError("the bundle sets no limits for the self-test", where=bundle.path)
    predictor = OnnxPredictor.from_bundle(bundle, precision=precision, threads=threads)
    try:
        accuracies = smoke_accuracies(predictor, bundle.probe(), tests=limits)
    except ConfigError as error:
        raise BundleError(
            "the bundle names a self-test that this version does not know",
            where=bundle.path,
            got=error.details.get("got"),
            fix="update edge_road on this machine",
        ) from None
    return SmokeVerdict(accuracies=accuracies, limits=limits)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="edge-road smoke",
        description="Check, with the bundle's own frames, that it keeps its accuracy under noise, occlusion, "
        "blur and darkness on this machine. Exit code 6 when it does not.",
    )
    parser.add_argument("bundle", nargs="?", type=Path, metavar="BUNDLE", help="default: the newest bundle")
    parser.add_argument("--precision", choices=tuple(MODEL_FILES), default="float32")
    parser.add_argument("--threads", type=int, default=2, help="of the processor (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser


def _as_table(verdict: SmokeVerdict) -> str:
    rows = [f"{'test':<24}{'accuracy':>10}{'limit':>10}"]
    for name, limit in verdict.limits.items():
        mark = "  BREACHED" if name in verdict.breaches else ""
        rows.append(f"{name:<24}{verdict.accuracies[name]:>10.1%}{limit:>10.1%}{mark}")
    return "\n".join(rows)


def _as_json(bundle: Bundle, precision: Precision, verdict: SmokeVerdict) -> str:
    values = {
        "bundle": str(bundle.path),
        "digest": bundle.digest,
        "precision": precision,
        "passed": verdict.passed,
        **verdict.model_dump(),
    }
    return json.dumps(values, indent=2, allow_nan=False)
