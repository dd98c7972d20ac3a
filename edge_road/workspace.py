"""Where runs and bundles live, beside the code in a clone, else in the current folder; what is shipped."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Literal

from edge_road.errors import BundleError, ConfigError

_PACKAGE = Path(__file__).resolve().parent
_CLONE = _PACKAGE.parent if (_PACKAGE.parent / "pyproject.toml").is_file() else None


def home() -> Path:
    """`EDGE_ROAD_HOME`, else the clone that this package lies in, else the current folder."""
    if chosen := os.environ.get("EDGE_ROAD_HOME"):
        return Path(chosen).resolve()
    return _CLONE or Path.cwd()


def shipped(kind: Literal["recipes", "targets"], name: str) -> Path:
    """The file that comes with the code: links of a clone lead to training/recipes and export/targets."""
    return (_PACKAGE / "shipped" / kind / f"{name}.toml").resolve()


def runs() -> Path:
    return home() / "runs"


def bundles() -> Path:
    return home() / "bundles"


def new_run(name: str) -> Path:
    """The next free `runs/<name>-0001`; claimed by creating it."""
    runs().mkdir(parents=True, exist_ok=True)
    for number in range(1, 100_000):
        path = runs() / f"{name}-{number:04d}"
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise ConfigError("too many runs of one name", where=runs(), got=name, fix="remove old runs")


def newest_run() -> Path:
    return _newest(runs(), "run.json") or _nothing_yet(
        ConfigError("there is no finished run yet", where=runs(), fix="python training/train_road.py")
    )


def newest_bundle() -> Path:
    return _newest(bundles(), "manifest.json") or _nothing_yet(
        BundleError("there is no bundle yet", where=bundles(), fix="python export/to_trt.py")
    )


def git_commit() -> str | None:
    """The commit of the clone that runs, with `-dirty` when tracked files differ from it."""
    if _CLONE is None:  # an environment may lie in somebody else's repository
        return None
    command = ["git", "-C", str(_CLONE), "describe", "--always", "--dirty", "--abbrev=40", "--match="]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None


def _newest(folder: Path, marker: str) -> Path | None:
    found = [path for path in folder.glob(f"*/{marker}") if not path.parent.name.startswith(".")]
    return max(found, key=lambda path: path.stat().st_mtime_ns).parent if found else None


def _nothing_yet(error: ConfigError | BundleError) -> Path:
    raise error
