"""One picture file: what is wrong with it, and its fingerprints for comparison with the others."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from edge_road.datasets.decode import decode_image
from edge_road.datasets.facts import Facts, read_facts
from edge_road.datasets.headers import LARGEST_PIXELS
from edge_road.errors import DataError
from edge_road.frames import Floats, Image
from edge_road.training.data_check.findings import Finding

SMALLEST_SIDE_PX = 32
LARGE_PIXELS = 16_000_000
THUMB_SIDE = 16
FEATURES = 4 * 4 * 8
_BLANK_STD = 1.5


@dataclass(frozen=True, eq=False)
class Fingerprint:
    sha256: bytes
    phash: int
    """63 bits: which low frequencies of the picture lie above their median"""
    thumb: npt.NDArray[np.uint8]
    features: Floats


def inspect(key: str, content: bytes) -> tuple[Fingerprint | None, list[Finding]]:
    if not content:
        return None, [Finding("empty_file", key, "zero bytes")]
    facts = read_facts(content)
    try:
        image = decode_image(content, key)
    except DataError as error:
        return None, [Finding(_refusal(facts), key, error.details.get("got", error.what))]
    return fingerprint_of(image, content), [*_of_facts(key, facts), *findings_of_pixels(key, image)]


def findings_of_pixels(key: str, image: Image) -> list[Finding]:
    height, width = image.shape[:2]
    findings = []
    if min(height, width) < SMALLEST_SIDE_PX:
        reason = f"{width} x {height} pixels; {SMALLEST_SIDE_PX} or more a side can be used"
        findings.append(Finding("tiny", key, reason))
    if width * height > LARGE_PIXELS:
        findings.append(
            Finding("large", key, f"{width} x {height} pixels; make it smaller once, not in every epoch")
        )
    if float(cv2.meanStdDev(image)[1].max()) < _BLANK_STD:
        findings.append(Finding("blank", key, "all pixels have nearly the same colour"))
    return findings


def fingerprint_of(image: Image, content: bytes) -> Fingerprint:
    small = np.asarray(cv2.resize(image, (64, 64), interpolation=cv2.INTER_AREA), np.uint8)
    grey = np.asarray(cv2.cvtColor(small, cv2.COLOR_RGB2GRAY), np.uint8)
    thumb = cv2.resize(grey, (THUMB_SIDE, THUMB_SIDE), interpolation=cv2.INTER_AREA)
    digest = hashlib.sha256(content).digest()
    return Fingerprint(digest, _phash(grey), np.asarray(thumb, np.uint8), _features(small, grey))


def _of_facts(key: str, facts: Facts) -> list[Finding]:
    findings = []
    if facts.bits > 8:
        findings.append(Finding("deep", key, f"{facts.bits} bits a colour"))
    if facts.orientation != 1:
        findings.append(Finding("turned", key, f"EXIF orientation {facts.orientation}"))
    return findings


def _refusal(facts: Facts) -> str:
    if facts.cmyk:
        return "cmyk"
    return "huge" if facts.width * facts.height > LARGEST_PIXELS else "unreadable"


def _phash(grey: npt.NDArray[np.uint8]) -> int:
    """Low frequencies of the discrete cosine transform, without the mean brightness."""
    small = cv2.resize(grey, (32, 32), interpolation=cv2.INTER_AREA).astype(np.float32)
    low = cv2.dct(small)[:8, :8].reshape(-1)[1:]
    bits = np.concatenate(([False], low > np.median(low)))
    return int.from_bytes(np.packbits(bits).tobytes(), "big")


def _features(small: Image, grey: npt.NDArray[np.uint8]) -> Floats:
    """Colour, its spread and the roughness of each field of a 4 x 4 grid: cheap, and enough to rank by."""
    hsv = cv2.cvtColor(small, cv2.COLOR_RGB2HSV).astype(np.float32) / 255
    rgb = small.astype(np.float32) / 255
    rough = np.abs(cv2.Laplacian(grey, cv2.CV_32F)) / 255
    planes = np.dstack((rgb, hsv[..., 1:], rough))
    fields = planes.reshape(4, 16, 4, 16, 6).swapaxes(1, 2).reshape(16, 256, 6)
    spread = fields[..., (3, 4)].std(axis=1)
    return np.concatenate((fields.mean(axis=1), spread), axis=1).reshape(-1).astype(np.float32)
