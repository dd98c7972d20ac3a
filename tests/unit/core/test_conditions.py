from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_road.conditions import (
    RSCD_CLASSES,
    RSCD_LABELS,
    STATE_OF_FRICTION,
    STATES,
    ClassList,
    parse_rscd_name,
    rscd_label,
    state_of,
)
from edge_road.errors import DataError


def test_the_beginning_of_a_class_name_tells_its_state_as_docs_export_says(root: Path) -> None:
    point = (root / "docs/export.md").read_text().split("5. add the `probabilities`")[1].split("6. ")[0]
    rule = {
        start: state
        for part, state in re.findall(r"((?:`\w+`(?:, )?)+) (?:is|are) (dry|wet|icy)", point)
        for start in re.findall(r"`(\w+)`", part)
    }
    for name in (*STATES, *STATE_OF_FRICTION, *RSCD_CLASSES):
        assert {state for start, state in rule.items() if name.startswith(start)} == {state_of(name)}, name


def test_rscd_has_27_labels_of_the_published_shape() -> None:
    assert len(RSCD_CLASSES) == len(set(RSCD_CLASSES)) == 27
    assert sum(label.unevenness is not None for label in RSCD_LABELS) == 3 * 2 * 3
    assert sum(label.material in ("mud", "gravel") for label in RSCD_LABELS) == 3 * 2
    assert [label.name for label in RSCD_LABELS if label.material is None] == [
        "fresh_snow",
        "melted_snow",
        "ice",
    ]


@pytest.mark.parametrize(
    ("name", "label", "state", "day"),
    [
        ("202201252341355-wet-asphalt-smooth.jpg", "wet-asphalt-smooth", "wet", "20220125"),
        ("202201301445483-fresh_snow.jpg", "fresh_snow", "icy", "20220130"),
        ("2022012600125211-dry-asphalt-slight.jpg", "dry-asphalt-slight", "dry", "20220126"),
        ("202203011200001234-water-gravel.jpg", "water-gravel", "wet", "20220301"),
    ],
)
def test_file_name_tells_label_state_and_day(name: str, label: str, state: str, day: str) -> None:
    parsed = parse_rscd_name(name)
    assert (parsed.label.name, parsed.label.state, parsed.day) == (label, state, day)


@pytest.mark.parametrize(
    "name",
    [
        "IMG_0001.jpg",
        "20220125234135-dry-asphalt-smooth.jpg",  # no serial
        "20220125234135123456-dry-asphalt-smooth.jpg",  # serial too long
        "202213252341355-dry-asphalt-smooth.jpg",  # month 13
        "202201252341355-dry-asphalt.jpg",  # paved without unevenness
        "202201252341355-fresh_snow-asphalt-smooth.jpg",  # snow carries no material
        "202201252341355-dry-mud-smooth.jpg",  # mud carries no unevenness
        "202201252341355-wet-asphalt-smooth.gif",
        "202201252341355-wet-asphalt-smooth.jpg\n",
        "２０２２01252341355-wet-asphalt-smooth.jpg",
        "",
    ],
)
def test_foreign_names_are_refused_with_a_reason(name: str) -> None:
    with pytest.raises(DataError, match="not"):
        parse_rscd_name(name)


def test_misspelt_label_names_the_nearest() -> None:
    with pytest.raises(DataError, match="did you mean 'wet-asphalt-smooth'"):
        rscd_label("wet-asfalt-smooth")


@given(st.sampled_from(RSCD_LABELS), st.integers(1, 9999))
def test_every_label_can_be_named_and_read_back(label, serial) -> None:  # type: ignore[no-untyped-def]
    assert parse_rscd_name(f"20220125234135{serial}-{label.name}.jpg").label == label
    assert rscd_label(label.name.replace("-", "_")) == label


def test_all_real_rscd_names_parse(shared_data) -> None:  # type: ignore[no-untyped-def]
    names = (shared_data / "rscd_filenames.txt").read_text().split()
    parsed = [parse_rscd_name(name) for name in names]
    assert len(parsed) == 3266
    assert len({name.label for name in parsed}) == 18
    assert len({name.day for name in parsed}) == 67


def test_state_is_the_sum_over_its_classes_not_the_argmax() -> None:
    classes = ClassList(("dry", "wet", "water", "ice"))
    probabilities = np.array([[0.4, 0.3, 0.25, 0.05]])
    states = classes.state_probabilities(probabilities)
    assert STATES[states.argmax()] == "wet"
    np.testing.assert_allclose(states, [[0.4, 0.55, 0.05]])


def test_27_classes_roll_up_to_a_probability_of_each_state() -> None:
    classes = ClassList(RSCD_CLASSES)
    probabilities = np.random.default_rng(0).dirichlet(np.ones(27), size=50)
    states = classes.state_probabilities(probabilities)
    np.testing.assert_allclose(states.sum(axis=1), 1.0)
    for i, state in enumerate(STATES):
        members = [k for k, name in enumerate(RSCD_CLASSES) if state_of(name) == state]
        np.testing.assert_allclose(states[:, i], probabilities[:, members].sum(axis=1))


@pytest.mark.parametrize("names", [(), ("dry",), ("dry", "dry"), ("dry", "slush")])
def test_class_list_refuses_what_is_no_road_condition(names: tuple[str, ...]) -> None:
    with pytest.raises(DataError):
        ClassList(names)
