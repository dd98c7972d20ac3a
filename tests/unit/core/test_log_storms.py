from __future__ import annotations

import io
import logging

from edge_road.clock import ScriptedClock
from edge_road.logs import Sparing, set_up_logging


def record(text: str, *arguments: object, name: str = "edge_road.x") -> logging.LogRecord:
    return logging.LogRecord(name, logging.WARNING, __file__, 1, text, arguments, None)


def test_a_storm_of_one_kind_is_cut_short_and_counted() -> None:
    clock = ScriptedClock(0)
    sparing = Sparing(clock)
    shown = [sparing.filter(record("bad message %d", number)) for number in range(1000)]
    assert sum(shown) == Sparing.MOST
    assert sparing.filter(record("something else"))
    clock.sleep(Sparing.WINDOW_S)
    after = record("bad message %d", 1000)
    assert sparing.filter(after)
    assert after.getMessage() == f"bad message 1000 ({1000 - Sparing.MOST} more were not shown)"
    again = record("bad message %d", 1001)
    assert sparing.filter(again)
    assert again.getMessage() == "bad message 1001"


def test_a_few_lines_a_minute_all_pass() -> None:
    clock = ScriptedClock(0)
    sparing = Sparing(clock)
    for number in range(500):
        assert sparing.filter(record("state %d", number))
        clock.sleep(3.0)


def test_words_that_differ_every_time_take_no_memory() -> None:
    sparing = Sparing(ScriptedClock(0))
    for number in range(5000):
        sparing.filter(record(f"free text {number}"))
    assert len(sparing._told) <= Sparing.KINDS


def test_logging_is_set_up_with_it() -> None:
    before, stream = logging.getLogger().handlers[:], io.StringIO()
    try:
        set_up_logging(stream)
        for number in range(100):
            logging.getLogger("edge_road.storm").warning("again %d", number)
    finally:
        logging.getLogger().handlers[:] = before
    assert len(stream.getvalue().splitlines()) == Sparing.MOST
