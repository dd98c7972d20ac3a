"""Rows of the matrix about speed, dirt, damaged streams, sick models and providers, measured in process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from camera_servers import jpeg, road_picture
from daemon_harness import Daemon, pattern_vehicle
from small_bundles import brightness_model, write_small_bundle

from edge_road.backends.fake import LEVEL_OF_STATE, FakePredictor
from edge_road.clock import ScriptedClock
from edge_road.datasets.decode import decode_image
from edge_road.errors import BackendError, BundleError, DataError
from edge_road.frames import Frame
from edge_road.preprocess import Preprocessing
from edge_road.runtime.decision import DecisionSettings, Past, decide, rules_for
from edge_road.runtime.model import load_model
from edge_road.runtime.perception import Perception
from edge_road.runtime.slot import NewestFrameSlot
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_inputs import VehicleInputs
from edge_road.trust import DEVELOPMENT

FaultRow = Callable[..., None]
RULES = rules_for(DecisionSettings(), confidence_threshold=0.6, period_s=0.05)
SECOND = 10**9


def perception() -> Perception:
    return Perception(FakePredictor(), Preprocessing(height=32, width=32))


def test_a_camera_ten_times_faster_than_the_model_costs_frames_and_not_freshness(fault_row: FaultRow) -> None:
    """A camera of 200 fps before a model that takes 50 ms, on a scripted clock: one period and one and a
    half inferences is the oldest that a judged frame may be when its answer is there."""
    period_ns, inference_ns = 5_000_000, 50_000_000
    clock, slot = ScriptedClock(SECOND), NewestFrameSlot[Frame]()
    ages_ns, longest, next_ns = [], 0, SECOND
    pixels = np.zeros((16, 16, 3), np.uint8)

    def camera_until(now_ns: int) -> None:
        nonlocal next_ns, longest
        while next_ns <= now_ns:
            slot.put(Frame(pixels, next_ns, next_ns))
            longest = max(longest, int(slot._frame is not None))
            next_ns += period_ns

    for number in range(2000):
        camera_until(clock.mono_ns())
        frame = slot.take(timeout_s=0)
        if frame is None:
            clock.sleep(period_ns / 1e9)
            continue
        clock.sleep((inference_ns + number % 7 * 1_000_000) / 1e9)
        ages_ns.append(clock.mono_ns() - frame.captured_mono_ns)
    p99_ns = float(np.percentile(ages_ns, 99))
    assert p99_ns <= period_ns + 1.5 * inference_ns
    assert longest == 1
    assert slot.dropped == slot.frames - len(ages_ns) - int(slot._frame is not None)
    assert slot.dropped / slot.frames == pytest.approx(0.9, abs=0.02)
    drops = f"{slot.dropped:,} of {slot.frames:,} dropped and counted"
    note = f"frame age p99 {p99_ns / 1e6:.0f} ms, queue {longest}, {drops}"
    fault_row(13, "200 fps before a model of 50 ms", state="", how="scripted clock", note=note)


def judged(pictures: list[np.ndarray], moving_mps: float | None = None) -> list[tuple[str, tuple[str, ...]]]:
    """States and reasons at 20 frames a second."""
    chain, past, answers = perception(), Past(), []
    for number, pixels in enumerate(pictures):
        now_ns = SECOND + number * SECOND // 20
        inputs = VehicleInputs() if moving_mps is None else VehicleInputs().with_speed(moving_mps, now_ns)
        evidence = chain.judge(chain.view(Frame(pixels, number, now_ns), inputs))
        past, decision = decide(past, evidence, now_ns, RULES, inputs)
        answers.append((decision.state, decision.reasons))
    return answers


def smeared(seed: int, share: float) -> np.ndarray:
    """A film of mud over the right part of the lens: nothing but its own brightness."""
    pixels = road_picture(seed=seed)
    pixels[:, round(pixels.shape[1] * (1 - share)) :] = LEVEL_OF_STATE["dry"]
    return pixels


def test_dirt_on_the_lens_is_told_while_the_vehicle_moves(fault_row: FaultRow) -> None:
    clean = [road_picture(seed=n) for n in range(40)]
    dirty = [smeared(n, 0.7) for n in range(200)]
    answers = judged(clean + dirty, moving_mps=10.0)[40:]
    first = next(n for n, (_, reasons) in enumerate(answers) if "obstructed" in reasons)
    assert all(answer == ("unknown", ("obstructed",)) for answer in answers[first:])
    assert {state for state, _ in judged(clean + dirty, moving_mps=0.0)[60:]} == {"dry"}
    back = judged(dirty + clean, moving_mps=10.0)[200:]
    recovered = next(n for n, (state, _) in enumerate(back) if state == "dry")
    shares = {}
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        states = [s for s, _ in judged([smeared(n, share) for n in range(160)], moving_mps=10.0)]
        shares[share] = np.mean([s != "unknown" for s in states[100:]])
    told = ", ".join(f"{share:.0%} covered: {claimed:.0%}" for share, claimed in shares.items())
    fault_row(
        6, "mud over 70 % of the lens", reason="obstructed", detect_s=first / 20, detect_limit_s=3.5,
        recover_s=recovered / 20, recover_limit_s=1.0, how="in process",
        note=f"frames still called a state after 5 s, by share of the lens: {told}",
    )  # fmt: skip


def test_flipped_bytes_in_jpegs_crash_nothing_and_rarely_change_the_answer(fault_row: FaultRow) -> None:
    generator = np.random.default_rng(9)
    coded = [jpeg(road_picture(seed=seed)) for seed in range(7)]
    chain, past, counts = perception(), Past(), {"refused": 0, "unknown": 0, "right": 0, "wrong": 0}
    for number in range(1500):
        content = bytearray(coded[number % 7])
        for position in generator.integers(0, len(content), generator.integers(1, 6)):
            content[position] ^= 1 << generator.integers(0, 8)
        now_ns = SECOND + number * SECOND // 20
        try:
            frame = Frame(decode_image(bytes(content), "a damaged picture"), number, now_ns)
        except DataError:
            counts["refused"] += 1
            continue
        past, decision = decide(past, chain.judge(chain.view(frame)), now_ns, RULES)
        kind = {"unknown": "unknown", "dry": "right"}.get(decision.state, "wrong")
        counts[kind] += 1
    assert counts["wrong"] <= 0.01 * sum(counts.values()), counts
    fault_row(
        9,
        "1,500 JPEGs with 1 to 5 flipped bits",
        state="",
        how="in process",
        note=", ".join(f"{n} {k}" for k, n in counts.items()),
    )


def test_night_and_glare_are_told_or_judged_by_their_share(fault_row: FaultRow) -> None:
    """Darkening to nothing and brightening to white: between judgement and refusal there is no third."""
    chain, said = perception(), []
    for number, gain in enumerate(np.linspace(1.0, 0.0, 60)):
        pixels = np.asarray(road_picture("dry", number) * gain, np.uint8)
        said.append(chain.judge(chain.view(Frame(pixels, number, SECOND + number * SECOND // 20))).problems)
    assert said[0] == ()
    first = next(n for n, problems in enumerate(said) if problems)
    assert all(said[first:])
    note = f"refused below a mean brightness of {60 * np.linspace(1.0, 0.0, 60)[first]:.0f} of 255"
    fault_row(7, "light fades to nothing", reason="exposure or low_detail", how="in process", note=note)


def test_a_provider_that_is_not_here_is_refused_and_never_replaced_in_silence(
    tmp_path: Path, fault_row: FaultRow
) -> None:
    pytest.importorskip("onnxruntime")
    bundle = tmp_path / "bundles" / "small"
    write_small_bundle(bundle, brightness_model())
    with pytest.raises(BackendError, match="would not run the model where it was asked to"):
        load_model(Vehicle(bundle=bundle, backend="onnx_cuda", trust=DEVELOPMENT))
    vehicle = {**pattern_vehicle(), "backend": "onnx_cuda"}
    with Daemon(tmp_path, vehicle=vehicle) as daemon:
        assert daemon.finish() == 4
    assert {m.state for m in daemon.messages} == {"unknown"}
    fault_row(
        20,
        "CUDA asked for on a machine without it",
        reason="failure",
        how="real ONNX Runtime",
        note="exit code 4",
    )


def is_refused(bundle: Path) -> bool:
    try:
        load_model(Vehicle(bundle=bundle, trust=DEVELOPMENT))
    except (BundleError, BackendError):
        return True
    return False


def test_a_bundle_that_does_not_fit_its_model_is_refused_at_the_start(
    tmp_path: Path, fault_row: FaultRow
) -> None:
    pytest.importorskip("onnxruntime")
    path = tmp_path / "small"
    write_small_bundle(path, brightness_model())
    good = (path / "manifest.json").read_text()
    changes: list[tuple[str, Callable[[dict[str, Any]], object]]] = [
        ("fewer classes", lambda m: m.update(classes=m["classes"][:2])),
        ("another class", lambda m: m.update(classes=[*m["classes"][:2], "snowy"])),
        ("a class twice", lambda m: m.update(classes=["dry", "dry", "icy"])),
        ("another height", lambda m: m["preprocessing"].update(height=64)),
        ("another input", lambda m: m.update(input_shape=[0, 64, 64, 3])),
        ("another name", lambda m: m.update(input_name="picture")),
        ("other centroids", lambda m: m["artefacts"]["float32"].update(centroids=[[0.0, 0.0, 0.0]])),
        ("no temperature", lambda m: m["artefacts"]["float32"].update(temperature=0.0)),
        ("other frames", lambda m: m["files"]["probe.npz"].update(sha256="0" * 64)),
    ]
    for what, change in changes:
        manifest = json.loads(good)
        change(manifest)
        (path / "manifest.json").write_text(json.dumps(manifest))
        assert is_refused(path), what
    (path / "manifest.json").write_text(good)
    assert load_model(Vehicle(bundle=path, trust=DEVELOPMENT)).predictor.name
    write_small_bundle(tmp_path / "other", brightness_model(), logits_NC=np.zeros((4, 3), np.float32))
    with pytest.raises(BackendError, match="does not give its own outputs"):
        load_model(Vehicle(bundle=tmp_path / "other", trust=DEVELOPMENT))
    note = f"{len(changes)} manifests that do not fit, and a model that gives other outputs: refused"
    fault_row(15, "classes, sizes, names, centroids, golden outputs", state="-", how="in process", note=note)


def test_auto_takes_what_this_machine_has(tmp_path: Path, fault_row: FaultRow) -> None:
    pytest.importorskip("onnxruntime")
    write_small_bundle(tmp_path / "small", brightness_model())
    model = load_model(Vehicle(bundle=tmp_path / "small", backend="auto", trust=DEVELOPMENT))
    assert model.predictor.name == "onnx float32 on CPU"
    fault_row(
        19, "no engine for this machine", state="", how="backend = auto", note="ONNX Runtime serves instead"
    )


def test_a_damaged_stream_gives_frames_or_refusals_and_no_crash() -> None:
    content = cv2.imencode(".jpg", road_picture())[1].tobytes()
    for cut in range(0, len(content), 97):
        swapped = content[:cut] + content[cut:][::-1]
        try:
            assert decode_image(swapped, "swapped").dtype == np.uint8
        except DataError:
            continue
