"""What every test may use: the real road images where they are, and one torch thread."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from fault_rows import fault_row  # noqa: F401  (a fixture)

# Small models on few cores: more threads only get into each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The vehicle part is tested where torch is not installed: what needs it is not collected there.
# What makes an INT8 graph does not: its answers are compared on the ONNX Runtime of every vehicle.
HAS_TORCH = find_spec("torch") is not None
NEEDS_TORCH = re.compile(
    r"^(from|import) (torch|timm|safetensors|tiny_run|checkpoint_crashes|edge_road\.(nn|training|export))\b"
    r"(?!\.(calibration|half|quantize|target)\b)",
    re.MULTILINE,
)

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    if HAS_TORCH:
        return None
    if collection_path.is_dir():
        return True if collection_path.name in ("nn", "training", "export") else None
    return True if NEEDS_TORCH.search(collection_path.read_text()) else None


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real road images (road3/, rscd_sample/, video/, rscd_filenames.txt), not shipped."""
    if not (SHARED / "data").is_dir():
        pytest.skip("the real road images are not here")
    return SHARED / "data"


@pytest.fixture(scope="session")
def shared_weights() -> Path:
    """ImageNet weights as safetensors, not shipped."""
    if not (SHARED / "weights").is_dir():
        pytest.skip("the pretrained weights are not here")
    return SHARED / "weights"
