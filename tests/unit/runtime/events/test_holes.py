"""What a damaged store must have held: events leave in order, so after the first that waits all others do."""

from __future__ import annotations

from edge_road.runtime.events.eviction import holes_of


def gaps(
    numbers: dict[str, list[int]], boots: dict[str, int], from_the_front: bool
) -> list[tuple[str, int, int, int]]:
    return [
        (g.boot_id, g.first, g.last, g.count) for g in holes_of(numbers, boots, from_the_front, "damaged")
    ]


def test_numbers_in_a_row_have_no_hole() -> None:
    assert gaps({"a": [3, 4, 5]}, {"a": 5}, True) == []


def test_what_was_delivered_before_is_not_called_lost() -> None:
    assert gaps({"b": [7, 8]}, {"a": 90, "b": 8}, True) == []


def test_a_hole_and_a_missing_end_are_one_gap() -> None:
    assert gaps({"a": [3, 5]}, {"a": 7}, True) == [("a", 4, 7, 3)]


def test_after_the_first_that_waits_all_others_do() -> None:
    found = gaps({"a": [8], "c": [2]}, {"a": 9, "b": 4, "c": 2}, True)
    assert found == [("a", 9, 9, 1), ("b", 0, 4, 5), ("c", 0, 1, 2)]


def test_when_the_front_cannot_be_read_everything_before_counts_as_lost() -> None:
    assert gaps({"b": [2]}, {"a": 1, "b": 2}, False) == [("a", 0, 1, 2), ("b", 0, 1, 2)]
    assert gaps({}, {"a": 3}, False) == [("a", 0, 3, 4)]


def test_an_empty_store_has_lost_nothing() -> None:
    assert gaps({}, {"a": 3}, True) == []
    assert gaps({}, {}, False) == []
