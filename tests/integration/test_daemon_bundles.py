"""The daemon with a real bundle and ONNX Runtime."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from daemon_harness import Daemon, pattern_vehicle, resident_mb
from mosquitto import free_port
from small_bundles import brightness_model, write_small_bundle

from edge_road.conditions import RSCD_CLASSES, STATES

pytest.importorskip("onnxruntime")


def wait_until(condition: Callable[[], object], timeout_s: float = 60.0) -> None:
    end_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.1)


def onnx_vehicle(*segments: tuple[str, float], **settings: object) -> dict[str, object]:
    return {**pattern_vehicle(*segments, **settings), "backend": "onnx"}


def test_the_newest_bundle_drives_the_daemon(tmp_path: Path) -> None:
    digest = write_small_bundle(tmp_path / "bundles" / "small", brightness_model())
    vehicle = onnx_vehicle(("icy", 3.0), ("dry", 3.0))
    with Daemon(tmp_path, vehicle=vehicle) as daemon:
        assert daemon.finish() == 0, daemon.stderr
    told = [m for m in daemon.messages if m.state != "unknown"]
    assert [state for state, _ in groupby(m.state for m in told)] == ["icy", "dry"]
    assert {m.model_digest for m in told} == {digest}
    assert set(told[0].stage_ms) == {"check", "prepare", "predict"}


@pytest.mark.parametrize(("least", "verdict"), [(0.0, "passed"), (1.0, "failed")])
def test_the_self_test_runs_beside_the_start_and_tells_its_verdict(
    tmp_path: Path, least: float, verdict: str
) -> None:
    limits = {"clean": 0.0, "gaussian_40": least}
    digest = write_small_bundle(tmp_path / "bundles" / "small", brightness_model(), smoke_limits=limits)
    port = free_port()
    outputs = [{"path": "-"}, {"path": "lines.jsonl", "events": True}, {"kind": "http", "port": port}]
    with Daemon(tmp_path, vehicle=onnx_vehicle(smoke_at_start=True, outputs=outputs)) as daemon:
        daemon.wait_for_state("dry")
        wait_until(lambda: health(port)["smoke"]["smoke"] not in ("running", None))
        told = health(port)
        assert daemon.stop() == 0
    failed = ["gaussian_40"] if verdict == "failed" else []
    assert told["smoke"] == {"smoke": verdict, "digest": digest, "failed": failed}
    assert told["ok"] is (verdict == "passed"), told
    assert f'"smoke":"{verdict}"' in (tmp_path / "lines.jsonl").read_text()


def health(port: int) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=10) as answer:
        return dict(json.load(answer))


def test_a_27_class_bundle_publishes_one_of_three_states(tmp_path: Path) -> None:
    write_small_bundle(tmp_path / "bundles" / "rscd", brightness_model(RSCD_CLASSES), RSCD_CLASSES)
    with Daemon(tmp_path, vehicle=onnx_vehicle(("wet", 3.0))) as daemon:
        assert daemon.finish() == 0, daemon.stderr
    wet = [m for m in daemon.messages if m.state == "wet"]
    assert len(wet) > 20
    assert wet[-1].probabilities["wet"] > 0.95
    assert set(wet[-1].regions[0].probabilities) == set(STATES)


def test_a_cut_bundle_is_refused(tmp_path: Path) -> None:
    bundle = tmp_path / "bundles" / "small"
    write_small_bundle(bundle, brightness_model())
    model = bundle / "model.onnx"
    model.write_bytes(model.read_bytes()[:-1])
    with Daemon(tmp_path, vehicle=onnx_vehicle()) as daemon:
        assert daemon.finish() == 3
    assert "cut or changed" in daemon.stderr
    assert daemon.messages[-1].reasons == ("failure",)


def test_a_bundle_that_does_not_give_its_own_outputs_is_refused(tmp_path: Path) -> None:
    """The hashes fit, but on this machine the model says something else than when it was released."""
    wrong = np.zeros((4, 3), np.float32)
    write_small_bundle(tmp_path / "bundles" / "small", brightness_model(), logits_NC=wrong)
    with Daemon(tmp_path, vehicle=onnx_vehicle()) as daemon:
        assert daemon.finish() == 4
    assert "does not give its own outputs" in daemon.stderr
    assert {m.state for m in daemon.messages} == {"unknown"}


def test_a_precision_that_the_bundle_lacks_is_refused(tmp_path: Path) -> None:
    write_small_bundle(tmp_path / "bundles" / "small", brightness_model())
    with Daemon(tmp_path, "--set", "precision=int8", vehicle=onnx_vehicle()) as daemon:
        assert daemon.finish() == 3
    assert "no int8 model" in daemon.stderr


@pytest.mark.slow
def test_mobilenet_on_a_video_stays_below_250_mb(tmp_path: Path, shared_data: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    write_mobilenet_bundle(tmp_path / "bundles" / "mobilenet", (192, 192))
    video = next((shared_data / "video").glob("udacity*.mp4"))
    source = {"kind": "video", "path": str(video), "loop": True}
    vehicle = {**onnx_vehicle(), "source": source, "decision": {"confidence": 0.34}}
    with Daemon(tmp_path, vehicle=vehicle) as daemon:
        daemon.wait_for(lambda m: m.captured_mono_ns is not None, timeout_s=60)
        daemon.wait_for(lambda m: m.seq > 150, timeout_s=60)
        supervisor_mb, worker_mb = resident_mb(daemon.process.pid), resident_mb(daemon.worker_pid())
        assert daemon.stop() == 0
    print(f"supervisor {supervisor_mb:.0f} MB, worker {worker_mb:.0f} MB")
    assert supervisor_mb <= 70
    assert worker_mb <= 200
    assert supervisor_mb + worker_mb < 250


def write_mobilenet_bundle(path: Path, size: tuple[int, int]) -> None:
    from edge_road.export.onnx_graph import export_graph
    from edge_road.nn.model import build_model
    from edge_road.preprocess import Preprocessing
    from edge_road.recipe import ModelSettings

    model = build_model(ModelSettings(), classes=3).eval()
    content = export_graph(model, Preprocessing(height=size[0], width=size[1]), STATES)
    write_small_bundle(path, content, size=size, features=128)
