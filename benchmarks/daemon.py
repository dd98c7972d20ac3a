"""The daemon beside a bare loop, in one run: frames a second, latency beyond inference, memory, processor.

The bare loop calls `session.run` on frames that were decoded, cut and resized before: no runtime can be
faster. The daemon decodes, checks, prepares, infers, decides and publishes as on a vehicle. Both run one
after the other, several times, because a shared machine is never the same twice; the best round counts.

python benchmarks/daemon.py [--bundle DIR] [--seconds 8] [--rounds 3] [--threads 1]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[0:0] = [str(ROOT), str(ROOT / "tests")]

import tomli_w  # noqa: E402

from edge_road.bundle import load_bundle  # noqa: E402
from edge_road.road_state import RoadState, parse_message  # noqa: E402

SIZE = (540, 960)
FRAMES = 120


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bundle", type=Path, help="default: a MobileNetV3-small with random weights")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        bundle = options.bundle or write_mobilenet(home / "bundles" / "mobilenet")
        write_video(home / "drive.mp4", fps=240)  # so that the camera is never what limits
        write_video(home / "slow.mp4", fps=15)
        bare, fast = [], []
        for _ in range(options.rounds):
            bare.append(bare_loop(bundle, home / "drive.mp4", options.seconds, options.threads))
            fast.append(run_daemon(home, bundle, options.seconds, options.threads, "drive.mp4"))
        slow = run_daemon(home, bundle, options.seconds, options.threads, "slow.mp4")
    report(max(bare), max(fast, key=lambda r: r["fps"]), slow)


def report(bare_fps: float, fast: dict[str, float], slow: dict[str, float]) -> None:
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"bare session.run loop        {bare_fps:8.1f} frames a second")
    print(
        f"daemon at full speed         {fast['fps']:8.1f} frames a second, {fast['fps'] / bare_fps:.2f} of it"
    )
    print(f"latency beyond inference     {fast['beyond_p50']:8.1f} ms p50, {fast['beyond_p99']:.1f} ms p99")
    print(
        f"worker, supervisor           {fast['worker_mb']:8.0f} MB, {fast['supervisor_mb']:.0f} MB resident"
    )
    print(f"processor at 15 fps          {100 * slow['cpu']:8.0f} % of a core, both processes")
    print(f"latency at 15 fps            {slow['beyond_p50']:8.1f} ms p50, {slow['beyond_p99']:.1f} ms p99")


def bare_loop(bundle_path: Path, video: Path, seconds: float, threads: int) -> float:
    """In a process of its own, like the worker."""
    command = [sys.executable, __file__, "--bare", str(bundle_path), str(video), str(seconds), str(threads)]
    return float(subprocess.check_output(command, text=True))


def time_session(bundle_path: str, video: str, seconds: str, threads: str) -> None:
    import av

    from edge_road.backends.onnxrt import INPUT_NAME, OUTPUT_NAMES, OnnxPredictor

    bundle = load_bundle(Path(bundle_path))
    session = OnnxPredictor.from_bundle(bundle, "float32", int(threads))._session
    prepare = bundle.manifest.preprocessing.prepare
    with av.open(video) as container:
        pictures = [f.to_ndarray(format="rgb24") for f in container.decode(video=0)]
    feeds = [{INPUT_NAME: prepare(pixels)[None]} for pixels in pictures]
    end_s, count, began_s = time.monotonic() + float(seconds), 0, time.monotonic()
    while time.monotonic() < end_s:
        session.run(list(OUTPUT_NAMES), feeds[count % len(feeds)])
        count += 1
    print(count / (time.monotonic() - began_s))


def run_daemon(home: Path, bundle: Path, seconds: float, threads: int, video: str) -> dict[str, float]:
    vehicle = {
        "source": {"kind": "video", "path": str(home / video), "loop": True},
        "bundle": str(bundle),
        "rate": 240.0,
        "threads": threads,
        "decision": {"confidence": 0.34, "familiar_radii": 1e9},
        "quality": {"least_structure": 0.0},
    }
    (home / "vehicle.toml").write_text(tomli_w.dumps(vehicle))
    messages_path = home / "messages.jsonl"
    messages_path.unlink(missing_ok=True)
    command = [sys.executable, str(ROOT / "runtime/road_daemon.py"), "--vehicle", "vehicle.toml"]
    process = subprocess.Popen(
        [*command, "--messages", str(messages_path), "--duration", str(seconds)],
        cwd=home,
        env={**os.environ, "EDGE_ROAD_HOME": str(home)},
        stderr=subprocess.DEVNULL,
    )
    memory: dict[str, float] = {}
    began: tuple[float, float] | None = None
    ended = (0.0, 0.0)
    while process.poll() is None:
        pids = [process.pid, *_children(process.pid)]
        if (
            len(pids) == 2
            and messages_path.exists()
            and b'"captured_mono_ns":1' in messages_path.read_bytes()
        ):
            began = began or (time.monotonic(), _cpu_s(pids))
            ended = (time.monotonic(), _cpu_s(pids))
            memory = {"supervisor_mb": _resident_mb(pids[0]), "worker_mb": _resident_mb(pids[1])}
        time.sleep(0.5)
    assert process.returncode == 0, f"the daemon ended with {process.returncode}"
    assert began is not None
    messages = [parse_message(line) for line in messages_path.read_text().splitlines()]
    cpu = (ended[1] - began[1]) / max(0.1, ended[0] - began[0])
    return {**_figures(messages), **memory, "cpu": cpu}


def _figures(messages: list[RoadState]) -> dict[str, float]:
    """Each judged frame once; its age less the time of inference is what the daemon itself adds."""
    judged: dict[int, RoadState] = {}
    for message in messages:
        if message.captured_mono_ns is not None and "predict" in message.stage_ms:
            judged.setdefault(message.captured_mono_ns, message)
    steady = list(judged.values())[20:]
    lasted_s = (steady[-1].published_mono_ns - steady[0].published_mono_ns) / 1e9
    beyond_ms = [m.age_ms - m.stage_ms["predict"] for m in steady if m.age_ms is not None]
    p50, p99 = np.percentile(beyond_ms, [50, 99])
    return {"fps": (len(steady) - 1) / lasted_s, "beyond_p50": float(p50), "beyond_p99": float(p99)}


def write_mobilenet(path: Path) -> Path:
    from small_bundles import write_small_bundle

    from edge_road.conditions import STATES
    from edge_road.export.onnx_graph import export_graph
    from edge_road.nn.model import build_model
    from edge_road.preprocess import Preprocessing
    from edge_road.recipe import ModelSettings

    content = export_graph(
        build_model(ModelSettings(), classes=3).eval(), Preprocessing(height=224, width=224), STATES
    )
    write_small_bundle(path, content, size=(224, 224), features=128)
    return path


def write_video(path: Path, fps: int) -> None:
    import av
    import cv2

    generator = np.random.default_rng(0)
    ground = cv2.resize(generator.integers(60, 190, (54, 96, 3), dtype=np.uint8), (2 * SIZE[1], SIZE[0]))
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("mpeg4", rate=fps)
        stream.height, stream.width = SIZE
        stream.bit_rate = 8_000_000
        for number in range(FRAMES):
            view = np.ascontiguousarray(ground[:, 4 * number : 4 * number + SIZE[1]])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(view, format="rgb24")))
        container.mux(stream.encode())


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _cpu_s(pids: list[int]) -> float:
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


if __name__ == "__main__":
    if sys.argv[1:2] == ["--bare"]:
        time_session(*sys.argv[2:])
    else:
        main()
