"""Where frames come from: rendered drives, coded patterns, video files, folders of pictures."""

from __future__ import annotations

from edge_road.clock import Clock
from edge_road.runtime.sources.base import EndOfStream, Source
from edge_road.runtime.vehicle import (
    ImageDirectorySource,
    PatternSource,
    SourceSettings,
    SyntheticSource,
    VideoSource,
)

__all__ = ["EndOfStream", "Source", "source_for"]


def source_for(settings: SourceSettings, clock: Clock, origin_ns: int | None = None) -> Source:
    """The source that the settings describe, not yet open; decoders are imported only when needed.

    `origin_ns` is when a drive began, for a worker that takes over from one that died in it.
    """
    if isinstance(settings, SyntheticSource):
        from edge_road.runtime.sources.synthetic import SyntheticDrive

        return SyntheticDrive(settings, clock, origin_ns)
    if isinstance(settings, PatternSource):
        from edge_road.runtime.sources.pattern import PatternCamera

        return PatternCamera(settings, clock, origin_ns)
    if isinstance(settings, VideoSource):
        from edge_road.runtime.sources.video import VideoFile

        return VideoFile(settings, clock)
    assert isinstance(settings, ImageDirectorySource)
    from edge_road.runtime.sources.images import ImageDirectory

    return ImageDirectory(settings, clock)
