"""The containers' recipes: the command that starts a daemon leaves it the folders that it writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from shell_blocks import ROOT

CONTAINER = ROOT / "export" / "container"
START = re.search(r"docker run -d .*?edge-road\n", (CONTAINER / "README.md").read_text(), re.S)


@pytest.mark.parametrize("recipe", sorted(CONTAINER.glob("*.Dockerfile")), ids=lambda path: path.stem)
def test_a_read_only_container_may_write_its_state_and_its_lock(recipe: Path) -> None:
    assert START is not None
    assert "--read-only" in START[0]
    writable = set(re.findall(r"--tmpfs (\S+)|-v [\w-]+:(/[^:\s]+)", START[0]))
    places = {place for pair in writable for place in pair if place}
    for folder in ("STATE_DIRECTORY", "RUNTIME_DIRECTORY"):
        set_to = re.search(rf"\b{folder}=(\S+)", recipe.read_text())
        assert set_to, f"{folder}: without it the daemon writes into its read-only home"
        assert set_to[1] in places
