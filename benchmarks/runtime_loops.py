"""The loops that a user would write instead of a runtime, each in a process of its own.

python -m benchmarks.runtime_loops bare|script|torch|opencv HOME SECONDS THREADS SIDE
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.runtime_material import Material
from benchmarks.stopwatch import Stopwatch
from edge_road.conditions import STATES
from edge_road.frames import Image

Classify = Callable[[Image], list[float]]


def bare(material: Material, seconds: float, threads: int, side: int) -> None:
    """The limit: `session.run` on pictures that were decoded, cut and resized before, and nothing else."""
    session = _session(material, threads)
    pictures = islice(_decoded_by_pyav(material.video), 120)
    feeds = [{"images": _resized(picture, side)[None]} for picture in pictures]
    stopwatch, number = Stopwatch(seconds), 0
    while True:
        began_ns = time.monotonic_ns()
        session.run(["probabilities"], feeds[number % len(feeds)])
        number += 1
        if not stopwatch.answered(began_ns):
            return stopwatch.print_report()


def script(material: Material, seconds: float, threads: int, side: int) -> None:
    """PyAV, a resize and ONNX Runtime: the shortest honest program, one thing after the other."""
    session = _session(material, threads)

    def classify(picture: Image) -> list[float]:
        (probabilities,) = session.run(["probabilities"], {"images": _resized(picture, side)[None]})
        return list(map(float, probabilities[0]))

    _watch(_decoded_by_pyav(material.video), classify, material, seconds)


def torch_eager(material: Material, seconds: float, threads: int, side: int) -> None:
    import torch
    from safetensors.torch import load_file

    from edge_road.nn.model import build_model
    from edge_road.recipe import ModelSettings

    torch.set_num_threads(threads)
    model = build_model(ModelSettings(backbone=(material.home / "backbone").read_text()), len(STATES))
    model.load_state_dict(load_file(material.weights))
    model.eval().to(memory_format=torch.channels_last)

    @torch.inference_mode()
    def classify(picture: Image) -> list[float]:
        pixels_NHWC = torch.from_numpy(_resized(picture, side))[None]
        logits_NC = model(pixels_NHWC.permute(0, 3, 1, 2).float().div_(255)).logits_BC
        return list(map(float, torch.softmax(logits_NC, dim=1)[0]))

    _watch(_decoded_by_pyav(material.video), classify, material, seconds)


def opencv(material: Material, seconds: float, threads: int, side: int) -> None:
    cv2.setNumThreads(threads)
    network = cv2.dnn.readNetFromONNX(str(material.plain_model))

    def classify(picture: Image) -> list[float]:
        network.setInput(cv2.dnn.blobFromImage(picture, 1 / 255, (side, side), swapRB=True))
        return list(map(float, network.forward()[0]))

    _watch(_decoded_by_opencv(material.video), classify, material, seconds)


def _watch(pictures: Iterator[Image], classify: Classify, material: Material, seconds: float) -> None:
    stopwatch = Stopwatch(seconds)
    with open(material.home / "loop.jsonl", "w") as file:
        for picture in pictures:
            decoded_ns = time.monotonic_ns()
            probabilities = classify(picture)
            state = STATES[int(np.argmax(probabilities))]
            file.write(json.dumps({"state": state, "probabilities": probabilities}) + "\n")
            file.flush()
            if not stopwatch.answered(decoded_ns):
                break
    stopwatch.print_report()


def _session(material: Material, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(str(material.bundle / "model.onnx"), options)


def _decoded_by_pyav(video: Path) -> Iterator[Image]:
    import av

    with av.open(str(video)) as container:
        container.streams.video[0].thread_count = 1
        for frame in container.decode(video=0):
            yield frame.to_ndarray(format="rgb24")


def _decoded_by_opencv(video: Path) -> Iterator[Image]:
    capture = cv2.VideoCapture(str(video))
    while True:
        there, picture = capture.read()
        if not there:
            return
        yield np.asarray(picture, dtype=np.uint8)


def _resized(picture: Image, side: int) -> Image:
    return np.asarray(cv2.resize(picture, (side, side), interpolation=cv2.INTER_AREA), dtype=np.uint8)


LOOPS = {"bare": bare, "script": script, "torch": torch_eager, "opencv": opencv}

if __name__ == "__main__":
    name, home, seconds, threads, side = sys.argv[1:]
    cv2.setNumThreads(1)
    LOOPS[name](Material(Path(home)), float(seconds), int(threads), int(side))
