"""`edge-road smoke`: a table and exit code 0, or the breach and exit code 6."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from fake_cuda import install_fake_gpu
from fake_tensorrt import install_fake_tensorrt
from small_bundles import write_small_bundle
from tiny_bundle import write_tiny_bundle
from tiny_onnx import SIZE, conv_bytes

from edge_road.backends.engine_store import store_of
from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.bundle import load_bundle
from edge_road.cli import main as edge_road
from edge_road.clock import SystemClock
from edge_road.export.engine import build_engine
from edge_road.export.target import EngineSettings
from edge_road.runtime.outputs.self_test import SelfTest
from edge_road.runtime.status import Status
from edge_road.runtime.vehicle import Vehicle


def test_a_sound_bundle_passes_and_shows_its_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = write_tiny_bundle(
        tmp_path / "sound", smoke_limits={"clean": 0.9, "gaussian_40": 0.8, "dark": 0.3}
    )
    assert edge_road(["smoke", str(bundle)]) == 0
    shown = capsys.readouterr().out
    assert "gaussian_40" in shown
    assert "100.0%" in shown
    assert "BREACHED" not in shown


@pytest.mark.parametrize("threads", ["0", "-1", "65", "9999", "two"])
def test_threads_are_as_many_as_a_vehicle_file_may_ask_for(
    threads: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        edge_road(["smoke", str(tmp_path), "--threads", threads])
    assert caught.value.code == 2
    assert "is not a number from 1 to 64" in capsys.readouterr().err


def test_the_newest_bundle_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EDGE_ROAD_HOME", str(tmp_path))
    assert edge_road(["smoke"]) == 3
    assert "no bundle yet" in capsys.readouterr().err
    write_tiny_bundle(tmp_path / "bundles" / "only")
    assert edge_road(["smoke", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["passed"] is True
    assert answer["bundle"].endswith("only")
    assert answer["schema"] == "edge_road.smoke/1"
    assert answer["models"]["float32"]["accuracies"]["clean"] == 1.0


def test_the_engine_that_will_drive_is_what_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install_fake_gpu(monkeypatch)
    install_fake_tensorrt(monkeypatch)
    bundle = tmp_path / "b"
    write_small_bundle(bundle, conv_bytes(), size=SIZE, features=8, smoke_limits={"clean": 0.0})
    words = ["smoke", str(bundle), "--backend", "tensorrt"]
    assert edge_road(words) == 4
    assert "no engine has been built" in capsys.readouterr().err
    build_engine(load_bundle(bundle), "float32", EngineSettings(), store_of(bundle))
    monkeypatch.setattr(OnnxPredictor, "__init__", None)
    assert edge_road(words) == 0


def test_a_bundle_that_lost_its_accuracy_is_refused_with_exit_code_6(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = write_tiny_bundle(tmp_path / "swapped", smoke_limits={"clean": 0.9}, levels=(210, 125, 40))
    assert edge_road(["smoke", str(bundle), "--json"]) == 6
    captured = capsys.readouterr()
    assert json.loads(captured.out)["passed"] is False
    assert "float32 clean 33.3%" in captured.err
    assert "clean 90.0% or more" in captured.err


@pytest.mark.parametrize(
    ("limits", "words"),
    [({}, "sets no limits"), ({"sandstorm": 0.5}, "this version does not know")],
)
def test_a_bundle_without_usable_limits_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], limits: dict[str, float], words: str
) -> None:
    bundle = write_tiny_bundle(tmp_path / "odd", smoke_limits=limits)
    assert edge_road(["smoke", str(bundle)]) == 3
    assert words in capsys.readouterr().err


def test_a_precision_that_is_not_there_and_a_changed_file_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = write_tiny_bundle(tmp_path / "b")
    assert edge_road(["smoke", str(bundle), "--precision", "int8"]) == 3
    assert "no int8 model" in capsys.readouterr().err
    with open(bundle / "model.onnx", "ab") as file:
        file.write(b"x")
    assert edge_road(["smoke", str(bundle)]) == 3
    assert "cut or changed" in capsys.readouterr().err


def test_an_int8_model_with_a_wrong_scale_is_refused_and_a_right_one_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = {"clean": 0.9, "gaussian_40": 0.8}
    right = write_tiny_bundle(tmp_path / "right", smoke_limits=limits, int8_step=2.0)
    assert edge_road(["smoke", str(right)]) == 0
    wrong = write_tiny_bundle(tmp_path / "wrong", smoke_limits=limits, int8_step=0.5)
    assert edge_road(["smoke", str(wrong), "--precision", "float32"]) == 0
    capsys.readouterr()
    assert edge_road(["smoke", str(wrong), "--json"]) == 6
    captured = capsys.readouterr()
    models = json.loads(captured.out)["models"]
    assert models["float32"]["passed"]
    assert not models["int8"]["passed"]
    assert models["int8"]["breaches"] == list(limits)
    assert "int8 clean 33.3%" in captured.err


@pytest.mark.parametrize(
    ("predictor", "passes"),
    [
        ("", True),
        ("fake", True),
        ("onnx float32 on CPU", True),
        ("onnx int8 on CPU", False),
        ("onnx float32 on CUDA", None),  # not to be had here, so nothing is said of it
        ("tensorrt float32 on Orin", None),
    ],
)
def test_the_page_tests_the_model_on_duty_also_where_the_daemon_chose_it(
    tmp_path: Path, predictor: str, passes: bool | None
) -> None:
    wrong_int8 = write_tiny_bundle(tmp_path / "wrong", smoke_limits={"clean": 0.9}, int8_step=0.5)
    vehicle, status = Vehicle(bundle=wrong_int8, backend="auto"), Status("van", "b", SystemClock())
    status.predictor = predictor
    result = asyncio.run(SelfTest(status, lambda: vehicle).run())
    assert result.get("passed") is passes
