"""What training costs: methods, loss terms, whole epochs and the picture pipeline, beside the peers.

python -m benchmarks.training_step [--rounds 5] [--size 192] [--batch 64] [--threads 1] [--quick] [--out DIR]

Rivals take turns within each round, and a ratio is the median of the ratios of all rounds, with the
smallest and the largest beside it. Rendered roads, random weights.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import cv2
import torch

from benchmarks import machine, pictures, pipelines, training_loops
from benchmarks.outcome import Claim, Outcome, Table, with_provenance
from benchmarks.peers.setup import version_of_peer
from benchmarks.rounds import Spread, ratio, take_turns
from benchmarks.training_losses import all_at_once, class_by_class, loss_of
from benchmarks.training_material import Plan, Work, roads, step_of
from edge_road.frames import Images
from edge_road.training.memory import keep_freed_memory

QUICK = Plan(
    rounds=1, size=64, batch=8, pictures=16, backbone="mobilenetv3_small_050", peers=False, cost=False
)
STEP_TIMES = 4
"""freed memory finds its place within a few steps"""
LOSS_TIMES = 20
"""loss terms are quick: so many in one measurement"""
Measured = dict[str, list[float]]
Seconds = Callable[[], float]


@with_provenance
def measure(plan: Plan) -> Outcome:
    torch.set_num_threads(plan.threads)
    keep_freed_memory()  # as a training does
    cv2.setNumThreads(1)
    images_NHWC = roads(plan)
    steps = _turns(_steps(images_NHWC, plan), plan)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with training_loops.loops(images_NHWC, home, plan) as rivals:
            epochs = _turns(rivals, plan)
        passes = _turns(pipelines.pipelines(images_NHWC, home, plan), plan)
    outcome = Outcome(
        name="training",
        title="Training: pictures a second",
        method=(
            f"{plan.backbone} at {plan.size} x {plan.size}, batches of {plan.batch}, "
            f"{plan.threads} thread(s), {plan.rounds} rounds; medians [lowest .. highest]. Epochs: all "
            "pictures are decoded and in memory, one worker prepares batches; Ultralytics reads JPEG files "
            "and draws its own operations. Pipeline: in the calling thread."
        ),
        tables=[
            _speeds("Epochs", epochs, plan, training_loops.BARE),
            _speeds("Pipeline alone", passes, plan, pipelines.OURS),
        ],
        claims=[*_step_claims(steps), *_epoch_claims(epochs), *_pipeline_claims(passes)],
        figures={"plan": vars(plan), "step_s": steps, "epoch_s": epochs, "pipeline_s": passes},
        picture=pictures.bars(
            {
                "training, pictures a second": _speed(epochs, plan),
                "pipeline alone, pictures a second": _speed(passes, plan),
            }
        ),
        versions=machine.versions(("edge-road", "torch", "torchvision", "timm", "albumentations")),
    )
    if training_loops.PEER in epochs:
        outcome.versions["ultralytics"] = version_of_peer()
    if plan.cost:
        outcome.tables.append(cost_table(plan))
    if plan.peers and training_loops.PEER not in epochs:
        outcome.notes.append("left out, because not installed or failed: Ultralytics")
    return outcome


def _steps(images_NHWC: Images, plan: Plan) -> dict[str, Seconds]:
    return {
        "softmax": _timed(step_of({"name": "softmax"}, images_NHWC, plan), STEP_TIMES),
        "two": _timed(step_of({"name": "discriminative", "passes": "two"}, images_NHWC, plan), STEP_TIMES),
        "joint": _timed(
            step_of({"name": "discriminative", "passes": "joint"}, images_NHWC, plan), STEP_TIMES
        ),
        "terms, 3 classes": _timed(loss_of(3, plan.batch, all_at_once), LOSS_TIMES),
        "terms, 27 classes": _timed(loss_of(27, plan.batch, all_at_once), LOSS_TIMES),
        "loop, 27 classes": _timed(loss_of(27, plan.batch, class_by_class), LOSS_TIMES),
    }


def _step_claims(steps: Measured) -> list[Claim]:
    def against(first: str, second: str) -> Spread:
        return ratio(steps[first], steps[second])

    return [
        Claim("step: discriminative (two) / softmax", against("two", "softmax"), most=2.1),
        Claim("step: discriminative (joint) / softmax", against("joint", "softmax"), most=2.1),
        Claim("loss terms / step, 3 classes", against("terms, 3 classes", "two"), most=0.03),
        Claim("loss terms / step, 27 classes", against("terms, 27 classes", "two"), most=0.03),
        Claim(
            "loop over 27 classes / loss terms", against("loop, 27 classes", "terms, 27 classes"), least=5.0
        ),
    ]


def _epoch_claims(epochs: Measured) -> list[Claim]:
    ours = epochs[training_loops.OURS]
    rivals = {training_loops.BARE: 0.95, training_loops.TIMM: 1.0, training_loops.PEER: 1.0}
    return [
        Claim(f"epoch: our pictures/s / {rival}", ratio(epochs[rival], ours), least=least)
        for rival, least in rivals.items()
        if rival in epochs
    ]


def _pipeline_claims(passes: Measured) -> list[Claim]:
    beside = {pipelines.TIMM: pipelines.OURS, pipelines.TORCHVISION: pipelines.OURS}
    beside[pipelines.PEER] = pipelines.OURS_LIGHT
    return [
        Claim(f"pipeline: our pictures/s / {rival}", ratio(passes[rival], passes[ours]), least=1.0)
        for rival, ours in beside.items()
        if rival in passes
    ]


def _speed(measured: Measured, plan: Plan) -> dict[str, Spread]:
    return {name: Spread.of([plan.pictures / s for s in seconds]) for name, seconds in measured.items()}


def _speeds(title: str, measured: Measured, plan: Plan, base: str) -> Table:
    rows = [
        (name, speed.text(1), ratio(measured[base], measured[name]).text())
        for name, speed in _speed(measured, plan).items()
    ]
    return Table(title, ("", "pictures/s", f"of {base}"), rows)


def cost_table(plan: Plan) -> Table:
    """One step of the discriminative method, with one setting changed at a time."""
    rows = []
    for classes in (3, 10, 27):
        rows.append(("classes", f"{classes}", *_cost(plan, classes)))
    for batch in (16, 32, 64, 128):
        rows.append(
            ("batch", f"{batch}", *_cost(replace(plan, batch=batch, pictures=max(plan.pictures, batch))))
        )
    for size in (96, 128, 192, 256):
        rows.append(("image side", f"{size}", *_cost(replace(plan, size=size))))
    return Table(
        "Cost of a discriminative step", ("setting", "value", "ms", "µs a picture", "ns a pixel"), rows
    )


def _cost(plan: Plan, classes: int = 3) -> tuple[str, str, str]:
    step = _timed(step_of({"name": "discriminative"}, roads(plan), plan, classes))
    step()
    seconds = Spread.of([step() for _ in range(plan.rounds)]).median
    each_us = 1e6 * seconds / plan.batch
    return f"{1e3 * seconds:.0f}", f"{each_us:.0f}", f"{1e3 * each_us / plan.size**2:.1f}"


def _turns(rivals: dict[str, Seconds], plan: Plan) -> Measured:
    """After one round that is not counted: caches, threads and allocators warm up in it."""
    peers = {training_loops.PEER}
    if plan.rounds > 1:
        rivals = {name: rivals[name] for name in take_turns(rivals, 1, peers)}
    return take_turns(rivals, plan.rounds, peers)


def _timed(work: Work, times: int = 1) -> Seconds:
    def seconds() -> float:
        began_s = perf_counter()
        for _ in range(times):
            work()
        return (perf_counter() - began_s) / times

    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=Plan.rounds, metavar="N")
    parser.add_argument("--size", type=int, default=Plan.size, metavar="PX")
    parser.add_argument("--batch", type=int, default=Plan.batch, metavar="N")
    parser.add_argument("--threads", type=int, default=Plan.threads, metavar="N", help="of torch")
    parser.add_argument("--quick", action="store_true", help="does it work? its figures mean nothing")
    parser.add_argument("--out", type=Path, help="folder for training.md, .json and .png")
    chosen = vars(parser.parse_args())
    out, quick = chosen.pop("out"), chosen.pop("quick")
    outcome = measure(QUICK if quick else Plan(**chosen))
    print(outcome.markdown())
    if out:
        outcome.write(out)


if __name__ == "__main__":
    main()
