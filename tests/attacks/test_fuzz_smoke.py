"""A few seconds of coverage-guided fuzzing of everything that reads bytes from outside."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from fault_rows import FaultRow
from small_bundles import write_small_bundle
from tiny_onnx import SIZE, conv_bytes

HERE = Path(__file__).resolve().parent
pytestmark = pytest.mark.skipif(find_spec("atheris") is None, reason="atheris is not installed")


def fuzz(script: str, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), str(HERE.parent)])}
    command = [sys.executable, str(HERE / script), *words]
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", timeout=250, env=environment
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def limits(folder: Path, seconds: int, longest: int) -> list[str]:
    return [
        f"-max_total_time={seconds}", "-seed=1", f"-max_len={longest}", "-timeout=20", "-rss_limit_mb=4096",
        f"-artifact_prefix={folder}/",
    ]  # fmt: skip


def test_no_bundle_makes_a_reader_raise_anything_but_our_errors(tmp_path: Path) -> None:
    write_small_bundle(tmp_path / "bundle", conv_bytes(), size=SIZE, features=8)
    seeds = tmp_path / "seeds"
    seeds.mkdir()
    for number, name in enumerate(("manifest.json", "model.onnx", "probe.npz")):
        (seeds / name).write_bytes(bytes([number]) + (tmp_path / "bundle" / name).read_bytes())
    said = fuzz("fuzz_readers.py", str(seeds), "-runs=2000", *limits(tmp_path, seconds=4, longest=20_000))
    assert "Done" in said, said[-1000:]


def test_no_text_makes_a_reader_raise_anything_but_what_it_promises(
    tmp_path: Path, fault_row: FaultRow
) -> None:
    """Settings, messages, events, acknowledgements, inputs, gpsd, requests, streams, addresses, pictures."""
    seeds = tmp_path / "seeds"
    fuzz("fuzz_texts.py", "seeds", str(seeds))
    readers = len(list(seeds.iterdir()))
    said = fuzz("fuzz_texts.py", str(seeds), "-runs=12000", *limits(tmp_path, seconds=5, longest=3000))
    assert "Done" in said, said[-1000:]
    runs = said.split("Done ")[1].split()[0]
    note = f"{int(runs):,} texts for {readers} readers, 0 surprises"
    fault_row(36, "texts found by coverage-guided fuzzing", state="-", how="atheris", note=note)
