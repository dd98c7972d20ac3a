"""Ultralytics' `predict` in stream mode, as its guide shows it, with a JSON line for every frame.

Runs in the peers' environment: MODEL VIDEO SECONDS THREADS MESSAGES
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from benchmarks.stopwatch import Stopwatch


def main(model: str, video: str, seconds: str, threads: str, messages: str) -> None:
    import torch

    torch.set_num_threads(int(threads))
    _limit_sessions(int(threads))
    from ultralytics import YOLO

    stopwatch, decoded = Stopwatch(float(seconds)), [0]
    yolo = YOLO(model, task="classify")
    yolo.add_callback("on_predict_batch_start", lambda _: decoded.__setitem__(0, time.monotonic_ns()))
    with open(messages, "w") as file:
        for result in yolo.predict(video, stream=True, verbose=False, device="cpu"):
            state = result.names[result.probs.top1]
            file.write(json.dumps({"state": state, "probabilities": result.probs.data.tolist()}) + "\n")
            file.flush()
            if not stopwatch.answered(decoded[0]):
                break
    stopwatch.print_report()


def _limit_sessions(threads: int) -> None:
    """Ultralytics leaves the threads to ONNX Runtime: here it gets our number, and idle ones sleep."""
    import onnxruntime

    class LimitedSession(onnxruntime.InferenceSession):  # type: ignore[misc]
        def __init__(self, model: Any, options: Any = None, **rest: Any) -> None:
            options = options or onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            super().__init__(model, options, **rest)

    onnxruntime.InferenceSession = LimitedSession


if __name__ == "__main__":
    main(*sys.argv[1:])
