"""Draws docs/pictures/perturbations.jpg: every perturbation at every severity, on one rendered road."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from edge_road.evaluation.perturbations import FAMILIES, PERTURBATIONS, perturb, perturbation
from edge_road.frames import Image
from edge_road.synthetic.scenes import render_scene
from edge_road.synthetic.sheet import contact_sheet

HERE = Path(__file__).resolve().parent
COLUMNS = 5
MODEL_SIZE, TILE_WIDTH_PX = (192, 256), 172
SCENE_SEED, SEED = 16, 1


def tile(scene: Image, name: str) -> Image:
    """Perturbed at the size of a model, then made smaller."""
    perturbed = perturb(scene[None], name, SEED, run=0)[0]
    height = round(TILE_WIDTH_PX * scene.shape[0] / scene.shape[1])
    return np.asarray(cv2.resize(perturbed, (TILE_WIDTH_PX, height), interpolation=cv2.INTER_AREA))


def main() -> None:
    height, width = MODEL_SIZE
    scene = render_scene("dry", np.random.default_rng(SCENE_SEED), height, width)
    rows = ["gaussian:0", *PERTURBATIONS]
    names = [*rows, *(name for family in FAMILIES.values() for name in family.names)]
    captions = ["clean", *(perturbation(name).title for name in names[1:])]
    sheet = contact_sheet([tile(scene, name) for name in names], COLUMNS, captions)
    path = HERE / "perturbations.jpg"
    _, content = cv2.imencode(".jpg", sheet[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 33])
    path.write_bytes(content.tobytes())
    print(path, sheet.shape, f"{path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
