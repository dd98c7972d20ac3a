"""A few seconds of coverage-guided fuzzing of everything that reads a bundle."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from small_bundles import write_small_bundle
from tiny_onnx import SIZE, conv_bytes

HERE = Path(__file__).resolve().parent


@pytest.mark.skipif(find_spec("atheris") is None, reason="atheris is not installed")
def test_no_input_makes_a_reader_raise_anything_but_our_errors(tmp_path: Path) -> None:
    write_small_bundle(tmp_path / "bundle", conv_bytes(), size=SIZE, features=8)
    seeds = tmp_path / "seeds"
    seeds.mkdir()
    for number, name in enumerate(("manifest.json", "model.onnx", "probe.npz")):
        (seeds / name).write_bytes(bytes([number]) + (tmp_path / "bundle" / name).read_bytes())
    command = [sys.executable, str(HERE / "fuzz_readers.py"), str(seeds)]
    limits = [
        "-runs=3000",
        "-max_total_time=6",
        "-seed=1",
        "-max_len=20000",
        "-timeout=20",
        "-rss_limit_mb=4096",
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), str(HERE.parent)])}
    done = subprocess.run(
        [*command, *limits, f"-artifact_prefix={tmp_path}/"],
        capture_output=True,
        text=True,
        timeout=200,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Done" in done.stderr, done.stderr[-1000:]
