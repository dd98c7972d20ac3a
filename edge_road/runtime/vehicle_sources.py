"""The part of a vehicle file that says where frames come from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Union

from pydantic import Field

from edge_road.config import Seed, StrictModel
from edge_road.runtime.camera_address import DEVICE, HttpAddress, RtspAddress

Fps = Annotated[float, Field(gt=0, le=1000)]
State = Literal["dry", "wet", "icy"]
Width = Annotated[int, Field(ge=32, le=4096, multiple_of=8)]
"""in pixels; rows of raw frames of other widths are padded, by different drivers differently"""
Height = Annotated[int, Field(ge=32, le=4096, multiple_of=4)]


class DriveSegment(StrictModel):
    """A stretch of road in one state."""

    state: State
    """what the road shows"""
    seconds: float = Field(gt=0, le=86_400)
    """how long"""


_SHORT_DRIVE = (
    DriveSegment(state="dry", seconds=25),
    DriveSegment(state="wet", seconds=20),
    DriveSegment(state="icy", seconds=20),
    DriveSegment(state="dry", seconds=15),
)


class SyntheticSource(StrictModel):
    """A rendered drive whose state changes at known times."""

    kind: Literal["synthetic"] = "synthetic"
    seed: Seed = 7
    """of the scenery"""
    segments: tuple[DriveSegment, ...] = Field(default=_SHORT_DRIVE, min_length=1)
    random_s: float | None = Field(default=None, gt=0, le=86_400)
    """instead of the segments, states at random for this long"""
    fps: Fps = 10.0
    """pictures in a second"""
    height: int = Field(default=192, ge=32, le=1080)
    """in pixels"""
    width: int = Field(default=256, ge=32, le=1920)
    """in pixels"""
    loop: bool = False
    """begin again at the end"""
    truth: Path | None = None
    """a JSON file that says when which state began, to score the messages against"""


FaultKind = Literal[
    "black", "white", "noise", "blur", "dirt", "freeze", "silence", "hang", "error", "resize", "nan",
    "repeat_time", "back_in_time", "decode",
]  # fmt: skip


class PatternFault(StrictModel):
    """Something that goes wrong with a pattern camera `at` seconds after its start."""

    kind: FaultKind
    """what goes wrong"""
    at: float = Field(ge=0)
    """seconds after the start"""
    seconds: float = Field(default=1.0, gt=0)
    """how long"""


class PatternSource(StrictModel):
    """Plain coded pictures that the fake backend understands, with scripted faults: a rehearsal."""

    kind: Literal["pattern"]
    segments: tuple[DriveSegment, ...] = Field(default=(DriveSegment(state="dry", seconds=60),), min_length=1)
    fps: Fps = 20.0
    """pictures in a second"""
    height: int = Field(default=96, ge=32, le=2160)
    """in pixels"""
    width: int = Field(default=128, ge=32, le=3840)
    """in pixels"""
    faults: tuple[PatternFault, ...] = ()
    loop: bool = False
    """begin again at the end"""
    truth: Path | None = None
    """a JSON file that says when which state began, to score the messages against"""


class VideoSource(StrictModel):
    """A video file, played at its own pace."""

    kind: Literal["video"]
    path: Path
    """the file"""
    loop: bool = False
    """begin again at the end"""


class ImageDirectorySource(StrictModel):
    """The pictures of one folder in the order of their names, or those that are put into it."""

    kind: Literal["images"]
    path: Path
    """the folder"""
    fps: Fps = 5.0
    """pictures in a second"""
    loop: bool = False
    """begin again at the end"""
    watch: bool = False
    """wait for new pictures, and judge each when it is complete; `fps` is then their expected rate"""


class V4l2Source(StrictModel):
    """A camera of the Linux kernel: USB, or any other that has a /dev/video."""

    kind: Literal["v4l2"]
    device: str = Field(default="/dev/video0", pattern=DEVICE)
    """its file, or a link below /dev/v4l, which stays the same when cameras are plugged in anew"""
    width: Width = 1280
    """wanted, in pixels"""
    height: Height = 720
    """wanted, in pixels"""
    fps: Fps = 30.0
    """wanted rate; the camera's own answer counts"""
    pixels: Literal["auto", "mjpeg", "yuyv"] = "auto"
    """how the camera sends its pictures; auto: mjpeg where it can, which USB needs above 640x480"""


class CsiSource(StrictModel):
    """A camera on a Jetson's ribbon cable, through GStreamer in a process of its own."""

    kind: Literal["csi"]
    sensor: int = Field(default=0, ge=0, le=15)
    """number of the camera (sensor-id)"""
    sensor_width: Width = 1920
    """the mode that the sensor runs in; the picture is scaled by hardware"""
    sensor_height: Height = 1080
    """likewise"""
    width: Width = 960
    """in pixels, as it is judged"""
    height: Height = 540
    """in pixels, as it is judged"""
    fps: Fps = 30.0
    """of the sensor's mode"""
    flip: int = Field(default=0, ge=0, le=7)
    """of nvvidconv: 2 turns the picture by 180 degrees"""
    pipeline: Literal["argus", "test"] = "argus"
    """test: GStreamer's moving test picture instead of a camera, to rehearse without a Jetson"""


class RtspSource(StrictModel):
    """A network camera."""

    kind: Literal["rtsp"]
    url: RtspAddress
    """rtsp://[user:password@]host[:port]/path"""
    transport: Literal["tcp", "udp"] = "tcp"
    """tcp loses nothing; udp is what some cameras and networks ask for"""
    fps: Fps = 25.0
    """expected rate, until the camera has told its own"""
    open_s: float = Field(default=5.0, gt=0.2, le=30)
    """longest wait for the camera to answer"""
    silent_s: float = Field(default=1.0, gt=0.1, le=10)
    """a camera that sends nothing for this long is opened again"""


class MjpegSource(StrictModel):
    """A camera that sends JPEG pictures over HTTP (multipart/x-mixed-replace)."""

    kind: Literal["mjpeg"]
    url: HttpAddress
    """http:// or https://, with user and password if the camera asks for them"""
    fps: Fps = 15.0
    """expected rate"""
    open_s: float = Field(default=5.0, gt=0.2, le=30)
    """longest wait for the camera to answer"""
    silent_s: float = Field(default=1.0, gt=0.1, le=10)
    """a camera that sends nothing for this long is opened again"""


SourceSettings = Annotated[
    Union[
        SyntheticSource,
        PatternSource,
        VideoSource,
        ImageDirectorySource,
        V4l2Source,
        CsiSource,
        RtspSource,
        MjpegSource,
    ],
    Field(discriminator="kind"),
]
