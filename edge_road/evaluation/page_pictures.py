"""Pictures inside the page, small and few enough that it stays below 3 MB."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import cv2

from edge_road.evaluation.perturbations import CLEAN, find_perturbation, perturb
from edge_road.evaluation.report import Report
from edge_road.frames import Image, Images

SHOWN_SEVERITY = 3
MOST_EXAMPLES = 60


@dataclass(frozen=True)
class Budget:
    """How many misclassified pictures each entry may show, and how large pictures are."""

    mistakes: int
    side_px: int

    @classmethod
    def for_entries(cls, entries: int) -> Budget:
        return cls(mistakes=max(4, 24 // entries), side_px=240 if entries == 1 else 180)


def examples_of(report: Report, images_NHWC: Images, budget: Budget) -> list[tuple[str, str]]:
    """The first picture under each perturbation, as its first run showed it; of five severities the third."""
    evaluation = report.entries[0].evaluation
    names = [score.name for score in evaluation.perturbed if _is_shown(score.name)][:MOST_EXAMPLES]
    side_px = budget.side_px if len(names) <= 20 else 160
    examples = [(CLEAN, data_uri(images_NHWC[0], side_px))]
    for name in names:
        known = find_perturbation(name)
        assert known is not None
        perturbed_NHWC = perturb(images_NHWC[:1], name, evaluation.seed, run=0)
        examples.append((known.title, data_uri(perturbed_NHWC[0], side_px)))
    return examples


def data_uri(image: Image, side_px: int) -> str:
    scale = min(1.0, side_px / max(image.shape[:2]))
    size = (max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale)))
    small = image if scale == 1.0 else cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    _, content = cv2.imencode(".jpg", small[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 75])
    return "data:image/jpeg;base64," + base64.b64encode(content.tobytes()).decode()


def _is_shown(name: str) -> bool:
    """A report of another version may name what this one does not know."""
    _, _, severity = name.partition(":")
    return find_perturbation(name) is not None and severity in ("", str(SHOWN_SEVERITY))
