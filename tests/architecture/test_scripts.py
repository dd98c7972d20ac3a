"""Scripts are thin, work from any folder, and say in few lines what they do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from edge_road.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted(p for folder in ("training", "export", "runtime") for p in (ROOT / folder).glob("*.py"))


def script_id(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_named_scripts_are_there() -> None:
    named = {
        "training/train_road.py",
        "training/evaluate_road.py",
        "export/to_onnx.py",
        "export/to_trt.py",
        "export/verify_bundle.py",
        "runtime/road_daemon.py",
    }
    assert named <= {script_id(path) for path in SCRIPTS}


@pytest.mark.parametrize("path", SCRIPTS, ids=script_id)
def test_script_is_thin(path: Path) -> None:
    assert path.read_text().count("\n") <= 25


@pytest.mark.parametrize("path", SCRIPTS, ids=script_id)
def test_help_is_short_and_works_from_any_folder(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch") if path.parent.name != "runtime" else None
    done = subprocess.run(
        [sys.executable, str(path), "--help"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: {path.name} ")
    assert done.stdout.count("\n") <= 45, "help should fit a screen"
    assert all(len(line) <= 110 for line in done.stdout.splitlines())


def test_edge_road_lists_every_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "edge_road.cli", "--help"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert all(f"  {name} " in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", ["run", "replay", "doctor"])
def test_a_usage_line_names_the_command_that_was_typed(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "edge_road.cli", name, "--nonsense"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"usage: edge-road {name} ")


def test_misspelt_command_names_the_nearest() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "edge_road.cli", "trian"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "did you mean 'train'?" in done.stderr
