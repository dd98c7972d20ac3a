"""The whole runtime imports where torch, torchvision, timm and matplotlib do not exist."""

from __future__ import annotations

import subprocess
import sys

REFUSE_AND_IMPORT = """
import importlib, pkgutil, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "torchvision", "timm", "matplotlib", "albumentations"}:
            raise ImportError(f"{name} has no place in a vehicle")

sys.meta_path.insert(0, Refuse())
import edge_road.runtime, edge_road.backends
for package in (edge_road.runtime, edge_road.backends):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if module.name != "edge_road.backends.trt":
            importlib.import_module(module.name)
print(len(sys.modules))
"""


def test_runtime_imports_without_torch(root) -> None:  # type: ignore[no-untyped-def]
    done = subprocess.run(
        [sys.executable, "-c", REFUSE_AND_IMPORT], cwd=root, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_supervisor_imports_no_decoder_and_no_model(root) -> None:  # type: ignore[no-untyped-def]
    heavy = "{'cv2', 'av', 'onnxruntime', 'onnx', 'torch'}"
    code = f"import sys, edge_road.runtime.supervisor; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
