"""Every shell block of the README and the docs is run, page by page, as a reader would run it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from command_server import command_server
from doc_workspace import write_workspace
from shell_blocks import SHELL_BLOCKS, Block

LONGEST_S = 1200
pytestmark = [
    pytest.mark.timeout(2 * LONGEST_S),
    pytest.mark.skipif(find_spec("torch") is None, reason="the docs cover every stage"),
]
RUN = [block for block in SHELL_BLOCKS if not block.marker]
PAGES = sorted({block.page for block in RUN})


@pytest.fixture(scope="module")
def programs() -> Iterator[dict[str, str]]:
    with command_server() as environment:
        yield environment


@pytest.fixture(scope="module")
def template(programs: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "template"
    script = Path(__file__).with_name("doc_workspace.py")
    environment = {**os.environ, **programs}
    subprocess.run(["python", str(script), str(folder)], env=environment, check=True, timeout=LONGEST_S)
    return folder


@pytest.mark.parametrize("page", PAGES)
def test_blocks_run(page: str, template: Path, programs: dict[str, str], tmp_path: Path) -> None:
    folder = write_workspace(template, tmp_path / "work")
    places = {
        "HOME": str(folder),
        "EDGE_ROAD_HOME": str(folder),
        "TMPDIR": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path),
    }
    for block in RUN:
        if block.page == page:
            run_block(block, folder, {**os.environ, **programs, **places})


def run_block(block: Block, folder: Path, environment: dict[str, str]) -> None:
    """As one script that ends at its first failure; commands are echoed into its output."""
    output = folder.parent / f"{Path(block.page).stem}_{block.line}.txt"
    with open(output, "wb") as file:
        code = subprocess.run(
            ["bash", "-euxo", "pipefail", "-c", block.text],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            timeout=LONGEST_S,
        ).returncode
    assert code == 0, f"{block.where}\n{output.read_text()[-4000:]}"
