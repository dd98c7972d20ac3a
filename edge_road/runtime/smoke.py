"""`edge-road smoke`: the robustness self-test of a bundle, on the machine that will run it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from edge_road import workspace
from edge_road.bundle import MODEL_FILES, Bundle, Precision, load_bundle
from edge_road.errors import BundleError, ConfigError, GateRefused
from edge_road.evaluation.smoke import SmokeVerdict, smoke_accuracies
from edge_road.runtime.model import PRECISIONS, Candidate, open_predictor

SCHEMA = "edge_road.smoke/1"
Verdicts = Mapping[Precision, SmokeVerdict]


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    bundle = load_bundle(chosen.bundle or workspace.newest_bundle())
    precisions = [chosen.precision] if chosen.precision else list(bundle.manifest.artefacts)
    verdicts = {
        precision: smoke(bundle, Candidate(chosen.backend, precision), chosen.threads)
        for precision in precisions
    }
    print(_as_json(bundle, verdicts) if chosen.json else _as_table(verdicts))
    failed = {precision: verdict for precision, verdict in verdicts.items() if not verdict.passed}
    if failed:
        raise GateRefused(
            "the bundle does not keep its accuracy under perturbation on this machine",
            where=f"{bundle.path} ({', '.join(failed)})",
            got=", ".join(f"{p} {n} {v.accuracies[n]:.1%}" for p, v in failed.items() for n in v.breaches),
            expected=", ".join(f"{n} {v.limits[n]:.1%} or more" for v in failed.values() for n in v.breaches),
            fix="keep the bundle that ran before; export this one again",
        )
    return 0


def smoke(bundle: Bundle, candidate: Candidate, threads: int) -> SmokeVerdict:
    """Run every test that the bundle's manifest sets a limit for."""
    limits = bundle.manifest.smoke_limits
    if not limits:
        raise BundleError("the bundle sets no limits for the self-test", where=bundle.path)
    predictor = open_predictor(bundle, candidate, threads)
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
    parser.add_argument(
        "--precision", choices=tuple(MODEL_FILES), help="only this model (default: every one of the bundle)"
    )
    parser.add_argument(
        "--backend", choices=tuple(PRECISIONS), default="onnx", help="what runs it (default: %(default)s)"
    )
    parser.add_argument("--threads", type=_threads, default=2, help="of the processor (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser


def _threads(text: str) -> int:
    """As many as a vehicle file may ask for."""
    if not (text.isdecimal() and 1 <= int(text) <= 64):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 64")
    return int(text)


def _as_table(verdicts: Verdicts) -> str:
    limits = next(iter(verdicts.values())).limits
    rows = [f"{'test':<24}{'limit':>10}" + "".join(f"{precision:>12}" for precision in verdicts)]
    for name, limit in limits.items():
        cells = "".join(f"{verdict.accuracies[name]:>12.1%}" for verdict in verdicts.values())
        breached = any(name in verdict.breaches for verdict in verdicts.values())
        rows.append(f"{name:<24}{limit:>10.1%}{cells}{'  BREACHED' if breached else ''}")
    return "\n".join(rows)


def _as_json(bundle: Bundle, verdicts: Verdicts) -> str:
    values = {
        "schema": SCHEMA,
        "bundle": str(bundle.path),
        "digest": bundle.digest,
        "passed": all(verdict.passed for verdict in verdicts.values()),
        "limits": bundle.manifest.smoke_limits,
        "models": {
            precision: {
                "passed": verdict.passed,
                "breaches": verdict.breaches,
                "accuracies": verdict.accuracies,
            }
            for precision, verdict in verdicts.items()
        },
    }
    return json.dumps(values, indent=2, allow_nan=False)
