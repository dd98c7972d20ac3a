"""Rows 33 and 36: what comes from the network is small, flat and exactly what was asked for, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from road_messages import road

from edge_road.clock import SystemClock
from edge_road.errors import EdgeRoadError
from edge_road.runtime.outputs.delivery import LARGEST_ACK_BYTES, BackendAck, parse_ack
from edge_road.runtime.status import Status
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_outputs import HttpOutput

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
)


def test_an_acknowledgement_is_read() -> None:
    assert parse_ack(b'{"boot_id":"b","up_to_seq":7}') == BackendAck("b", 7)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{}",
        b"[" * 900,
        b"\xff\xfe",
        b'{"boot_id":"b","up_to_seq":true}',
        b'{"boot_id":"b","up_to_seq":-1}',
        b'{"boot_id":"b","up_to_seq":1e9}',
        b'{"boot_id":"b","up_to_seq":99999999999999999999}',
        b'{"boot_id":"b","up_to_seq":1,"more":1}',
        b'{"boot_id":["b"],"up_to_seq":1}',
        b'{"boot_id":"","up_to_seq":1}',
        b'{"boot_id":"' + b"b" * LARGEST_ACK_BYTES + b'","up_to_seq":1}',
    ],
)
def test_a_hostile_acknowledgement_is_refused(payload: bytes) -> None:
    with pytest.raises(EdgeRoadError):
        parse_ack(payload)


@given(st.binary(max_size=2000) | JSON.map(lambda value: json.dumps(value).encode()))
def test_nothing_else_than_a_refusal_comes_of_nonsense(payload: bytes) -> None:
    try:
        ack = parse_ack(payload)
    except EdgeRoadError:
        return
    assert set(json.loads(payload)) == {"boot_id", "up_to_seq"}
    assert ack.up_to_seq >= 0


@pytest.mark.parametrize("shown", [None, "secret"])
def test_the_api_keeps_its_own_description(shown: str | None, tmp_path: Path) -> None:
    """schemathesis makes requests of every kind from our OpenAPI and checks each answer against it."""
    schemathesis = pytest.importorskip("schemathesis")
    pytest.importorskip("starlette")
    from edge_road.runtime.outputs.hub import Hub
    from edge_road.runtime.outputs.web_app import build_app
    from edge_road.web.guard import Guard

    status, asked = Status("van", "b", SystemClock()), []
    message = road("dry", 1, valid_for_ms=600_000)
    status.published(message, message.to_json())
    guard = Guard(HttpOutput(kind="http"), "secret")
    (tmp_path / "van.toml").write_text('vehicle = "van"\n')
    reload, file = (lambda: asked.append(1)), tmp_path / "van.toml"
    app = build_app(status, lambda: Vehicle(vehicle="van"), Hub(2, 4), guard, reload, file)
    headers = {"Host": "localhost", **({"Authorization": f"Bearer {shown}"} if shown else {})}
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers={"Host": "localhost"})
    streams, guessing = ["/events", "/camera"], ["/login"] if shown else []  # a wrong guess locks us out
    chosen = schema.exclude(path=streams + guessing)

    for operation in chosen.get_all_operations():

        @given(case=operation.ok().as_strategy())
        @settings(max_examples=5, deadline=None)
        def ask(case: Any) -> None:
            case.headers = {**(case.headers or {}), **headers}
            answer = case.call()
            assert answer.status_code < 500 or answer.status_code == 503, (case, answer.content)
            if shown is None:
                case.validate_response(answer)

        ask()
    if shown is None:
        assert asked == [], "something was changed without the token"
        assert file.read_text() == 'vehicle = "van"\n'
    else:
        assert asked, "the token opened nothing"
