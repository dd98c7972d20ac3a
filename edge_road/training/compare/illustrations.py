"""All pictures of a comparison, in the order of its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from edge_road.datasets import open_dataset
from edge_road.training.command_line import show_line
from edge_road.training.compare import figures
from edge_road.training.compare.answers import Answers
from edge_road.training.compare.plan import Trial
from edge_road.training.compare.table import Comparison
from edge_road.training.pool.measure import draw_figures, put_together, take_samples
from edge_road.training.pool.wanted import Wanted

KEPT = "samples"


@dataclass(frozen=True)
class Illustration:
    file: str
    png: bytes
    alt: str
    height: int
    """on the page, px"""
    title: str = ""
    """of the section that begins with it"""
    note: str = ""


def illustrate(
    out: Path,
    trials: Sequence[Trial],
    answers: dict[str, list[Answers]],
    table: Comparison,
    images: int,
) -> list[Illustration]:
    """From what the trials have stored; `images` of each run for its curvature, 0: only from answers."""
    found = list(_from_answers(trials, answers, table))
    return [*found, *_from_runs(out, trials, table, images)] if images else found


def _from_answers(
    trials: Sequence[Trial], answers: dict[str, list[Answers]], table: Comparison
) -> Iterator[Illustration]:
    if png := figures.noise_curves(table):
        alt = "Accuracy of each method against the standard deviation of Gaussian noise"
        yield Illustration("noise.png", png, alt, 480, "Accuracy against noise")
    classes = open_dataset(trials[0].recipe.data).classes.names
    if png := figures.feature_maps({row: parts[0] for row, parts in answers.items()}, classes):
        alt = "Penultimate features of clean pictures above and of noisy ones below, a column for each method"
        title = "Features of clean and noisy test pictures (t-SNE)"
        note = f"Each column is one map of both kinds of pictures, of the first {table.part}."
        yield Illustration("features.png", png, alt, 460, title, note)


def _from_runs(out: Path, trials: Sequence[Trial], table: Comparison, images: int) -> Iterator[Illustration]:
    rows = {out / "runs" / trial.folder: trial.row for trial in trials}
    wanted = Wanted(measures=("curvature", "layers"), images=images)
    samples = take_samples(list(rows), wanted, out / KEPT, show_line, rows)
    show_line("")
    pooled = put_together(samples, wanted, table.reference)
    drawn = draw_figures(samples, pooled)
    pictures = pooled.curvature[0].pictures
    yield Illustration(
        "curvature.png",
        drawn.pop("curvature.png"),
        "Curvature of the loss over the input, a box for each method",
        130 + 48 * len(pooled.curvature),
        "Curvature of the loss over the input",
        f"Of {pictures} test pictures in all, without the tenth of largest curvature.",
    )
    yield Illustration(
        "retained.png",
        drawn.pop("retained.png"),
        "Accuracy under noise of the pictures of least curvature",
        480,
        note="Accuracy under noise of the pictures that remain when the most curved are taken away.",
    )
    title, note = "Layers (t-SNE)", f"Clean and noisy test pictures of the first {table.part} in every stage."
    for file, png in drawn.items():
        yield Illustration(file, png, f"Layers: {file[7:-4]}", 400, title, note)
        title = note = ""
