"""Pattern and rendered drives: paced like a camera, with a truth to score against."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edge_road.backends.fake import FakePredictor
from edge_road.clock import ScriptedClock
from edge_road.errors import CameraError
from edge_road.frames import Frame
from edge_road.preprocess import Preprocessing
from edge_road.runtime.sources import EndOfStream, source_for
from edge_road.runtime.sources.base import Source
from edge_road.runtime.vehicle_sources import PatternSource, SyntheticSource

SOON = 10**18
SEGMENTS = [{"state": "dry", "seconds": 1}, {"state": "icy", "seconds": 1}]


def pattern(clock: ScriptedClock, origin_ns: int | None = None, **settings: Any) -> Source:
    values = {"kind": "pattern", "fps": 10, "segments": SEGMENTS, **settings}
    source = source_for(PatternSource.model_validate(values), clock, origin_ns)
    source.open()
    return source


def read_all(source: Source) -> list[Frame]:
    frames = []
    try:
        while True:
            if frame := source.read(SOON):
                frames.append(frame)
    except EndOfStream:
        return frames


def states_of(frames: list[Frame]) -> list[str]:
    prepared = np.stack([Preprocessing(height=32, width=32).prepare(frame.pixels) for frame in frames])
    return [("dry", "wet", "icy")[label] for label in FakePredictor().predict(prepared).labels_N]


def test_a_pattern_shows_its_segments_frame_by_frame_and_ends() -> None:
    frames = read_all(pattern(ScriptedClock(mono_ns=10**9)))
    assert states_of(frames) == ["dry"] * 10 + ["icy"] * 10
    assert [frame.captured_mono_ns for frame in frames] == [10**9 + n * 10**8 for n in range(20)]


def test_a_slow_reader_misses_frames_as_with_a_camera() -> None:
    clock = ScriptedClock()
    source = pattern(clock)
    first = source.read(SOON)
    clock.sleep(0.45)
    second = source.read(SOON)
    assert first is not None
    assert second is not None
    assert (first.number, second.number) == (0, 4)


def test_a_worker_that_takes_over_goes_on_in_the_same_drive() -> None:
    source = pattern(ScriptedClock(mono_ns=1_500_000_000), origin_ns=10)
    frame = source.read(SOON)
    assert frame is not None
    assert states_of([frame]) == ["icy"]
    assert source.origin_ns == 10


def test_a_loop_starts_the_drive_again() -> None:
    source = pattern(ScriptedClock(), loop=True)
    frames = [frame for _ in range(30) if (frame := source.read(SOON))]
    assert states_of(frames) == (["dry"] * 10 + ["icy"] * 10 + ["dry"] * 10)


def test_the_truth_is_written_when_the_drive_begins(tmp_path: Path) -> None:
    truth = tmp_path / "deep" / "truth.json"
    pattern(ScriptedClock(mono_ns=77), truth=truth)
    assert json.loads(truth.read_text()) == {"start_mono_ns": 77, "segments": SEGMENTS}


def test_a_truth_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CameraError, match="truth"):
        pattern(ScriptedClock(), truth=tmp_path / "file" / "truth.json")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("black", 0), ("white", 255)],
)
def test_scripted_exposure_faults(kind: str, expected: int) -> None:
    source = pattern(ScriptedClock(), faults=[{"kind": kind, "at": 0.5, "seconds": 0.5}])
    levels = [int(frame.pixels.mean()) for frame in read_all(source)]
    assert levels[5:10] == [expected] * 5
    assert expected not in levels[:5] + levels[10:]


def test_scripted_silence_gives_no_frames() -> None:
    source = pattern(ScriptedClock(), faults=[{"kind": "silence", "at": 0.5, "seconds": 0.5}])
    assert [frame.number for frame in read_all(source)] == [*range(5), *range(10, 20)]


def test_scripted_freeze_repeats_the_same_bytes() -> None:
    source = pattern(ScriptedClock(), faults=[{"kind": "freeze", "at": 0.5, "seconds": 0.5}])
    frames = read_all(source)
    assert len({frame.pixels.tobytes() for frame in frames[5:10]}) == 1
    assert len({frame.pixels.tobytes() for frame in frames[:5]}) == 5


def test_scripted_loss_resize_and_nan() -> None:
    with pytest.raises(CameraError):
        read_all(pattern(ScriptedClock(), faults=[{"kind": "error", "at": 0.5}]))
    resized = read_all(pattern(ScriptedClock(), faults=[{"kind": "resize", "at": 0.5, "seconds": 9}]))
    assert resized[5].pixels.shape == (48, 64, 3)
    sick = read_all(pattern(ScriptedClock(), faults=[{"kind": "nan", "at": 0.5, "seconds": 9}]))
    prepared = Preprocessing(height=32, width=32).prepare(sick[5].pixels)
    assert not FakePredictor().predict(prepared[None]).finite_N.any()


def test_a_scripted_hang_ignores_the_deadline() -> None:
    clock = ScriptedClock()
    source = pattern(clock, faults=[{"kind": "hang", "at": 0.0, "seconds": 1.0}])
    assert source.read(clock.mono_ns() + 1) is None
    assert clock.mono_ns() >= 10**9


def test_a_rendered_drive_is_a_camera_with_a_truth(tmp_path: Path) -> None:
    settings = SyntheticSource.model_validate(
        {"segments": SEGMENTS, "fps": 5, "height": 64, "width": 96, "truth": tmp_path / "truth.json"}
    )
    source = source_for(settings, ScriptedClock())
    source.open()
    frames = read_all(source)
    assert len(frames) == 10
    assert frames[0].pixels.shape == (64, 96, 3)
    assert json.loads((tmp_path / "truth.json").read_text())["segments"] == SEGMENTS


def test_a_random_drive_lasts_as_long_as_asked() -> None:
    source = source_for(SyntheticSource(random_s=20, height=64, width=96), ScriptedClock())
    assert "20 s at 10 fps" in source.description
