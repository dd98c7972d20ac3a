"""The one place that sets up logging: plain lines on a terminal, JSON lines elsewhere.

What is logged may come from outside (URLs, labels, file names), so control characters are escaped
and passwords in URLs are masked. A storm of one kind of line is cut short: logs fill disks.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import datetime, timezone
from typing import TextIO

from edge_road.clock import Clock, SystemClock, utc_text

_CREDENTIALS = re.compile(r"(?<=://)[^/?#\s]*@")
_SECRET = re.compile(r"(?i)(?<![a-z])(token|password|passwd|pwd|secret|api_?key)(=|%3d|\s*:\s*)[^\s&\"']+")
# C0 and C1 controls, the line separators, and marks that reverse the direction of text.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def safe_text(text: str) -> str:
    """One line that cannot move the cursor, forge another line or show a password."""
    masked = _SECRET.sub(r"\1\2***", _CREDENTIALS.sub("***@", text))
    return _CONTROL.sub(_escaped, masked)


def set_up_logging(stream: TextIO | None = None, level: int = logging.INFO) -> None:
    stream = stream or sys.stderr
    sink = logging.StreamHandler(stream)
    sink.setFormatter(PlainLines() if stream.isatty() else JsonLines())
    sink.addFilter(Sparing())
    logging.basicConfig(level=level, handlers=[sink], force=True)


class Sparing(logging.Filter):
    """At most `MOST` warnings of one kind in `WINDOW_S`; the next one says how many were left out."""

    MOST, WINDOW_S, KINDS = 30, 60.0, 256

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__()
        self._clock = clock or SystemClock()
        self._told: dict[tuple[str, str], tuple[int, int]] = {}
        """kind -> when its window began, lines since"""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        kind, now_ns = (record.name, str(record.msg)), self._clock.mono_ns()
        began_ns, count = self._told.get(kind, (now_ns, 0))
        if now_ns - began_ns >= self.WINDOW_S * 1e9:
            left_out, began_ns, count = max(0, count - self.MOST), now_ns, 0
            if left_out:
                record.msg, record.args = f"{record.getMessage()} ({left_out} more were not shown)", None
        if len(self._told) >= self.KINDS and kind not in self._told:
            self._told.clear()  # words of others may differ every time; ours are few
        self._told[kind] = (began_ns, count + 1)
        return count < self.MOST


class PlainLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        # Clears the live line that may stand there.
        return f"\r\x1b[2K{_time(record)[11:19]} {record.levelname.lower():<8}{_message(self, record)}"


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        values = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": _message(self, record),
        }
        return json.dumps(values, ensure_ascii=False)


def _message(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    parts = [record.getMessage()]
    if record.exc_info:
        parts.append(formatter.formatException(record.exc_info))
    return safe_text("; ".join(line.strip() for part in parts for line in part.splitlines()))


def _time(record: logging.LogRecord) -> str:
    return utc_text(datetime.fromtimestamp(record.created, timezone.utc))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
