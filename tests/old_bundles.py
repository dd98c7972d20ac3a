"""Bundles as past versions wrote them, byte for byte in what matters: each must load for ever.

The manifests are spelt out and not made by today's classes, which may have moved on.
"""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path

import numpy as np
from tiny_onnx import SIZE, conv_bytes, noise_images

from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.conditions import ROAD_CLASSES


def write_version_1(path: Path) -> None:
    """Schema version 1: edge_road 0.1, before bundles could be signed."""
    model = conv_bytes()
    images_NHWC = noise_images(3)
    logits_NC = OnnxPredictor(model, ROAD_CLASSES, SIZE, name="old").predict(images_NHWC).logits_NC
    probe = io.BytesIO()
    np.savez_compressed(probe, images=images_NHWC, labels=np.array([0, 1, 2]), logits_float32=logits_NC)
    contents = {"model.onnx": model, "probe.npz": probe.getvalue(), "report.json": b"{}"}
    manifest = {
        "schema_version": 1,
        "name": "old-0001",
        "version": "0.1.0",
        "classes": ["dry", "wet", "icy"],
        "preprocessing": {
            "height": SIZE[0],
            "width": SIZE[1],
            "crop": {"top": 0.0, "bottom": 1.0, "left": 0.0, "right": 1.0},
            "mean": [0.485, 0.456, 0.406],
            "std": [0.229, 0.224, 0.225],
        },
        "input_name": "images",
        "input_shape": [0, *SIZE, 3],
        "outputs": {"probabilities": [3], "logits": [3], "features": [8]},
        "artefacts": {
            "float32": {
                "file": "model.onnx",
                "temperature": 2.0,
                "confidence_threshold": 0.6,
                "centroids": [[0.0] * 8] * 3,
                "radii": [1.0, 1.0, 1.0],
            }
        },
        "calibration": None,
        "smoke_limits": {},
        "method": "softmax",
        "seed": 0,
        "recipe": {"name": "old"},
        "recipe_digest": "0" * 64,
        "data_digest": "0" * 64,
        "git_commit": None,
        "files": {
            name: {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
            for name, content in contents.items()
        },
    }
    path.mkdir()
    for name, content in contents.items():
        (path / name).write_bytes(content)
    (path / "manifest.json").write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")


WRITERS = {1: write_version_1}
