"""A small generated data set in the folders and file names of RSCD, to try that route without it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

import cv2
import numpy as np

from edge_road.conditions import RSCD_LABELS, RscdLabel
from edge_road.errors import DataError
from edge_road.files import new_folder, write_folder_atomically
from edge_road.frames import Image
from edge_road.synthetic.patches import render_patch

_FIRST_DAY = datetime(2022, 1, 25)
_DAYS = 60
_JPEG_QUALITY = [cv2.IMWRITE_JPEG_QUALITY, 92]


def rscd_file_name(label: RscdLabel, rng: np.random.Generator) -> str:
    """A time within two months, a serial of one to four digits, and the label."""
    taken = _FIRST_DAY + timedelta(days=int(rng.integers(_DAYS)), seconds=int(rng.integers(86_400)))
    serial = int(rng.integers(10 ** int(rng.integers(1, 5))))
    return f"{taken:%Y%m%d%H%M%S}{serial}-{label.name}.jpg"


def write_rscd_tree(
    path: Path,
    per_class: int,
    rng: np.random.Generator,
    validation_per_class: int = 1,
    test_per_class: int = 1,
    height: int = 360,
    width: int = 240,
) -> None:
    """`train/<class>/`, `vali_20k/` and `test_50k/` below a new folder, whole or not at all."""
    if path.exists():
        raise DataError(
            "will not write over what is there", where=path, fix="name a folder that does not exist"
        )
    if min(per_class, validation_per_class, test_per_class) < 1:
        raise DataError("every class needs at least one patch in every split", where=path)
    with new_folder(path) as folder:
        for label in RSCD_LABELS:
            of_class = folder / "train" / label.name.replace("-", "_")
            write_folder_atomically(of_class, _patches([label] * per_class, rng, height, width))
        for name, count in (("vali_20k", validation_per_class), ("test_50k", test_per_class)):
            write_folder_atomically(folder / name, _patches(list(RSCD_LABELS) * count, rng, height, width))


def _patches(
    labels: Iterable[RscdLabel], rng: np.random.Generator, height: int, width: int
) -> dict[str, bytes]:
    """File names and JPEG files; a name that is already taken is drawn again."""
    files: dict[str, bytes] = {}
    for label in labels:
        while (name := rscd_file_name(label, rng)) in files:
            continue
        files[name] = _jpeg(render_patch(label, rng, height, width))
    return files


def _jpeg(image: Image) -> bytes:
    encoded, content = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), _JPEG_QUALITY)
    assert encoded, "JPEG encoding of an RGB picture cannot fail"
    return content.tobytes()
