"""The verdict of the gate as one HTML page: how much of each limit every model uses, drawn and told."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from edge_road.evaluation.figures import SERIES_COLORS, plot
from edge_road.export.gate import Check
from edge_road.export.gate_file import VerifyFile, VerifyOf
from edge_road.files import write_atomically

MOST_DRAWN = 2.0
"""times the limit: a longer bar would squeeze the others"""
_KEPT, _LEFT, _BROKEN = SERIES_COLORS[0], SERIES_COLORS[3], SERIES_COLORS[1]
_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere }
table { border-collapse: collapse; width: 100% } td, th { padding: .2rem .6rem; text-align: left }
tr + tr { border-top: 1px solid color-mix(in srgb, currentColor 20%, transparent) }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
.refused { color: #d33; font-weight: 600 }
svg { width: 100%; height: auto } .note { opacity: .75 }
"""


def used_share(check: Check) -> float:
    """Of what the limit allows: 0 nothing, 1 all of it, above 1 a breach."""
    spent, allowed = check.value, check.limit
    if check.at_least:
        spent, allowed = 1.0 - check.value, 1.0 - check.limit
    if spent <= 0:
        return 0.0
    return spent / allowed if allowed > 0 else float("inf")


def gate_page(verdicts: VerifyFile) -> str:
    parts = [_section(name, judged) for name, judged in verdicts.artefacts.items()]
    title = f"Release gate: {verdicts.target}"
    steps = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in verdicts.steps_s.items())
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style><h1>{escape(title)}</h1>'
        f"<p>bundle {escape(verdicts.bundle_digest)}</p>{''.join(parts)}"
        f'<h2>Steps on this machine</h2><p class="note">{escape(steps)}</p></html>\n'
    )


def write_gate_page(bundle: Path, verdicts: VerifyFile) -> Path:
    path = bundle.with_name(f"{bundle.name}.verify.html")
    write_atomically(path, gate_page(verdicts).encode())
    return path


def _section(name: str, judged: VerifyOf) -> str:
    checks = [*judged.checks, *judged.machine]
    verdict = "released" if judged.released else '<span class="refused">refused</span>'
    reasons = "".join(f'<li class="refused">{escape(reason)}</li>' for reason in judged.reasons)
    picture = _bars(name, checks) if checks else ""
    rows = "".join(map(_row, checks))
    head = '<tr><th>figure</th><th class="number">measured</th><th class="number">limit</th><th></th></tr>'
    note = ""
    if judged.machine:
        note = '<p class="note">Time and memory: ONNX Runtime, one thread, on the machine that exported.</p>'
    return f"<h2>{escape(name)}: {verdict}</h2><ul>{reasons}</ul>{picture}<table>{head}{rows}</table>{note}"


def _row(check: Check) -> str:
    word = '<span class="refused">breached</span>' if not check.passed else ""
    word = "left to chance" if check.forgiven else word
    bound = "at least" if check.at_least else "at most"
    return (
        f'<tr><td>{escape(check.name)}</td><td class="number">{check.value:.4g}</td>'
        f'<td class="number">{bound} {check.limit:.4g}</td><td>{word}</td></tr>'
    )


def _bars(name: str, checks: Sequence[Check]) -> str:
    def draw(axes: Any) -> None:
        for place, check in enumerate(checks):
            share = used_share(check)
            color = _LEFT if check.forgiven else _KEPT if check.passed else _BROKEN
            axes.barh(place, min(share, MOST_DRAWN), color=color, height=0.62)
            if share > MOST_DRAWN:
                axes.text(MOST_DRAWN, place, " >", va="center", color=_BROKEN)
        axes.axvline(1.0, color=_BROKEN, linewidth=1.2, linestyle="--")
        axes.set_yticks(range(len(checks)), [check.name for check in checks], fontsize=8.5)
        axes.set(xlim=(0, MOST_DRAWN * 1.04), xlabel="share of what the limit allows")
        axes.invert_yaxis()
        axes.grid(axis="x", alpha=0.25)

    return plot(f"{name}: figures against their limits", (8.0, 0.9 + 0.3 * len(checks)), draw)
