"""The command that turns a run into a bundle, and on a device a bundle into an engine."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from edge_road.backends.engine_store import store_of
from edge_road.bundle import MANIFEST_FILE, Bundle, load_bundle
from edge_road.config import check_settings
from edge_road.errors import BackendError, BundleError, ConfigError, EdgeRoadError, GateRefused
from edge_road.export.engine import build_engine, engine_settings, why_no_engine
from edge_road.export.engine_command import print_best
from edge_road.export.steps import Steps
from edge_road.export.target import EngineSettings, QatSettings, Target, load_target
from edge_road.signing import signer
from edge_road.workspace import bundles, newest_run

DESCRIPTION = """Turn a run into a bundle that a vehicle runs: float32, float16, INT8, all judged. On a device
with a GPU, also build the TensorRT engine; given a bundle instead of a run, only that."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    target, steps = _with_training(load_target(options.target), options.qat), Steps()
    refused: GateRefused | None = None
    source: Path = (options.run or newest_run()).resolve()
    if options.require_engine and (lack := why_no_engine()):
        raise BackendError("an engine was required", got=lack, fix="run this on the device, or without it")
    if not (source / MANIFEST_FILE).is_file():
        out = options.out or bundles() / source.name
        places = (source, out.resolve(), options.data)
        bundle, refused = _make_bundle(*places, target, steps, options.sign)
        settings = target.engine
    elif options.out or options.data or options.sign or options.accept_fallback or options.qat:
        raise ConfigError(
            "--out, --data, --sign, --accept-fallback, --qat are for a run", where=source, got="a bundle"
        )
    else:
        bundle = load_bundle(source)
        settings = engine_settings(bundle, options.target)
    _build_engines(bundle, settings, options.require_engine, steps)
    if refused and not options.accept_fallback:
        raise refused
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=DESCRIPTION)
    parser.add_argument(
        "run", nargs="?", type=Path, metavar="RUN", help="a run, or on a device a bundle (the newest run)"
    )
    parser.add_argument("--target", metavar="FILE", help="a TOML file, or a name in export/targets (vehicle)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the bundle (bundles/<run>)")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="folder of the run's images, when they have moved"
    )
    parser.add_argument("--sign", type=Path, metavar="KEY", help="sign the bundle with this private key")
    parser.add_argument(
        "--accept-fallback", action="store_true", help="exit with 0, not 6, when float16 or INT8 is refused"
    )
    parser.add_argument(
        "--qat", type=int, metavar="EPOCHS", help="train so long with INT8 in the graph: every layer INT8"
    )
    parser.add_argument("--require-engine", action="store_true", help="fail where no engine can be built")
    return parser


def _with_training(target: Target, epochs: int | None) -> Target:
    if epochs is None:
        return target
    qat = check_settings(QatSettings, {**target.qat.model_dump(), "epochs": epochs}, where="--qat")
    return target.model_copy(update={"quantization": "qat", "qat": qat})


def _make_bundle(
    run: Path, out: Path, images: Path | None, target: Target, steps: Steps, key: Path | None
) -> tuple[Bundle, GateRefused | None]:
    """And what the gate kept out of it."""
    from edge_road.export.exporting import export_run
    from edge_road.export.gate_file import write_verify_file
    from edge_road.export.gate_page import write_gate_page
    from edge_road.export.gate_report import gate_lines, refusal, verdicts
    from edge_road.export.packing import pack, refuse_foreign_folder

    print(f"export {run} for target {target.name}")
    refuse_foreign_folder(out)
    sign = None if key is None else signer(key)
    export = export_run(run, target, steps, images)
    with steps.step("write and read back") as outcome:
        bundle = pack(export, out, sign)
        outcome.text = f"digest {bundle.digest[:16]}, {'signed' if sign else 'unsigned'}"
    print("\n" + "\n".join(gate_lines(export)))
    print(f"bundle: {out}")
    found = verdicts(export, bundle.digest, steps)
    try:
        print(f"verdicts: {write_verify_file(out, found)}, {write_gate_page(out, found)}")
    except OSError as error:
        raise BundleError(
            "the bundle is written, but not the verdicts beside it", where=out, got=error.strerror
        ) from None
    return bundle, refusal(export)


def _build_engines(bundle: Bundle, settings: EngineSettings, required: bool, steps: Steps) -> None:
    if lack := why_no_engine():
        print(
            f"engine: not built, {lack}; the bundle runs on ONNX Runtime as it is.\n"
            f"        On the device: copy the bundle and run edge-road engine build {bundle.path.name}"
        )
        return
    store, built = store_of(bundle.path), False
    for precision in bundle.manifest.artefacts:
        with steps.step(f"build {precision} engine") as outcome:
            try:
                record, built = build_engine(bundle, precision, settings, store), True
                outcome.text = f"{store.folder / record.plan_file}, {record.plan_bytes / 1e6:.1f} MB"
            except EdgeRoadError as error:
                if required:
                    raise
                outcome.text = f"not built: {error.details.get('got', error.what)}"
    if built:
        print_best(bundle, store, settings)
