"""What a benchmark found: tables, claims with their limits, a picture; written as Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import wraps
from pathlib import Path
from typing import ParamSpec

from benchmarks import machine
from benchmarks.rounds import Spread
from edge_road.clock import SystemClock
from edge_road.files import write_atomically

Row = tuple[str, ...]
Asked = ParamSpec("Asked")


@dataclass(frozen=True)
class Table:
    title: str
    header: Row
    rows: Sequence[Row]

    def lines(self) -> list[str]:
        rule = ["---", *["---:"] * (len(self.header) - 1)]
        return [
            f"### {self.title}",
            "",
            *(f"| {' | '.join(r)} |" for r in (self.header, rule, *self.rows)),
            "",
        ]


@dataclass(frozen=True)
class Claim:
    """A figure beside the limit that we set ourselves; a missed one is published like a met one."""

    what: str
    got: Spread
    least: float | None = None
    most: float | None = None

    @property
    def met(self) -> bool:
        return (self.least is None or self.got.median >= self.least) and (
            self.most is None or self.got.median <= self.most
        )

    @property
    def limit(self) -> str:
        bounds = [f">= {self.least:g}"] if self.least is not None else []
        return " and ".join([*bounds, *([f"<= {self.most:g}"] if self.most is not None else [])])

    def row(self) -> Row:
        return (self.what, self.got.text(3), self.limit, "met" if self.met else "**missed**")


@dataclass
class Outcome:
    name: str
    title: str
    method: str
    """how it was measured, in a few sentences"""
    tables: list[Table] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    figures: dict[str, object] = field(default_factory=dict)
    """every single figure, for machines"""
    picture: bytes | None = None
    versions: dict[str, str] = field(default_factory=dict)
    provenance: dict[str, str] = field(default_factory=dict)
    """the machine, the commit and the load it began with, and how long it took"""

    def markdown(self) -> str:
        lines = [f"## {self.title}", "", self.method, ""]
        if self.picture:
            lines += [f"![{self.title}]({self.name}.png)", ""]
        for table in self.tables:
            lines += table.lines()
        if self.claims:
            rows = [claim.row() for claim in self.claims]
            lines += Table("Limits", ("what", "median [low .. high]", "limit", ""), rows).lines()
        lines += [f"- {note}" for note in self.notes]
        lines += ["", "Versions: " + ", ".join(f"{k} {v}" for k, v in sorted(self.versions.items()))]
        lines += ["", "Measured: " + "; ".join(f"{k} {v}" for k, v in self.provenance.items())]
        return "\n".join(lines).rstrip() + "\n"

    def to_json(self) -> str:
        claims = [{**asdict(claim), "met": claim.met} for claim in self.claims]
        content = {"title": self.title, "claims": claims, "notes": self.notes, "figures": self.figures}
        content |= {"versions": self.versions, "provenance": self.provenance}
        return json.dumps(content, indent=1) + "\n"

    def write(self, folder: Path) -> None:
        write_atomically(folder / f"{self.name}.md", self.markdown().encode())
        write_atomically(folder / f"{self.name}.json", self.to_json().encode())
        if self.picture:
            write_atomically(folder / f"{self.name}.png", self.picture)


def with_provenance(measure: Callable[Asked, Outcome]) -> Callable[Asked, Outcome]:
    """A folder may hold results of several hours and commits, so each benchmark tells its own."""

    @wraps(measure)
    def measured(*args: Asked.args, **kwargs: Asked.kwargs) -> Outcome:
        clock = SystemClock()
        began_utc, began_ns, surroundings = clock.utc(), clock.mono_ns(), machine.description()
        outcome = measure(*args, **kwargs)
        outcome.provenance = {
            "began": f"{began_utc:%Y-%m-%d %H:%M} UTC",
            "took": f"{(clock.mono_ns() - began_ns) / 1e9:.0f} s",
            **surroundings,
        }
        return outcome

    return measured
