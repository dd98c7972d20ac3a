from __future__ import annotations

from edge_road.runtime.sources.base import Intact


def test_a_damaged_picture_spoils_those_after_it_until_the_next_key_picture() -> None:
    intact = Intact()
    assert intact.is_whole(is_corrupt=False, is_key=False, time_s=0.0)
    assert not intact.is_whole(is_corrupt=True, is_key=False, time_s=0.1)
    assert not intact.is_whole(is_corrupt=False, is_key=False, time_s=0.2)
    assert intact.is_whole(is_corrupt=False, is_key=True, time_s=0.3)
    assert intact.is_whole(is_corrupt=False, is_key=False, time_s=0.4)


def test_a_damaged_key_picture_heals_nothing() -> None:
    intact = Intact()
    intact.spoil(1.0)
    assert not intact.is_whole(is_corrupt=True, is_key=True, time_s=1.1)
    assert not intact.is_whole(is_corrupt=False, is_key=False, time_s=1.2)


def test_a_stream_without_key_pictures_is_trusted_again_after_a_while() -> None:
    intact = Intact()
    intact.spoil(1.0)
    assert not intact.is_whole(is_corrupt=False, is_key=False, time_s=3.4)
    assert intact.is_whole(is_corrupt=False, is_key=False, time_s=3.5)
    assert intact.is_whole(is_corrupt=False, is_key=False, time_s=3.6)
