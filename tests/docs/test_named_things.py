"""What the docs name exists: commands and their options, files, make targets, extras of the package."""

from __future__ import annotations

import argparse
import importlib
import re
from pathlib import Path
from typing import Any, NoReturn

import pytest
from shell_blocks import ALL, ROOT, SHELL_BLOCKS, Block, pages

from edge_road.cli import COMMANDS

SCRIPT_NAMES = re.compile(r"^(?:training|export|runtime)/\w+\.py$")
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
FILE = re.compile(r"^(?:training|export|runtime|docs|tests|edge_road|benchmarks|deploy)/[\w./*-]+$")
OPTION = re.compile(r"^--[a-z][a-z-]+$")
SOURCES = "".join(
    path.read_text() for part in ("edge_road", "benchmarks") for path in (ROOT / part).rglob("*.py")
)
GENERIC = re.compile(r"[<*]|\.\.\.|…")
MAKEFILE = (ROOT / "Makefile").read_text()
EXTRAS = re.search(
    r"\[project\.optional-dependencies\](.*?)\n\[", (ROOT / "pyproject.toml").read_text(), re.S
)


class Parsed(Exception):
    """The real parser took the words; nothing was run."""


@pytest.fixture
def only_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    original = argparse.ArgumentParser.parse_args

    def parse_args(self: argparse.ArgumentParser, words: Any = None, namespace: Any = None) -> NoReturn:
        original(self, words, namespace)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_args)


def parse(words: list[str]) -> None:
    """`edge-road NAME ...`, `python SCRIPT ...` or `torchrun ... SCRIPT ...`."""
    script = next((place for place, word in enumerate(words) if SCRIPT_NAMES.match(word)), None)
    if words[0] == "edge-road":
        name, rest = words[1], words[2:]
    elif script is not None:
        found = re.search(r'command\("([\w-]+)"', (ROOT / words[script]).read_text())
        assert found, f"{words[script]} runs no command"
        name, rest = found.group(1), words[script + 1 :]
    else:
        return
    if name.startswith("-"):
        return
    assert name in COMMANDS, f"edge-road has no command {name}"
    with pytest.raises(Parsed):
        importlib.import_module(COMMANDS[name][0]).main(rest)


MARKED = [block for block in SHELL_BLOCKS if block.marker]


@pytest.mark.parametrize("block", MARKED, ids=lambda block: block.where)
@pytest.mark.usefixtures("only_parse")
def test_commands_that_are_not_run_are_parsed(block: Block) -> None:
    for words in block.commands():
        words = words[1:] if words[0] == "sudo" else words
        parse(words)
        if words[0] == "make":
            assert has_target(words[1]), words


@pytest.mark.parametrize("block", MARKED, ids=lambda block: block.where)
def test_a_block_that_is_not_run_says_where_else_it_is(block: Block) -> None:
    if block.marker == "parsed only":
        tests = re.findall(r"tests/[\w/]+\.(?:py|sh)", block.why)
        assert tests, f"{block.where}: name the test that runs it"
        assert all((ROOT / test).is_file() for test in tests), block.where


def test_every_block_with_commands_is_marked_as_shell() -> None:
    unmarked = [block.where for block in ALL if not block.language and block.looks_like_shell]
    assert unmarked == [], "begin these blocks with ```bash"


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
@pytest.mark.usefixtures("only_parse")
def test_names_in_the_text_exist(page: Path) -> None:
    for span in SPAN.findall(page.read_text()):
        check_span(span, page)


def check_span(span: str, page: Path) -> None:
    words = span.split()
    if (
        words[0] == "edge-road"
        and len(words) > 1
        and not words[1].startswith("-")
        and words[1].isidentifier()
    ):
        assert words[1] in COMMANDS, f"{page.name}: {span}"
    if words[0] == "make" and len(words) == 2 and words[1].islower():
        assert has_target(words[1]), f"{page.name}: {span}"
    if words[0] in ("python", "python3") and len(words) > 1 and words[1].endswith(".py"):
        assert (ROOT / words[1]).is_file(), f"{page.name}: {span}"
    if FILE.match(span) and not GENERIC.search(span):
        assert (ROOT / span).exists() or (ROOT / "edge_road" / span).exists(), f"{page.name}: {span}"
    if OPTION.match(span):
        assert f'"{span}"' in SOURCES, f"{page.name}: {span}"


@pytest.mark.parametrize("block", SHELL_BLOCKS, ids=lambda block: block.where)
def test_extras_that_are_installed_exist(block: Block) -> None:
    assert EXTRAS is not None
    for extra in re.findall(r"\.\[(\w+)\]", block.text):
        assert re.search(rf"^{extra} = ", EXTRAS.group(1), re.MULTILINE), block.where


def has_target(name: str) -> bool:
    return re.search(rf"^{re.escape(name)}:", MAKEFILE, re.MULTILINE) is not None


def test_folders_of_a_device_are_those_of_the_unit() -> None:
    """It may write nowhere else."""
    unit = (ROOT / "runtime/systemd/edge-road.service").read_text()
    assert "StateDirectory=edge_road\n" in unit
    for page in (ROOT / "docs").rglob("*.md"):
        named = re.findall(r"/(?:etc|var/lib|run)/(edge.road)\b", page.read_text())
        assert set(named) <= {"edge_road"}, page
