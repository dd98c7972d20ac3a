"""The README.md of a day: limits met and missed, and every benchmark there with its machine and commit."""

from __future__ import annotations

import json
from pathlib import Path

from edge_road.files import write_atomically

ORDER = ("runtime", "training", "scale", "quality")


def write_summary(out: Path) -> Path:
    write_atomically(out / "README.md", summary(out).encode())
    return out / "README.md"


def summary(out: Path) -> str:
    """Of all benchmarks that have been written there, whenever that was."""
    there = [name for name in ORDER if (out / f"{name}.json").is_file()]
    lines = [f"# Benchmarks of {out.name}"]
    claims = [claim for name in there for claim in json.loads((out / f"{name}.json").read_text())["claims"]]
    missed = [claim["what"] for claim in claims if not claim["met"]]
    lines += ["", f"{len(claims) - len(missed)} of {len(claims)} limits are met."]
    lines += [f"- missed: {what}" for what in missed]
    for name in there:
        lines += ["", (out / f"{name}.md").read_text().rstrip()]
    return "\n".join(lines) + "\n"
