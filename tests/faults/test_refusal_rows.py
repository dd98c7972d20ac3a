"""Rows 19, 30, 32 and 37: foreign engines, standing readers, misspelt settings, hostile addresses."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from camera_servers import wait_until
from fault_rows import FaultRow
from road_messages import road

from edge_road.backends.engine_store import EngineKey, EngineRecord, EngineStore
from edge_road.config import load_settings
from edge_road.errors import ConfigError
from edge_road.files import sha256
from edge_road.runtime.outputs.unix_socket import UnixSocket
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_outputs import UnixSocketOutput

ROOT = Path(__file__).resolve().parents[2]


def test_an_engine_of_another_machine_is_never_opened(tmp_path: Path, fault_row: FaultRow) -> None:
    """Only its record is read; a plan is code, so one that does not fit is not looked at."""
    store, plan = EngineStore(tmp_path), b"a plan"
    key = EngineKey(
        onnx_sha256="a" * 64, tensorrt="10.3.0", gpu="Orin", compute="8.7", precision="int8",
        shape=(4, 96, 96, 3),
    )  # fmt: skip
    record = EngineRecord(key=key, plan_sha256=sha256(plan), plan_bytes=len(plan))
    store.write_plan(record, plan)
    store.put_in_use(record)
    assert store.find(key) is not None
    others: list[dict[str, Any]] = [
        {"onnx_sha256": "b" * 64}, {"tensorrt": "10.3.1"}, {"tensorrt": "11.4.0"}, {"gpu": "Xavier"},
        {"compute": "8.6"}, {"precision": "float16"}, {"shape": (8, 96, 96, 3)}, {"shape": (4, 96, 128, 3)},
        {"device": "dla"},
    ]  # fmt: skip
    for other in others:
        wanted = key.model_copy(update=other)
        assert store.find(wanted) is None, other
        assert store.why_none(wanted)
    fault_row(
        19, "records of other GPUs, versions, precisions and shapes", state="", how="the store, no GPU",
        note=f"{len(others)} of {len(others)} not opened, each with its reason",
    )  # fmt: skip


@pytest.fixture
def local(tmp_path: Path) -> Iterator[UnixSocket]:
    output = UnixSocket(UnixSocketOutput(kind="unix_socket", path=tmp_path / "road.sock"), "van")
    output.start()
    yield output
    output.close(2)


def connect(output: UnixSocket) -> socket.socket:
    before, channel = output._hub.readers, socket.socket(socket.AF_UNIX)
    channel.settimeout(20)
    channel.connect(str(output.path))
    wait_until(lambda: output._hub.readers > before)
    return channel


def test_a_reader_that_stands_still_costs_the_publisher_and_the_others_nothing(
    local: UnixSocket, fault_row: FaultRow
) -> None:
    standing, reading = connect(local), connect(local)
    times_s, lines, newest = [], reading.makefile(), ""
    for seq in range(2000):
        message = road("dry", seq)
        line = message.to_json()
        began_s = time.monotonic()
        local.publish(message, line)
        times_s.append(time.monotonic() - began_s)
        newest = lines.readline()
    assert newest.strip() == line
    assert local.health().lost > 0
    standing.close()
    wait_until(lambda: local._hub.readers == 1)
    times_s.sort()
    note = (
        f"2,000 messages, all with the reader that reads; the other lost its oldest {local.health().lost}; "
        f"publishing took {1e3 * times_s[1000]:.2f} ms p50, {1e3 * times_s[1980]:.2f} ms p99"
    )
    assert times_s[1000] < 0.1  # one that waits for the reader would wait for ever
    fault_row(30, "a reader of the unix socket stands still", state="unchanged", how="in process", note=note)


def misspelt_lines(text: str) -> Iterator[tuple[int, str, str]]:
    """Number of the line, the right key, and the whole text with one letter of that key gone."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if match := re.match(r"([a-z_]{5,}) *=", line):
            key = match[1]
            wrong = key[:2] + key[3:]
            yield (
                number + 1,
                key,
                "\n".join([*lines[:number], line.replace(key, wrong, 1), *lines[number + 1 :]]),
            )


EVERYTHING = """\
vehicle = "van"
backend = "fake"
production = true
heartbeat_hz = 2.0
threads = 1
[source]
kind = "mjpeg"
url = "http://camera/road"
open_s = 2.0
silent_s = 1.0
[decision]
warn_s = 0.5
[quality]
dark_level = 16
frozen_frames = 10
obstructed_s = 3.0
[worker]
memory_mb = 1000
stall_s = 1.0
longest_pause_s = 5.0
[events]
most_mb = 10.0
most_unsaved_kb = 100.0
[[outputs]]
kind = "mqtt"
prefix = "fleet"
username = "van"
keepalive_s = 10
delivery = "backend_ack"
[[outputs]]
kind = "http"
clients = 3
snapshots = true
"""


def test_every_misspelt_key_is_refused_with_its_line_and_the_right_one(
    tmp_path: Path, fault_row: FaultRow
) -> None:
    path = tmp_path / "van.toml"
    texts = [EVERYTHING, *(p.read_text() for p in sorted((ROOT / "runtime" / "vehicles").glob("*.toml")))]
    typos = [typo for text in texts for typo in misspelt_lines(text)]
    for line, key, text in typos:
        path.write_text(text)
        with pytest.raises(ConfigError) as caught:
            load_settings(Vehicle, path)
        told = str(caught.value)
        assert f"{path}:{line}" in told, told
        assert f"did you mean '{key}'?" in told, told
    wrong = ["rate = -1", "rate = 0", 'rate = "fast"', "rate = nan", "heartbeat_hz = 0.1", "speed = 1e9",
             'vehicle = "../x"', "vehicle = 7", "bundle = 3", "[source]\nkind = 'usb'",
             "rate = 10\nrate = 20", "[source", "a = ", "\x00"]  # fmt: skip
    for text in wrong:
        path.write_text(text)
        with pytest.raises(ConfigError, match=re.escape(str(path))) as caught:
            load_settings(Vehicle, path)
        assert caught.value.exit_code == 2
    assert len(typos) > 30
    fault_row(
        32, "one letter missing in any key; values that make no sense", state="-", how="in process",
        note=f"{len(typos)} typos told with file, line and right key; {len(wrong)} bad values; exit code 2",
    )  # fmt: skip


BAD_ADDRESSES = (
    "", "/etc/passwd", "file:///etc/passwd", "concat:/etc/passwd|/etc/shadow", "tee:[f=mpegts]udp://10.0.0.1",
    "subfile,,start,0,end,9,,:/etc/passwd", "pipe:0", "data:text/plain,x", "gopher://camera/", "ftp://camera/x",
    "rtsp+file://camera/x", "rtsp:/etc/passwd", "rtsp://", "rtsp:///x", "rtsp://-o/x", "rtsp://host name/x",
    "rtsp://camera/a b", "rtsp://camera/\nInjected: 1", "rtsp://camera/\x00", "rtsp://camera:99999/x",
    "rtsp://camera/x|file:/etc/passwd", 'rtsp://camera/"; reboot; "', "rtsp://camera/`id`",
    "rtsp://camera/$(id)\n", "rtsp://camera/#x", "rtsp://camera/" + "a" * 600, "rtsp://cam\u0435ra/x",
    "http://camera/ ! filesrc location=/x", "javascript:alert(1)", "http://[::1/x", "http://a@b@c/ d",
    "https://\x1b[2J/x", "rtsp://%00/x", "\\\\host\\share",
)  # fmt: skip
BAD_DEVICES = (
    "/dev/mem", "/dev/../etc/passwd", "/dev/video0;reboot", "/dev/video0 ! filesink location=/x", "video0",
    "/dev/video0\n", "/dev/video99999", "/dev/v4l/by-id/../../mem", "-i", "/dev/stdin", "\x00", "",
)  # fmt: skip


def test_no_address_but_a_plain_camera_gets_through(fault_row: FaultRow) -> None:
    sources = [{"kind": kind, "url": text} for kind in ("rtsp", "mjpeg") for text in BAD_ADDRESSES]
    sources += [{"kind": "v4l2", "device": text} for text in BAD_DEVICES]
    sources += [
        {"kind": "csi", key: "0 ! filesink"} for key in ("sensor", "flip", "width", "pipeline", "fps")
    ]
    sources += [
        {"kind": "csi", "pipeline": "videotestsrc ! fakesink"},
        {"kind": "gstreamer", "pipeline": "x"},
    ]
    for source in sources:
        with pytest.raises(ValueError, match="validation error"):
            Vehicle.model_validate({"source": source})
    note = f"{len(sources)} texts refused before any decoder sees them"
    fault_row(37, "protocols, shells, control characters, pipelines", state="-", how="in process", note=note)
