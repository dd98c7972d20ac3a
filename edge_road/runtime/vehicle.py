"""A vehicle file: which camera, which bundle, which parts of the picture, when to speak."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Union

from pydantic import Field, field_validator

from edge_road.config import StrictModel
from edge_road.preprocess import Crop
from edge_road.runtime.decision import DecisionSettings
from edge_road.runtime.quality import QualitySettings
from edge_road.runtime.vehicle_outputs import EventSettings, OutputSettings

Fps = Annotated[float, Field(gt=0, le=240)]
State = Literal["dry", "wet", "icy"]


class DriveSegment(StrictModel):
    """A stretch of road in one state."""

    state: State
    seconds: float = Field(gt=0, le=86_400)


_SHORT_DRIVE = (
    DriveSegment(state="dry", seconds=25),
    DriveSegment(state="wet", seconds=20),
    DriveSegment(state="icy", seconds=20),
    DriveSegment(state="dry", seconds=15),
)


class SyntheticSource(StrictModel):
    """A rendered drive whose state changes at known times."""

    kind: Literal["synthetic"] = "synthetic"
    seed: int = Field(default=7, ge=0)
    segments: tuple[DriveSegment, ...] = Field(default=_SHORT_DRIVE, min_length=1)
    random_s: float | None = Field(default=None, gt=0, le=86_400)
    """instead of the segments, states at random for this long"""
    fps: Fps = 10.0
    height: int = Field(default=192, ge=32, le=1080)
    width: int = Field(default=256, ge=32, le=1920)
    loop: bool = False
    truth: Path | None = None
    """a JSON file that says when which state began, to score the messages against"""


class PatternFault(StrictModel):
    """Something that goes wrong with a pattern camera `at` seconds after its start."""

    kind: Literal["black", "white", "freeze", "silence", "hang", "error", "resize", "nan"]
    at: float = Field(ge=0)
    seconds: float = Field(default=1.0, gt=0)


class PatternSource(StrictModel):
    """Plain coded pictures that the fake backend understands, with scripted faults: a rehearsal."""

    kind: Literal["pattern"]
    segments: tuple[DriveSegment, ...] = Field(default=(DriveSegment(state="dry", seconds=60),), min_length=1)
    fps: Fps = 20.0
    height: int = Field(default=96, ge=32, le=2160)
    width: int = Field(default=128, ge=32, le=3840)
    faults: tuple[PatternFault, ...] = ()
    loop: bool = False
    truth: Path | None = None


class VideoSource(StrictModel):
    """A video file, played at its own pace."""

    kind: Literal["video"]
    path: Path
    loop: bool = False


class ImageDirectorySource(StrictModel):
    """The pictures of one folder in the order of their names."""

    kind: Literal["images"]
    path: Path
    fps: Fps = 5.0
    loop: bool = False


SourceSettings = Annotated[
    Union[SyntheticSource, PatternSource, VideoSource, ImageDirectorySource], Field(discriminator="kind")
]


class Region(StrictModel):
    """A part of the picture that is judged by itself, e.g. one wheel track."""

    name: str = Field(pattern=r"^[a-z0-9_-]{1,32}$")
    crop: Crop


class WorkerLimits(StrictModel):
    """What the process that decodes and infers may take; beyond it, it is ended and started again."""

    memory_mb: int = Field(default=4096, ge=0)
    """of address space; 0: no limit, as a GPU needs it"""
    stall_s: float = Field(default=2.0, gt=0.2, le=60)
    """of the machine's time without a sign of life, or within one call to the camera"""
    ready_s: float = Field(default=30.0, ge=1, le=600)
    """to load the model and open the camera"""
    longest_pause_s: float = Field(default=5.0, gt=0, le=30)
    """between two attempts to start it, or to open the camera again"""


class Vehicle(StrictModel):
    vehicle: str = Field(default="demo", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
    backend: Literal["onnx", "fake"] = "onnx"
    bundle: Path | None = None
    """a bundle's folder; none: the newest one"""
    precision: Literal["float32", "float16", "int8"] = "float32"
    threads: int = Field(default=1, ge=1, le=64)
    source: SourceSettings = SyntheticSource()
    regions: tuple[Region, ...] = ()
    """none: the part of the picture that the bundle was trained on"""
    rate: Fps = 30.0
    """most pictures to judge in a second"""
    speed: float = Field(default=1.0, gt=0, le=100)
    """how fast time runs for the whole daemon; 1 on a vehicle, more to rehearse"""
    heartbeat_hz: float = Field(default=2.0, ge=1, le=20)
    decision: DecisionSettings = DecisionSettings()
    quality: QualitySettings = QualitySettings()
    outputs: tuple[OutputSettings, ...] = ()
    """none: the standard output, unless that is a terminal"""
    events: EventSettings = EventSettings()
    production: bool = False
    """refuses what only a rehearsal may do, such as injected faults"""
    worker: WorkerLimits = WorkerLimits()

    @field_validator("source", mode="before")
    @classmethod
    def _synthetic_by_default(cls, source: Any) -> Any:
        """A source without a kind keeps the default one, so that `--set source.fps=5` works alone."""
        if isinstance(source, dict) and "kind" not in source:
            return {"kind": "synthetic", **source}
        return source

    @field_validator("regions")
    @classmethod
    def _named_once(cls, regions: tuple[Region, ...]) -> tuple[Region, ...]:
        if len({region.name for region in regions}) != len(regions):
            raise ValueError("two regions have the same name")
        return regions
