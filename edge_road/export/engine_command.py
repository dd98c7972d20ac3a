"""`edge-road engine`: build, list, inspect, verify and prune the TensorRT engines of a bundle."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from edge_road.backends.cuda import require_gpu
from edge_road.backends.engine_layers import read_layers
from edge_road.backends.engine_life import flavour_of, key_here, self_test
from edge_road.backends.engine_store import EngineKey, EngineRecord, EngineStore, store_of
from edge_road.backends.timing import best_precision
from edge_road.backends.trt import import_tensorrt
from edge_road.bundle import MODEL_FILES, Bundle, Precision, load_bundle
from edge_road.errors import BackendError
from edge_road.export.engine import build_engine, build_rtx_engine, device_key, engine_settings
from edge_road.export.steps import Steps
from edge_road.export.target import EngineSettings
from edge_road.trust import DEVELOPMENT, Trust
from edge_road.workspace import newest_bundle

HEADER = ("engine", "MB", "TensorRT", "GPU", "batch", "ms", "off by", "layers", "here")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    bundle = load_bundle((options.bundle or newest_bundle()).resolve(), _trust(options.trusted_key))
    store = store_of(bundle.path)
    if options.action == "build":
        if not options.rtx:
            require_gpu()
        settings = engine_settings(bundle, options.target)
        _build(bundle, store, _precisions(bundle, options.precision), settings, options)
    elif options.action == "list":
        _list(bundle, store)
    elif options.action == "layers":
        _layers(store)
    elif options.action == "verify":
        _verify(bundle, store)
    else:
        _prune(bundle, store)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="edge-road engine", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    build = actions.add_parser("build", help="build what is missing for this TensorRT and GPU")
    build.add_argument("--precision", choices=tuple(MODEL_FILES), help="only this one (all of the bundle)")
    build.add_argument(
        "--target", metavar="FILE", help="a TOML file, or a name in export/targets (the bundle's)"
    )
    build.add_argument("--force", action="store_true", help="build again what is there")
    build.add_argument("--rtx", action="store_true", help="for RTX desktops; needs no GPU here")
    actions.add_parser("list", help="what has been built, and whether it serves here")
    actions.add_parser("layers", help="which layer of each engine computes in which data type")
    actions.add_parser("verify", help="open every engine for this machine and self-test it")
    actions.add_parser("prune", help="remove engines of other models and other TensorRT versions")
    for action in actions.choices.values():
        action.add_argument("bundle", nargs="?", type=Path, metavar="BUNDLE", help="(the newest)")
        action.add_argument(
            "--trusted-key",
            action="append",
            default=[],
            metavar="KEY",
            help="who must have signed the bundle",
        )
    return parser


def _trust(keys: list[str]) -> Trust:
    return Trust(trusted_keys=tuple(keys)) if keys else DEVELOPMENT


def _precisions(bundle: Bundle, wish: Precision | None) -> list[Precision]:
    if wish is None:
        return list(bundle.manifest.artefacts)
    bundle.artefact(wish)
    return [wish]


def _build(
    bundle: Bundle,
    store: EngineStore,
    precisions: list[Precision],
    settings: EngineSettings,
    options: argparse.Namespace,
) -> None:
    steps = Steps()
    for precision in precisions:
        if not options.rtx and not options.force and (there := _there(bundle, store, precision, settings)):
            print(f"  {precision}: {there.plan_file} serves here already; --force builds it again")
            continue
        with steps.step(f"build {precision} engine") as outcome:
            make = build_rtx_engine if options.rtx else build_engine
            record = make(bundle, precision, settings, store)
            outcome.text = f"{record.plan_file}, {record.plan_bytes / 1e6:.1f} MB"
            if record.off_by is not None:
                outcome.text += f", off by {record.off_by:.1e}"
    print(f"engines: {store.folder}")
    if not options.rtx:
        print_best(bundle, store, settings)


def print_best(bundle: Bundle, store: EngineStore, settings: EngineSettings) -> None:
    there = {p: _there(bundle, store, p, settings) for p in bundle.manifest.artefacts}
    measured = {p: record.latency_ms for p, record in there.items() if record and record.latency_ms}
    if measured:
        best, reason = best_precision(measured)
        print(f"best here: {best} ({reason})")


def _there(
    bundle: Bundle, store: EngineStore, precision: Precision, settings: EngineSettings
) -> EngineRecord | None:
    gpu = require_gpu()
    wanted = device_key(bundle, precision, settings, gpu, import_tensorrt().__version__)
    record = store.find(wanted)
    return None if record is None or store.why_refused(record) else record


def _list(bundle: Bundle, store: EngineStore) -> None:
    rows = [HEADER, *(_row(bundle, record, store) for record in store.records())]
    _print_table(rows)
    if len(rows) == 1:
        print(f"  none in {store.folder}")


def _layers(store: EngineStore) -> None:
    if not store.records():
        print(f"none in {store.folder}")
    for record in store.records():
        layers = read_layers(store.read_layers(record))
        print(f"{record.plan_file}: {len(layers)} layers" if layers else f"{record.plan_file}: no report")
        _print_table(
            [(layer.data_type, layer.kind, " ".join(layer.onnx_nodes) or layer.name) for layer in layers]
        )


def _print_table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def _row(bundle: Bundle, record: EngineRecord, store: EngineStore) -> tuple[str, ...]:
    layers = ", ".join(f"{count} {name}" for name, count in sorted(record.layers.items())) or "-"
    off_by = "-" if record.off_by is None else f"{record.off_by:.1e}"
    key = record.key
    device = key.gpu if key.device == "gpu" else f"{key.gpu} {key.device}"
    took = "-" if record.latency_ms is None else f"{record.latency_ms:.2f}"
    where = (f"{record.plan_bytes / 1e6:.1f}", key.tensorrt, device, str(key.shape[0]))
    refused = store.why_refused(record) or _why_not_here(bundle, record.key)
    here = f"no: {refused.splitlines()[0]}" if refused else "yes"
    return (record.plan_file, *where, took, off_by, layers, here)


def _why_not_here(bundle: Bundle, key: EngineKey) -> str | None:
    """In plain words; none when the engine is for this bundle, this GPU and this TensorRT."""
    try:
        return _mismatch(bundle, key)
    except BackendError as error:
        return error.what


def _mismatch(bundle: Bundle, key: EngineKey) -> str | None:
    """A BackendError where the machine cannot tell, e.g. because TensorRT cannot be imported."""
    if key.onnx_sha256 not in {
        bundle.manifest.files[a.file].sha256 for a in bundle.manifest.artefacts.values()
    }:
        return "another model"
    gpu, flavour = require_gpu(), flavour_of(key)
    version = import_tensorrt(flavour).__version__
    wanted = key_here(bundle, key.precision, gpu, version, flavour)
    if (wanted.gpu, wanted.compute) != (key.gpu, key.compute):
        return f"this is {gpu.name}"
    return None if wanted.tensorrt == key.tensorrt else f"TensorRT is {version}"


def _verify(bundle: Bundle, store: EngineStore) -> None:
    require_gpu()
    mine = [record for record in store.records() if _why_not_here(bundle, record.key) is None]
    if not mine:
        import_tensorrt()  # without it nobody can tell
        raise BackendError(
            "there is no engine for this device", where=store.folder, fix="edge-road engine build"
        )
    for record in mine:
        with Steps().step(f"open {record.key.precision} engine") as outcome:
            predictor, tested = self_test(bundle, store, record)
            predictor.close()
            outcome.text = f"{predictor.name}, off by {tested.off_by:.1e}"


def _prune(bundle: Bundle, store: EngineStore) -> None:
    kept = [record for record in store.records() if not _is_useless(bundle, record.key)]
    removed = store.prune(kept)
    print(f"removed {len(removed)} files, kept {len(kept)} engines in {store.folder}")


def _is_useless(bundle: Bundle, key: EngineKey) -> bool:
    """Known to be: without a GPU or TensorRT, only engines of other models are."""
    try:
        return _mismatch(bundle, key) is not None
    except BackendError:
        return False
