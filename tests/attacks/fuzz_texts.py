"""Every reader of bytes from outside, for atheris; run by test_fuzz_smoke.py, or for longer by hand:

python tests/attacks/fuzz_texts.py seeds FOLDER          # writes the seeds
python tests/attacks/fuzz_texts.py FOLDER -max_total_time=600
EDGE_ROAD_READER=gpsd python tests/attacks/fuzz_texts.py FOLDER -max_total_time=60

The first byte chooses the reader, unless one is named. Only what a reader promises to raise may come out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import atheris

ROOT = Path(__file__).resolve().parents[2]
sys.path[0:0] = [str(ROOT), str(ROOT / "tests")]
OURS = [
    "edge_road.client", "edge_road.config", "edge_road.road_state", "edge_road.logs",
    "edge_road.datasets.headers", "edge_road.runtime.camera_address", "edge_road.runtime.crop_setup",
    "edge_road.runtime.inputs_parse", "edge_road.runtime.events.event", "edge_road.runtime.outputs.delivery",
    "edge_road.web.guard", "edge_road.runtime.sources.multipart",
]  # fmt: skip
with atheris.instrument_imports(include=OURS):
    from edge_road.client import EventReader, StateReader
    from edge_road.config import check_settings, parse_toml
    from edge_road.datasets.decode import decode_image
    from edge_road.errors import EdgeRoadError
    from edge_road.logs import safe_text
    from edge_road.road_state import parse_message
    from edge_road.runtime.camera_address import checked_address
    from edge_road.runtime.crop_setup import changed_text, parse_change
    from edge_road.runtime.events.event import parse_event
    from edge_road.runtime.inputs_parse import take_gpsd, take_json
    from edge_road.runtime.outputs.delivery import parse_ack
    from edge_road.runtime.sources.multipart import PictureParts, boundary_of
    from edge_road.runtime.vehicle import Vehicle
    from edge_road.runtime.vehicle_inputs import NO_INPUTS
    from edge_road.runtime.vehicle_outputs import HttpOutput
    from edge_road.web.guard import Guard

VEHICLE_FILE = 'vehicle = "van"\n[[regions]]\nname = "road"\ncrop = { left = 0.0, right = 1.0 }\n'
GUARD = Guard(HttpOutput(kind="http"), "secret")
CONTROLS = set("\x00\x07\x1b\r\n\x7f\x9b\u2028\u202e")


def read_vehicle(content: bytes) -> None:
    check_settings(Vehicle, parse_toml(text_of(content), "van.toml"), where="van.toml", text=text_of(content))


def read_change(content: bytes) -> None:
    changed_text(VEHICLE_FILE, parse_change(content), Path("van.toml"))


def read_as_client(content: bytes) -> None:
    """It may never raise, and never believes what has no right checksum."""
    states, events = StateReader(), EventReader()
    states.take(content)
    events.take(content)
    states.current()
    assert len(events.missing) <= 1


def read_head(content: bytes) -> None:
    """A request's head: method, path, then header lines."""
    lines = content.decode("latin-1").split("\n")
    headers = {name.lower(): value for name, _, value in (line.partition(":") for line in lines[2:])}
    method, path = (*lines, "", "")[:2]
    refusal = GUARD.refusal(method, path, headers)
    assert refusal is not None or method in ("GET", "HEAD") or "secret" in str(headers), (method, headers)


def read_parts(content: bytes) -> None:
    """A camera's stream, in pieces; the first line is its content type."""
    kind, _, body = content.partition(b"\n")
    boundary = boundary_of(kind.decode("latin-1"))
    parts = PictureParts(boundary or b"frame")
    for start in range(0, len(body), 97):
        parts.feed(body[start : start + 97])


def read_address(content: bytes) -> None:
    text = text_of(content)
    assert not CONTROLS & set(checked_address(text, ("rtsp", "http"))), "a control character got through"


def read_log_text(content: bytes) -> None:
    assert not CONTROLS & set(safe_text(text_of(content)))


def text_of(content: bytes) -> str:
    return content.decode("utf-8", "replace")


READERS: dict[str, tuple[Callable[[bytes], object], tuple[type[Exception], ...], bytes]] = {
    "vehicle": (read_vehicle, (EdgeRoadError,), VEHICLE_FILE.encode()),
    "message": (parse_message, (EdgeRoadError,), b'{"schema":"edge_road.state/1","state":"dry","crc32":1}'),
    "client": (read_as_client, (), b'{"schema":"edge_road.event/1","boot_id":"b","seq":1,"crc32":1}'),
    "event": (parse_event, (EdgeRoadError,), b'{"schema":"edge_road.event/1","severity":"note","crc32":1}'),
    "ack": (parse_ack, (EdgeRoadError,), b'{"boot_id":"b","up_to_seq":7}'),
    "inputs": (
        lambda content: take_json(NO_INPUTS, content, 1),
        (EdgeRoadError,),
        b'{"speed_mps":13.9,"ambient_c":-2.5,"position":{"latitude":48.1,"longitude":11.5}}',
    ),
    "gpsd": (
        lambda content: take_gpsd(NO_INPUTS, content, 1),
        (EdgeRoadError,),
        b'{"class":"TPV","mode":3,"lat":48.1,"lon":11.5,"speed":13.9,"eph":4.0}',
    ),
    "change": (read_change, (EdgeRoadError,), b'{"region":"road","crop":{"left":0.1,"right":0.9}}'),
    "head": (
        read_head,
        (),
        b"POST\n/reload\nhost: localhost:8770\norigin: http://localhost\nauthorization: x",
    ),
    "multipart": (
        read_parts,
        (ValueError,),
        b"multipart/x-mixed-replace; boundary=frame\n--frame\r\nContent-Length: 3\r\n\r\nabc\r\n--frame\r\n",
    ),
    "address": (read_address, (ValueError,), b"rtsp://user:p%40ss@camera-3.example:554/a?b=1"),
    "log": (read_log_text, (), b"rtsp://user:secret@host\x1b[2J token=abc"),
    "picture": (
        lambda content: decode_image(content, "fuzz"),
        (EdgeRoadError,),
        b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00\xff\xc0\x00\x0b\x08\x00\x10\x00\x10"
        b"\x01\x01\x11\x00\xff\xd9",
    ),
}
NAMES = tuple(READERS)


def read(content: bytes) -> None:
    name = os.environ.get("EDGE_ROAD_READER") or NAMES[content[0] % len(NAMES) if content else 0]
    reader, promised, _ = READERS[name]
    try:
        reader(content[1:])
    except promised:
        return


def write_seeds(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, (_, _, seed)) in enumerate(READERS.items()):
        (folder / name).write_bytes(bytes([number]) + seed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["seeds"]:
        write_seeds(Path(sys.argv[2]))
    else:
        atheris.Setup(sys.argv, read)
        atheris.Fuzz()
