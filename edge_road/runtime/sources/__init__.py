"""Where frames come from: cameras, streams, video files, folders of pictures, rendered drives."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from edge_road.clock import Clock
from edge_road.runtime.sources.base import EndOfStream, Source
from edge_road.runtime.vehicle_sources import ImageDirectorySource, SourceSettings

__all__ = ["EndOfStream", "Source", "source_for"]

_CLASSES = {
    "synthetic": ("synthetic", "SyntheticDrive"),
    "pattern": ("pattern", "PatternCamera"),
    "video": ("video", "VideoFile"),
    "images": ("images", "ImageDirectory"),
    "v4l2": ("v4l2", "V4l2Camera"),
    "csi": ("gstreamer", "CsiCamera"),
    "rtsp": ("rtsp", "RtspCamera"),
    "mjpeg": ("mjpeg", "MjpegCamera"),
}
_WITH_ORIGIN = ("synthetic", "pattern")


def source_for(settings: SourceSettings, clock: Clock, origin_ns: int | None = None) -> Source:
    """The source that the settings describe, not yet open; decoders are imported only when needed.

    `origin_ns` is when a drive began, for a worker that takes over from one that died in it.
    """
    module, name = _CLASSES[settings.kind]
    if isinstance(settings, ImageDirectorySource) and settings.watch:
        module, name = "watched", "WatchedDirectory"
    make: Any = getattr(import_module(f"{__name__}.{module}"), name)
    source: Source = make(settings, clock, *([origin_ns] if settings.kind in _WITH_ORIGIN else []))
    return source
