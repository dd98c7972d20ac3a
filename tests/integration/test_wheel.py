"""What a wheel holds and says of itself, far from any clone of ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("setuptools", minversion="77")

BUILD = "from setuptools.build_meta import build_wheel; build_wheel('.')"


@pytest.fixture(scope="module", params=["jetpack6", "jetpack7"])
def theirs(request: pytest.FixtureRequest, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Somebody else's repository with a wheel in it, made of what a container gets of our clone."""
    source, theirs = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("theirs")
    recipe = (root / "export" / "container" / f"{request.param}.Dockerfile").read_text()
    copies = [line.split()[1:-1] for line in recipe.splitlines() if line.startswith("COPY ")]
    for name in (name for names in copies for name in names):
        if (root / name).is_dir():
            shutil.copytree(root / name, source / name, symlinks=True)
        else:
            shutil.copy(root / name, source)
    run(source, sys.executable, "-c", BUILD)
    with zipfile.ZipFile(next(source.glob("*.whl"))) as wheel:
        wheel.extractall(theirs / "site")
    run(theirs, "git", "init", "-q")
    who = ("-c", "user.name=they", "-c", "user.email=they@localhost")
    run(theirs, "git", *who, "commit", "-q", "--allow-empty", "-m", "theirs")
    return theirs


def run(folder: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder / "site")}
    environment.pop("EDGE_ROAD_HOME", None)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ask(theirs: Path, name: str) -> str:
    return run(
        theirs, sys.executable, "-c", f"from edge_road import workspace; print(workspace.{name})"
    ).strip()


@pytest.mark.parametrize(("kind", "folder"), [("recipes", "training/recipes"), ("targets", "export/targets")])
def test_recipes_and_targets_are_known_by_name(kind: str, folder: str, theirs: Path, root: Path) -> None:
    for file in (root / folder).glob("*.toml"):
        found = Path(ask(theirs, f"shipped('{kind}', '{file.stem}')"))
        assert found.is_relative_to(theirs)
        assert found.read_bytes() == file.read_bytes()


def test_the_commit_of_the_surrounding_repository_is_not_ours(theirs: Path) -> None:
    assert ask(theirs, "git_commit()") == "None"


def test_runs_and_bundles_lie_in_the_current_folder(theirs: Path) -> None:
    assert ask(theirs, "runs()") == str(theirs / "runs")
