"""Which bundle a vehicle runs instead of the one its file names: wished for, accepted or refused."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from edge_road.config import StrictModel
from edge_road.files import write_atomically
from edge_road.runtime.events.journal import state_folder

log = logging.getLogger(__name__)

LARGEST_BYTES = 64 * 1024


class Outcome(StrictModel):
    """How the last wish ended."""

    bundle: str
    running: str
    """the one that runs on"""
    digest: str = ""
    """of the model that runs on"""
    stage: Literal["kept", "refused", "rolled_back"]
    reason: str = ""
    figures: dict[str, float] = Field(default_factory=dict)


class BundleChoice(StrictModel):
    instead_of: Path | None = None
    """what the vehicle file asked for; when it asks for another one, this choice is void"""
    running: Path | None = None
    """the bundle that was accepted last"""
    refused: Path | None = None
    """what the vehicle file asked for, and what must not run"""
    wish: Path | None = None
    """the bundle that is to be tried"""
    outcome: Outcome | None = None


def choice_path(vehicle: str) -> Path:
    return state_folder() / f"bundle-{vehicle}.json"


def read_choice(vehicle: str) -> BundleChoice:
    """An unreadable file is no choice: the vehicle file holds."""
    try:
        with open(choice_path(vehicle), "rb") as file:
            return BundleChoice.model_validate_json(file.read(LARGEST_BYTES))
    except FileNotFoundError:
        return BundleChoice()
    except (OSError, ValidationError) as error:
        log.warning("the choice of a bundle cannot be read: %s", error)
        return BundleChoice()


def write_choice(vehicle: str, choice: BundleChoice) -> None:
    write_atomically(choice_path(vehicle), choice.model_dump_json(indent=2).encode() + b"\n")


def write_wish(vehicle: str, bundle: Path) -> None:
    choice = read_choice(vehicle)
    write_choice(vehicle, choice.model_copy(update={"wish": bundle.absolute(), "outcome": None}))


def accepted_bundle(vehicle: str, named: Path | None) -> Path | None:
    """What runs at the start, if it is not what the vehicle file names."""
    choice = read_choice(vehicle)
    if choice.running is None or choice.instead_of != named:
        return None
    if not (choice.running / "manifest.json").is_file():
        log.warning(
            "the accepted bundle %s is gone; the one that the vehicle file names runs", choice.running
        )
        return None
    if choice.running != named:
        log.warning("the bundle %s was accepted last, and runs instead of %s", choice.running, named)
    return choice.running


def settle(vehicle: str, named: Path | None, outcome: Outcome) -> None:
    """The wish is over; a disk that cannot keep it is told of, and the next start tries again."""
    choice = read_choice(vehicle).model_copy(update={"wish": None, "outcome": outcome})
    was_named = named is not None and outcome.bundle == str(named)
    if was_named:
        choice = choice.model_copy(update={"refused": None if outcome.stage == "kept" else named})
    if outcome.stage == "kept" or was_named:  # the next start must not run what was refused
        choice = choice.model_copy(update={"instead_of": named, "running": Path(outcome.running)})
    try:
        write_choice(vehicle, choice)
    except OSError as error:
        log.error("the choice of a bundle cannot be kept: %s", error)
