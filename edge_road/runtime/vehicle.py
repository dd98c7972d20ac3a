"""A vehicle file: which camera, which bundle, which parts of the picture, when to speak."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from edge_road.config import StrictModel
from edge_road.preprocess import Crop
from edge_road.runtime.decision import DecisionSettings
from edge_road.runtime.frame_picking import KeepSettings
from edge_road.runtime.gpsd import GpsdSettings
from edge_road.runtime.quality import QualitySettings
from edge_road.runtime.swap_rules import SwapSettings
from edge_road.runtime.thermal import ThermalSettings
from edge_road.runtime.vehicle_outputs import EventSettings, OutputSettings
from edge_road.runtime.vehicle_sources import Fps, SourceSettings, SyntheticSource
from edge_road.trust import Trust

Backend = Literal["auto", "onnx", "onnx_cuda", "onnx_tensorrt", "tensorrt", "fake"]


class Region(StrictModel):
    """A part of the picture that is judged by itself, e.g. one wheel track."""

    name: str = Field(pattern=r"^[a-z0-9_-]{1,32}$")
    """as messages call it"""
    crop: Crop


class WorkerLimits(StrictModel):
    """What the process that decodes and infers may take; beyond it, it is ended and started again."""

    memory_mb: int = Field(default=4096, ge=0)
    """of address space; 0: no limit, as a GPU needs it"""
    stall_s: float = Field(default=2.0, gt=0.2, le=60)
    """of the machine's time without a sign of life, or within one call to the camera"""
    ready_s: float = Field(default=30.0, ge=1, le=600)
    """to load the model and open the camera"""
    open_s: float = Field(default=10.0, gt=0.2, le=60)
    """to open a camera that was lost"""
    longest_pause_s: float = Field(default=5.0, gt=0, le=30)
    """between two attempts to start it, or to open the camera again"""


class Vehicle(StrictModel):
    vehicle: str = Field(default="demo", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
    """its name in messages, topics and files"""
    backend: Backend = "onnx"
    """auto: the fastest that bundle and machine offer, measured at the start; INT8 must save a tenth"""
    bundle: Path | None = None
    """a bundle's folder; none: the newest one"""
    trust: Trust = Trust()
    """whose bundles run here; nobody's until it is said"""
    precision: Literal["float32", "float16", "int8"] = "float32"
    """which of the bundle's models runs; auto and fake choose themselves"""
    threads: int = Field(default=1, ge=1, le=64)
    """of ONNX Runtime on the CPU"""
    source: SourceSettings = SyntheticSource()
    regions: tuple[Region, ...] = ()
    """none: the part of the picture that the bundle was trained on"""
    rate: Fps = 30.0
    """most pictures to judge in a second"""
    speed: float = Field(default=1.0, gt=0, le=100)
    """how fast time runs for the whole daemon; 1 on a vehicle, more to rehearse"""
    heartbeat_hz: float = Field(default=2.0, ge=1, le=20)
    """least messages in a second, also without frames; a message is valid for two periods"""
    decision: DecisionSettings = DecisionSettings()
    quality: QualitySettings = QualitySettings()
    outputs: tuple[OutputSettings, ...] = ()
    """none: the standard output, unless that is a terminal"""
    events: EventSettings = EventSettings()
    gpsd: GpsdSettings | None = None
    """where position and speed come from; none: only from MQTT or the unix socket, if at all"""
    production: bool = False
    """refuses what only a rehearsal may do, such as injected faults"""
    smoke_at_start: bool = False
    """run the bundle's self-test beside the start; its verdict is an event and stands in /health"""
    worker: WorkerLimits = WorkerLimits()
    thermal: ThermalSettings = ThermalSettings()
    swap: SwapSettings = SwapSettings()
    keep: KeepSettings = KeepSettings()

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
