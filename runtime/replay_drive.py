"""Say again what a recorded drive said: python runtime/replay_drive.py --help"""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

from edge_road.cli import command  # noqa: E402

if __name__ == "__main__":
    sys.exit(command("replay"))
