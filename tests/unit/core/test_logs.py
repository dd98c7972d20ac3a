from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from edge_road.logs import safe_text, set_up_logging


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)


def logged(stream: io.StringIO, message: str, *values: object) -> str:
    set_up_logging(stream)
    logging.getLogger("edge_road.test").warning(message, *values)
    return stream.getvalue()


def test_logs_are_json_lines_where_nobody_watches() -> None:
    line = logged(io.StringIO(), "the camera is %s", "lost")
    values = json.loads(line)
    assert values["message"] == "the camera is lost"
    assert values["level"] == "warning"
    assert values["logger"] == "edge_road.test"
    assert values["time"].endswith("Z")


def test_logs_are_plain_on_a_terminal() -> None:
    line = logged(Terminal(), "the camera is lost")
    assert line.removesuffix("\n").endswith("warning the camera is lost")


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_a_message_cannot_forge_a_line_or_move_the_cursor(stream: io.StringIO) -> None:
    line = logged(stream, "label %s", "ice\nERROR forged\x1b[2Jgone\x9b1m\u2028\u202e")
    text = line.removeprefix("\r\x1b[2K")
    assert text.count("\n") == 1
    assert not any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in text.removesuffix("\n"))
    assert "\\x1b" in text.replace("\\\\", "\\")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("rtsp://user:pass@10.0.0.5/live", "rtsp://***@10.0.0.5/live"),
        ("rtsp://user:p@ss@10.0.0.5/live", "rtsp://***@10.0.0.5/live"),
        ("http://h/x?token=abc&a=1", "http://h/x?token=***&a=1"),
        ("password: hunter2", "password: ***"),
        ("mail to a@b.c", "mail to a@b.c"),
    ],
)
def test_credentials_are_masked(text: str, masked: str) -> None:
    assert safe_text(text) == masked


def test_an_exception_stays_on_one_line() -> None:
    stream = io.StringIO()
    set_up_logging(stream)
    try:
        raise ValueError("rtsp://u:secret@h/")
    except ValueError:
        logging.getLogger("edge_road.test").exception("failed")
    assert stream.getvalue().count("\n") == 1
    assert "ValueError" in json.loads(stream.getvalue())["message"]
    assert "secret" not in stream.getvalue()
