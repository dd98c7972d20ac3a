"""States and events through a real broker that goes away and comes back."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from mosquitto import Backend, Broker, free_port
from road_messages import BASE

from edge_road.client import StateReader
from edge_road.clock import SystemClock
from edge_road.errors import ConfigError
from edge_road.road_state import RoadState, parse_message
from edge_road.runtime.events.event import Severity, parse_event
from edge_road.runtime.events.eviction import Entry
from edge_road.runtime.events.journal import Journal
from edge_road.runtime.outputs.mqtt import Mqtt
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_outputs import EventSettings, MqttOutput


def dry(seq: int) -> RoadState:
    probabilities = {"dry": 0.9, "wet": 0.1, "icy": 0.0}
    return RoadState.model_validate(
        {
            **BASE,
            "seq": seq,
            "state": "dry",
            "probabilities": probabilities,
            "captured_mono_ns": 1,
            "age_ms": 1,
        }
    )


def blind(seq: int, reason: str) -> RoadState:
    values = {**BASE, "seq": seq, "state": "unknown", "probabilities": {}, "reasons": (reason,)}
    return RoadState.model_validate({**values, "captured_mono_ns": None, "age_ms": None})


class Sender:
    """An output with an outbox, as the supervisor would use them."""

    def __init__(self, folder: Path, port: int, **settings: Any) -> None:
        vehicle = Vehicle(vehicle="van", events=EventSettings(path=folder / "events.sqlite"))
        self.journal = Journal(vehicle, "b", SystemClock())
        chosen = MqttOutput(kind="mqtt", port=port, **{"connect_s": 2.0, "keepalive_s": 2, **settings})
        self.mqtt = Mqtt(chosen, "van", self.journal.writer, blind(0, "offline").to_json, SystemClock())
        self.sent: list[int] = []
        self._watch_what_is_sent()
        self.journal.start()
        self.mqtt.start()

    def _watch_what_is_sent(self) -> None:
        delivery = self.mqtt._delivery
        note_sent = delivery.sent

        def sent(message_id: int, entry: Entry) -> None:
            number = parse_event(entry.line).draft.details.get("number")
            if number is not None:
                self.sent.append(number)
            note_sent(message_id, entry)

        delivery.sent = sent  # type: ignore[method-assign]

    def say(self, message: RoadState) -> None:
        self.mqtt.publish(message, message.to_json())

    def note(self, number: int) -> None:
        self.journal.note("state", Severity.NOTE, {"number": number})

    def wait_until_delivered(self) -> None:
        for _ in range(1000):
            if self.journal.writer.flush(5) and self.journal.writer.health().waiting == 0:
                return
            time.sleep(0.01)
        raise AssertionError(self.journal.writer.health())

    def close(self) -> None:
        self.mqtt.close(3)
        self.journal.writer.close(3)


@contextmanager
def sender_to(folder: Path, port: int, **settings: Any) -> Iterator[Sender]:
    sender = Sender(folder, port, **settings)
    try:
        yield sender
    finally:
        sender.close()


def numbers(backend: Backend) -> list[int]:
    events = [parse_event(payload).draft.details for payload in backend.of("events")]
    return [event["number"] for event in events if "number" in event]


def test_a_state_is_retained_and_the_last_word_is_unknown(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Backend(broker.port) as backend:
        with sender_to(tmp_path, broker.port) as sender:
            sender.say(dry(1))
            backend.wait_for(lambda: backend.of("state"))
            sender.say(blind(2, "shutdown"))
        backend.wait_for(lambda: len(backend.of("state")) >= 2)
        with Backend(broker.port) as late:
            late.wait_for(lambda: late.of("state"))
            assert parse_message(late.of("state")[0]).reasons == ("shutdown",)
            assert late.received[0][2], "it was not retained"
    assert [parse_message(p).state for p in backend.of("state")][:1] == ["dry"]


def test_an_output_that_is_closed_amid_a_state_leaves_offline_behind(tmp_path: Path) -> None:
    """As new settings do: a state without an expiry would be told to every later subscriber."""
    with Broker(tmp_path) as broker, Backend(broker.port) as backend:
        with sender_to(tmp_path, broker.port) as sender:
            sender.say(dry(1))
            backend.wait_for(lambda: backend.of("state"))
        with Backend(broker.port) as late:
            late.wait_for(lambda: late.of("state"))
            assert parse_message(late.of("state")[0]).reasons == ("offline",)


def test_an_unchanged_state_is_told_again_before_it_is_stale(tmp_path: Path) -> None:
    """A quick heartbeat gives short validities, whatever `state_every_s` says."""
    with (
        Broker(tmp_path) as broker,
        Backend(broker.port) as backend,
        sender_to(tmp_path, broker.port, state_every_s=60.0) as sender,
    ):
        for seq in range(40):
            sender.say(dry(seq).model_copy(update={"valid_for_ms": 200}))
            time.sleep(0.05)
        backend.wait_for(lambda: len(backend.of("state")) >= 5)


def test_a_state_that_became_old_before_the_broker_came_is_not_sent(tmp_path: Path) -> None:
    """As when the supervisor hangs: this thread goes on, and must not tell the last state as a new one."""
    broker = Broker(tmp_path)
    with sender_to(tmp_path, broker.port) as sender:
        sender.say(dry(1))
        time.sleep(1.1)
        with broker, Backend(broker.port) as backend:
            sender.note(1)
            backend.wait_for(lambda: numbers(backend) == [1])
            assert backend.of("state") == []
            sender.say(dry(2))
            backend.wait_for(lambda: backend.of("state"))


def test_two_vehicles_of_one_name_are_told_of_and_do_not_fight_without_end(tmp_path: Path) -> None:
    """As with a copied disk: the broker ends the connection of the one when the other comes."""
    first, second = tmp_path / "first", tmp_path / "second"
    with (
        Broker(tmp_path) as broker,
        sender_to(first, broker.port) as one,
        sender_to(second, broker.port) as other,
    ):
        for _ in range(300):
            details = [sender.mqtt.health().detail for sender in (one, other)]
            if any("is another client called edge-road-van?" in detail for detail in details):
                return
            time.sleep(0.1)
    raise AssertionError(details)


def test_the_broker_forgets_a_state_that_is_no_longer_valid(tmp_path: Path) -> None:
    with (
        Broker(tmp_path) as broker,
        Backend(broker.port) as backend,
        sender_to(tmp_path, broker.port) as sender,
    ):
        sender.say(dry(1))
        backend.wait_for(lambda: backend.of("state"))
        time.sleep(2.2)
        with Backend(broker.port) as late:
            time.sleep(0.3)
            assert late.of("state") == []


def test_a_daemon_that_vanishes_leaves_offline_behind(tmp_path: Path) -> None:
    with (
        Broker(tmp_path) as broker,
        Backend(broker.port) as backend,
        sender_to(tmp_path, broker.port) as sender,
    ):
        sender.say(dry(1))
        backend.wait_for(lambda: backend.of("state"))
        sender.mqtt._closing.set()  # as if killed: no good-bye
        sender.mqtt._say_last_word = lambda client: client.socket().close() or True  # type: ignore[method-assign,assignment]
        sender.mqtt._call()
        backend.wait_for(lambda: parse_message(backend.of("state")[-1]).reasons == ("offline",))
    reader = StateReader()
    assert [reader.take(payload) for payload in backend.of("state")] == [True, True]
    assert reader.current().reasons == ("offline",)


def send_amid_outages(broker: Broker, backend: Backend, sender: Sender, events: int, gently: bool) -> None:
    for first in range(50, events, 50):
        backend.wait_for(lambda first=first: len(numbers(backend)) >= first - 30)  # type: ignore[misc]
        broker.down(gently)
        for number in range(first, first + 50):
            sender.note(number)
        time.sleep(0.2)
        broker.up()
    backend.wait_for(lambda: set(numbers(backend)) == set(range(events)), timeout_s=40)
    if gently:
        first_seen = list(dict.fromkeys(numbers(backend)))
        assert first_seen == sorted(first_seen)
    sender.wait_until_delivered()
    assert_none_overtakes(sender.sent)


def assert_none_overtakes(sent: list[int]) -> None:
    """It may go back to the front, never leave one out; a killed broker forgets who would have heard it."""
    for before, number in pairwise([-1, *sent]):
        assert number <= before + 1, (before, number)


def test_what_the_broker_keeps_it_need_not_get_again(tmp_path: Path) -> None:
    """Delivery ends at the broker: one that saves its sessions loses nothing when it is restarted."""
    broker = Broker(tmp_path, "allow_anonymous true", f"persistence true\npersistence_location {tmp_path}/")
    with broker, Backend(broker.port, session=True) as backend, sender_to(tmp_path, broker.port) as sender:
        for number in range(50):
            sender.note(number)
        send_amid_outages(broker, backend, sender, events=150, gently=True)


def test_with_the_backends_word_even_a_killed_broker_loses_nothing(tmp_path: Path) -> None:
    """Down at the start, then killed amid the events, with all that it had in memory."""
    broker = Broker(tmp_path)
    with sender_to(tmp_path, broker.port, delivery="backend_ack", resend_s=1.0) as sender:
        for number in range(50):
            sender.note(number)
        with broker, Backend(broker.port) as backend:
            acknowledge_everything(backend)
            send_amid_outages(broker, backend, sender, events=150, gently=False)


def acknowledge_everything(backend: Backend) -> None:
    """As a backend does that stores what it gets: it names the last event without a hole before it."""
    have: set[int] = set()
    forward = backend.client.on_message

    def on_message(client: Any, data: object, message: Any) -> None:
        forward(client, data, message)  # type: ignore[misc]
        if message.topic.endswith("/events"):
            have.add(parse_event(message.payload).seq)
            up_to = next(n for n in range(10**6) if n not in have) - 1
            if up_to >= 0:
                ack = json.dumps({"boot_id": "b", "up_to_seq": up_to})
                client.publish("edge_road/van/ack", ack, qos=0)

    backend.client.on_message = on_message


def test_a_wrong_password_shows_in_health_and_is_not_hammered(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("wrong\n")
    settings = {"username": "van", "password_file": tmp_path / "secret"}
    with (
        Broker(tmp_path, "allow_anonymous false") as broker,
        sender_to(tmp_path, broker.port, **settings) as sender,
    ):
        sender.note(1)
        for _ in range(300):
            if "authorized" in sender.mqtt.health().detail.lower():
                break
            time.sleep(0.02)
        assert not sender.mqtt.health().ok
        assert "authorized" in sender.mqtt.health().detail.lower()
        time.sleep(1.0)
        attempts = (tmp_path / "mosquitto.log").read_text().count("not authorised")
        assert attempts <= 1
        assert sender.journal.writer.health().waiting >= 1


def wait_for_health(sender: Sender, wanted: str) -> None:
    """Messages go on meanwhile; empty: until it is well."""
    for number in range(300):
        sender.say(dry(number))
        health = sender.mqtt.health()
        if health.ok == (not wanted) and wanted in health.detail:
            return
        time.sleep(0.05)
    raise AssertionError(sender.mqtt.health())


@pytest.mark.parametrize(("allowed", "refused"), [("state", "events"), ("events", "state")])
def test_a_topic_that_the_access_list_denies_shows_until_it_is_taken(
    tmp_path: Path, allowed: str, refused: str
) -> None:
    """The connection lives all the while, and nothing else would tell."""
    tmp_path.chmod(0o755)
    (tmp_path / "acl").write_text(f"topic write edge_road/van/{allowed}\n")
    broker = Broker(tmp_path, f"allow_anonymous true\nacl_file {tmp_path}/acl")
    with broker, sender_to(tmp_path, broker.port, resend_s=0.5) as sender:
        sender.note(1)
        wait_for_health(sender, f"{refused} is refused: Not authorized")
        assert refused == "state" or sender.journal.writer.health().waiting > 0
        (tmp_path / "acl").write_text("topic readwrite edge_road/#\n")
        assert broker.process is not None
        broker.process.send_signal(signal.SIGHUP)
        wait_for_health(sender, "")
        sender.wait_until_delivered()


def test_a_subscription_that_is_denied_shows(tmp_path: Path) -> None:
    """An access list in a file denies none: Mosquitto's plugin does, as other brokers do."""
    plugin = next(Path("/usr/lib").glob("*/mosquitto_dynamic_security.so"), None)
    if plugin is None:
        pytest.skip("no mosquitto_dynamic_security.so")
    access = {"publishClientSend": True, "publishClientReceive": True, "subscribe": False}
    rules = {"defaultACLAccess": access, "groups": [{"groupname": "all"}], "anonymousGroup": "all"}
    (tmp_path / "rules.json").write_text(json.dumps({**rules, "clients": [], "roles": []}))
    lines = f"allow_anonymous true\nplugin {plugin}\nplugin_opt_config_file {tmp_path}/rules.json"
    with (
        Broker(tmp_path, lines) as broker,
        sender_to(tmp_path, broker.port, delivery="backend_ack", inputs=True) as sender,
    ):
        wait_for_health(sender, "ack is refused: Not authorized; inputs is refused: Not authorized")


def test_no_broker_at_all_costs_nothing_but_shows(tmp_path: Path) -> None:
    with sender_to(tmp_path, free_port()) as sender:
        slowest_s = 0.0
        for number in range(300):
            began_s = time.monotonic()
            sender.say(dry(number))
            slowest_s = max(slowest_s, time.monotonic() - began_s)
        for _ in range(300):
            if "refused" in sender.mqtt.health().detail.lower():
                break
            time.sleep(0.02)
        assert "refused" in sender.mqtt.health().detail.lower()


def test_a_certificate_that_cannot_be_read_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="certificate"):
        Sender(tmp_path, 1, tls=True, ca_file=tmp_path / "missing.pem")
