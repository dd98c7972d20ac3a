"""The containers' recipes, and the tutorial that does the same without a container."""

from __future__ import annotations

import re
import shlex
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
def test_a_jetson_gets_the_same_packages_in_a_container_and_without_one(recipe: Path) -> None:
    tutorial = (ROOT / "docs/tutorials/jetson.md").read_text()
    packages, itself = pip_installs(recipe.read_text())
    assert pip_installs(tutorial) == [packages, itself]
    assert itself == {"."}
    assert all("--no-deps . " in text.replace("\n", " ") for text in (recipe.read_text(), tutorial))
    assert apt_installs(recipe.read_text()) == apt_installs(tutorial)


@each_recipe
def test_a_jetson_gets_the_vehicle_part_but_the_systems_opencv_and_its_numpy(recipe: Path) -> None:
    project = (ROOT / "pyproject.toml").read_text()
    lists = re.findall(r"^(?:dependencies|vehicle) = \[\n(.*?)^\]", project, re.M | re.S)
    wanted = {re.split(r"[<>=;]", entry)[0] for part in lists for entry in re.findall(r'"(.+)"', part)}
    packages, _ = pip_installs(recipe.read_text())
    assert len(lists) == 2
    assert packages - {"numpy>=1.26,<2"} == wanted - {"opencv-python-headless", "numpy"}
    assert "numpy>=1.26,<2" in packages


def pip_installs(text: str) -> list[set[str]]:
    """What each call installs, without its options."""
    calls = re.findall(r"pip install ([^\n&]+)", text.replace("\\\n", " "))
    return [{word for word in shlex.split(call) if not re.match(r"-|/tmp/", word)} for call in calls]


def apt_installs(text: str) -> set[str]:
    (call,) = re.findall(r"apt-get install -y ([^\n&]+)", text.replace("\\\n", " "))
    return {word for word in call.split() if not word.startswith("-")}


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
