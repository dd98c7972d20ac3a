"""What a training step costs: methods, loss terms, trainer and image pipeline, side by side in one run.

python benchmarks/training_step.py --rounds 15

Rivals take turns within each round, and a ratio is the median of the ratios of all rounds, with the
smallest and the largest beside it: what slows the machine down slows both. Rendered roads, random
weights (they do not change the time).

Limits: discriminative <= 2.1 softmax; loss terms <= 3 % of the step; loop over classes >= 5 times the
loss terms at 27 classes; our softmax epoch <= 1.05 of a bare torch loop; timm's pipeline >= 1.0 ours.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import cv2
import numpy as np
import torch
from PIL import Image
from timm.data.loader import fast_collate
from timm.data.transforms import ToNumpy
from torch import Tensor
from torch.nn.functional import cross_entropy
from torchvision import transforms

from edge_road.frames import Images
from edge_road.nn import losses
from edge_road.nn.centroids import batch_centroids
from edge_road.nn.model import RoadModel, build_model
from edge_road.recipe import AugmentSettings, ModelSettings, Recipe
from edge_road.synthetic.scenes import render_scene
from edge_road.training.augment import Augmentation
from edge_road.training.batches import Batches
from edge_road.training.checkpoint import Identity
from edge_road.training.lesson import Teacher
from edge_road.training.methods import build_method
from edge_road.training.optim import build_optimizer
from edge_road.training.pictures import PicturesInMemory
from edge_road.training.progress import Silence
from edge_road.training.ranks import ALONE
from edge_road.training.trainer import Trainer

FEATURES = 128
Work = Callable[[], object]
clock = perf_counter


def main() -> None:
    chosen = _parser().parse_args()
    global clock
    clock = process_time if chosen.cpu_time else perf_counter
    torch.set_num_threads(chosen.threads)
    cv2.setNumThreads(1)
    images_NHWC = roads(chosen.size)
    print(f"{chosen.size} x {chosen.size}, batches of {chosen.batch}, {chosen.threads} threads")
    compare_methods(images_NHWC, chosen)
    compare_losses(images_NHWC, chosen)
    compare_loops(images_NHWC, chosen)
    compare_pipelines(images_NHWC, chosen)


def compare_methods(images_NHWC: Images, chosen: argparse.Namespace) -> None:
    softmax = step_of({"name": "softmax"}, images_NHWC, chosen)
    for passes in ("two", "joint"):
        ours = step_of({"name": "discriminative", "passes": passes}, images_NHWC, chosen)
        name = f"discriminative ({passes}) / softmax step"
        report(name, ratios(ours, softmax, chosen.rounds), limit="<= 2.10")


def compare_losses(images_NHWC: Images, chosen: argparse.Namespace) -> None:
    step = step_of({"name": "discriminative"}, images_NHWC, chosen)
    for classes, limit in ((3, "<= 0.03"), (27, "<= 0.03")):
        terms = loss_of(classes, chosen.batch, all_at_once)
        report(f"loss terms / step, {classes} classes", ratios(terms, step, chosen.rounds, 20), limit)
    loop = loss_of(27, chosen.batch, class_by_class)
    report("loop over 27 classes / loss terms", ratios(loop, terms, chosen.rounds, 20, 20), limit=">= 5")


def compare_loops(images_NHWC: Images, chosen: argparse.Namespace) -> None:
    """One epoch of our trainer, and of the shortest loop that does the same with the same batches."""
    with tempfile.TemporaryDirectory() as folder:
        trainer = softmax_trainer(images_NHWC, Path(folder), chosen)
        model, optimizer = bare_model(trainer.recipe)

        def bare() -> None:
            model.train()
            for images_BCHW, labels_B in trainer.train.shuffled(0, trainer.augmentation):
                optimizer.zero_grad(set_to_none=True)
                cross_entropy(model(images_BCHW).logits_BC, labels_B).backward()
                optimizer.step()

        measured = ratios(lambda: trainer._train_epoch(0), bare, chosen.rounds)
        report("our softmax epoch / bare torch loop", measured, limit="<= 1.05")


def compare_pipelines(images_NHWC: Images, chosen: argparse.Namespace) -> None:
    """Decoded pictures to augmented float batches; both in the calling thread."""
    batches = Batches(PicturesInMemory(images_NHWC, labels(images_NHWC)), chosen.batch)
    augmentation = Augmentation(AugmentSettings(), 0)
    pictures = [Image.fromarray(image) for image in images_NHWC]
    theirs = transforms.Compose(
        [
            transforms.ColorJitter(0.3, 0.3, 0.3),
            transforms.RandomRotation(10),
            transforms.RandomPerspective(0.5, p=0.5),
            transforms.RandomHorizontalFlip(),
            ToNumpy(),
        ]
    )

    def timm_way() -> None:
        for start in range(0, len(pictures), chosen.batch):
            group = pictures[start : start + chosen.batch]
            pixels_BCHW, _ = fast_collate([(theirs(picture), 0) for picture in group])
            pixels_BCHW.float().div_(255)

    measured = ratios(timm_way, lambda: list(batches.shuffled(0, augmentation)), chosen.rounds)
    report("timm's pipeline / ours", measured, limit=">= 1.00")


def step_of(method: dict[str, str], images_NHWC: Images, chosen: argparse.Namespace) -> Work:
    recipe = Recipe.model_validate({"name": "bench", "method": method})
    model = build_model(recipe.model, 3).to(memory_format=torch.channels_last)
    teacher = Teacher(recipe, model, build_method(recipe.method, 3, FEATURES), ALONE)
    batches = Batches(PicturesInMemory(images_NHWC, labels(images_NHWC)), chosen.batch)
    batch = next(batches.shuffled(0))
    generator = torch.Generator().manual_seed(0)
    return lambda: teacher.update(teacher.loss(*batch, generator))


def loss_of(classes: int, batch: int, terms: Callable[..., Tensor]) -> Work:
    """The loss of given features, forward and backward."""
    generator = torch.Generator().manual_seed(0)
    labels_B = torch.randint(0, classes, (batch,), generator=generator)
    q_BD, noisy_BD = (torch.randn(batch, FEATURES, generator=generator, requires_grad=True) for _ in range(2))
    W = torch.randn(classes, FEATURES, generator=generator, requires_grad=True)
    b = torch.zeros(classes, requires_grad=True)
    return lambda: torch.autograd.backward(terms(q_BD, noisy_BD, labels_B, W, b))


def all_at_once(q_BD: Tensor, noisy_BD: Tensor, labels_B: Tensor, W: Tensor, b: Tensor) -> Tensor:
    centroids_CD, _ = batch_centroids(q_BD, labels_B, len(W))
    return (
        losses.compactness(q_BD, labels_B, centroids_CD, 0.5)
        + losses.margin(centroids_CD, labels_B, W, b, 3.0)
        + losses.norm_penalty(centroids_CD, labels_B)
        + losses.alignment(noisy_BD, labels_B, centroids_CD, 0.5)
    )


def class_by_class(q_BD: Tensor, noisy_BD: Tensor, labels_B: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """The same sums as published code writes them: a loop over classes, and over rivals."""
    totals = []
    for label in labels_B.unique().tolist():
        own = labels_B == label
        centroid_D = q_BD[own].mean(dim=0)
        far = ((centroid_D - q_BD[own]).norm(dim=1) - 0.5).clamp(min=0).square().mean()
        noisy = ((centroid_D - noisy_BD[own]).norm(dim=1) - 0.5).clamp(min=0).square().mean()
        logits_C = W @ centroid_D + b
        lacks = [
            (3.0 + (logits_C[rival] - logits_C[label]) / (W[label] - W[rival]).norm()).clamp(min=0)
            for rival in range(len(W))
            if rival != label
        ]
        totals.append(far + noisy + torch.stack(lacks).max() + centroid_D.norm())
    return torch.stack(totals).mean()


def softmax_trainer(images_NHWC: Images, run: Path, chosen: argparse.Namespace) -> Trainer:
    recipe = Recipe.model_validate({"name": "bench", "method": {"name": "softmax"}})
    torch.manual_seed(0)
    pictures = PicturesInMemory(images_NHWC, labels(images_NHWC))
    return Trainer(
        recipe,
        build_model(recipe.model, 3),
        build_method(recipe.method, 3, FEATURES),
        Batches(pictures, chosen.batch, workers=1),
        Batches(pictures, chosen.batch),
        run=run,
        identity=Identity(recipe="", method="softmax", classes=(), data="", images=(0, 0)),
        progress=Silence(),
    )


def bare_model(recipe: Recipe) -> tuple[RoadModel, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = build_model(ModelSettings(), 3).to(memory_format=torch.channels_last)
    return model, build_optimizer(dict(model.named_parameters()), recipe.optimizer)


def ratios(
    first: Work, second: Work, rounds: int, first_times: int = 1, second_times: int = 1
) -> list[float]:
    """first / second; quick work is repeated within a round."""
    first(), second()  # warm up
    return [timed(first, first_times) / timed(second, second_times) for _ in range(rounds)]


def timed(work: Work, times: int) -> float:
    begin = clock()
    for _ in range(times):
        work()
    return (clock() - begin) / times


def report(name: str, found: list[float], limit: str) -> None:
    middle, low, high = statistics.median(found), min(found), max(found)
    print(f"{name:<40}{middle:>8.3f}   [{low:.3f} .. {high:.3f}]   {limit}", flush=True)


def roads(size: int) -> Images:
    """Twelve rendered roads, again and again: 192 pictures."""
    kinds = ("dry", "wet", "icy")
    some = [render_scene(kinds[n % 3], np.random.default_rng(n), size, size) for n in range(12)]
    return np.stack([some[n % 12] for n in range(192)])


def labels(images_NHWC: Images) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return (np.arange(len(images_NHWC)) % 3).astype(np.int64)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, metavar="N")
    parser.add_argument("--size", type=int, default=192, metavar="PX")
    parser.add_argument("--batch", type=int, default=64, metavar="N")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of torch")
    parser.add_argument("--cpu-time", action="store_true", help="count CPU time: for a busy machine")
    return parser


if __name__ == "__main__":
    main()
