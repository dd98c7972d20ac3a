"""From a video to messages: our daemon beside what a user would run instead, on the same work.

python -m benchmarks.runtime [--seconds 8] [--rounds 3] [--threads 1] [--backbone NAME] [--quick] [--out DIR]

Every rival gets the same video, the same layers and weights and the same number of threads, in a
process of its own, in turn. The bare loop is the limit: `session.run` on frames decoded before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import machine, pictures
from benchmarks.outcome import Claim, Outcome, Table, with_provenance
from benchmarks.package_size import installed_mb
from benchmarks.peers.setup import python_of_peers, version_of_peer
from benchmarks.rounds import Spread, ratio, take_turns
from benchmarks.runtime_daemon import FASTEST_HZ, watch_daemon
from benchmarks.runtime_material import BRIGHTNESS, ROOT, Material, write_decoded, write_models, write_video

OURS, DECODED, PACED, LIMIT, PEER = (
    "edge_road",
    "edge_road, decoded frames",
    "edge_road at 25 frames/s",
    "bare ONNX Runtime loop",
    "Ultralytics predict",
)
LOOPS = {
    LIMIT: "bare",
    "script: PyAV + ONNX Runtime": "script",
    "torch eager": "torch",
    "OpenCV dnn": "opencv",
}
NEEDS = {
    "bare": ("onnxruntime", "numpy"),
    "script": ("onnxruntime", "numpy", "av", "opencv-python-headless"),
    "torch": ("torch", "timm", "av", "opencv-python-headless"),
    "opencv": ("opencv-python-headless",),
}
COLUMNS = {"fps": 1, "p50_ms": 1, "p99_ms": 1, "cpu_s_per_1000": 2, "resident_mb": 0, "start_s": 2}
Figures = dict[str, float]


@dataclass(frozen=True)
class Plan:
    seconds: float = 8.0
    rounds: int = 3
    threads: int = 1
    backbone: str = "mobilenetv3_large_100"
    side: int = 224
    rivals: tuple[str, ...] = ()
    """none: all that are there"""


QUICK = Plan(seconds=0.5, rounds=1, backbone=BRIGHTNESS, side=64, rivals=(LIMIT, OURS, DECODED))


@with_provenance
def measure(plan: Plan) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        material = Material(Path(folder))
        write_models(material, plan.backbone, plan.side)
        (material.home / "backbone").write_text(plan.backbone)
        camera_hz = _write_videos(material, plan)
        rivals = _rivals(material, plan)
        measured = take_turns(rivals, plan.rounds, optional=rivals.keys() - {OURS, DECODED, LIMIT})
    outcome = _outcome(measured, plan)
    outcome.notes.append(f"the camera of {OURS} gives {camera_hz} frames a second: 5 % more than the limit")
    if missing := [] if plan.rivals else [title for title in (*LOOPS, PEER) if title not in measured]:
        outcome.notes.append(f"left out, because not installed or failed: {', '.join(missing)}")
    return outcome


def _write_videos(material: Material, plan: Plan) -> int:
    """A little faster than the bare loop: a camera that is never what limits, and wastes little."""
    write_video(material.video, 25, seconds=1)
    limit = _loop("bare", material, plan, min(3.0, plan.seconds))["fps"]
    camera_hz = min(round(1.05 * limit), int(FASTEST_HZ))
    write_video(material.home / "slow.mp4", 25, seconds=8)
    write_video(material.video, camera_hz, 1.5 * plan.seconds + 2)
    write_decoded(material.video, material.home / "decoded.nut", camera_hz)
    return camera_hz


def _rivals(material: Material, plan: Plan) -> dict[str, Callable[[], Figures]]:
    videos = {OURS: material.video, DECODED: material.home / "decoded.nut", PACED: material.home / "slow.mp4"}
    rivals: dict[str, Callable[[], Figures]] = {
        title: partial(_daemon, material, video, plan) for title, video in videos.items()
    }
    for title, name in LOOPS.items():
        rivals[title] = partial(_loop, name, material, plan, plan.seconds)
    if python := python_of_peers():
        rivals[PEER] = partial(_ultralytics, python, material, plan)
    return {title: work for title, work in rivals.items() if not plan.rivals or title in plan.rivals}


def _daemon(material: Material, video: Path, plan: Plan) -> Figures:
    began_ns = time.monotonic_ns()
    return _figures(watch_daemon(material, video, plan.seconds, plan.threads), began_ns)


def _loop(name: str, material: Material, plan: Plan, seconds: float) -> Figures:
    command = [sys.executable, "-m", "benchmarks.runtime_loops", name, str(material.home)]
    return _child([*command, str(seconds), str(plan.threads), str(plan.side)], plan)


def _ultralytics(python: Path, material: Material, plan: Plan) -> Figures:
    words = [material.plain_model, material.video, plan.seconds, plan.threads, material.home / "peer.jsonl"]
    own = {"YOLO_CONFIG_DIR": str(material.home), "YOLO_OFFLINE": "true", "YOLO_AUTOINSTALL": "false"}
    return _child([str(python), "-m", "benchmarks.peers.ultralytics_predict", *map(str, words)], plan, own)


def _child(command: list[str], plan: Plan, own: dict[str, str] | None = None) -> Figures:
    environment = {**os.environ, "OMP_NUM_THREADS": str(plan.threads), **(own or {})}
    began_ns = time.monotonic_ns()
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    return _figures(json.loads(done.stdout.splitlines()[-1]), began_ns)


def _figures(report: dict[str, object], began_ns: int) -> Figures:
    latency_ms, first_ns = report.pop("latency_ms"), report.pop("first_answer_ns")
    assert isinstance(latency_ms, list)
    assert isinstance(first_ns, int)
    p50_ms, p99_ms = np.percentile(latency_ms, [50, 99])
    rest = {name: float(str(value)) for name, value in report.items()}
    return {**rest, "p50_ms": float(p50_ms), "p99_ms": float(p99_ms), "start_s": (first_ns - began_ns) / 1e9}


def _outcome(measured: dict[str, list[Figures]], plan: Plan) -> Outcome:
    sizes = {title: _size_mb(title) for title in measured}
    columns = (
        "frames/s",
        "of the limit",
        "p50 ms",
        "p99 ms",
        "CPU s / 1,000",
        "memory MB",
        "start s",
        "disk MB",
    )
    table = Table(
        f"{plan.backbone} at {plan.side} x {plan.side}, {plan.threads} thread(s), {plan.rounds} rounds",
        ("", *columns),
        [_row(title, found, measured, sizes[title]) for title, found in measured.items()],
    )
    return Outcome(
        name="runtime",
        title="Runtime: from a video to messages",
        method=(
            "The same video, layers, weights and threads for all, each in a process of its own, in turn; "
            "medians [lowest .. highest] of all rounds. Latency: from the decoded frame to its message. "
            "Memory: peak resident, of ours the sum of both processes. Start: from the command to the first "
            "answer. Disk: the packages that each needs, as installed here."
        ),
        tables=[table, _stages(measured)],
        claims=_claims(measured),
        figures={"plan": vars(plan), "rounds": measured, "installed_mb": sizes},
        picture=pictures.bars(_panels(measured)),
        versions=machine.versions(
            ("edge-road", "onnxruntime", "torch", "timm", "opencv-python-headless", "av")
        )
        | ({"ultralytics": version_of_peer()} if PEER in measured else {}),
    )


def _row(
    title: str, found: list[Figures], measured: dict[str, list[Figures]], size_mb: float
) -> tuple[str, ...]:
    texts = {name: _column(found, name).text(digits) for name, digits in COLUMNS.items()}
    share = ratio(_values(found, "fps"), _values(measured[LIMIT], "fps")).text()
    return (title, texts.pop("fps"), share, *texts.values(), f"{size_mb:.0f}")


def _stages(measured: dict[str, list[Figures]]) -> Table:
    """Where the time of a frame goes in our daemon; what is left of its latency is waiting and hand-over."""
    columns = [name for name in (OURS, DECODED, PACED) if name in measured]
    names = [name for name in measured[OURS][0] if name.startswith("stage ")]
    rows = [
        (name.removeprefix("stage "), *(_column(measured[rival], name).text(2) for rival in columns))
        for name in names
    ]
    whole = ("decoded frame to message", *(_column(measured[rival], "p50_ms").text(2) for rival in columns))
    cpu = "supervisor_cpu_s_per_1000"
    light = ("supervisor, CPU s / 1,000", *(_column(measured[rival], cpu).text(2) for rival in columns))
    return Table("Stages of edge_road, median ms", ("", *columns), [*rows, whole, light])


def _claims(measured: dict[str, list[Figures]]) -> list[Claim]:
    def against(rival: str, name: str, ours: str = OURS) -> Spread:
        return ratio(_values(measured[ours], name), _values(measured[rival], name))

    on_decoded = against(LIMIT, "fps", DECODED)
    claims = [
        Claim("our frames/s / the bare loop's, both on decoded frames", on_decoded, least=0.9),
        Claim("worker, MB", _column(measured[OURS], "worker_mb"), most=200),
        Claim("supervisor, MB", _column(measured[OURS], "supervisor_mb"), most=70),
    ]
    if PACED in measured:
        beyond = _column(measured[PACED], "beyond_p99_ms")
        claims.append(Claim("message after the stages of its frame, p99 ms, 25 frames/s", beyond, most=5.0))
    if PEER in measured:
        claims += [
            Claim("our frames/s / Ultralytics'", against(PEER, "fps"), least=1.0),
            Claim("our memory / Ultralytics'", against(PEER, "resident_mb"), most=0.25),
            Claim("our start / Ultralytics'", against(PEER, "start_s"), most=0.125),
        ]
    return claims


def _panels(measured: dict[str, list[Figures]]) -> dict[str, dict[str, Spread]]:
    shown = {
        "fps": "frames a second",
        "cpu_s_per_1000": "CPU seconds / 1,000 frames",
        "resident_mb": "memory, MB",
    }
    shown["start_s"] = "start to first answer, s"
    return {
        title: {rival: _column(found, name) for rival, found in measured.items()}
        for name, title in shown.items()
    }


def _column(found: list[Figures], name: str) -> Spread:
    return Spread.of(_values(found, name))


def _values(found: list[Figures], name: str) -> list[float]:
    return [figures[name] for figures in found]


def _size_mb(title: str) -> float:
    if title == PEER:
        words = [str(python_of_peers()), "-m", "benchmarks.package_size", "ultralytics", "onnxruntime"]
        return float(subprocess.check_output(words, cwd=ROOT, text=True, timeout=120))
    if title in LOOPS:
        return installed_mb(NEEDS[LOOPS[title]])
    return installed_mb(["edge-road[vehicle]"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=Plan.seconds)
    parser.add_argument("--rounds", type=int, default=Plan.rounds)
    parser.add_argument("--threads", type=int, default=Plan.threads)
    parser.add_argument("--backbone", default=Plan.backbone)
    parser.add_argument("--side", type=int, default=Plan.side)
    parser.add_argument("--quick", action="store_true", help="does it work? its figures mean nothing")
    parser.add_argument("--out", type=Path, help="folder for runtime.md, .json and .png")
    chosen = vars(parser.parse_args())
    out, quick = chosen.pop("out"), chosen.pop("quick")
    outcome = measure(QUICK if quick else Plan(**chosen))
    print(outcome.markdown())
    if out:
        outcome.write(out)


if __name__ == "__main__":
    main()
