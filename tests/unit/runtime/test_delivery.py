from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edge_road.runtime.events.eviction import Entry
from edge_road.runtime.outputs.delivery import Delivery

SECOND = 10**9


def entry(number: int) -> Entry:
    return Entry(number, "b", number, 0, "x")


def test_no_more_are_on_their_way_than_the_window_allows() -> None:
    delivery = Delivery(window=3, per_s=1000, resend_s=10)
    for number in range(delivery.room(SECOND)):
        delivery.sent(number, entry(number + 1))
    assert delivery.room(2 * SECOND) == 0
    assert delivery.broker_has(0) == 1
    assert delivery.room(2 * SECOND) == 1
    assert delivery.broker_has(99) is None


def test_a_backlog_goes_out_at_the_rate_that_was_set() -> None:
    delivery = Delivery(window=20, per_s=10, resend_s=10)
    sent = 0
    for tick in range(101):  # ten seconds
        for _ in range(delivery.room(SECOND + tick * SECOND // 10)):
            sent += 1
            delivery.sent(sent, entry(sent))
            delivery.broker_has(sent)
    assert 100 <= sent <= 121


def test_a_lost_connection_begins_at_the_front_again() -> None:
    delivery = Delivery(window=5, per_s=100, resend_s=10)
    delivery.sent(1, entry(40))
    assert (delivery.cursor, delivery.idle) == (40, False)
    delivery.connection_lost()
    assert (delivery.cursor, delivery.idle) == (0, True)


def test_without_the_backends_word_everything_is_sent_again_but_not_at_once() -> None:
    delivery = Delivery(window=5, per_s=100, resend_s=10)
    delivery.progressed(SECOND)
    delivery.sent(1, entry(7))
    assert not delivery.resend_if_stuck([], 5 * SECOND)
    assert not delivery.resend_if_stuck([entry(8)], 12 * SECOND)
    assert delivery.resend_if_stuck([], 12 * SECOND)
    assert delivery.cursor == 0


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3 * SECOND)), max_size=60))
def test_the_window_holds_whatever_happens(steps: list[tuple[bool, int]]) -> None:
    delivery, now_ns, waiting, number = Delivery(4, 50, 10), 0, [], 0
    for send, pause_ns in steps:
        now_ns += pause_ns
        if send:
            for _ in range(delivery.room(now_ns)):
                number += 1
                delivery.sent(number, entry(number))
                waiting.append(number)
        elif waiting:
            assert delivery.broker_has(waiting.pop(0)) is not None
        assert len(waiting) <= 4
