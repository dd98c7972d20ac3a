"""A Jetson, a laptop and a bare container, as their kernels describe themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_road.runtime.machine_facts import available_mb, held_back, machine_facts

RELEASE = (
    "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64, "
    "DATE: Wed Jan  8 01:49:37 UTC 2025\n"
    "# KERNEL_VARIANT: oot\n"
)
MEMORY = "MemTotal:        7802604 kB\nMemFree:          310288 kB\nMemAvailable:    4194304 kB\n"


def put(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def test_a_jetson_says_what_it_is(tmp_path: Path) -> None:
    put(tmp_path, "proc/device-tree/model", "NVIDIA Jetson Orin Nano Developer Kit\0")
    put(tmp_path, "etc/nv_tegra_release", RELEASE)
    put(tmp_path, "proc/meminfo", MEMORY)
    put(tmp_path, "proc/cpuinfo", "processor\t: 0\nmodel name\t: ARMv8 Processor rev 1 (v8l)\n")
    facts = machine_facts(tmp_path)
    assert facts.model == "NVIDIA Jetson Orin Nano Developer Kit"
    assert (facts.l4t, facts.jetpack) == ("36.4.3", "6")
    assert facts.cpu == "ARMv8 Processor rev 1 (v8l)"
    assert facts.memory_mb == 7619
    assert available_mb(tmp_path) == 4096.0


def test_a_laptop_has_a_product_name(tmp_path: Path) -> None:
    put(tmp_path, "sys/class/dmi/id/product_name", "20XW\n")
    assert machine_facts(tmp_path).model == "20XW"


@pytest.mark.parametrize("text", ["", "\0\0", "R36", "# R36 (release), REVISION: x", "\x1b[31mred"])
def test_what_is_missing_or_odd_is_none(tmp_path: Path, text: str) -> None:
    for name in ("etc/nv_tegra_release", "proc/meminfo", "proc/cpuinfo"):
        put(tmp_path, name, text)
    facts = machine_facts(tmp_path)
    assert (facts.l4t, facts.jetpack, facts.cpu, facts.memory_mb) == (None, None, None, None)
    assert available_mb(tmp_path) is None
    assert facts.cores >= 1


def test_control_characters_do_not_get_through(tmp_path: Path) -> None:
    put(tmp_path, "proc/device-tree/model", "Board\x1b[31m\nsecond line")
    assert machine_facts(tmp_path).model == "Board[31m"


def test_a_processor_that_is_held_back(tmp_path: Path) -> None:
    assert not held_back(tmp_path)
    folder = "sys/devices/system/cpu/cpu0/cpufreq/"
    put(tmp_path, folder + "cpuinfo_max_freq", "1510400\n")
    put(tmp_path, folder + "scaling_max_freq", "1510400\n")
    assert not held_back(tmp_path)
    put(tmp_path, folder + "scaling_max_freq", "729600\n")
    assert held_back(tmp_path)


def test_this_very_machine_has_memory() -> None:
    assert machine_facts().memory_mb
