"""The export command killed at any step of its writing: the old bundle or the new one, never a mixture."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_killed_writers import killed_at
from tiny_onnx import SIZE, conv_bytes
from tiny_run import draw_pictures, write_run_without_weights

from edge_road.bundle import Bundle, load_bundle
from edge_road.export import exporting, gate_page, packing
from edge_road.export.exporting import Export, Exporter, export_run
from edge_road.export.gate import Parity
from edge_road.export.gate_file import read_verify_file
from edge_road.export.steps import Steps
from edge_road.export.target import Target, load_target
from edge_road.export.to_trt import main
from edge_road.keys import generate_key, public_path
from edge_road.preprocess import Preprocessing
from edge_road.recipe import ModelSettings, Recipe
from edge_road.recipe_data import FolderData
from edge_road.trust import Trust

pytest.importorskip("cryptography")
MOST_STEPS = 150
TARGET = """
name = "test"
tensorrt = false
float16 = false
int8 = false
[samples]
robustness = 6
[machine_limits]
measure = false
"""


def write_run(place: Path) -> Path:
    """Without weights: its ONNX model is given."""
    data = FolderData(kind="folder", path=draw_pictures(place / "pictures", count=15, side=32))
    run = place / "runs" / "tiny"
    preprocessing = Preprocessing(height=SIZE[0], width=SIZE[1])
    recipe = Recipe(name="tiny", data=data, model=ModelSettings(features=8))
    write_run_without_weights(run, recipe, preprocessing)
    (place / "target.toml").write_text(TARGET)
    generate_key(place / "key")
    return run


def made_once(call: Callable[..., Any]) -> Callable[..., Any]:
    """What a call gave first: a test of writing need not compute everything again."""
    known: list[Any] = []

    def remembered(*arguments: Any) -> Any:
        if not known:
            known.append(call(*arguments))
        return known[0]

    return remembered


class Place:
    def __init__(self, place: Path, patch: pytest.MonkeyPatch) -> None:
        # A forked child has no threads of the parent's: one for each session is the session's own.
        patch.setattr(os, "cpu_count", lambda: 1)
        self.run, self.bundle, self.patch, self.place = write_run(place), place / "bundle", patch, place
        self.words = [str(self.run), "--out", str(self.bundle), "--target", str(place / "target.toml")]
        self.words += ["--sign", str(place / "key")]
        parts: list[tuple[Any, str]] = [
            (packing, "_probe"),
            (packing, "_smoke_limits"),
            (gate_page, "gate_page"),
        ]
        self.slow = {(module, name): getattr(module, name) for module, name in parts}
        self.made: dict[int, dict[tuple[Any, str], Callable[..., Any]]] = {}

    def prepare(self, seed: int) -> None:
        """The next export is of a model drawn with this seed, made once and then only written."""
        if seed not in self.made:
            parity = Parity(images=1, differing=0, logit_difference=0.0, largest_logit=1.0)
            self.patch.setattr(Exporter, "make_float", lambda *_: (conv_bytes(seed=seed), parity))
            export: Export = export_run(self.run, self.target, Steps())
            slow = {part: made_once(original) for part, original in self.slow.items()}
            self.made[seed] = {(exporting, "export_run"): lambda *_: export, **slow}
        for (module, name), remembered in self.made[seed].items():
            self.patch.setattr(module, name, remembered)

    @property
    def target(self) -> Target:
        return load_target(str(self.place / "target.toml"))

    def export(self) -> None:
        signal.alarm(120)  # a child that hangs is a failure, not a wait
        assert main(self.words) == 0

    def load(self) -> Bundle:
        return load_bundle(self.bundle, Trust(trusted_keys=(str(public_path(self.place / "key")),)))


def test_the_export_command_killed_anywhere_leaves_the_old_bundle_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    place = Place(tmp_path, monkeypatch)
    digests = []
    for seed in (0, 1):
        place.prepare(seed)
        assert main(place.words) == 0
        digests.append(place.load().digest)
    new, verify = digests[1], tmp_path / "bundle.verify.json"
    place.prepare(0)
    assert main(place.words) == 0
    found = set()
    for step in range(1, MOST_STEPS):
        if place.load().digest == new:  # the last kill came after the swap: put the old one back
            place.prepare(0)
            assert main(place.words) == 0
        place.prepare(1)
        was_killed = killed_at(step, place.export)
        found.add(place.load().digest)
        assert read_verify_file(verify).bundle_digest in digests
        if not was_killed:
            break
    assert not was_killed
    assert place.load().digest == read_verify_file(verify).bundle_digest == new
    assert found == set(digests)
    capfd.readouterr()
