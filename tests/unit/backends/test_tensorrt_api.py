"""Every call that we make to `tensorrt` exists, with that signature, in NVIDIA's real bindings.

The bindings alone import once a stub library has the nine C functions they look for; no GPU and no
TensorRT is needed to ask them for their names. The stand-in of our tests is held to the same answers.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import fake_tensorrt
import pytest

ROOT = Path(__file__).resolve().parents[3]
CALLERS = (
    "backends/trt.py",
    "export/engine.py",
    "export/trt_network.py",
    "export/rtx_child.py",
)
WHEELS = {
    "10.3.0": "tensorrt-cu12-bindings",
    "10.16.1.11": "tensorrt-cu12-bindings",
    "11.4.0.106": "tensorrt-cu13-bindings",
}
# The name of a variable tells what it holds in the modules above.
RECEIVERS = {
    "builder": "Builder",
    "cache": "ITimingCache",
    "config": "IBuilderConfig",
    "context": "IExecutionContext",
    "engine": "ICudaEngine",
    "inspector": "EngineInspector",
    "network": "INetworkDefinition",
    "parser": "OnnxParser",
    "parser_error": "ParserError",
    "profile": "IOptimizationProfile",
    "runtime": "Runtime",
}
FUNCTIONS = """
    createInferBuilder_INTERNAL createInferRefitter_INTERNAL createInferRuntime_INTERNAL
    createNvOnnxParser_INTERNAL createNvOnnxParserRefitter_INTERNAL getBuilderPluginRegistry
    getPluginRegistry getNvOnnxParserVersion initLibNvInferPlugins
"""
Api = dict[str, Any]


@pytest.fixture(scope="module", params=[*sorted(WHEELS), "tensorrt_rtx"])
def api(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Api:
    if request.param == "tensorrt_rtx":
        if find_spec("tensorrt_rtx") is None:
            pytest.skip("TensorRT-RTX is not installed")
        return _ask("tensorrt_rtx", {})
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("bindings")
    _unpack_wheel(request.param, folder)
    _compile_stubs(compiler, request.param.split(".")[0], folder)
    answer = _ask("tensorrt_bindings", {"LD_LIBRARY_PATH": str(folder), "PYTHONPATH": str(folder)})
    assert answer["version"] == request.param
    return answer


def _ask(module: str, environment: dict[str, str]) -> Api:
    """In a process of its own: it may crash, and holds libraries that are none."""
    command = [sys.executable, str(ROOT / "tests" / "tensorrt_introspection.py"), module]
    environment = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    answer: Api = json.loads(done.stdout)
    return answer


def _unpack_wheel(version: str, folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "-qq",
        "download",
        "--no-deps",
        "--retries",
        "0",
        "--timeout",
        "20",
    ]
    try:
        command += ["--disable-pip-version-check", "-d", str(folder), f"{WHEELS[version]}=={version}"]
        subprocess.run(command, capture_output=True, timeout=90, check=True)
    except (OSError, subprocess.SubprocessError):
        pytest.skip(f"the bindings of TensorRT {version} cannot be downloaded for this Python")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder)


def _compile_stubs(compiler: str, major: str, folder: Path) -> None:
    source = folder / "stub.c"
    source.write_text("\n".join(f"void *{name}(void) {{ return 0; }}" for name in FUNCTIONS.split()))
    for library in ("libnvinfer", "libnvinfer_plugin", "libnvonnxparser"):
        path = folder / f"{library}.so.{major}"
        subprocess.run([compiler, "-shared", "-fPIC", "-o", str(path), str(source)], check=True, timeout=60)


def test_every_call_exists_with_its_signature(api: Api) -> None:
    used = list(_uses())
    assert len(used) > 60
    for where, kind, member, call in used:
        described = api["classes"].get(kind, {}).get(member)
        assert described is not None, f"{where}: {kind}.{member} is not in TensorRT {api['version']}"
        if call is not None and described["signatures"]:
            assert any(_fits(call, text) for text in described["signatures"]), (
                f"{where}: {kind}.{member} is called otherwise than {described['signatures']}"
            )


def test_the_stand_in_offers_nothing_that_the_real_one_lacks(api: Api) -> None:
    flags = fake_tensorrt.network_flags(api["version"])
    assert {flag.name: flag.value for flag in flags}.items() <= api["network_flags"].items()
    for kind in (*fake_tensorrt.CLASSES, *fake_tensorrt.ENUMS):
        real = api["classes"][kind.__name__]
        for name in _public_names(kind):
            assert name in real, f"{kind.__name__}.{name} is not in TensorRT {api['version']}"
            member = vars(kind).get(name)
            if inspect.isfunction(member) and real[name]["signatures"]:
                ours = list(inspect.signature(member).parameters)[1:]
                assert any(_same_names(ours, text) for text in real[name]["signatures"]), (
                    f"{kind.__name__}.{name}{ours} is {real[name]['signatures']}"
                )


def test_what_version_11_removed_is_not_used() -> None:
    removed = r"BuilderFlag\.(FP16|INT8|BF16|FP8)|Calibrator|EXPLICIT_BATCH|supports_model\b|set_precision"
    for caller in CALLERS:
        assert not re.search(removed, (ROOT / "edge_road" / caller).read_text()), caller


def _uses() -> Any:
    """(place, class, member, call or none) of everything that our code asks of the vendor's objects."""
    for caller in CALLERS:
        tree = ast.parse((ROOT / "edge_road" / caller).read_text())
        calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                path = _dotted(node)
                call = calls.get(id(node))
                where = f"{caller}:{node.lineno}"
                if path[0] == "trt" and len(path) == 2 and call is not None:
                    yield where, path[1], "__init__", call
                elif path[0] == "trt" and len(path) >= 3:
                    # Called on the class, a method's first argument is the object itself.
                    yield where, path[1], path[2], None
                elif path[0] in RECEIVERS and len(path) == 2:
                    yield where, RECEIVERS[path[0]], path[1], call


def _dotted(node: ast.expr) -> list[str]:
    """`self._engine.get_tensor_name` -> engine, get_tensor_name"""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "?")
    parts.reverse()
    parts = parts[1:] if parts[0] == "self" else parts
    return [parts[0].lstrip("_"), *parts[1:]] if parts else ["?"]


def _parameters(signature: str) -> list[tuple[str, bool]]:
    """Name and whether it may be left out, without self."""
    inner, depth, current, found = signature[signature.index("(") + 1 :], 0, "", list[str]()
    for character in inner:
        if character in ")" and depth == 0:
            break
        depth += (character in "([{<") - (character in ")]}>")
        if character == "," and depth == 0:
            found.append(current)
            current = ""
        else:
            current += character
    found.append(current)
    named = [(text.split(":")[0].split("=")[0].strip(), "=" in text) for text in found]
    return named[1:]


def _fits(call: ast.Call, signature: str) -> bool:
    parameters = _parameters(signature)
    names = [name for name, _ in parameters]
    keywords = {keyword.arg for keyword in call.keywords}
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return keywords <= set(names)
    positional = len(call.args)
    given = set(names[:positional]) | keywords
    needed = {name for name, has_default in parameters if not has_default}
    return positional <= len(names) and keywords <= set(names[positional:]) and needed <= given


def _same_names(ours: list[str], signature: str) -> bool:
    parameters = _parameters(signature)
    rest = parameters[len(ours) :]
    return [name for name, _ in parameters[: len(ours)]] == ours and all(default for _, default in rest)


def _public_names(kind: type) -> list[str]:
    if kind in fake_tensorrt.ENUMS:
        return list(kind.__members__)  # type: ignore[attr-defined]
    assigned = re.findall(r"self\.([a-zA-Z]\w*)(?:: \w+)? = ", inspect.getsource(kind))
    return sorted({name for name in vars(kind) if not name.startswith("_")} | set(assigned))
