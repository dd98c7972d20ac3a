"""Changes the crop of one region in a vehicle file: everything else, comments too, stays as it is."""

from __future__ import annotations

import difflib
import json
import re
from itertools import pairwise
from pathlib import Path

from pydantic import Field

from edge_road.config import StrictModel, check_settings, parse_toml, read_settings_text
from edge_road.errors import ConfigError
from edge_road.files import write_atomically
from edge_road.preprocess import Crop
from edge_road.runtime.vehicle import Vehicle

SMALLEST_SHARE = 0.05  # of the picture's width or height: less shows no road
HEADER = re.compile(r"^\s*\[", re.MULTILINE)
CROP_LINE = re.compile(r"^crop\s*=.*$", re.MULTILINE)


class CropChange(StrictModel):
    region: str = Field(default="road", pattern=r"^[a-z0-9_-]{1,32}$")
    crop: Crop


def parse_change(content: bytes) -> CropChange:
    try:
        values = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ConfigError("the change is not JSON", got=error) from None
    return check_settings(CropChange, values, where="the change")


def preview(path: Path, change: CropChange) -> str:
    """The lines that would change."""
    old = read_settings_text(Vehicle, path)
    lines = difflib.unified_diff(
        old.splitlines(), changed_text(old, change, path).splitlines(), path.name, path.name, lineterm="", n=1
    )
    return "\n".join(lines)


def apply(path: Path, change: CropChange) -> Path:
    """Write the change; returns the back-up of what was there."""
    old = read_settings_text(Vehicle, path)
    new = changed_text(old, change, path)
    backup = path.with_name(path.name + ".bak")
    write_atomically(backup, old.encode())
    write_atomically(path, new.encode())
    return backup


def changed_text(text: str, change: CropChange, where: Path) -> str:
    """Checked as the daemon will check it, so that a bad change never reaches the file."""
    _refuse_slivers(change.crop)
    values = parse_toml(text, where)
    regions = [dict(region) for region in values.get("regions", [])]
    crop = {name: round(share, 3) for name, share in change.crop.model_dump().items()}
    known = next((region for region in regions if region.get("name") == change.region), None)
    if known is None:
        regions.append({"name": change.region, "crop": crop})
        new = f'{text.rstrip()}\n\n[[regions]]\nname = "{change.region}"\n{_line(crop)}\n'.lstrip()
    else:
        known["crop"] = crop
        new = "".join(_with_crop(block, change.region, crop, where) for block in _blocks(text))
    result = parse_toml(new, where)
    if result != {**values, "regions": regions}:
        raise ConfigError(
            "the crop of this region is not written on one line",
            where=where,
            got=change.region,
            expected=_line(crop),
        )
    check_settings(Vehicle, result, where=where, text=new)
    return new


def _refuse_slivers(crop: Crop) -> None:
    width, height = crop.right - crop.left, crop.bottom - crop.top
    if min(width, height) < SMALLEST_SHARE:
        raise ConfigError(
            "the crop is too small to show a road",
            got=f"{width:.1%} by {height:.1%} of the picture",
            expected=f"{SMALLEST_SHARE:.0%} or more of each side",
        )


def _blocks(text: str) -> list[str]:
    """The text, cut before every table header."""
    starts = [0, *(match.start() for match in HEADER.finditer(text)), len(text)]
    return [text[begin:end] for begin, end in pairwise(starts)]


def _with_crop(block: str, region: str, crop: dict[str, float], where: Path) -> str:
    if not block.lstrip().startswith("[[regions]]"):
        return block
    is_it = parse_toml(block, where)["regions"][0].get("name") == region
    return CROP_LINE.sub(_line(crop), block) if is_it else block


def _line(crop: dict[str, float]) -> str:
    return "crop = { " + ", ".join(f"{name} = {share:.3f}" for name, share in crop.items()) + " }"
