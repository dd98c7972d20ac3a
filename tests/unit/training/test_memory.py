"""What one step frees, the next one uses again."""

from __future__ import annotations

import subprocess
import sys

import pytest

STEPS = """
import resource, sys
sys.path[:0] = [{root!r}]
from edge_road.training.memory import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    b"x" * len(range(40 << 20))  # not a constant, and every page touched
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
plain, kept = faults(), keep_freed_memory()
faults()
print(kept, plain, faults())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a choice of glibc")
def test_a_large_block_that_was_freed_costs_no_new_pages(root: object) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STEPS.format(root=str(root))],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    kept, before, after = done.stdout.split()
    if kept == "False":
        pytest.skip("this C library has no such choice")
    assert int(before) > 5_000, "40 MB are 10,240 pages"
    assert int(after) < 100
