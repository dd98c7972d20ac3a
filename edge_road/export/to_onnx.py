"""The command that turns a run into one checked ONNX file."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from edge_road.bundle import MODEL_FILES
from edge_road.errors import ConfigError
from edge_road.evaluation.metrics import fit_temperature
from edge_road.export.exporting import open_exporter, require_passed
from edge_road.export.gate import judge_float
from edge_road.export.measure import open_predictor
from edge_road.export.onnx_edit import with_temperature
from edge_road.export.steps import Steps
from edge_road.export.target import load_target
from edge_road.files import check_writable, write_atomically
from edge_road.workspace import newest_run


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    run: Path = options.run or newest_run()
    out: Path = options.out or run / MODEL_FILES["float32"]
    target, steps = load_target(options.target), Steps()
    print(f"export {run} to ONNX")
    _try_place(out)
    exporter = open_exporter(run, target, steps, options.data)
    onnx_bytes, parity = exporter.make_float(run)
    require_passed(judge_float(parity, None, target.float_limits))
    material = exporter.material
    with steps.step("fit temperature") as outcome:
        prediction = open_predictor(onnx_bytes, "float32", material).predict(material.validation.images_NHWC)
        temperature = fit_temperature(prediction.logits_NC, material.validation.labels_N)
        outcome.text = f"{temperature:.3f}"
    _write(out, with_temperature(onnx_bytes, temperature))
    print(f"model: {out}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Turn a run into one checked ONNX file.")
    parser.add_argument(
        "run", nargs="?", type=Path, metavar="RUN", help="folder of a finished run (the newest)"
    )
    parser.add_argument("--target", metavar="FILE", help="a TOML file, or a name in export/targets (vehicle)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file to write (<run>/model.onnx)")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="folder of the run's images, when they have moved"
    )
    return parser


def _try_place(path: Path) -> None:
    """Before the work."""
    if path.is_dir():
        raise ConfigError("the model cannot be written", where=path, got="a folder", expected="a file's name")
    with _writing(path):
        check_writable(path.parent)


def _write(path: Path, content: bytes) -> None:
    with _writing(path):
        write_atomically(path, content)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError("the model cannot be written", where=path, got=error.strerror) from None
