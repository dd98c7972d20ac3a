"""The on-vehicle daemon: from a camera to messages that say dry, wet, icy or unknown.

The worker is started first, so that both processes import their libraries at the same time.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from edge_road.arguments import seconds
from edge_road.logs import set_up_logging
from edge_road.runtime.signals import STOP_SIGNALS
from edge_road.runtime.spawning import early_worker


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    set_up_logging()
    return _check(options) if options.check else _run(options)


def _check(options: argparse.Namespace) -> int:
    for number in STOP_SIGNALS:  # a check that was ended has found nothing
        signal.signal(number, signal.SIG_DFL)
    from edge_road.runtime.check import check_vehicle
    from edge_road.runtime.vehicle_options import VehicleOptions

    return check_vehicle(VehicleOptions(options).load())


def _run(options: argparse.Namespace) -> int:
    with early_worker() as early:
        from edge_road.runtime.daemon import run
        from edge_road.runtime.vehicle_options import VehicleOptions

        settings = VehicleOptions(options)
        run(settings.load(), options.duration, settings, options.record, options.vehicle, early)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Watch a road and say dry, wet, icy or unknown, with the evidence for it. "
        "Without options: the newest bundle on a synthetic drive.",
        epilog="Messages are JSON lines on the standard output (not on a terminal) or in a file. "
        "The daemon never stops by itself on a live camera; SIGTERM or Ctrl-C ends it.",
    )
    add = parser.add_argument
    add("--vehicle", type=Path, metavar="FILE", help="vehicle file, e.g. runtime/vehicles/video.toml")
    add("--bundle", type=Path, metavar="DIR", help="the model's bundle (default: the newest)")
    add(
        "--source",
        metavar="SOURCE",
        help="synthetic, a video file, a folder of pictures, "
        "v4l2:/dev/video0, csi:0, rtsp://... or http://... (JPEG)",
    )
    add("--messages", metavar="FILE", help="write messages to this file; - is the standard output")
    add("--truth", metavar="FILE", help="write what a synthetic drive really was, to score the messages")
    add("--record", type=Path, metavar="FILE", help="keep what decided every message, for replay_drive.py")
    add("--duration", type=seconds, metavar="S", help="end after this many seconds")
    add("--check", action="store_true", help="only check vehicle file, bundle, source and outputs")
    add(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change one setting of the vehicle file, e.g. source.loop=true (repeatable)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
