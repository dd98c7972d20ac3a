"""What computer this is: read once from the kernel's own files; whatever is not there is none."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

JETPACK_OF_L4T = {32: "4", 34: "5", 35: "5", 36: "6", 38: "7"}
"""NVIDIA's Linux for Tegra, by its first number, belongs to this JetPack"""
LONGEST = 120
_L4T = re.compile(r"# R(\d{1,3}) \(release\), REVISION: (\d{1,3}(?:\.\d{1,3})?)")


@dataclass(frozen=True)
class MachineFacts:
    model: str | None
    """e.g. NVIDIA Jetson Orin Nano Developer Kit"""
    l4t: str | None
    jetpack: str | None
    cpu: str | None
    cores: int
    memory_mb: int | None


def machine_facts(root: Path = Path("/")) -> MachineFacts:
    l4t = _l4t(_text(root / "etc/nv_tegra_release"))
    memory_kb = _field(_text(root / "proc/meminfo"), "MemTotal")
    return MachineFacts(
        model=_first(root, "proc/device-tree/model", "sys/class/dmi/id/product_name"),
        l4t=l4t,
        jetpack=JETPACK_OF_L4T.get(int(l4t.split(".")[0])) if l4t else None,
        cpu=_field(_text(root / "proc/cpuinfo"), "model name"),
        cores=os.cpu_count() or 1,
        memory_mb=int(memory_kb.split()[0]) // 1024 if memory_kb and memory_kb.split()[0].isdigit() else None,
    )


def available_mb(root: Path = Path("/")) -> float | None:
    """Memory that programs could still get."""
    text = _field(_text(root / "proc/meminfo"), "MemAvailable")
    return int(text.split()[0]) / 1024 if text and text.split()[0].isdigit() else None


def held_back(root: Path = Path("/")) -> bool:
    """Whether heat or power keeps the processor below the clock that it could run at."""
    for folder in sorted((root / "sys/devices/system/cpu").glob("cpu*/cpufreq"))[:256]:
        allowed, possible = _text(folder / "scaling_max_freq"), _text(folder / "cpuinfo_max_freq")
        if allowed.isdigit() and possible.isdigit() and int(allowed) < int(possible):
            return True
    return False


def _l4t(text: str) -> str | None:
    found = _L4T.match(text)
    return f"{found[1]}.{found[2]}" if found else None


def _first(root: Path, *names: str) -> str | None:
    texts = (_text(root / name) for name in names)
    return next((text.splitlines()[0][:LONGEST] for text in texts if text), None)


def _field(text: str, name: str) -> str | None:
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()[:LONGEST] or None
    return None


def _text(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            text = file.read(16 * 1024).decode("utf-8", errors="replace")
    except OSError:
        return ""
    return "".join(c for c in text.rstrip("\0").strip() if c.isprintable() or c == "\n" or c == "\t")
