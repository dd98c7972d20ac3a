"""The folder in which blocks of the docs run: every file that they name is there."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = ("training", "export", "runtime", "docs", "deploy", "benchmarks", "edge_road")
PICTURES = 12


def write_template(folder: Path) -> None:
    """Everything that is the same for every page; run as a command, where torch is imported already."""
    sys.path[0:0] = [str(ROOT / "tests")]
    import numpy as np
    from tiny_bundle import write_tiny_bundle
    from tiny_run import write_tiny_run

    from edge_road.evaluation.smoke import SMOKE_TESTS
    from edge_road.synthetic.rscd_tree import write_rscd_tree

    draw_photos(folder / "PHOTOS")
    write_rscd_tree(folder / "RSCD", 2, np.random.default_rng(0), height=90, width=60)
    write_tiny_run(folder / "runs" / "road-0001", folder / "PHOTOS")
    limits = dict.fromkeys(SMOKE_TESTS, 0.0)
    write_tiny_bundle(folder / "bundles" / "road-0001", int8_step=2.0, smoke_limits=limits)
    write_video(folder / "drive.mp4", sorted((folder / "PHOTOS").rglob("*.jpg")))


def write_workspace(template: Path, folder: Path) -> Path:
    shutil.copytree(template, folder)
    names = {
        "photos": "PHOTOS",
        "RUN": "runs/road-0001",
        "OTHER": "runs/road-0001",
        "BUNDLE": "bundles/road-0001",
    }
    for name, target in {**names, **{name: ROOT / name for name in OURS}}.items():
        (folder / name).symlink_to(target)
    return folder


def draw_photos(folder: Path) -> None:
    import cv2
    import numpy as np

    from edge_road.synthetic.scenes import render_scene

    generator = np.random.default_rng(0)
    for state in ("dry", "wet", "icy"):
        (folder / state).mkdir(parents=True)
        for number in range(PICTURES):
            picture = render_scene(state, generator, 96, 128)
            cv2.imwrite(str(folder / state / f"{number:02d}.jpg"), picture[..., ::-1])


def write_video(path: Path, pictures: list[Path]) -> None:
    import cv2

    video = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"mp4v"), 10, (128, 96))
    for picture in pictures:
        video.write(cv2.imread(str(picture)))
    video.release()


if __name__ == "__main__":
    write_template(Path(sys.argv[1]))
