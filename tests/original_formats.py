"""CIFAR-10 and SVHN, small and random, in the formats in which they are published."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


def make_cifar(folder: Path, per_batch: int = 40) -> dict[str, np.ndarray]:
    """file -> pictures N x 32 x 32 x 3."""
    rng = np.random.default_rng(0)
    written = {}
    for name in [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]:
        labels_N = np.arange(per_batch, dtype=np.uint8) % 10
        images_NHWC = rng.integers(256, size=(per_batch, 32, 32, 3), dtype=np.uint8)
        planes = images_NHWC.transpose(0, 3, 1, 2).reshape(per_batch, -1)
        (folder / name).write_bytes(np.hstack((labels_N[:, None], planes)).tobytes())
        written[name] = images_NHWC
    return written


def make_svhn(folder: Path, train: int = 60, test: int = 20) -> dict[str, np.ndarray]:
    """split -> pictures 32 x 32 x 3 x N; label 10 is the digit 0."""
    scipy_io = pytest.importorskip("scipy.io")
    rng = np.random.default_rng(0)
    written = {}
    for split, count in (("train", train), ("test", test)):
        images_HWCN = rng.integers(256, size=(32, 32, 3, count), dtype=np.uint8)
        labels = (np.arange(count) % 10 + 1).astype(np.uint8)[:, None]
        scipy_io.savemat(folder / f"{split}_32x32.mat", {"X": images_HWCN, "y": labels}, do_compression=True)
        written[split] = images_HWCN
    return written
