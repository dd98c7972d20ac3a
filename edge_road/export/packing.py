"""From a judged export to a bundle on disk, written in one step and read back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from edge_road import __version__
from edge_road.backends.onnxrt import INPUT_NAME, OnnxPredictor
from edge_road.backends.probe_check import check_probe
from edge_road.bundle import (
    MANIFEST_FILE,
    MODEL_FILES,
    PROBE_FILE,
    REPORT_FILE,
    Bundle,
    Manifest,
    Probe,
    load_bundle,
    record_files,
    write_bundle,
)
from edge_road.errors import BundleError
from edge_road.evaluation.scores import Evaluation
from edge_road.evaluation.smoke import smoke_accuracies, smoke_limits
from edge_road.export.exporting import Export, Judged
from edge_road.export.rtx_check import RtxReport
from edge_road.export.work import Int8Work
from edge_road.files import check_writable
from edge_road.frames import Floats
from edge_road.recipe import Recipe
from edge_road.trust import SIGNATURE_FILE

OURS = {MANIFEST_FILE, SIGNATURE_FILE, PROBE_FILE, REPORT_FILE, *MODEL_FILES.values()}
ELSEWHERE = "beyond the limits of the machine that exported it; the figures stand beside the bundle"


def pack(export: Export, path: Path, sign: Callable[[bytes], bytes] | None = None) -> Bundle:
    """Check the released artefacts once more as a bundle, write it in one step, read it back."""
    refuse_foreign_folder(path)
    probe = _probe(export)
    contents = {
        PROBE_FILE: probe.to_bytes(),
        REPORT_FILE: _json_bytes(_report(export)),
        **{MODEL_FILES[name]: judged.measured.onnx_bytes for name, judged in export.released.items()},
    }
    manifest = _manifest(export, probe, contents)
    _require_own_outputs(Bundle(path, manifest, contents, digest=""))
    try:
        write_bundle(path, manifest, contents, sign)
    except OSError as error:
        raise _unwritable(path, error) from None
    return load_bundle(path)


def _unwritable(path: Path, error: OSError) -> BundleError:
    return BundleError(
        "the bundle cannot be written",
        where=path,
        got=error.strerror,
        fix="free some space or choose another folder with --out; nothing was changed",
    )


def _require_own_outputs(bundle: Bundle) -> None:
    """The models as a vehicle opens them give the outputs that travel with them."""
    for precision in bundle.manifest.artefacts:
        check_probe(OnnxPredictor.from_bundle(bundle, precision), bundle.probe(), precision)


def refuse_foreign_folder(path: Path) -> None:
    """A bundle replaces a bundle or an empty folder, never something else of the user's."""
    is_ours = not path.exists() or (path.is_dir() and _empty_or_bundle(path))
    if not is_ours:
        raise BundleError(
            "there is something else at the bundle's place",
            where=path,
            expected="a new folder or an older bundle",
            fix="name another folder with --out",
        )
    try:
        check_writable(path.parent)
    except OSError as error:
        raise _unwritable(path, error) from None


def _empty_or_bundle(path: Path) -> bool:
    """Others have a manifest.json too, and a bundle is replaced with everything in its folder."""
    names = {inner.name for inner in path.iterdir()}
    return not names or (MANIFEST_FILE in names and names <= OURS)


def _probe(export: Export) -> Probe:
    count = max(export.target.samples.probe, len(export.material.record.classes))
    drawn = export.material.validation.draw(count, export.target.seed)
    logits: dict[str, Floats] = {
        name: judged.measured.predictor.predict(drawn.images_NHWC).logits_NC
        for name, judged in export.released.items()
    }
    return Probe(drawn.images_NHWC, drawn.labels_N, logits)


def _manifest(export: Export, probe: Probe, contents: dict[str, bytes]) -> Manifest:
    record, classes = export.material.record, len(export.material.record.classes)
    released = export.released
    size = (record.preprocessing.height, record.preprocessing.width)
    return Manifest(
        name=record.name,
        version=__version__,
        classes=record.classes,
        preprocessing=record.preprocessing,
        input_name=INPUT_NAME,
        input_shape=(export.target.batch, *size, 3),
        outputs={"probabilities": (classes,), "logits": (classes,), "features": (record.features,)},
        artefacts={name: judged.measured.artefact for name, judged in released.items()},
        calibration=export.calibration if "int8" in released else None,
        smoke_limits=_smoke_limits(released.values(), probe),
        method=record.method,
        seed=record.seed,
        recipe=_without_places(export.material.recipe),
        recipe_digest=record.recipe_digest,
        data_digest=record.data_digest,
        git_commit=record.git_commit,
        files=record_files(contents),
    )


def _smoke_limits(artefacts: Iterable[Judged], probe: Probe) -> dict[str, float]:
    """What every artefact of the bundle keeps."""
    measured = [smoke_accuracies(judged.measured.predictor, probe) for judged in artefacts]
    return smoke_limits({name: min(row[name] for row in measured) for name in measured[0]})


def _without_places(recipe: Recipe) -> dict[str, Any]:
    """Folders of the training machine are nobody's business and would change the digest."""
    values = recipe.model_dump(mode="json")
    if "path" in values["data"]:
        values["data"]["path"] = Path(values["data"]["path"]).name
    values["model"]["weights"] = Path(values["model"]["weights"]).name
    return values


def _report(export: Export) -> dict[str, Any]:
    """Quality and verdicts, refused artefacts too; no timings, so that one run gives one digest."""
    record = export.material.record
    return {
        "schema_name": "edge_road.export_report/1",
        "run": record.name,
        "validation_accuracy_in_training": record.validation_accuracy,
        "target": export.target.model_dump(mode="json"),
        "artefacts": {name: _report_of(judged) for name, judged in export.artefacts.items()},
        "sensitivity": None if export.sensitivity is None else asdict(export.sensitivity),
    }


def _report_of(judged: Judged) -> dict[str, Any]:
    quality, rtx = judged.measured.quality, judged.rtx
    return {
        "released": judged.released,
        "reasons": [*judged.verdict.reasons, *([] if judged.machine.passed else [ELSEWHERE])],
        "verdict": judged.verdict.model_dump(mode="json"),
        "parity": asdict(judged.parity) if judged.measured.finite else None,
        "clean": _without_mistakes(quality.clean),
        "robust": _without_mistakes(quality.robust),
        "tensorrt_rtx": None if rtx is None else _report_of_rtx(rtx, judged.work),
    }


def _report_of_rtx(rtx: RtxReport, work: Int8Work | None) -> dict[str, Any]:
    built = rtx.status == "built"
    return {
        "status": rtx.status,
        "version": rtx.version,
        "reasons": list(rtx.reasons),
        "heavy_kernels": rtx.heavy_kernels if built else None,
        "int8_share": rtx.int8_share if built else None,
        "int8_work": None if work is None else asdict(work),
    }


def _without_mistakes(evaluation: Evaluation) -> dict[str, Any]:
    """Positions in a sample mean nothing to the reader of a bundle."""
    return evaluation.model_copy(update={"mistakes": ()}).model_dump(mode="json")


def _json_bytes(values: dict[str, Any]) -> bytes:
    return (json.dumps(values, indent=2, sort_keys=True, allow_nan=False) + "\n").encode()
