from __future__ import annotations

from edge_road.clock import ScriptedClock
from edge_road.config import settings_digest
from edge_road.road_state import RoadState, parse_message
from edge_road.runtime.decision import Decision
from edge_road.runtime.evidence import Evidence, RegionEvidence
from edge_road.runtime.publisher import Publisher
from edge_road.runtime.vehicle import Vehicle

VEHICLE = Vehicle(vehicle="van-7")


class Listener:
    gone = False

    def __init__(self) -> None:
        self.lines: list[str] = []

    def publish(self, message: RoadState, line: str) -> None:
        self.lines.append(line)

    def close(self, timeout_s: float) -> None:
        pass


def evidence(captured_ns: int = 10**9) -> Evidence:
    return Evidence(
        number=4,
        captured_mono_ns=captured_ns,
        captured_utc="2026-01-01T00:00:00.000Z",
        regions=(RegionEvidence(name="road", probabilities=(0.90004, 0.09996, 0.0)),),
        stage_ms={"predict": 2.5},
    )


def test_a_state_carries_all_its_evidence() -> None:
    listener = Listener()
    publisher = Publisher(VEHICLE, ScriptedClock(mono_ns=10**9 + 42_000_000), [listener])
    publisher.model_digest = "abc"
    decision = Decision("dry", (), (0.98, 0.01, 0.01), 10**9)
    publisher.publish(decision, evidence(), dropped=3)
    message = parse_message(listener.lines[0])
    assert (message.vehicle, message.seq, message.state, message.dropped) == ("van-7", 0, "dry", 3)
    assert message.probabilities == {"dry": 0.98, "wet": 0.01, "icy": 0.01}
    assert message.regions[0].probabilities == {"dry": 0.9, "wet": 0.1, "icy": 0.0}
    assert message.age_ms == 42.0
    assert message.captured_utc == "2026-01-01T00:00:00.000Z"
    assert message.stage_ms == {"predict": 2.5}
    assert message.model_digest == "abc"
    assert message.config_digest == settings_digest(VEHICLE)
    assert message.valid_for_ms == 1000


def test_messages_are_numbered_without_a_hole_within_one_boot() -> None:
    listener = Listener()
    publisher = Publisher(VEHICLE, ScriptedClock(), [listener])
    blind = Decision("unknown", ("no_frames",), None, None)
    for _ in range(5):
        publisher.publish(blind, None, dropped=0)
    messages = [parse_message(line) for line in listener.lines]
    assert [message.seq for message in messages] == [0, 1, 2, 3, 4]
    assert len({message.boot_id for message in messages}) == 1
    assert Publisher(VEHICLE, ScriptedClock(), []).publish(blind, None, 0).boot_id != messages[0].boot_id


def test_a_blind_message_shows_nothing_of_an_old_frame() -> None:
    publisher = Publisher(VEHICLE, ScriptedClock(mono_ns=10**10), [])
    message = publisher.publish(Decision("unknown", ("no_frames",), None, None), evidence(), dropped=0)
    assert message.probabilities == {}
    assert message.regions == ()
    assert (message.captured_mono_ns, message.captured_utc, message.age_ms) == (None, None, None)


def test_what_a_sick_model_says_of_a_covered_region_is_not_told() -> None:
    covered = RegionEvidence(name="left", probabilities=(float("nan"), -1.0, 2.0), obstructed=True)
    seen = evidence().model_copy(update={"regions": (*evidence().regions, covered)})
    publisher = Publisher(VEHICLE, ScriptedClock(mono_ns=10**9), [])
    message = publisher.publish(Decision("dry", ("obstructed",), (0.98, 0.01, 0.01), 10**9), seen, dropped=0)
    assert [(r.name, bool(r.probabilities)) for r in message.regions] == [("road", True), ("left", False)]


def test_it_is_unheard_when_every_reader_is_gone() -> None:
    first, second = Listener(), Listener()
    publisher = Publisher(VEHICLE, ScriptedClock(), [first, second])
    first.gone = True
    assert not publisher.unheard
    second.gone = True
    assert publisher.unheard
    assert not Publisher(VEHICLE, ScriptedClock(), []).unheard
