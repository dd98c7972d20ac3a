"""Sessions end, wrong tokens are slowed down, and neither grows without bound."""

from __future__ import annotations

import pytest

from edge_road.clock import ScriptedClock
from edge_road.web.sessions import (
    ALL_AT_ONCE,
    AT_ONCE,
    MOST_ADDRESSES,
    MOST_SESSIONS,
    PAUSE_S,
    SESSION_S,
    Attempts,
    Sessions,
)


def test_a_session_is_known_until_it_ends() -> None:
    clock = ScriptedClock()
    sessions = Sessions(clock)
    secret = sessions.open()
    clock.sleep(SESSION_S - 1)
    assert sessions.knows(secret)
    clock.sleep(1)
    assert not sessions.knows(secret)


def test_a_closed_session_is_forgotten_and_the_others_stay() -> None:
    sessions = Sessions(ScriptedClock())
    mine, yours = sessions.open(), sessions.open()
    sessions.close(mine)
    assert (sessions.knows(mine), sessions.knows(yours)) == (False, True)


@pytest.mark.parametrize("secret", ["", "0", "\udcff", "a" * 10_000])
def test_nobody_guesses_a_session(secret: str) -> None:
    sessions = Sessions(ScriptedClock())
    sessions.open()
    assert not sessions.knows(secret)


def test_the_oldest_session_makes_room() -> None:
    sessions = Sessions(ScriptedClock())
    secrets = [sessions.open() for _ in range(MOST_SESSIONS + 1)]
    assert len(set(secrets)) == len(secrets)
    assert [sessions.knows(secret) for secret in secrets] == [False] + [True] * MOST_SESSIONS


def test_after_a_few_wrong_tokens_one_has_to_wait_and_may_then_try_once() -> None:
    clock = ScriptedClock()
    attempts = Attempts(clock)
    for _ in range(AT_ONCE):
        assert attempts.wait_s("10.0.0.9") == 0
        attempts.failed("10.0.0.9")
    assert 0 < attempts.wait_s("10.0.0.9") <= PAUSE_S
    assert attempts.wait_s("10.0.0.8") == 0
    clock.sleep(PAUSE_S)
    assert attempts.wait_s("10.0.0.9") == 0
    attempts.failed("10.0.0.9")
    assert attempts.wait_s("10.0.0.9") > 0


def test_a_house_of_many_addresses_is_one_house() -> None:
    attempts = Attempts(ScriptedClock())
    for number in range(AT_ONCE):
        attempts.failed(f"2001:db8::{number + 1}")
    assert attempts.wait_s("2001:db8::ffff") > 0
    assert attempts.wait_s("2001:db8:0:1::1") == 0


@pytest.mark.parametrize(
    ("one", "same"), [("::ffff:10.0.0.1", "10.0.0.1"), ("fe80::1%eth0", "fe80::2"), ("", "x")]
)
def test_one_address_in_two_spellings_is_one(one: str, same: str) -> None:
    attempts = Attempts(ScriptedClock())
    for _ in range(AT_ONCE):
        attempts.failed(one)
    assert attempts.wait_s(same) > 0


def test_many_addresses_together_are_slowed_down_too() -> None:
    attempts = Attempts(ScriptedClock())
    for number in range(ALL_AT_ONCE):
        attempts.failed(f"10.0.{number}.1")
    assert attempts.wait_s("10.9.9.9") > 0


def test_the_list_of_addresses_is_bounded() -> None:
    attempts = Attempts(ScriptedClock())
    for number in range(MOST_ADDRESSES + 50):
        attempts.failed(f"10.1.{number // 256}.{number % 256}")
    assert len(attempts._marks_ns) == MOST_ADDRESSES
