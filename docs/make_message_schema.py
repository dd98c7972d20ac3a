"""Writes docs/message.schema.json from the message itself: `python docs/make_message_schema.py`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)

from edge_road.road_state import message_schema  # noqa: E402

PAGE = ROOT / "docs" / "message.schema.json"


def text() -> str:
    return json.dumps(message_schema(), indent=2) + "\n"


if __name__ == "__main__":
    PAGE.write_text(text())
