"""The folder in which blocks of the docs run: every file that they name is there."""

from __future__ import annotations

import json
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
    from tiny_run import write_tiny_run

    from edge_road.synthetic.rscd_tree import write_rscd_tree

    draw_photos(folder / "PHOTOS")
    write_rscd_tree(folder / "RSCD", 2, np.random.default_rng(0), height=90, width=60)
    write_tiny_run(folder / "runs" / "road-0001", folder / "PHOTOS")
    write_judged_bundle(folder / "bundles" / "road-0001", folder / "runs" / "road-0001")
    write_video(folder / "drive.mp4", sorted((folder / "PHOTOS").rglob("*.jpg")))


def write_judged_bundle(path: Path, run: Path) -> None:
    """A small bundle with what an export of the run would add: expected outputs and a report."""
    from tiny_bundle import grey_pictures, write_tiny_bundle

    from edge_road.backends.onnxrt import OnnxPredictor
    from edge_road.bundle import Probe, load_bundle, record_files, write_bundle
    from edge_road.evaluation.judge import judge
    from edge_road.run_record import load_recipe, load_record

    recipe, data_digest = load_recipe(run), load_record(run).data_digest
    bundle = load_bundle(write_tiny_bundle(path, recipe, data_digest=data_digest, int8_step=2.0))
    images_NHWC, labels_N = grey_pictures(12)
    predictors = {name: OnnxPredictor.from_bundle(bundle, name, 1) for name in bundle.manifest.artefacts}
    logits = {name: one.predict(images_NHWC).logits_NC for name, one in predictors.items()}
    judged = {name: judge(one, images_NHWC, labels_N, ("dark",)) for name, one in predictors.items()}
    figures = {name: one.model_dump(mode="json") for name, one in judged.items()}
    artefacts = {name: {"verdict": {}, "clean": one, "robust": one} for name, one in figures.items()}
    report = {"schema_name": "edge_road.export_report/1", "artefacts": artefacts}
    contents = {
        **bundle.contents,
        "probe.npz": Probe(images_NHWC, labels_N, logits).to_bytes(),
        "report.json": json.dumps(report).encode(),
    }
    write_bundle(path, bundle.manifest.model_copy(update={"files": record_files(contents)}), contents)


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
