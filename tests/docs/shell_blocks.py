"""Every shell block of the README and the docs, with the marker before it that says how it is tested.

No marker: the block is run, in bash, in a prepared folder. `<!-- hardware: why -->`: it needs a device, and
its commands are only parsed. `<!-- parsed only: why -->`: the same, where running would repeat another test.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHELL = ("bash", "sh", "shell", "console")
FENCE = re.compile(r"^( *)```(\S*)\s*$")
MARKER = re.compile(r"^<!-- (hardware|parsed only): (.+) -->$")
COMMAND = re.compile(
    r"^\s*(sudo |\$ )?(python3?|edge-road|make|pip|torchrun|docker|curl|systemctl|mosquitto_\w+) "
)


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    marker: str
    why: str
    text: str

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_shell(self) -> bool:
        return self.language in SHELL

    @property
    def looks_like_shell(self) -> bool:
        return any(COMMAND.match(line) for line in self.text.splitlines())

    def commands(self) -> list[list[str]]:
        """Words of each command; continued lines joined, comments gone."""
        joined = self.text.replace("\\\n", " ")
        return [words for line in joined.splitlines() if (words := shlex.split(line, comments=True))]


def pages() -> list[Path]:
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for folder in ("training", "export", "runtime"):
        found += (ROOT / folder).rglob("*.md")
    return sorted(found)


def blocks_of(page: Path) -> Iterator[Block]:
    lines = page.read_text().splitlines()
    number = 0
    while number < len(lines):
        opening = FENCE.match(lines[number])
        number += 1
        if opening is None:
            continue
        first = number
        while number < len(lines) and lines[number].strip() != "```":
            number += 1
        marker, why = _marker(lines[: first - 1])
        text = "\n".join(lines[first:number]) + "\n"
        yield Block(str(page.relative_to(ROOT)), first, opening.group(2), marker, why, text)
        number += 1


def _marker(before: list[str]) -> tuple[str, str]:
    """Of the last line that is not empty."""
    last = next((line for line in reversed(before) if line.strip()), "")
    found = MARKER.match(last.strip())
    return (found.group(1), found.group(2)) if found else ("", "")


ALL = [block for page in pages() for block in blocks_of(page)]
SHELL_BLOCKS = [block for block in ALL if block.is_shell]
