"""The paper's suite on a MobileNetV3-small in ONNX Runtime, beside PIL and one picture at a time.

python benchmarks/perturbations.py --images 260

Both ways share pictures, model and processors. The plain way is what an evaluation script does over
a folder: for every run, open each file with PIL, resize, perturb, predict, with all threads. Ours decodes
once, and perturbs and predicts in batches, in one process with one thread for each processor. The weights
are random: they do not change the time.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
from PIL import Image, ImageDraw

from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.conditions import ClassList
from edge_road.evaluation.answers import Source, answers_of_all
from edge_road.evaluation.judge import sum_up
from edge_road.evaluation.perturbations import SUITES, perturb, perturbation
from edge_road.frames import Images
from edge_road.preprocess import Preprocessing
from edge_road.recipe import ModelSettings
from edge_road.synthetic.scenes import render_scene

CLASSES = ("dry", "wet", "icy")
SIDE = 192
PHOTOGRAPH = (480, 640)


def main() -> None:
    chosen = _parser().parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = write_small_model(Path(folder) / "model.onnx")
        paths = write_photographs(Path(folder), chosen.images)
        print(f"{chosen.images} pictures of {SIDE} x {SIDE}, {chosen.runs} runs, {chosen.jobs} processors")
        print(f"{'':<26}{'plain':>11}{'ours':>11}{'faster':>9}")
        plain, ours = _compare(paths, model, chosen.runs, chosen.jobs)
        _print_row("the suite, judged", plain, ours)


def _compare(paths: list[Path], model: Path, runs: int, jobs: int) -> tuple[float, float]:
    images_NHWC = prepare_all(paths)
    labels_N = np.arange(len(paths)) % len(CLASSES)

    def plain() -> None:
        predictor = open_model(model, threads=jobs)
        for name in SUITES["paper"]:
            plain_evaluation(paths, predictor, name, runs if perturbation(name).random else 1)

    def ours() -> None:
        source = Source(partial(open_model, model, threads=1), prepare_all(paths))
        (answers,) = answers_of_all([source], SUITES["paper"], runs, seed=0, jobs=jobs)
        sum_up("small", ClassList(CLASSES), answers, labels_N, runs, seed=0)

    for name in ("gaussian_40", "occlusion", "stripes", "down_up"):
        _print_row(f"{name} alone", *_perturbing(images_NHWC, name))
    return timed(plain), timed(ours)


def _perturbing(images_NHWC: Images, name: str) -> tuple[float, float]:
    pictures = [Image.fromarray(image) for image in images_NHWC]
    rng = np.random.default_rng(0)
    perturb(images_NHWC[:1], name, 0, 0)  # tables are made once
    plain = timed(lambda: [plain_perturbed(picture, name, rng) for picture in pictures])
    return plain, timed(lambda: perturb(images_NHWC, name, 0, 0))


def timed(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def plain_evaluation(paths: list[Path], predictor: OnnxPredictor, name: str, runs: int) -> list[int]:
    said = []
    rng = np.random.default_rng(0)
    for _ in range(runs):
        for path in paths:
            picture = Image.open(path).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
            image = np.asarray(plain_perturbed(picture, name, rng))
            said.append(int(predictor.predict(image[None]).labels_N[0]))
    return said


def plain_perturbed(picture: Image.Image, name: str, rng: np.random.Generator) -> Image.Image:
    for step in name.split("+"):
        picture = _plain_step(picture, step, rng)
    return picture


def _plain_step(picture: Image.Image, step: str, rng: np.random.Generator) -> Image.Image:
    if step.startswith("gaussian"):
        noise = rng.normal(0, float(step.split("_")[1]), (SIDE, SIDE, 3))
        return Image.fromarray(np.clip(np.rint(np.asarray(picture) + noise), 0, 255).astype(np.uint8))
    if step == "down_up":
        small = picture.resize((SIDE // 3, SIDE // 3), Image.Resampling.BOX)
        return small.resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    masked = picture.copy()
    draw = ImageDraw.Draw(masked)
    for _ in range(20 if step == "occlusion" else 10):
        wide, high = (27, 34) if step == "occlusion" else (2, SIDE)
        left, top = int(rng.integers(SIDE - wide + 1)), int(rng.integers(SIDE - high + 1))
        draw.rectangle((left, top, left + wide - 1, top + high - 1), fill=0)
    return masked


def prepare_all(paths: list[Path]) -> Images:
    preprocessing = Preprocessing(height=SIDE, width=SIDE)
    return np.stack([preprocessing.prepare(np.asarray(Image.open(path).convert("RGB"))) for path in paths])


def write_photographs(folder: Path, count: int) -> list[Path]:
    """Eight rendered roads, again and again."""
    paths = [folder / f"{number:04d}.jpg" for number in range(count)]
    roads = [render_scene(CLASSES[n % 3], np.random.default_rng(n), *PHOTOGRAPH) for n in range(8)]
    for number, path in enumerate(paths):
        Image.fromarray(roads[number % 8]).save(path, quality=90)
    return paths


def write_small_model(path: Path) -> Path:
    from edge_road.export.onnx_graph import export_graph
    from edge_road.nn.model import build_model

    model = build_model(ModelSettings(), len(CLASSES))
    path.write_bytes(export_graph(model.eval(), Preprocessing(height=SIDE, width=SIDE), CLASSES))
    return path


def open_model(path: Path, threads: int) -> OnnxPredictor:
    return OnnxPredictor(path.read_bytes(), ClassList(CLASSES), (SIDE, SIDE), name="small", threads=threads)


def _print_row(name: str, plain_s: float, ours_s: float) -> None:
    print(f"{name:<26}{plain_s:>9.2f} s{ours_s:>9.2f} s{plain_s / ours_s:>8.1f}x", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--images", type=int, default=260, metavar="N")
    parser.add_argument("--runs", type=int, default=10, metavar="N")
    processors = len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=int, default=processors, metavar="N", help="processors to use")
    return parser


if __name__ == "__main__":
    main()
