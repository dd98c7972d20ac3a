"""What the README promises exists: its first two commands, its scripts, its links, its make targets."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```bash\n(.*?)```", README, re.DOTALL)
COMMANDS = [line.split("#")[0].strip() for block in BLOCKS for line in block.splitlines() if line.strip()]


def test_the_first_two_commands_set_up_and_run_and_test() -> None:
    assert COMMANDS[:2] == ["make demo", "make test"]


def test_continuous_integration_runs_the_readmes_test_command() -> None:
    assert "\nmake test\n" in (ROOT / ".ci/run").read_text()


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for command in COMMANDS:
        if command.startswith("make "):
            assert re.search(rf"^{command.split()[1]}:", makefile, re.MULTILINE), command


def test_scripts_and_recipes_exist() -> None:
    for command in COMMANDS:
        for word in command.split():
            if word.endswith((".py", ".toml")):
                assert (ROOT / word).is_file(), command


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+?)\)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
