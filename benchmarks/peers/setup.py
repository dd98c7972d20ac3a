"""An environment of their own for those we are measured beside; it borrows torch from ours, and is optional.

python -m benchmarks.peers.setup

Ultralytics is AGPL: it is never imported by this project, only started as a program of its own.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

HOME = Path(__file__).resolve().parents[2] / ".venv" / "peers"
PYTHON = HOME / "bin" / "python"
PACKAGES = ("ultralytics",)


def python_of_peers() -> Path | None:
    """Their interpreter, where they are installed."""
    return PYTHON if (HOME / "installed").is_file() else None


def version_of_peer(package: str = "ultralytics") -> str:
    question = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.check_output([str(PYTHON), "-c", question], text=True, timeout=120).strip()


def install() -> None:
    """Borrowed packages lie behind their own in the search path, so nothing of ours changes."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(HOME)], check=True)
    packages = HOME / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    command = [sys.executable, "-m", "pip", "--python", str(PYTHON), "install", "-qq"]
    subprocess.run([*command, "--disable-pip-version-check", *PACKAGES], check=True)
    (HOME / "installed").touch()


def main() -> int:
    if python_of_peers() is None:
        try:
            install()
        except (OSError, subprocess.SubprocessError) as error:
            print(f"the peers cannot be installed, so they will be left out: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
