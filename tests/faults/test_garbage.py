"""More than ten thousand pictures that show no road go through the real chain: not one becomes a state.

Frame by frame: source -> checks -> model -> decision, with a scripted clock and no process in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import cv2
import numpy as np
import pytest

from edge_road.backends.fake import LEVEL_OF_STATE, FakePredictor
from edge_road.conditions import UNKNOWN
from edge_road.datasets.decode import decode_image
from edge_road.errors import DataError
from edge_road.frames import Frame, Image, Images, Prediction
from edge_road.preprocess import Crop, Preprocessing
from edge_road.runtime.decision import DecisionSettings, Past, decide, rules_for
from edge_road.runtime.perception import Perception
from edge_road.runtime.sources.base import Unreadable

PERIOD_NS = 50_000_000
RULES = rules_for(DecisionSettings(), confidence_threshold=0.6, period_s=0.05)
SIZE = (96, 128)
NAN = float("nan")
COUNTED: Counter[str] = Counter()


class Chain:
    """The whole way of a frame, at 20 frames a second."""

    def __init__(self, predictor: FakePredictor | None = None, crop: Crop | None = None) -> None:
        predictor = predictor or FakePredictor()
        height, width = predictor.size
        preprocessing = Preprocessing(height=height, width=width, crop=crop or Crop())
        self._perception = Perception(predictor, preprocessing)
        self._past = Past()
        self.now_ns = 10**9

    def see(self, pixels: Image | None, captured_ns: int | None = None) -> tuple[str, tuple[str, ...]]:
        self.now_ns += PERIOD_NS
        at_ns = self.now_ns if captured_ns is None else captured_ns
        picture = Unreadable(0, at_ns) if pixels is None else Frame(pixels, 0, at_ns)
        evidence = self._perception.judge(self._perception.view(picture))
        self._past, decision = decide(self._past, evidence, self.now_ns, RULES)
        return decision.state, decision.reasons

    def drive(self, frames: int = 20) -> str:
        """A good road, so that garbage meets a chain that is sure of itself."""
        for number in range(frames):
            state, _ = self.see(road("dry", number))
        return state


def road(state: str, seed: int, size: tuple[int, int] = SIZE) -> Image:
    grain = np.random.default_rng(seed).integers(-12, 13, (*size, 1))
    light = np.linspace(-10, 10, size[0]).astype(int)[:, None, None]
    return np.repeat((grain + light + LEVEL_OF_STATE[state]).astype(np.uint8), 3, axis=2)


def flat(level: int, generator: np.random.Generator) -> Image:
    return np.clip(level + generator.integers(-2, 3, (*SIZE, 3)), 0, 255).astype(np.uint8)


def pictures_without_a_road(count: int) -> Iterator[tuple[str, Image]]:
    generator = np.random.default_rng(3)
    for _ in range(count):
        yield "black", flat(0, generator)
        yield "white", flat(255, generator)
        yield "black bytes", np.zeros((*SIZE, 3), np.uint8)
        yield "uniform noise", generator.integers(0, 256, (*SIZE, 3), dtype=np.uint8)
        yield "grey noise", np.repeat(generator.integers(0, 256, (*SIZE, 1), dtype=np.uint8), 3, axis=2)
        level, spread = generator.integers(40, 220), generator.integers(8, 60)
        noise = generator.normal(level, spread, (*SIZE, 3))
        yield "gaussian noise", np.clip(noise, 0, 255).astype(np.uint8)
        yield "grey filling", np.full((*SIZE, 3), 128, np.uint8)
        shut = cv2.GaussianBlur(road("dry", int(level)), (0, 0), 8)
        yield "lens cap", shut


def tiny_pictures() -> Iterator[Image]:
    generator = np.random.default_rng(4)
    for height in range(1, 30):
        for width in range(1, 30):
            if min(height, width) < 16:
                yield generator.integers(0, 256, (height, width, 3), dtype=np.uint8)


def test_pictures_without_a_road_never_become_a_state() -> None:
    chain = Chain()
    for kind, pixels in pictures_without_a_road(800):
        state, reasons = chain.see(pixels)
        COUNTED[kind] += 1
        assert state == UNKNOWN, (kind, reasons)
    for pixels in tiny_pictures():
        assert chain.see(pixels)[0] == UNKNOWN
        COUNTED["tiny"] += 1


def test_a_road_that_turns_into_garbage_is_withdrawn_within_a_fifth_of_a_second() -> None:
    """Flashes may pass for 0.1 s, on the good frame before them; then nothing is claimed."""
    for kind, pixels in pictures_without_a_road(3):
        chain = Chain()
        assert chain.drive() == "dry"
        good_ns = chain.now_ns
        for number in range(12):
            spoilt = pixels.copy()
            spoilt[0, 0, 1] ^= number  # not frozen
            state, _ = chain.see(spoilt)
            COUNTED["after a road"] += 1
            assert state == UNKNOWN or chain.now_ns - good_ns <= 4 * PERIOD_NS, kind


@pytest.mark.parametrize("quality", [20, 60, 95])
def test_a_jpeg_cut_at_any_length_never_becomes_a_state(quality: int) -> None:
    coded = cv2.imencode(".jpg", road("dry", 5), [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes()
    chain = Chain()
    for length in range(len(coded)):
        with pytest.raises(DataError):
            decode_image(coded[:length], "a cut picture")
        state, reasons = chain.see(None)
        COUNTED["cut JPEG"] += 1
        assert state == UNKNOWN
        assert reasons == ("decode",)
    assert decode_image(coded, "whole").shape == (*SIZE, 3)


def files_that_are_no_pictures() -> Iterator[tuple[str, bytes]]:
    """Other formats, empty files, random bytes, and headers that promise more than any memory holds."""
    generator = np.random.default_rng(6)
    whole = cv2.imencode(".png", road("dry", 5))[1].tobytes()
    for number in range(200):
        yield "random bytes", generator.bytes(number)
        yield "bytes behind a JPEG's head", b"\xff\xd8\xff\xe0" + generator.bytes(100 + number) + b"\xff\xd9"
        side = int(generator.integers(20_000, 2**31))
        yield "vast PNG", whole[:16] + side.to_bytes(4, "big") * 2 + whole[24:]
        yield "cut PNG", whole[: len(whole) * number // 200]
        yield (
            "other file",
            (b"", b"GIF89a", b"%PDF-1.7", b"\x7fELF", b"RIFF", b"BM")[number % 6] + bytes(number),
        )


def test_files_that_are_no_pictures_never_become_a_state() -> None:
    chain = Chain()
    chain.drive()
    good_ns = chain.now_ns
    for kind, content in files_that_are_no_pictures():
        with pytest.raises(DataError):
            decode_image(content, kind)
        state, _ = chain.see(None)
        COUNTED["no picture" if kind != "vast PNG" else "vast PNG"] += 1
        assert state == UNKNOWN or chain.now_ns - good_ns <= 4 * PERIOD_NS, kind


def test_a_frozen_picture_claims_nothing_after_a_second() -> None:
    chain = Chain()
    chain.drive()
    frozen, began_ns = road("dry", 1), chain.now_ns
    for _ in range(1000):
        state, _ = chain.see(frozen)
        COUNTED["frozen"] += chain.now_ns - began_ns > 10**9 + PERIOD_NS
        assert state == UNKNOWN or chain.now_ns - began_ns <= 10**9 + PERIOD_NS


def clock_on(pixels: Image, now_ns: int, bottom: int) -> Image:
    """What many cameras burn into their pictures, and go on with when their sensor has died."""
    result = pixels.copy()
    said = f"2026-11-18 12:00:{now_ns // 10**9 % 60:02d}"
    cv2.putText(result, said, (20, bottom), cv2.FONT_HERSHEY_SIMPLEX, 0.7, (255, 255, 255), 2)
    return result


@pytest.mark.parametrize("bottom", [40, 465], ids=["beside what is judged", "within it"])
def test_a_dead_camera_whose_clock_goes_on_claims_nothing_after_a_second(bottom: int) -> None:
    generator = np.random.default_rng(7)
    level = LEVEL_OF_STATE["dry"]
    deaths: dict[str, Callable[[], Image]] = {
        "frozen with a clock": lambda: road("dry", 1, (480, 640)),
        "noise with a clock": lambda: level + generator.integers(0, 5, (480, 640, 1), np.uint8).repeat(3, 2),
        "grey with a clock": lambda: np.full((480, 640, 3), level, np.uint8),
    }
    for kind, death in deaths.items():
        chain = Chain(crop=Crop(top=0.35))
        began_ns = chain.now_ns
        for _ in range(100):
            state, reasons = chain.see(clock_on(death(), chain.now_ns, bottom))
            COUNTED[kind] += chain.now_ns - began_ns > 10**9 + PERIOD_NS
            assert state == UNKNOWN or chain.now_ns - began_ns <= 10**9 + PERIOD_NS, (kind, reasons)


@pytest.mark.parametrize("shift_ns", [lambda n: 0, lambda n: -n, lambda n: 3 * 10**9])
def test_repeated_backward_and_future_time_stamps_keep_nothing_alive(shift_ns: Callable[[int], int]) -> None:
    chain = Chain()
    chain.drive()
    good_ns = chain.now_ns
    for number in range(300):
        captured_ns = good_ns + shift_ns(number) if shift_ns(1) <= 0 else chain.now_ns + shift_ns(number)
        state, _ = chain.see(road("dry", number), captured_ns)
        COUNTED["time stamps"] += 1
        assert state == UNKNOWN or chain.now_ns - good_ns <= RULES.fresh_ns


class Sick(FakePredictor):
    """Gives whatever it is told to, as a broken model or engine does."""

    answer_C: tuple[float, ...] = (1.0, 0.0, 0.0)

    def predict(self, images_NHWC: Images) -> Prediction:
        rows_NC = np.full((len(images_NHWC), 3), self.answer_C, np.float32)
        return Prediction(rows_NC, np.nan_to_num(rows_NC), np.zeros((len(images_NHWC), 3), np.float32))


def sick_answers() -> Iterator[tuple[float, ...]]:
    generator = np.random.default_rng(5)
    odd = (NAN, float("inf"), -float("inf"), -1.0, 2.0, 1e30, 1e-42, 0.0)
    for first in odd:
        for second in odd:
            for third in odd:
                yield first, second, third
    for _ in range(700):
        yield tuple(generator.normal(0, 3, 3))
        yield tuple(0.5 * generator.dirichlet((1, 1, 1)))
        yield tuple(2.0 * generator.dirichlet((1, 1, 1)))


def test_a_sick_model_never_makes_a_state() -> None:
    predictor = Sick()
    chain = Chain(predictor)
    for number, answer_C in enumerate(sick_answers()):
        predictor.answer_C = answer_C
        if abs(sum(answer_C) - 1) <= 1e-3 and min(answer_C) >= 0:
            continue
        state, reasons = chain.see(road("dry", number % 50))
        COUNTED["sick model"] += 1
        assert state == UNKNOWN
        assert reasons == ("model_output",)


def test_a_size_that_never_settles_claims_nothing() -> None:
    chain = Chain()
    chain.see(road("dry", 0))
    for number in range(600):
        size = (SIZE[0] + 8 * (1 + number % 3), SIZE[1])
        assert chain.see(road("dry", number, size)) == (UNKNOWN, ("frame_size",))
        COUNTED["size"] += 1


def test_the_corpus_was_large_enough(fault_row: Callable[..., None]) -> None:
    """Runs last in this file; alone it has nothing to count."""
    total = sum(COUNTED.values())
    if len(COUNTED) < 12:
        pytest.skip("the other tests of this file did not run")
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(COUNTED.items()))
    assert total >= 10_000, kinds
    note = f"{total:,} bad frames, 0 road states ({kinds})"
    fault_row(14, "garbage of rows 1-5, 8, 10-14, frame by frame", how="in process, fake model", note=note)
