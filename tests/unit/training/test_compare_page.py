"""The page of a comparison: its pictures inside, unless they would make it too large."""

from __future__ import annotations

import numpy as np
import pytest

from edge_road.training.compare import figures
from edge_road.training.compare.answers import Answers
from edge_road.training.compare.illustrations import Illustration
from edge_road.training.compare.markdown import describe
from edge_road.training.compare.page import MOST_EMBEDDED, render_page
from edge_road.training.compare.table import Cell, Comparison, Row


def table() -> Comparison:
    cell = Cell(accuracy=0.9, deviation=None, by_part=(0.9,), difference=None, danger=None)
    return Comparison(
        recipe="tiny",
        epochs=1,
        part="seed",
        parts=1,
        pictures=3,
        runs=1,
        reference="softmax",
        conditions=("clean",),
        rows=(Row(name="softmax", cells={"clean": cell}),),
    )


def picture(name: str, size: int) -> Illustration:
    return Illustration(f"{name}.png", b"x" * size, f"seen: {name}", 100, title=f"about {name}")


def test_one_of_a_thing_is_not_several() -> None:
    several = table().model_copy(update={"parts": 2})
    assert describe(table()).startswith("`tiny`, 1 epoch, 1 seed, 3 test pictures, 1 run of every")
    assert ", 2 seeds, " in describe(several)


def test_pictures_that_do_not_fit_are_named_and_later_ones_still_shown() -> None:
    shown = [picture("first", 1000), picture("huge", MOST_EMBEDDED), picture("last", 1000)]
    page = render_page(table(), shown)
    assert page.count("data:image/png") == 2
    assert "seen: huge: figures/huge.png" in page
    assert 'alt="seen: last"' in page
    assert "<h2>about first</h2>" in page
    assert len(page) < 3_000_000


def test_a_figure_has_the_height_that_it_is_given_and_not_that_of_its_pixels() -> None:
    page = render_page(table(), [picture("curve", 1000)])
    assert 'height="100"' in page
    assert "height: auto" not in page


def test_a_map_of_a_large_test_set_shows_a_part_of_every_class(monkeypatch: pytest.MonkeyPatch) -> None:
    mapped = []

    def embedded(features: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        mapped.append(features)
        return {name: of_M[:, :2] for name, of_M in features.items()}

    monkeypatch.setattr(figures, "embedded", embedded)
    labels_N = np.repeat(np.arange(3), 10_000)
    features_N2 = np.stack([np.arange(30_000), labels_N], axis=1).astype(np.float32)
    both = {"clean": features_N2, "gaussian_40": features_N2}
    answers = Answers(("a",) * 30_000, labels_N, labels_N == 2, {}, {}, both)
    assert figures.feature_maps({"softmax": answers}, ("dry", "wet", "icy"))
    assert [len(of_M) for of_M in mapped[0].values()] == [figures.MOST_PICTURES] * 2
    assert np.bincount(mapped[0]["clean"][:, 1].astype(int)).min() > 0.3 * figures.MOST_PICTURES
