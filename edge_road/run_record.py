"""What a finished training run says of itself: the contract between training, evaluation and export.

A run is a folder:

    recipe.toml          the resolved recipe
    run.json             this record, written when training has finished
    best.safetensors     the weights of the best epoch by validation
    last/                checkpoints to resume from
    metrics.jsonl        one line per epoch
    tensorboard/         the same for TensorBoard
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from edge_road.conditions import ClassList
from edge_road.config import GrownModel, load_settings
from edge_road.errors import ConfigError
from edge_road.files import write_atomically
from edge_road.preprocess import Preprocessing
from edge_road.recipe import Recipe
from edge_road.settings_errors import first_fault

RECIPE_FILE = "recipe.toml"
RECORD_FILE = "run.json"
WEIGHTS_FILE = "best.safetensors"
CHECKPOINT_FOLDER = "last"
METRICS_FILE = "metrics.jsonl"
TENSORBOARD_FOLDER = "tensorboard"


class RunRecord(GrownModel):
    NEW_KEYS = ("stem",)

    schema_version: Literal[1] = 1
    name: str
    classes: tuple[str, ...]
    backbone: str
    stem: Literal["standard", "small"] = "standard"
    features: int
    heads: Literal["flat", "rscd"] = "flat"
    preprocessing: Preprocessing
    method: str
    seed: int
    data_digest: str
    recipe_digest: str
    weights_sha256: str
    git_commit: str | None
    version: str
    epochs: int
    best_epoch: int
    validation_accuracy: float

    @property
    def class_list(self) -> ClassList:
        return ClassList(self.classes)


def write_record(run: Path, record: RunRecord) -> None:
    write_atomically(run / RECORD_FILE, record.model_dump_json(indent=2).encode() + b"\n")


def load_record(run: Path) -> RunRecord:
    path = run / RECORD_FILE
    try:
        return RunRecord.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise ConfigError(
            "this is not a finished run",
            where=run,
            expected=f"a folder with {RECORD_FILE}",
            fix=f"finish it with: python training/train_road.py --run {run}"
            if (run / RECIPE_FILE).is_file()
            else "python training/train_road.py makes one",
        ) from None
    except ValidationError as error:
        raise ConfigError(
            "the record of this run cannot be read",
            where=path,
            got=first_fault(error),
            fix="restore the file, or remove it and continue the run to have it written again",
        ) from None


def load_recipe(run: Path) -> Recipe:
    return load_settings(Recipe, run / RECIPE_FILE)
