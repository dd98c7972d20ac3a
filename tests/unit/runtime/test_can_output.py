from __future__ import annotations

import re
from pathlib import Path

import can
import pytest
from hypothesis import given
from hypothesis import strategies as st
from road_messages import blind, road

from edge_road.clock import ScriptedClock, SystemClock
from edge_road.errors import EdgeRoadError
from edge_road.runtime.outputs.can_bus import CanBus
from edge_road.runtime.outputs.can_frame import COUNTERS, OTHER_REASON, REASONS, CanState, crc8, pack, unpack
from edge_road.runtime.quality import PROBLEMS
from edge_road.runtime.vehicle_outputs import CanOutput

STATES = st.builds(
    CanState,
    st.sampled_from(["dry", "wet", "icy", "unknown"]),
    st.none() | st.floats(0, 1),
    st.none() | st.floats(0, 60_000),
    st.lists(st.sampled_from(REASONS), max_size=1).map(tuple),
    st.just(True),
)


def test_the_checksum_is_sae_j1850() -> None:
    assert crc8(b"123456789") == 0x4B


@given(STATES, st.integers(0, 100))
def test_a_state_survives_the_bus(state: CanState, counter: int) -> None:
    back, number = unpack(pack(state, counter, 0x6E0), 0x6E0)
    assert (back.state, back.reasons, back.valid, number) == (
        state.state,
        state.reasons,
        True,
        counter % COUNTERS,
    )
    assert back.share is None if state.share is None else back.share == pytest.approx(state.share, abs=0.0026)


@given(STATES, st.integers(0, 63))
def test_a_flipped_bit_or_another_identifier_is_noticed(state: CanState, bit: int) -> None:
    frame = bytearray(pack(state, 3, 0x6E0))
    with pytest.raises(EdgeRoadError):
        unpack(bytes(frame), 0x6E1)
    frame[bit // 8] ^= 1 << bit % 8
    with pytest.raises(EdgeRoadError):
        unpack(bytes(frame), 0x6E0)


def test_an_old_message_is_sent_as_unknown() -> None:
    clock = ScriptedClock()
    bus = CanBus(CanOutput(kind="can"), clock)
    assert bus._state() == CanState()
    bus.publish(road("icy", 1), "")
    assert bus._state().valid
    clock.sleep(1.5)
    state, _ = unpack(pack(bus._state(), 0, 1), 1)
    assert (state.state, state.share, state.valid) == ("unknown", None, False)


def test_frames_come_at_their_rate_with_a_counter_without_holes() -> None:
    settings = CanOutput(kind="can", interface="virtual", channel="road-test", period_s=0.01)
    output = CanBus(settings, SystemClock())
    with can.Bus(interface="virtual", channel="road-test") as reader:
        output.publish(road("icy", 1), "")
        output.start()
        frames = [reader.recv(5) for _ in range(20)]
        output.publish(blind("shutdown", 2), "")
        output.close(2)
        while (frame := reader.recv(0.1)) is not None:
            frames.append(frame)
    states = [unpack(bytes(frame.data), 0x6E0) for frame in frames if frame]
    assert [counter for _, counter in states] == [n % COUNTERS for n in range(len(states))]
    assert states[5][0].state == "icy"
    assert (states[-1][0].state, states[-1][0].reasons) == ("unknown", ("shutdown",))


def test_a_bus_that_is_not_there_shows_in_health() -> None:
    output = CanBus(CanOutput(kind="can", interface="socketcan", channel="nocan9"), SystemClock())
    output.start()
    for _ in range(500):
        if output.health().detail not in ("", "not open yet"):
            break
        SystemClock().sleep(0.01)
    assert not output.health().ok
    output.close(1)


def test_the_dbc_file_tells_the_same_layout(root: Path) -> None:
    """Read by hand, so that no reader of such files is needed: name, start bit, length."""
    text = (root / "runtime" / "road_state.dbc").read_text()
    signals = {m[1]: (int(m[2]), int(m[3])) for m in re.finditer(r"SG_ (\w+) : (\d+)\|(\d+)@1\+", text)}
    frame = int.from_bytes(pack(CanState("icy", 0.5, 300.0, ("changing",), True), 9, 0x6E0), "little")

    def value(name: str) -> int:
        start, length = signals[name]
        return frame >> start & (1 << length) - 1

    assert "BO_ 1760 RoadState: 8" in text
    assert (value("Counter"), value("State"), value("Probability"), value("Age")) == (9, 3, 100, 300)
    assert (value("Doubted"), value("Changing"), value("Valid")) == (1, 1, 1)
    assert value("Reason") == REASONS.index("changing") + 1
    (named,) = re.findall(r"VAL_ 1760 Reason (.*) ;", text)
    numbers = {name: int(number) for number, name in re.findall(r'(\d+) "(\w+)"', named)}
    assert numbers == {**{name: n for n, name in enumerate(("none", *REASONS))}, "other": OTHER_REASON}


def test_every_reason_to_refuse_a_picture_has_a_number() -> None:
    assert set(PROBLEMS) <= set(REASONS)
