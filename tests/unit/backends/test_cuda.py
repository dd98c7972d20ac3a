"""The question to the driver, asked of a compiled stand-in for libcuda."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from edge_road.backends.cuda import Gpu, find_gpu

DRIVER = """
#include <string.h>
int cuInit(unsigned flags) {{ return {init}; }}
int cuDeviceGetCount(int *count) {{ *count = {count}; return 0; }}
int cuDeviceGet(int *device, int ordinal) {{ *device = ordinal; return 0; }}
int cuDeviceGetName(char *name, int length, int device) {{ strncpy(name, "Orin", length); return 0; }}
int cuDeviceGetAttribute(int *value, int which, int device) {{
    *value = which == 75 ? 8 : which == 76 ? 7 : which == 16 ? {size} : 0;
    return 0;
}}
"""


def compiled(folder: Path, source: str) -> str:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    (folder / "driver.c").write_text(source)
    library = str(folder / "libcuda.so")
    command = [compiler, "-shared", "-fPIC", "-o", library, str(folder / "driver.c")]
    subprocess.run(command, check=True, timeout=60)
    return library


@pytest.mark.parametrize(("size", "name"), [(8, "Orin (8 SM)"), (16, "Orin (16 SM)"), (0, "Orin")])
def test_a_driver_with_a_device_tells_its_name_size_and_capability(
    size: int, name: str, tmp_path: Path
) -> None:
    assert find_gpu(compiled(tmp_path, DRIVER.format(init=0, count=1, size=size))) == Gpu(name, "8.7")


@pytest.mark.parametrize(("init", "count"), [(100, 1), (0, 0)])
def test_a_driver_without_a_device_is_no_gpu(init: int, count: int, tmp_path: Path) -> None:
    assert find_gpu(compiled(tmp_path, DRIVER.format(init=init, count=count, size=8))) is None


def test_no_driver_or_something_else_is_no_gpu(tmp_path: Path) -> None:
    assert find_gpu("libcuda-that-is-not-there.so") is None
    assert find_gpu(compiled(tmp_path, "int other(void) { return 0; }")) is None
