"""What every test may use: the real road images where they are, and one torch thread."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Small models on few cores: more threads only get into each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"


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
