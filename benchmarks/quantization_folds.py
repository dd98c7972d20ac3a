"""INT8 recipes over the folds of a cross-validation, judged on test pictures, pooled into one table.

    python benchmarks/quantization_folds.py RUN... | COMPARISON [--row discriminative] [--out DIR]

RUN is a finished run; COMPARISON a folder of training/compare_methods.py --folds, of which all runs of one
row are taken. Each run is judged on its own test pictures, clean and under perturbation, so that over all
folds every picture counts once. Interrupted, the same command continues: there is one JSON file for each run
and recipe.

modelopt's ONNX part asks for other versions than ours; it runs in a process of its own with the packages of
--modelopt, which are made once by

    pip install --no-deps --target DIR onnx-graphsurgeon 'onnx~=1.21.0' 'onnxconverter-common~=1.16.0' \\
        onnxslim polygraphy lief cppimport pybind11 mako 'onnxruntime~=1.24.2' 'protobuf<7'
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from pydantic import ValidationError

from benchmarks.fold_table import FoldAnswers, Pooled, pool, table_rows, to_markdown
from benchmarks.int8_recipes import FLOAT, RECIPES, Workshop
from edge_road.config import settings_digest
from edge_road.datasets.opening import open_dataset
from edge_road.datasets.prepared import Prepared, prepare_split
from edge_road.errors import ConfigError, EdgeRoadError, suggestion
from edge_road.evaluation import metrics
from edge_road.evaluation.answers import answers_of
from edge_road.evaluation.perturbations import expand
from edge_road.export.exporting import open_exporter
from edge_road.export.material import relocated
from edge_road.export.measure import open_predictor
from edge_road.export.rtx_check import rtx_check
from edge_road.export.steps import Steps
from edge_road.export.target import Target, load_target
from edge_road.export.trt_network import BuildShape
from edge_road.export.work import multiply_adds, share_of_work
from edge_road.files import sha256, write_atomically
from edge_road.frames import Prediction
from edge_road.run_record import RECORD_FILE, load_recipe, load_record

SEED = 0  # of the perturbations: the same for every recipe
FLOAT_FILE, TABLE_FILE = "float32.onnx", "table.md"


@dataclass(frozen=True)
class Wishes:
    out: Path
    target: Target
    conditions: Sequence[str]
    runs: int
    images: Path | None
    modelopt: Path | None

    def identity(self, weights_sha256: str, recipe: str) -> str:
        settings = settings_digest(self.target)
        return sha256(json.dumps([weights_sha256, recipe, settings, *self.conditions, self.runs]).encode())


class Fold:
    """One run: opened only when something is still to be measured."""

    def __init__(self, run: Path, wishes: Wishes) -> None:
        self.run, self.wishes = run, wishes
        self.record = load_record(run)
        self.folder = wishes.out / f"{run.name}-{self.record.weights_sha256[:8]}"
        self._opened: tuple[Workshop, Prepared] | None = None

    def answers(self, recipe: str) -> FoldAnswers:
        path = self.folder / f"{recipe}.json"
        identity = self.wishes.identity(self.record.weights_sha256, recipe)
        known = _read(path, identity)
        if known is None:
            known = self._measure(recipe, identity)
            write_atomically(path, known.model_dump_json().encode() + b"\n")
        return known

    def _measure(self, recipe: str, identity: str) -> FoldAnswers:
        shop, test = self._open()
        true_N = metrics.true_states(test.labels_N, self.record.class_list)
        icy_N = metrics.missed_ice(true_N, np.full_like(true_N, metrics.NO_ANSWER))
        blank = FoldAnswers(
            identity=identity,
            run=self.folder.name,
            recipe=recipe,
            keys=test.keys,
            labels=tuple(test.labels_N.tolist()),
            icy=tuple(icy_N.tolist()),
        )
        try:
            content = RECIPES[recipe].make(shop)
            return blank.model_copy(update={**self._asked(content), **self._built(content)})
        except EdgeRoadError as error:
            return blank.model_copy(update={"failure": f"{error.what}: {error.details.get('got', '')}"})

    def _asked(self, content: bytes) -> dict[str, object]:
        shop, test = self._open()
        predictor = open_predictor(content, "int8", shop.exporter.material)
        given = answers_of(predictor, test.images_NHWC, self.wishes.conditions, self.wishes.runs, SEED)
        true_N = metrics.true_states(test.labels_N, predictor.classes)

        def missed(prediction: Prediction) -> tuple[bool, ...]:
            states_N = metrics.said_states(prediction, predictor.classes)
            return tuple(metrics.missed_ice(true_N, states_N).tolist())

        return {
            "said": {c: tuple(tuple(metrics.said(p).tolist()) for p in ps) for c, ps in given.items()},
            "missed_ice": {c: tuple(missed(p) for p in ps) for c, ps in given.items()},
        }

    def _built(self, content: bytes) -> dict[str, object]:
        shop, _ = self._open()
        size = self.record.preprocessing
        report = rtx_check(content, BuildShape(size.height, size.width))
        return {
            "size_share": len(content) / len(shop.float_bytes),
            "int8_kernels": report.int8_kernels,
            "heavy_kernels": report.heavy_kernels,
            "work_share": share_of_work(multiply_adds(shop.float_bytes), report.int8_nodes),
            "rtx": ": ".join([report.status, *report.reasons[:1]]),
        }

    def close(self) -> None:
        """The pictures of a fold are hundreds of megabytes."""
        self._opened = None

    def _open(self) -> tuple[Workshop, Prepared]:
        if self._opened is None:
            exporter = open_exporter(self.run, self.wishes.target, Steps(), self.wishes.images)
            path = self.folder / FLOAT_FILE
            if not path.is_file():
                write_atomically(path, exporter.make_float(self.run)[0])
            dataset = open_dataset(relocated(load_recipe(self.run).data, self.wishes.images))
            test = prepare_split(dataset, dataset.splits["test"], self.record.preprocessing)
            self._opened = Workshop(exporter, path.read_bytes(), self.wishes.modelopt), test
        return self._opened


def _read(path: Path, identity: str) -> FoldAnswers | None:
    try:
        known = FoldAnswers.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
    return known if known.identity == identity and not known.failure else None


def find_runs(places: Sequence[Path], row: str) -> list[Path]:
    """Finished runs: those named, and of a comparison those of one row."""
    runs: list[Path] = []
    for place in places:
        if (place / RECORD_FILE).is_file():
            runs.append(place)
            continue
        found = sorted(path.parent for path in (place / "runs").glob(f"{row}-*/{RECORD_FILE}"))
        if not found:
            raise ConfigError("no finished run", where=place, expected=f"{RECORD_FILE} or runs/{row}-*/")
        runs += found
    return runs


def measure(folds: Sequence[Fold], recipes: Sequence[str]) -> dict[str, list[FoldAnswers]]:
    """By recipe; fold by fold, so that a table can be made early."""
    answers: dict[str, list[FoldAnswers]] = {recipe: [] for recipe in recipes}
    for fold in folds:
        for recipe in recipes:
            found = fold.answers(recipe)
            answers[recipe].append(found)
            print(f"{fold.folder.name}: {recipe} {found.failure or found.rtx}", flush=True)
        fold.close()
    return answers


def describe(pooled: dict[str, Pooled], wishes: Wishes) -> str:
    folds = pooled[FLOAT].folds
    pictures = sum(len(fold.labels) for fold in folds)
    return (
        f"{pictures} test pictures of {len(folds)} runs, target {wishes.target.name}, "
        f"{len(wishes.conditions)} perturbations, {wishes.runs} runs of each random one. In points; "
        "a loss is float32 minus recipe, bold where its 95 % interval (paired bootstrap over pictures) "
        "leaves out zero."
    )


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    target = load_target(options.target)
    if options.qat:
        target = target.model_copy(update={"qat": target.qat.model_copy(update={"epochs": options.qat})})
    names = [name.strip() for name in options.recipes.split(",") if name.strip()]
    if unknown := [name for name in names if name not in RECIPES]:
        fix = suggestion(unknown[0], RECIPES)
        raise ConfigError("no such recipe", got=unknown[0], expected=", ".join(RECIPES), fix=fix)
    conditions = expand(name.strip() for name in options.perturbations.split(",") if name.strip())
    wishes = Wishes(options.out, target, conditions, options.runs, options.data, options.modelopt)
    folds = [Fold(run, wishes) for run in find_runs(options.places, options.row)]
    answers = measure(folds, list(dict.fromkeys([FLOAT, *names])))
    failed = {name: found for name, found in answers.items() if any(fold.failure for fold in found)}
    pooled = pool({name: found for name, found in answers.items() if name not in failed})
    titles = {name: recipe.title for name, recipe in RECIPES.items()}
    text = f"{describe(pooled, wishes)}\n\n{to_markdown(table_rows(pooled, FLOAT), titles)}"
    for name, found in failed.items():
        text += f"\nNot measured: {titles[name]}: {next(fold.failure for fold in found if fold.failure)}\n"
    write_atomically(wishes.out / TABLE_FILE, text.encode())
    print(f"\n{text}\n{wishes.out / TABLE_FILE}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("places", nargs="+", type=Path, metavar="RUN", help="finished runs, or the folder of a comparison")
    add("--row", default="discriminative", help="of a comparison (default: %(default)s)")
    add("--out", type=Path, default=Path("quantization_folds"), metavar="DIR", help="default: %(default)s")
    add("--target", metavar="FILE", help="a TOML file, or a name in export/targets (vehicle)")
    add("--recipes", default=",".join(RECIPES), metavar="A,B", help="default: %(default)s")
    add("--perturbations", default="paper", metavar="A,B", help="names and suites (default: paper)")
    add("--runs", type=int, default=3, metavar="N", help="of every random perturbation (default: 3)")
    add("--qat", type=int, metavar="EPOCHS", help="of quantisation-aware training (as the target says)")
    add("--data", type=Path, metavar="DIR", help="folder of the runs' pictures, when they have moved")
    add("--modelopt", type=Path, metavar="DIR", help="packages for modelopt's ONNX part, see above")
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main())
    except EdgeRoadError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
