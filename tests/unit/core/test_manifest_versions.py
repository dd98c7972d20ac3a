"""A vehicle outlives many versions: what was ever written can still be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from old_bundles import WRITERS

from edge_road import manifest as manifests
from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.backends.probe_check import check_probe
from edge_road.bundle import load_bundle


@pytest.mark.parametrize("version", sorted(WRITERS))
def test_a_bundle_of_a_past_version_loads_and_gives_its_own_outputs(version: int, tmp_path: Path) -> None:
    WRITERS[version](tmp_path / "old")
    bundle = load_bundle(tmp_path / "old")
    assert bundle.manifest.schema_version == manifests.NEWEST
    assert check_probe(OnnxPredictor.from_bundle(bundle), bundle.probe(), "float32") < 1e-4


def test_there_is_a_writer_and_a_step_for_every_version() -> None:
    assert sorted(WRITERS) == list(range(1, manifests.NEWEST + 1))
    assert sorted(manifests.STEPS) == list(range(1, manifests.NEWEST))


def test_steps_lead_from_version_to_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rehearsal of the next version: the old manifest is changed on its way, then checked as new."""
    WRITERS[1](tmp_path / "old")
    seen: list[int] = []

    def step(values: dict[str, object]) -> dict[str, object]:
        seen.append(int(str(values["schema_version"])))
        return {**values, "name": "renamed"}

    monkeypatch.setattr(manifests, "NEWEST", 3)
    monkeypatch.setattr(manifests, "STEPS", {1: step, 2: step})
    upgraded = manifests._as_newest({"schema_version": 1, "name": "old"}, tmp_path)
    assert (seen, upgraded) == ([1, 2], {"schema_version": 3, "name": "renamed"})
