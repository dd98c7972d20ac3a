"""The comparison as Markdown tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from edge_road.training.compare.table import Cell, Comparison, heading

NOTHING = "–"


def to_markdown(table: Comparison) -> str:
    def grid(conditions: Sequence[str], text: Callable[[Cell], str]) -> str:
        lines = [["", *map(heading, conditions)], ["---"] + ["---:"] * len(conditions)]
        lines += [[row.name, *(text(row.cells[name]) for name in conditions)] for row in table.rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    sections = {
        "Accuracy under Gaussian noise, % (Table 3 of the paper)": grid(table.gaussian, accuracy),
        "Accuracy under other perturbations, % (Table 4)": grid(table.others, accuracy)
        if table.others
        else "",
        f"Difference to `{table.reference}`, points, with 95 % interval": grid(table.everything, difference),
        "Danger rate: icy roads not called icy, %": grid(table.everything, danger),
    }
    parts = [f"## {title}\n\n{text}" for title, text in sections.items() if text]
    return "\n\n".join([describe(table), *parts]) + "\n"


def describe(table: Comparison) -> str:
    spread = "" if table.parts == 1 else f"; ± is the standard deviation over {table.part}s"
    return (
        f"`{table.recipe}`, {_counted(table.epochs, 'epoch')}, {_counted(table.parts, table.part)}, "
        f"{_counted(table.pictures, 'test picture')}, {_counted(table.runs, 'run')} of every random "
        f"perturbation{spread}. Bold differences are significant."
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def accuracy(cell: Cell) -> str:
    spread = "" if cell.deviation is None else f" ± {100 * cell.deviation:.1f}"
    return f"{100 * cell.accuracy:.1f}{spread}"


def difference(cell: Cell) -> str:
    if cell.difference is None:
        return NOTHING
    value, low, high = (100 * v for v in (cell.difference.value, cell.difference.low, cell.difference.high))
    mark = "**" if cell.difference.is_significant else ""
    return f"{mark}{value:+.1f}{mark} ({low:+.1f} to {high:+.1f})"


def danger(cell: Cell) -> str:
    return NOTHING if cell.danger is None else f"{100 * cell.danger.rate:.1f}"
