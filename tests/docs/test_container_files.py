"""The containers' recipes: the command that starts a daemon leaves it the folders that it writes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from shell_blocks import ROOT

CONTAINER = ROOT / "export" / "container"
README = (CONTAINER / "README.md").read_text()
START = re.search(r"docker run -d .*?edge-road\n", README, re.S)
each_recipe = pytest.mark.parametrize(
    "recipe", sorted(CONTAINER.glob("*.Dockerfile")), ids=lambda path: path.stem
)


@each_recipe
def test_tensorrt_is_tried_where_the_runtime_mounts_its_libraries_not_in_a_build(recipe: Path) -> None:
    steps = [line for line in recipe.read_text().splitlines() if not line.startswith("#")]
    assert not re.search(r"import[ _][^\n]*tensorrt", "\n".join(steps))
    assert re.search(r"docker run --rm --runtime nvidia [^`]*?import_tensorrt\(\)", README)


@each_recipe
def test_what_a_build_tries_needs_no_library_of_the_vendor(recipe: Path) -> None:
    (tried,) = re.findall(r'python -c "(.+)"', recipe.read_text())
    blocked = "import sys; sys.modules['tensorrt'] = None; "
    subprocess.run([sys.executable, "-c", blocked + tried], check=True, timeout=60)


def test_jetpack_7_does_not_begin_with_an_image_of_jetpack_6() -> None:
    base = re.search(r"^ARG BASE=(\S+)$", (CONTAINER / "jetpack7.Dockerfile").read_text(), re.M)
    assert base is not None
    assert re.fullmatch(r"nvcr\.io/nvidia/tensorrt:\d\d\.\d\d-py3", base[1])


@each_recipe
def test_a_read_only_container_may_write_its_state_and_its_lock(recipe: Path) -> None:
    assert START is not None
    assert "--read-only" in START[0]
    writable = set(re.findall(r"--tmpfs (\S+)|-v [\w-]+:(/[^:\s]+)", START[0]))
    places = {place for pair in writable for place in pair if place}
    for folder in ("STATE_DIRECTORY", "RUNTIME_DIRECTORY"):
        set_to = re.search(rf"\b{folder}=(\S+)", recipe.read_text())
        assert set_to, f"{folder}: without it the daemon writes into its read-only home"
        assert set_to[1] in places
