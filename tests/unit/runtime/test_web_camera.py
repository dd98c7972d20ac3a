"""Live pictures for many pages: the newest, whole, and none when there is none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from edge_road.runtime.outputs import web_camera
from edge_road.runtime.outputs.web_camera import CameraFeed


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_camera, "LOOK_S", 0.001)


def framed(picture: bytes) -> bytes:
    return len(picture).to_bytes(4, "big") + picture


async def take(pictures: AsyncIterator[bytes] | None, count: int) -> list[bytes]:
    assert pictures is not None
    return [await anext_of(pictures) for _ in range(count)]


async def anext_of(pictures: AsyncIterator[bytes]) -> bytes:
    return await pictures.__anext__()


def feed_of(*pictures: bytes | None, most: int = 4) -> tuple[CameraFeed, Callable[[], int]]:
    """Each picture for three looks at the disk; the last one for ever."""
    looks = 0

    def newest() -> bytes | None:
        nonlocal looks
        looks += 1
        return pictures[min((looks - 1) // 3, len(pictures) - 1)]

    return CameraFeed(newest, most), lambda: looks


def test_every_new_picture_comes_once_and_in_order() -> None:
    feed, _ = feed_of(b"one", b"two", None, b"three")
    told = asyncio.run(take(feed.stream(lambda: True), 4))
    assert told == [framed(b"one"), framed(b"two"), framed(b""), framed(b"three")]


def test_a_picture_that_stays_comes_again_so_that_nobody_takes_us_for_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web_camera, "AT_LEAST_S", 0.01)
    feed, _ = feed_of(b"one")
    assert asyncio.run(take(feed.stream(lambda: True), 3)) == [framed(b"one")] * 3


def test_readers_share_what_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_camera, "LOOK_S", 1000.0)
    feed, looks = feed_of(b"one")

    async def all_of_them() -> list[bytes]:
        return [(await take(feed.stream(lambda: True), 1))[0] for _ in range(4)]

    assert asyncio.run(all_of_them()) == [framed(b"one")] * 4
    assert looks() == 1


def test_the_house_can_be_full_and_empties_again() -> None:
    feed, _ = feed_of(b"one", most=1)

    async def visit() -> None:
        first = feed.stream(lambda: True)
        await take(first, 1)
        assert feed.stream(lambda: True) is None
        await first.aclose()  # type: ignore[union-attr]
        assert feed.stream(lambda: True) is not None

    asyncio.run(visit())


def test_who_never_begins_to_read_takes_no_place() -> None:
    feed, _ = feed_of(b"one", most=1)
    for _ in range(3):
        assert feed.stream(lambda: True) is not None


def test_it_ends_when_the_session_does() -> None:
    feed, _ = feed_of(b"one")
    answers = iter([True, False])

    async def visit() -> list[bytes]:
        pictures = feed.stream(lambda: next(answers))
        assert pictures is not None
        return [picture async for picture in pictures]

    assert asyncio.run(visit()) == [framed(b"one")]
