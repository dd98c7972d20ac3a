"""Freed memory is kept for the next step.

glibc gives every block above 32 MB back to the kernel when it is freed, and each activation of the next
step is then made of new pages, which the kernel must clear first: at 192x192 and batches of 64 that was
140,000 page faults and 19 % of a step's time, and twice that for a joint pass over clean and noisy copies.
"""

from __future__ import annotations

import ctypes

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h
_LARGEST = 1 << 30


def keep_freed_memory() -> bool:
    """For the rest of the process; False where the C library has no such choice."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _LARGEST)) and bool(mallopt(_M_TRIM_THRESHOLD, _LARGEST))
