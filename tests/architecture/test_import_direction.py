"""core <- (datasets, synthetic, backends, evaluation, nn, web) <- stages <- scripts; heavy ones stay put."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "edge_road"
MODULES = sorted(PACKAGE.rglob("*.py"))
STAGES = {"training", "export", "runtime"}
MIDDLE = {"datasets", "synthetic", "backends", "evaluation", "nn", "web"}

# What a part may import of the others; everything may import the core.
ALLOWED: dict[str, set[str]] = {
    "core": set(),
    "synthetic": set(),
    "datasets": {"synthetic"},
    "backends": set(),
    "evaluation": {"datasets"},
    "nn": set(),
    "web": set(),
    **{stage: MIDDLE for stage in STAGES},
    "fleet": {"web"},
    "demo": {"synthetic"},
}
TORCH_LIVES_IN = ("nn/", "training/", "export/onnx_graph.py")
TENSORRT_LIVES_IN = ("backends/trt.py", "export/engine.py")


def part_of(relative: str) -> str:
    first = relative.split("/")[0].removesuffix(".py")
    return first if first in ALLOWED else "core"


def imported_modules(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_inwards(path: Path) -> None:
    relative = str(path.relative_to(PACKAGE))
    part = part_of(relative)
    for name in imported_modules(path):
        if name.startswith("edge_road."):
            target = part_of(name.removeprefix("edge_road.").replace(".", "/"))
            assert target in {"core", part} | ALLOWED[part], f"{relative} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_heavy_packages_stay_in_their_place(path: Path) -> None:
    relative = str(path.relative_to(PACKAGE))
    roots = {name.split(".")[0] for name in imported_modules(path)}
    if not relative.startswith(TORCH_LIVES_IN):
        assert not roots & {"torch", "torchvision", "timm"}, relative
    if relative not in TENSORRT_LIVES_IN:
        assert not roots & {"tensorrt", "tensorrt_rtx"}, relative
    if relative != "training/augment.py":
        assert "albumentations" not in roots, relative
    assert "pickle" not in roots, relative


def test_stages_never_import_each_other() -> None:
    assert all(ALLOWED[stage].isdisjoint(STAGES) for stage in STAGES)
