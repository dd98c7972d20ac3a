"""Rows 7, 9, 10 and 12: hard light, damaged and changing streams, and folders without end, in process."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
from camera_servers import road_picture
from fault_rows import FaultRow

from edge_road.backends.fake import FakePredictor
from edge_road.clock import ScriptedClock
from edge_road.errors import CameraError
from edge_road.evaluation.perturbations.illumination import low_sun
from edge_road.frames import Frame, Image
from edge_road.preprocess import Preprocessing
from edge_road.runtime.decision import DecisionSettings, Past, decide, rules_for
from edge_road.runtime.perception import Perception
from edge_road.runtime.sources import EndOfStream
from edge_road.runtime.sources.images import ImageDirectory
from edge_road.runtime.sources.video import VideoFile
from edge_road.runtime.vehicle_sources import ImageDirectorySource, VideoSource

ROOT = Path(__file__).resolve().parents[2]
RULES = rules_for(DecisionSettings(), confidence_threshold=0.6, period_s=0.05)
SECOND, SOON = 10**9, 10**18
Answer = tuple[str, tuple[str, ...]]


def judged(frames: list[Frame]) -> list[Answer]:
    chain, past, answers = Perception(FakePredictor(), Preprocessing(height=32, width=32)), Past(), []
    for frame in frames:
        past, decision = decide(past, chain.judge(chain.view(frame)), frame.captured_mono_ns, RULES)
        answers.append((decision.state, decision.reasons))
    return answers


def at_20_fps(pictures: list[Image]) -> list[Frame]:
    return [Frame(pixels, n, SECOND + n * SECOND // 20) for n, pixels in enumerate(pictures)]


def night(photo: Image, generator: np.random.Generator, light: float) -> Image:
    """Less light, and a sensor's noise that does not become less with it."""
    noise = generator.normal(0, 3, photo.shape)
    return np.clip(photo * light + noise, 0, 255).astype(np.uint8)


def test_real_roads_are_judged_by_day_and_refused_when_light_leaves_nothing_to_see(
    shared_data: Path, fault_row: FaultRow
) -> None:
    """The share of real photographs that the checks refuse; what passes is the model's to judge."""
    paths = sorted((shared_data / "road3").rglob("*.jpg"))
    chosen = [cv2.imread(str(path)) for path in paths[:: max(1, len(paths) // 24)]]
    photos = [np.ascontiguousarray(cv2.resize(photo, (320, 240))[..., ::-1]) for photo in chosen]
    generator = np.random.default_rng(7)
    scenes: dict[str, list[Image]] = {"day": photos}
    for light in (0.3, 0.1, 0.03, 0.0):
        scenes[f"night, {light:.0%} of the light"] = [night(photo, generator, light) for photo in photos]
    for strength in (0.5, 1.0, 2.0, 4.0):
        scenes[f"low sun {strength:g}"] = [low_sun(photo, generator, strength) for photo in photos]
    shares = {name: refused_share(pictures) for name, pictures in scenes.items()}
    assert shares["day"] <= 0.1
    assert shares["night, 0% of the light"] == 1.0
    told = ", ".join(f"{name}: {share:.0%}" for name, share in shares.items())
    fault_row(
        7, "night and low sun over real photographs", reason="exposure, low_detail or noise",
        how="in process",
        note=f"{len(photos)} roads, share refused by the checks alone ({told})",
    )  # fmt: skip


def refused_share(pictures: list[Image]) -> float:
    """Each by itself: a fresh chain does not wait for a size to settle."""
    chain = Perception(FakePredictor(), Preprocessing(height=32, width=32))
    return float(np.mean([bool(chain.judge(chain.view(frame)).problems) for frame in at_20_fps(pictures)]))


def test_a_tunnel_is_told_at_once_and_left_quickly(fault_row: FaultRow) -> None:
    """Bright road, black mouth, glaring exit, bright road."""
    bright = [road_picture(seed=n) for n in range(40)]
    mouth = [np.full_like(bright[0], 2) + np.uint8(n % 2) for n in range(60)]
    exit_ = [np.full_like(bright[0], 253) + np.uint8(n % 2) for n in range(20)]
    answers = judged(at_20_fps([*bright, *mouth, *exit_, *bright]))
    states = [state for state, _ in answers]
    assert states[39] == "dry"
    told = states.index("unknown", 40) - 40
    assert set(states[40 + told : 120]) == {"unknown"}
    back = states.index("dry", 120) - 120
    fault_row(
        7, "a tunnel: black for 3 s, white for 1 s", reason="exposure", how="in process, 20 fps",
        detect_s=told / 20, detect_limit_s=0.5, recover_s=back / 20, recover_limit_s=3.0,
    )  # fmt: skip


def write_stream(path: Path, frames: int, size: tuple[int, int], pixel_format: str = "yuv420p") -> Path:
    with av.open(str(path), "w", format="mpegts") as container:
        stream = container.add_stream("libx264", rate=20, options={"g": "10", "preset": "ultrafast"})
        stream.height, stream.width, stream.pix_fmt = *size, pixel_format
        for number in range(frames):
            picture = av.VideoFrame.from_ndarray(road_picture(seed=number, size=size), format="rgb24")
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
    return path


def read_stream(path: Path) -> tuple[list[Frame], int]:
    """All its frames, and how many pictures the decoder gave up."""
    source = VideoFile(VideoSource(kind="video", path=path), ScriptedClock(SECOND))
    frames = []
    try:
        source.open()
        while True:
            frame = source.read(SOON)
            assert frame is not None
            frames.append(frame)
    except (EndOfStream, CameraError):
        return frames, source.rejected
    finally:
        source.close()


def damaged_streams(original: bytes, count: int) -> Iterator[bytes]:
    generator = np.random.default_rng(9)
    for number in range(count):
        content = bytearray(original)
        for position in generator.integers(0, len(content), 1 + number):
            content[position] = generator.integers(0, 256)
        yield bytes(content[: generator.integers(len(content) // 2, len(content))])


def count_damage(folder: str) -> None:
    """Runs in a process of its own, so that a crash of the decoder is seen and not shared."""
    whole = write_stream(Path(folder) / "whole.ts", frames=60, size=(96, 128)).read_bytes()
    counts: Counter[str] = Counter()
    for content in damaged_streams(whole, count=24):
        path = Path(folder) / "damaged.ts"
        path.write_bytes(content)
        frames, rejected = read_stream(path)
        counts["refused"] += rejected
        for state, _ in judged(frames):
            counts[{"unknown": "unknown", "dry": "right"}.get(state, "wrong")] += 1
        counts["streams"] += 1
    print(json.dumps(counts))


def test_damaged_h264_crashes_nothing_and_does_not_change_the_answer(
    tmp_path: Path, fault_row: FaultRow
) -> None:
    code = f"from test_stream_rows import count_damage; count_damage({str(tmp_path)!r})"
    paths = [str(ROOT), str(ROOT / "tests"), str(Path(__file__).parent)]
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    counts: dict[str, Any] = json.loads(done.stdout)
    assert counts["streams"] == 24
    assert counts["right"] > 0
    assert counts.get("wrong", 0) == 0, counts
    told = ", ".join(f"{counts.get(word, 0)} {word}" for word in ("refused", "unknown", "right", "wrong"))
    fault_row(
        9, "24 H.264 streams with 1 to 24 damaged bytes, cut short", state="",
        how="PyAV in a process of its own", note=f"frames: {told}",
    )  # fmt: skip


def test_a_stream_that_changes_its_size_is_told_and_then_judged_anew(
    tmp_path: Path, fault_row: FaultRow
) -> None:
    """The second half is larger and of another pixel format; nothing is stretched to the old size."""
    first = write_stream(tmp_path / "first.ts", frames=60, size=(96, 128)).read_bytes()
    second = write_stream(
        tmp_path / "second.ts", frames=60, size=(160, 192), pixel_format="yuv444p"
    ).read_bytes()
    (tmp_path / "both.ts").write_bytes(first + second)
    frames, _ = read_stream(tmp_path / "both.ts")
    sizes = [frame.pixels.shape[:2] for frame in frames]
    assert set(sizes) == {(96, 128), (160, 192)}
    answers, changed = judged(frames), sizes.index((160, 192))
    assert answers[changed - 1][0] == "dry"
    times_s = [frame.captured_mono_ns / 1e9 for frame in frames]
    told = next(
        n for n, answer in enumerate(answers) if n >= changed and answer == ("unknown", ("frame_size",))
    )
    back = next(n for n, (state, _) in enumerate(answers) if n > told and state == "dry")
    assert {state for state, _ in answers[told:back]} == {"unknown"}
    fault_row(
        10, "two H.264 streams of other size and pixel format, end to end", reason="frame_size",
        detect_s=times_s[told] - times_s[changed], detect_limit_s=0.5,
        recover_s=times_s[back] - times_s[changed], recover_limit_s=3.0, how="PyAV, in process",
    )  # fmt: skip


class Endless(ImageDirectory):
    """A folder that lists a million names; the one picture behind them all is real."""

    listed = 0

    def _listed(self) -> Iterator[str]:
        for number in range(10**6):
            self.listed += 1
            yield f"{(number * 7919) % 10**6:07d}.jpg"


def test_a_folder_of_a_million_files_is_read_a_few_thousand_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault_row: FaultRow
) -> None:
    monkeypatch.setattr("edge_road.runtime.sources.images.read_image", lambda path: road_picture())
    source = Endless(ImageDirectorySource(kind="images", path=tmp_path, fps=100), ScriptedClock(SECOND))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    source.open()
    frames = [source.read(SOON) for _ in range(20)]
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert all(frame is not None for frame in frames)
    assert source.listed == 10**6
    assert grown_mb < 50
    fault_row(
        12, "a million names in the folder", state="", how="in process, a listing made up",
        note=f"first picture after one pass, {grown_mb:.0f} MB more memory",
    )  # fmt: skip
