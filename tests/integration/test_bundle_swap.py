"""A running daemon takes a new bundle without a gap, or keeps the old one and says why."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import tomli_w
from daemon_harness import Daemon, pattern_vehicle
from small_bundles import brightness_model, write_small_bundle

from edge_road.clock import SystemClock
from edge_road.conditions import STATES
from edge_road.errors import GateRefused
from edge_road.keys import generate_key, public_path
from edge_road.road_state import RoadState
from edge_road.runtime.bundle_choice import BundleChoice
from edge_road.runtime.events.event import Event, parse_event
from edge_road.runtime.replay import comparable, replay
from edge_road.runtime.sources.pattern import PatternCamera
from edge_road.runtime.swap_command import main as edge_road_swap
from edge_road.runtime.vehicle_sources import DriveSegment, PatternSource
from edge_road.signing import sign_bundle

pytest.importorskip("onnxruntime")
pytest.importorskip("cryptography")

QUICK = {"canary_s": 0.5, "least_frames": 4, "trial_s": 0.5, "longest_s": 20.0}


class Garage:
    """A vehicle with a signed bundle, and others to try on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        generate_key(folder / "key")
        self.digest = self.bundle("old")
        self.vehicle: dict[str, Any] = {
            **pattern_vehicle(("dry", 600.0), events={"path": str(folder / "events.sqlite")}),
            "backend": "onnx",
            "bundle": str(folder / "old"),
            "trust": {"trusted_keys": [str(public_path(folder / "key"))]},
            "swap": QUICK,
            "worker": {"ready_s": 120.0},  # for a machine that has little time
            "outputs": [{"path": "-"}, {"path": str(folder / "lines.jsonl"), "events": True}],
        }

    def bundle(self, name: str, sign: bool = True, model: bytes | None = None, **changes: Any) -> str:
        digest = write_small_bundle(self.folder / name, model or brightness_model(), **changes)
        if sign:
            sign_bundle(self.folder / name, self.folder / "key")
        return digest

    def change_file(self, daemon: Daemon, **changes: Any) -> None:
        vehicle = {**self.vehicle, **changes}
        (self.folder / "vehicle.toml").write_text(tomli_w.dumps(vehicle))
        daemon.process.send_signal(signal.SIGHUP)

    def events(self) -> list[Event]:
        lines = (self.folder / "lines.jsonl").read_text().splitlines()
        return [parse_event(line) for line in lines if '"edge_road.event/1"' in line[:40]]

    def steps(self) -> list[str]:
        return [str(e.draft.details["swap"]) for e in self.events() if "swap" in e.draft.details]

    def last(self, stage: str) -> dict[str, Any]:
        return dict(next(e.draft.details for e in self.events() if e.draft.details.get("swap") == stage))

    def wait_for_step(self, stage: str, timeout_s: float = 90.0) -> None:
        end_s = time.monotonic() + timeout_s
        while stage not in self.steps():
            assert time.monotonic() < end_s, f"no {stage}, only {self.steps()}"
            time.sleep(0.05)


@pytest.fixture
def garage(tmp_path: Path) -> Garage:
    return Garage(tmp_path)


def upside_down() -> bytes:
    """The same model with its classes in another order: it calls dry icy."""
    return brightness_model(STATES[::-1])


def sick_model(healthy: str) -> bytes:
    """The brightness model, times 0 / 0 wherever the expression of `grey` and a limit is not above zero."""
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load_from_string(brightness_model())
    graph = model.graph
    next(node for node in graph.node if node.output[0] == "logits").output[0] = "healthy"
    for name, value in {"limit_below": 100, "limit_above": 160, "zero": 0}.items():
        graph.initializer.append(numpy_helper.from_array(np.array(value, np.float32), name))
    operands = {"above 100": ["grey", "limit_below"], "below 160": ["limit_above", "grey"]}[healthy]
    *before, softmax = graph.node
    del graph.node[:]
    graph.node.extend(
        [
            *before,
            helper.make_node("Sub", operands, ["difference_to_limit"]),
            helper.make_node("Max", ["difference_to_limit", "zero"], ["part"]),
            helper.make_node("Div", ["part", "part"], ["one_or_nan"]),
            helper.make_node("Mul", ["healthy", "one_or_nan"], ["logits"]),
            softmax,
        ]
    )
    return bytes(model.SerializeToString())


def test_a_good_bundle_takes_over_without_a_gap_and_stays(
    garage: Garage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = garage.bundle("new", model=brightness_model(size=(48, 40)), size=(48, 40))
    with Daemon(tmp_path, "--record", str(tmp_path / "drive.jsonl"), vehicle=garage.vehicle) as daemon:
        began_s = daemon.wait_for_state("dry", timeout_s=90)
        monkeypatch.setenv("EDGE_ROAD_HOME", str(tmp_path))
        words = [str(tmp_path / "new"), "--vehicle", str(tmp_path / "vehicle.toml"), "--wait", "180"]
        assert edge_road_swap(words) == 0
        garage.wait_for_step("kept")
        assert daemon.stop() == 0
    during = [m for at, m in daemon.received if at >= began_s][:-1]
    nobody_noticed(during)
    assert {m.model_digest for m in during} == {garage.digest, new}
    assert garage.steps() == ["verifying", "canary", "swapped", "kept"]
    assert garage.last("swapped")["figures"]["agreement"] == 1.0
    assert daemon.stderr.count("next start in") == 0, "the worker went on"
    again = replay((tmp_path / "drive.jsonl").read_text().splitlines())
    assert [comparable(m) for m in again] == [comparable(m) for m in daemon.messages]
    choice = BundleChoice.model_validate_json(choice_file(tmp_path).read_text())
    assert (choice.wish, choice.running) == (None, tmp_path / "new")
    with Daemon(tmp_path, vehicle=garage.vehicle) as daemon:  # and it is the one of the next start
        daemon.wait_for(lambda m: m.state == "dry" and m.model_digest == new, timeout_s=90)


STARVED = {"no_frames", "inference_stalled"}
"""what a machine without time for anybody says; a swap that blinds the daemon would say something else"""


def nobody_noticed(messages: list[RoadState]) -> None:
    assert {m.state for m in messages} <= {"dry", "unknown"}
    blind = [m for m in messages if m.state == "unknown" and STARVED.isdisjoint(m.reasons)]
    assert [m for m in blind if m.reasons != ("settling",)] == []
    assert sum(m.state == "dry" for m in messages) > 0.7 * len(messages)


def choice_file(home: Path) -> Path:
    return home / "runs" / ".state" / "bundle-test.json"


def damage(bundle: Path) -> None:
    content = bytearray((bundle / "model.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (bundle / "model.onnx").write_bytes(content)


def test_bad_bundles_are_refused_while_the_old_one_speaks_on(garage: Garage, tmp_path: Path) -> None:
    garage.bundle("unsigned", sign=False)
    garage.bundle("damaged")
    damage(tmp_path / "damaged")
    garage.bundle("disagrees", model=upside_down())
    garage.bundle("sick", model=sick_model("above 100"))
    reasons = {
        "unsigned": "not signed",
        "damaged": "cut or changed",
        "disagrees": "disagrees",
        "sick": "model_output",
    }
    with Daemon(tmp_path, vehicle=garage.vehicle) as daemon:
        began_s = daemon.wait_for_state("dry", timeout_s=90)
        for count, name in enumerate(reasons, start=1):
            garage.change_file(daemon, bundle=str(tmp_path / name))
            end_s = time.monotonic() + 90
            while garage.steps().count("refused") < count:
                assert time.monotonic() < end_s, (name, garage.steps(), daemon.stderr)
                time.sleep(0.05)
        assert daemon.stop() == 0
    during = [m for at, m in daemon.received if at >= began_s][:-1]
    nobody_noticed(during)
    assert {m.model_digest for m in during} == {garage.digest}
    told = [e.draft.details for e in garage.events() if e.draft.details.get("swap") == "refused"]
    for details, (name, reason) in zip(told, reasons.items()):
        assert reason in str(details["reason"]), name
    assert "swapped" not in garage.steps()


class Feeder:
    """Puts pictures of a road into a watched folder, ten a second, in whichever state the test wants."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder, self.state = folder, "dry"
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._feed, daemon=True)

    def __enter__(self) -> Feeder:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _feed(self) -> None:
        camera = {state: _camera(state) for state in STATES}
        number = 0
        while not self._stopping.wait(0.1):
            number += 1
            pixels = camera[self.state].picture(number % 7)
            cv2.imwrite(str(self._folder / ".part.png"), pixels)
            os.replace(self._folder / ".part.png", self._folder / f"{number:06d}.png")


def _camera(state: str) -> PatternCamera:
    segment = DriveSegment.model_validate({"state": state, "seconds": 60})
    return PatternCamera(PatternSource(kind="pattern", segments=(segment,)), SystemClock())


def test_a_model_that_falls_sick_on_probation_gives_way_to_the_old_one(
    garage: Garage, tmp_path: Path
) -> None:
    """Good on the dry road of the canary, no number once the road is bright with ice."""
    garage.bundle("sick", model=sick_model("below 160"))
    garage.vehicle["swap"] = {**QUICK, "trial_s": 600.0}
    garage.vehicle["source"] = {"kind": "images", "path": str(tmp_path / "in"), "watch": True, "fps": 10.0}
    with Feeder(tmp_path / "in") as road, Daemon(tmp_path, vehicle=garage.vehicle) as daemon:
        daemon.wait_for_state("dry", timeout_s=90)
        garage.change_file(daemon, bundle=str(tmp_path / "sick"))
        garage.wait_for_step("swapped")
        road.state = "icy"
        garage.wait_for_step("rolled_back")
        daemon.wait_for(lambda m: m.state == "icy" and m.model_digest == garage.digest, timeout_s=90)
        assert daemon.stop() == 0
    assert garage.last("rolled_back")["reason"] == "model_output"
    sick = [m for m in daemon.messages if m.model_digest not in (garage.digest, "none")]
    assert {m.state for m in sick} <= {"dry", "unknown"}
    choice = BundleChoice.model_validate_json(choice_file(tmp_path).read_text())
    assert choice.running == tmp_path / "old", "also at the next start, although the file names the other"
    assert choice.outcome is not None
    assert (choice.outcome.stage, choice.outcome.reason) == ("rolled_back", "model_output")
    assert daemon.stderr.count("next start in") == 0, "the old model waited in memory"


def test_a_worker_that_dies_on_probation_returns_with_the_old_bundle(garage: Garage, tmp_path: Path) -> None:
    garage.bundle("new", size=(48, 40), model=brightness_model(size=(48, 40)))
    garage.vehicle["swap"] = {**QUICK, "trial_s": 600.0}
    with Daemon(tmp_path, vehicle=garage.vehicle) as daemon:
        daemon.wait_for_state("dry", timeout_s=90)
        garage.change_file(daemon, bundle=str(tmp_path / "new"))
        garage.wait_for_step("swapped")
        os.kill(daemon.worker_pid(), signal.SIGKILL)
        garage.wait_for_step("rolled_back")
        since_s = time.monotonic()
        daemon.wait_for(
            lambda m: m.state == "dry" and m.model_digest == garage.digest, since_s=since_s, timeout_s=90
        )
        assert daemon.stop() == 0
    assert garage.last("rolled_back")["reason"] == "worker_died"


def test_an_accepted_bundle_that_is_damaged_gives_way_to_the_one_of_the_vehicle_file(
    garage: Garage, tmp_path: Path
) -> None:
    garage.bundle("new")
    damage(tmp_path / "new")
    choice = BundleChoice(instead_of=tmp_path / "old", running=tmp_path / "new")
    choice_file(tmp_path).parent.mkdir(parents=True)
    choice_file(tmp_path).write_text(choice.model_dump_json())
    with Daemon(tmp_path, vehicle=garage.vehicle) as daemon:
        daemon.wait_for_state("dry", timeout_s=90)
        garage.change_file(daemon, rate=15.0)  # new settings do not bring it back
        daemon.wait_for_unknown("starting", since_s=time.monotonic())
        daemon.wait_for_state("dry", since_s=time.monotonic(), timeout_s=90)
        assert daemon.messages[-1].model_digest == garage.digest
        assert daemon.stop() == 0
    left = [e.draft.details for e in garage.events() if "left" in e.draft.details]
    assert [(told["left"], told["bundle"]) for told in left] == [
        (str(tmp_path / "new"), str(tmp_path / "old"))
    ]
    assert "cut or changed" in str(left[0]["error"])
    damage(tmp_path / "old")
    with Daemon(tmp_path, vehicle=garage.vehicle) as daemon:
        assert daemon.finish() == 3


def test_a_bundle_written_over_the_one_that_runs_is_not_said_to_run(garage: Garage, tmp_path: Path) -> None:
    with Daemon(tmp_path, vehicle=garage.vehicle) as daemon, pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDGE_ROAD_HOME", str(tmp_path))
        daemon.wait_for_state("dry")
        words = [str(tmp_path / "old"), "--vehicle", str(tmp_path / "vehicle.toml")]
        assert edge_road_swap(words) == 0, "it runs already"
        garage.bundle("old", model=upside_down())
        with pytest.raises(GateRefused, match="what this folder held before"):
            edge_road_swap(words)
        assert daemon.messages[-1].model_digest == garage.digest


def test_whoever_wishes_for_a_bundle_is_told_also_when_other_settings_decide(
    garage: Garage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = garage.bundle("new")
    file = tmp_path / "vehicle.toml"
    words = [str(tmp_path / "new"), "--vehicle", str(file), "--wait", "60"]
    with Daemon(tmp_path, vehicle=garage.vehicle) as daemon:
        daemon.wait_for_state("dry", timeout_s=90)
        monkeypatch.setenv("EDGE_ROAD_HOME", str(tmp_path))
        file.write_text(tomli_w.dumps({**garage.vehicle, "speed": 2.0}))  # needs a restart
        with pytest.raises(GateRefused) as refused:
            edge_road_swap(words)
        assert "cannot change while the daemon runs" in str(refused.value)
        file.write_text(tomli_w.dumps({**garage.vehicle, "rate": 15.0}))  # needs a new worker
        assert edge_road_swap(words) == 0
        daemon.wait_for(lambda m: m.model_digest == new and m.state == "dry", timeout_s=90)
        assert daemon.stop() == 0
