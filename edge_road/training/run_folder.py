"""The folder of a run: who may write there, which recipe it follows, which run is unfinished."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from edge_road import workspace
from edge_road.config import write_settings
from edge_road.errors import ConfigError
from edge_road.recipe import Recipe
from edge_road.run_record import (
    CHECKPOINT_FOLDER,
    METRICS_FILE,
    RECIPE_FILE,
    RECORD_FILE,
    WEIGHTS_FILE,
    load_recipe,
)

LOCK_FILE = ".lock"
HALF_WRITTEN = tuple(f".{name}." for name in (RECIPE_FILE, RECORD_FILE, WEIGHTS_FILE, METRICS_FILE))
"""how temporary files of a process that was killed while it wrote are named"""


def is_finished(run: Path) -> bool:
    return (run / RECORD_FILE).is_file()


def newest_unfinished_run() -> Path:
    found = [path.parent for path in workspace.runs().glob(f"*/{RECIPE_FILE}")]
    unfinished = [run for run in found if not is_finished(run)]
    if not unfinished:
        raise ConfigError(
            "there is no unfinished run",
            where=workspace.runs(),
            fix="python training/train_road.py starts one",
        )
    return max(unfinished, key=_last_change)


@contextmanager
def claimed(run: Path, recipe: Recipe) -> Iterator[Path]:
    """The folder is ours alone until the end; if nothing came of a new one, it goes away again."""
    _refuse_foreign_folder(run)
    run.mkdir(parents=True, exist_ok=True)
    with _locked(run):
        is_new = not (run / RECIPE_FILE).exists()
        if is_new:
            write_settings(recipe, run / RECIPE_FILE)
        else:
            _refuse_other_recipe(run, load_recipe(run), recipe)
        _remove_leftovers(run)
        try:
            yield run
        except BaseException:
            if is_new and not is_finished(run) and not any((run / CHECKPOINT_FOLDER).glob("*")):
                shutil.rmtree(run, ignore_errors=True)
            raise


@contextmanager
def _locked(run: Path) -> Iterator[None]:
    """The kernel lets go of the lock when a process ends, however it ends."""
    with open(run / LOCK_FILE, "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise ConfigError(
                "another training works in this run", where=run, got=f"process {file.read().strip() or '?'}"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _refuse_foreign_folder(run: Path) -> None:
    if run.exists() and not run.is_dir():
        raise ConfigError("a run is a folder", where=run, got="a file")
    if not run.exists() or (run / RECIPE_FILE).exists():
        return
    names = sorted(path.name for path in run.iterdir())
    if found := [name for name in names if name != LOCK_FILE and not name.startswith(HALF_WRITTEN)]:
        raise ConfigError(
            "this folder holds something else",
            where=run,
            got=", ".join(found[:5]),
            expected=f"a run (with {RECIPE_FILE}), an empty folder or a new name",
        )


def _refuse_other_recipe(run: Path, found: Recipe, wanted: Recipe) -> None:
    theirs, ours = _flat(found.model_dump(mode="json")), _flat(wanted.model_dump(mode="json"))
    different = sorted(key for key in {*theirs, *ours} if theirs.get(key) != ours.get(key))
    if different:
        raise ConfigError(
            f"this run follows another recipe: {', '.join(different)} differ",
            where=run / RECIPE_FILE,
            got=", ".join(f"{key} = {ours.get(key)}" for key in different),
            expected=", ".join(f"{key} = {theirs.get(key)}" for key in different),
            fix="leave out --run or --resume to start a new run, or give nothing else to continue this one",
        )


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat


def _remove_leftovers(run: Path) -> None:
    for pattern in (*(f"{beginning}*" for beginning in HALF_WRITTEN), f"{CHECKPOINT_FOLDER}/.*"):
        for leftover in run.glob(pattern):
            leftover.unlink()


def _last_change(run: Path) -> int:
    return max(path.stat().st_mtime_ns for path in (run / RECIPE_FILE, *run.glob(f"{CHECKPOINT_FOLDER}/*")))
