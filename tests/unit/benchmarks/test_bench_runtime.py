"""The runtime benchmark: the same video for everyone, honest sizes, and a small run from end to end."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="benchmarks are made where the training packages are")

import av

from benchmarks import runtime, runtime_material
from benchmarks.package_size import installed_mb
from benchmarks.peers import setup


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As on a machine without the dash-camera video, and with a short rendered one."""
    monkeypatch.setattr(runtime_material, "VIDEOS", tmp_path / "none")
    monkeypatch.setattr(runtime_material, "FRAMES", 12)
    monkeypatch.setattr(runtime_material, "SIZE", (96, 128))


@pytest.mark.usefixtures("rendered")
def test_a_video_is_repeated_at_the_wanted_rate(tmp_path: Path) -> None:
    assert runtime_material.write_video(tmp_path / "drive.mp4", fps=200, seconds=0.15) == "rendered.mp4"
    with av.open(str(tmp_path / "drive.mp4")) as container:
        times = [frame.time for frame in container.decode(video=0)]
    assert len(times) == 36, "whole rounds of 12 frames, until there are 30"
    assert times == sorted(times)
    assert times[-1] - times[0] == pytest.approx(35 / 200, rel=0.02)


def test_a_package_is_weighed_with_all_that_it_needs() -> None:
    assert installed_mb(["edge-road[vehicle]"]) > installed_mb(["onnxruntime"]) > installed_mb(["numpy"]) > 1
    assert installed_mb(["no-such-package"]) == 0


@pytest.mark.usefixtures("rendered")
def test_the_daemon_is_measured_beside_the_bare_loop() -> None:
    outcome = runtime.measure(runtime.QUICK)
    assert [claim.least or claim.most for claim in outcome.claims] == [0.9, 200, 70]
    assert all(claim.got.median > 0 for claim in outcome.claims)
    rows = {row[0] for row in outcome.tables[0].rows}
    assert rows == {runtime.OURS, runtime.DECODED, runtime.LIMIT}
    (figures,) = outcome.figures["rounds"][runtime.OURS]
    assert all(value > 0 for value in figures.values())


def test_peers_that_are_not_installed_are_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    material = runtime_material.Material(tmp_path)
    monkeypatch.setattr(runtime, "python_of_peers", lambda: tmp_path / "python")
    assert runtime.PEER in runtime._rivals(material, runtime.Plan())
    monkeypatch.setattr(runtime, "python_of_peers", lambda: None)
    ours = {runtime.OURS, runtime.DECODED, runtime.PACED}
    assert runtime._rivals(material, runtime.Plan()).keys() == {*ours, *runtime.LOOPS}


def test_peers_that_cannot_be_installed_stop_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_network() -> None:
        raise OSError("no network")

    monkeypatch.setattr(setup, "HOME", tmp_path)
    monkeypatch.setattr(setup, "install", no_network)
    assert setup.main() == 0
    assert "no network" in capsys.readouterr().err
    assert setup.python_of_peers() is None
