"""From right and wrong answers to means, deviations, differences and danger, and to what people read."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

import numpy as np
import pytest

from edge_road.errors import DataError
from edge_road.training.compare.answers import Answers
from edge_road.training.compare.markdown import to_markdown
from edge_road.training.compare.page import render_page
from edge_road.training.compare.table import MEAN, Comparison, build_rows


def answers(keys: Sequence[str], clean: str, noisy: Sequence[str], stripes: Sequence[str]) -> Answers:
    """A letter for each picture: 1 right, 0 wrong; a line for each run. Every second picture is icy."""

    def grid(lines: Sequence[str]) -> np.ndarray:
        return np.array([[letter == "1" for letter in line] for line in lines])

    right = {"clean": grid([clean]), "gaussian_40": grid(noisy), "stripes": grid(stripes)}
    icy_N = np.arange(len(keys)) % 2 == 1
    missed = {name: ~right_RN & icy_N for name, right_RN in right.items()}
    labels_N = np.where(icy_N, 2, 0)
    return Answers(tuple(keys), labels_N, icy_N, right, missed, {})


ONE = [
    answers("abcd", "1111", ["1100", "1110"], ["1000"]),
    answers("efgh", "1110", ["1111", "1111"], ["1010"]),
]
TWO = [
    answers("abcd", "1101", ["1111", "1111"], ["1111"]),
    answers("efgh", "1111", ["1111", "1111"], ["1111"]),
]


def test_accuracy_is_the_mean_over_folds_with_their_deviation() -> None:
    one, _ = build_rows({"one": ONE, "two": TWO}, "two")
    noisy = one.cells["gaussian_40"]
    assert noisy.by_part == (0.625, 1.0)
    assert noisy.accuracy == 0.8125
    assert noisy.deviation == pytest.approx(np.std([0.625, 1.0], ddof=1))
    assert one.cells[MEAN].by_part == ((0.625 + 0.25) / 2, (1.0 + 0.5) / 2)


def test_the_difference_is_paired_over_all_pictures_and_says_whether_it_counts() -> None:
    one, two = build_rows({"one": ONE * 10, "two": TWO * 10}, "two")
    assert two.cells["clean"].difference is None
    clean, stripes = one.cells["clean"].difference, one.cells["stripes"].difference
    assert clean is not None
    assert stripes is not None
    assert clean.value == 0.0
    assert clean.low < 0 < clean.high
    assert not clean.is_significant
    assert stripes.value == pytest.approx(3 / 8 - 1)
    assert stripes.high < 0
    assert stripes.is_significant


def test_danger_counts_icy_pictures_of_all_folds_and_means_over_runs() -> None:
    one, _ = build_rows({"one": ONE, "two": TWO}, "two")
    noisy = one.cells["gaussian_40"].danger
    assert noisy is not None
    assert noisy.icy == 4
    assert noisy.rate == pytest.approx((1 + 1) / 2 / 4)  # picture d in both runs
    assert noisy.low < noisy.rate < noisy.high


def test_seeds_on_the_same_pictures_do_not_pretend_to_be_more_pictures() -> None:
    """Three equal seeds leave the interval of one as it is."""
    single = build_rows({"one": ONE, "two": TWO}, "two")[0].cells["stripes"]
    triple = build_rows({"one": ONE * 3, "two": TWO * 3}, "two")[0].cells["stripes"]
    assert triple.difference == single.difference
    assert triple.danger == single.danger


def test_methods_asked_about_other_pictures_cannot_be_compared() -> None:
    with pytest.raises(DataError, match="same pictures"):
        build_rows({"one": ONE, "two": TWO[:1]}, "two")


@pytest.fixture
def table() -> Comparison:
    rows = build_rows({"one": ONE * 3, "<two>": TWO * 3}, "<two>")
    return Comparison(
        recipe="tiny",
        epochs=2,
        part="fold",
        parts=6,
        pictures=8,
        runs=2,
        reference="<two>",
        conditions=tuple(rows[0].cells),
        rows=rows,
    )


def test_the_papers_two_tables_share_the_conditions_between_them(table: Comparison) -> None:
    assert table.gaussian == ["clean", "gaussian_40"]
    assert table.others == ["stripes", MEAN]
    assert table.everything[:2] == ["clean", MEAN]


def test_json_is_read_back_to_the_same_table(table: Comparison) -> None:
    assert Comparison.model_validate_json(table.to_json()) == table
    assert json.load(io.StringIO(table.to_json()))["schema"] == "edge_road.comparison/1"


def test_markdown_marks_what_is_significant(table: Comparison) -> None:
    text = to_markdown(table)
    assert "| one | 87.5 ± 13.7 | 81.2 ± 20.5 |" in text
    assert "**-62.5** (" in text
    assert "**+0.0**" not in text


def test_the_page_tells_a_sure_loss_from_a_gain(table: Comparison) -> None:
    page = render_page(table, [])
    assert '<td class="strong worse">-62.5 (' in page
    assert '<td class="strong">+' not in page


def test_the_page_needs_nothing_else_and_escapes_names(table: Comparison) -> None:
    page = render_page(table, [])
    assert "&lt;two&gt;" in page
    assert "<two>" not in page
    assert "http" not in page.replace("http-equiv", "")
