"""`edge-road swap`: ask the running daemon to take a new bundle, and wait for its verdict."""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from edge_road.bundle import load_bundle
from edge_road.clock import Clock, SystemClock
from edge_road.errors import ConfigError, GateRefused
from edge_road.runtime.bundle_choice import Outcome, choice_path, read_choice, write_wish
from edge_road.runtime.lock import owner_of
from edge_road.runtime.vehicle_options import load_vehicle

LOOK_S = 0.2


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    vehicle = load_vehicle(options.vehicle)
    bundle = load_bundle(options.bundle, vehicle.trust)
    print(f"bundle {bundle.digest[:16]}, {bundle.trust_text}")
    daemon = owner_of(vehicle.vehicle)
    if daemon is not None and (under_way := read_choice(vehicle.vehicle).wish) is not None:
        raise GateRefused(
            "another bundle is on trial", where=under_way, fix="wait for its end, and try again"
        )
    _wish(vehicle.vehicle, options.bundle)
    if daemon is None:
        print(f"no daemon runs for the vehicle '{vehicle.vehicle}'; its next start will try the bundle")
        return 0
    os.kill(daemon, signal.SIGUSR1)
    outcome = wait_for_outcome(vehicle.vehicle, options.wait, SystemClock())
    if outcome.stage != "kept":
        raise GateRefused(
            "the daemon keeps the bundle that it ran before",
            where=options.bundle,
            got=f"{outcome.stage}: {outcome.reason}",
            fix="the log of the daemon and its `model` events tell each step",
        )
    if outcome.digest != bundle.digest:
        raise GateRefused(
            "the daemon goes on with what this folder held before",
            where=options.bundle,
            got=outcome.digest[:16],
            expected=bundle.digest[:16],
            fix="give a new bundle a folder of its own: then the old one can come back",
        )
    print("the daemon runs it from now on, also after a restart")
    return 0


def wait_for_outcome(vehicle: str, longest_s: float, clock: Clock) -> Outcome:
    end_ns = clock.mono_ns() + round(longest_s * 1e9)
    while (outcome := read_choice(vehicle).outcome) is None:
        if clock.mono_ns() >= end_ns:
            goes_on = "it goes on; its events will tell. --wait S waits longer"
            ended = "it runs no more; its next start will try the bundle"
            raise GateRefused(
                "the daemon has not decided yet",
                where=choice_path(vehicle),
                got=f"nothing in {longest_s:g} s",
                fix=ended if owner_of(vehicle) is None else goes_on,
            )
        clock.sleep(LOOK_S)
    return outcome


def _wish(vehicle: str, bundle: Path) -> None:
    try:
        write_wish(vehicle, bundle)
    except OSError as error:
        raise ConfigError(
            "the wish cannot be written",
            where=choice_path(vehicle),
            got=error.strerror,
            fix="run this as the daemon's user, with its STATE_DIRECTORY and RUNTIME_DIRECTORY",
        ) from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="edge-road swap",
        description="Give the running daemon a new bundle: it is verified, self-tested, tried on live frames "
        "beside the old one, then on probation. Exit code 6 when the old one stays.",
    )
    parser.add_argument("bundle", type=Path, metavar="BUNDLE")
    parser.add_argument("--vehicle", type=Path, metavar="FILE", help="the daemon's vehicle file")
    parser.add_argument(
        "--wait", type=float, default=300.0, metavar="S", help="for the verdict (default: %(default)g)"
    )
    return parser
