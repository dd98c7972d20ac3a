"""The whole way on rendered roads: train, evaluate, export, verify, smoke-test, drive, and a summary."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from edge_road import workspace
from edge_road.bundle import MODEL_FILES, REPORT_FILE
from edge_road.clock import SystemClock
from edge_road.errors import EdgeRoadError, GateRefused
from edge_road.road_state import parse_message
from edge_road.synthetic.score import DriveScore, score_messages

LEAST_ACCURACY = 0.95
LEAST_RIGHT_SHARE = 0.95
LONGEST_WRONG_S = 2.0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="edge-road demo", description=__doc__)
    parser.add_argument("--epochs", type=int, help="train for fewer epochs than the recipe says")
    options = parser.parse_args(arguments)
    clock = SystemClock()
    started_ns = clock.mono_ns()

    run = workspace.new_run("demo")
    bundle = workspace.bundles() / run.name
    messages, truth = run / "drive.jsonl", run / "drive_truth.json"
    epochs = [] if options.epochs is None else ["--epochs", str(options.epochs)]
    _train(run, *epochs)
    _step("evaluate", run, "--runs", 3)
    _step("to-trt", run, "--out", bundle, "--accept-fallback")
    _step("verify", bundle)
    _step("smoke", bundle)
    _step("run", "--bundle", bundle, "--messages", messages, "--truth", truth, "--set", "speed=3")

    accuracy = _held_out_accuracy(run / "report.json")
    states = [parse_message(line) for line in messages.read_text().splitlines()]
    score = score_messages(states, truth)
    models = _models(bundle / REPORT_FILE)
    print(_summary(run, bundle, models, messages, accuracy, score, (clock.mono_ns() - started_ns) / 1e9))
    _check_promises(accuracy, score)
    return 0


def _train(run: Path, *options: str) -> None:
    try:
        _step("train", "--run", run, *options)
    except BaseException:
        with suppress(OSError):  # only an empty folder goes away
            run.rmdir()
        raise


def _step(name: str, *options: object) -> None:
    """Each stage runs as people run it: as a command of its own."""
    words = [name, *map(str, options)]
    print(
        f"\n\033[1m$ edge-road {' '.join(words)}\033[0m"
        if sys.stdout.isatty()
        else f"\n$ edge-road {' '.join(words)}"
    )
    sys.stdout.flush()
    done = subprocess.run([sys.executable, "-m", "edge_road.cli", *words])
    if done.returncode != 0:
        failure = EdgeRoadError(f"the step '{name}' failed", got=f"exit code {done.returncode}")
        failure.exit_code = max(done.returncode, 1)  # of the step; below 0 it was killed
        raise failure


def _held_out_accuracy(report: Path) -> float:
    return float(json.loads(report.read_text())["entries"][0]["evaluation"]["clean"]["accuracy"])


def _models(report: Path) -> str:
    """In the bundle, and what the gate kept out of it."""
    judged = json.loads(report.read_text())["artefacts"]
    there = ", ".join(name for name in MODEL_FILES if name in judged and judged[name]["released"])
    refused = [name for name in MODEL_FILES if name in judged and not judged[name]["released"]]
    return there + "".join(f"; {name} refused: {', '.join(judged[name]['reasons'])}" for name in refused)


def _summary(
    run: Path,
    bundle: Path,
    models: str,
    messages: Path,
    accuracy: float,
    score: DriveScore,
    seconds: float,
) -> str:
    return "\n".join(
        [
            "",
            f"report       {run / 'report.html'}",
            f"bundle       {bundle}",
            f"models       {models}",
            f"messages     {messages}",
            f"held out     {accuracy:.1%} right (at least {LEAST_ACCURACY:.0%} promised)",
            f"drive        {score.right_share:.1%} of the seconds right (at least {LEAST_RIGHT_SHARE:.0%}), "
            f"longest wrong {score.longest_wrong_s:.2f} s (at most {LONGEST_WRONG_S:.0f} s)",
            f"ice          {score.of_ice}",
            f"time         {seconds:.0f} s",
        ]
    )


def _check_promises(accuracy: float, score: DriveScore) -> None:
    kept = (
        accuracy >= LEAST_ACCURACY
        and score.right_share >= LEAST_RIGHT_SHARE
        and score.longest_wrong_s <= LONGEST_WRONG_S
    )
    if not kept:
        raise GateRefused("the demo does not keep its promises", fix="read the report and the messages")
