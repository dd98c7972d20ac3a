"""States and events to an MQTT 5 broker; a broker that is away, slow or hostile costs the publisher nothing.

A state is never queued: an old one is worse than none. Events come from the outbox and leave it only
when they are delivered. Every connection is a new client, so that nothing hides in its memory.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import select
import ssl
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from edge_road.clock import Clock
from edge_road.conditions import UNKNOWN
from edge_road.errors import ConfigError, EdgeRoadError
from edge_road.logs import safe_text
from edge_road.road_state import RoadState
from edge_road.runtime.events.writer import EventWriter
from edge_road.runtime.outputs.delivery import Delivery, parse_ack
from edge_road.runtime.outputs.output import OutputHealth
from edge_road.runtime.vehicle_outputs import MqttOutput
from edge_road.secret_file import read_secret

if TYPE_CHECKING:
    from paho.mqtt.client import Client

log = logging.getLogger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S, REFUSED_PAUSE_S = 0.5, 10.0, 30.0
TICK_S = 0.2
BRIEF_S, MANY = 5.0, 3
"""so many connections in a row that did not live longer: somebody else takes them away"""


class Mqtt:
    gone = False

    def __init__(
        self,
        settings: MqttOutput,
        vehicle: str,
        events: EventWriter,
        offline: Callable[[], str],
        machine: Clock,
        take_input: Callable[[bytes], None] = lambda payload: None,
    ) -> None:
        """`offline` makes the message that the broker sends in our name when we vanish."""
        self._settings, self._events, self._offline, self._machine = settings, events, offline, machine
        self._name, self._take_input = f"edge-road-{vehicle}", take_input
        self._password, self._tls = credentials(settings)
        self._topic = f"{settings.prefix}/{vehicle}"
        self._newest: tuple[RoadState, str, int] | None = None
        self._sent: RoadState | None = None
        self._sent_ns = 0
        self._delivery = Delivery(settings.window, settings.events_per_s, settings.resend_s)
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._closing = threading.Event()
        self._connected = False
        self._trouble = "not connected yet"
        self._refused = self._explained = False
        self._denied: dict[str, str] = {}
        """by topic, why the broker does not take or give it; replaced as a whole"""
        self._asked: dict[int, str] = {}
        """by message, whose topic the broker has not judged yet"""
        self._ask_state, self._subscribed_ns = True, 0
        self._last_word: int | None = None
        self._thread = threading.Thread(target=self._run, name="mqtt", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def publish(self, message: RoadState, line: str) -> None:
        self._newest = (message, line, self._machine.mono_ns())
        self._call()

    def publish_event(self, line: str) -> None:
        """Events are read from the outbox, which holds them until they are delivered."""

    def health(self) -> OutputHealth:
        name, denied = f"mqtt {self._settings.host}:{self._settings.port}", self._denied
        trouble = "; ".join(f"{topic} is refused: {why}" for topic, why in denied.items())
        trouble = trouble if self._connected else self._trouble
        return OutputHealth(name, self._connected and not denied, trouble)

    def close(self, timeout_s: float) -> None:
        self._closing.set()
        self._call()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        if not self._thread.is_alive():
            os.close(self._wake)

    def _call(self) -> None:
        with contextlib.suppress(OSError):  # full means that it is awake already
            os.eventfd_write(self._wake, 1)

    def _run(self) -> None:
        pause_s, brief = FIRST_PAUSE_S, 0
        while not self._closing.is_set():
            self._refused = self._explained = False
            began_ns = self._machine.mono_ns()
            try:
                self._serve(self._open())
            except (OSError, ValueError) as error:
                self._note(safe_text(str(error)) or type(error).__name__)
            was_brief = self._machine.mono_ns() - began_ns < BRIEF_S * 1e9
            brief = brief + 1 if self._connected and was_brief else 0
            pause_s = FIRST_PAUSE_S if self._connected else min(2 * pause_s, LONGEST_PAUSE_S)
            if brief >= MANY and not self._closing.is_set():
                pause_s = LONGEST_PAUSE_S
                self._note(f"every connection is soon lost: is another client called {self._name}?")
            self._connected = False
            self._delivery.connection_lost()
            self._closing.wait((REFUSED_PAUSE_S if self._refused else pause_s) * random.uniform(0.5, 1.0))

    def _open(self) -> Client:
        """Only here is paho imported: it takes longer than a heartbeat may wait."""
        from paho.mqtt.client import Client, MQTTv5
        from paho.mqtt.enums import CallbackAPIVersion

        client = Client(CallbackAPIVersion.VERSION2, client_id=self._name, protocol=MQTTv5)
        if self._settings.username is not None:
            client.username_pw_set(self._settings.username, self._password)
        if self._tls is not None:
            client.tls_set_context(self._tls)
        client.connect_timeout = self._settings.connect_s
        client.max_inflight_messages_set(self._settings.window + 2)
        client.will_set(f"{self._topic}/state", self._offline(), qos=1, retain=True)
        client.on_connect = self._on_connect
        client.on_publish = self._on_publish
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_message
        client.on_disconnect = self._on_disconnect
        client.connect(self._settings.host, self._settings.port, self._settings.keepalive_s, clean_start=True)
        return client

    def _serve(self, client: Client) -> None:
        """Until the connection is lost or the last word is spoken."""
        opened_ns, ends_ns = self._machine.mono_ns(), None
        while (sock := client.socket()) is not None:
            self._wait(client, sock)
            if client.loop_misc() != 0:
                return None if self._explained else self._note("the broker does not answer")
            now_ns = self._machine.mono_ns()
            if not self._connected:
                if now_ns - opened_ns > self._settings.connect_s * 1e9:
                    return self._note("the broker does not answer")
                continue
            self._subscribe_again(client, now_ns)
            self._send_state(client, now_ns)
            self._send_events(client, now_ns)
            if self._closing.is_set():
                ends_ns = ends_ns or now_ns + 10**9
                if now_ns > ends_ns or self._say_last_word(client):
                    client.disconnect()
                    return None
        return None

    def _wait(self, client: Client, sock: Any) -> None:
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        poll.register(sock, select.POLLIN | (select.POLLOUT if client.want_write() else 0))
        pending = self._tls is not None and sock.pending() > 0
        ready = dict(poll.poll(0 if pending else TICK_S * 1000))
        if self._wake in ready:
            os.eventfd_read(self._wake)
        state = ready.get(sock.fileno(), 0)
        if pending or state & ~select.POLLOUT:
            client.loop_read()
        if state & select.POLLOUT:
            client.loop_write()

    def _send_state(self, client: Client, now_ns: int) -> None:
        """The newest one, at once when it is new; none that has become old, or before the last is taken."""
        if self._newest is None or client.want_write():
            return
        message, line, made_ns = self._newest
        if message is self._sent or now_ns - made_ns > message.valid_for_ms * 1e6:
            return
        changed = self._sent is None or _word(message) != _word(self._sent)
        every_s = min(self._settings.state_every_s, message.valid_for_ms / 2000)
        if changed or now_ns - self._sent_ns >= every_s * 1e9:
            self._publish_state(client, line, _expiry(message))
            self._sent, self._sent_ns = message, now_ns

    def _publish_state(self, client: Client, line: str, expiry: Any) -> None:
        """The first of a connection asks for an answer: that states are not allowed is told no other way."""
        topic, qos = f"{self._topic}/state", int(self._ask_state)
        sent = client.publish(topic, line, qos=qos, retain=True, properties=expiry)
        if self._ask_state:
            self._ask_state, self._asked[sent.mid] = False, "state"

    def _send_events(self, client: Client, now_ns: int) -> None:
        if client.want_write() or not (room := self._delivery.room(now_ns)):
            return
        waiting = self._events.after(self._delivery.cursor, room)
        self._delivery.resend_if_stuck(waiting, now_ns)
        for entry in waiting:
            sent = client.publish(f"{self._topic}/events", entry.line, qos=1)
            if sent.rc != 0:
                return
            self._delivery.sent(sent.mid, entry)

    def _say_last_word(self, client: Client) -> bool:
        """True when the final state and the events on their way have reached the broker."""
        if self._last_word is None and self._newest is not None:
            message, line, _ = self._newest
            # The broker keeps it for ever, and after a good-bye it sends no last will.
            word = line if message.state == UNKNOWN else self._offline()
            self._last_word = client.publish(f"{self._topic}/state", word, qos=1, retain=True).mid
        rest = self._events.after(self._delivery.cursor, 1)
        return self._last_word == 0 and self._delivery.idle and not rest

    def _on_connect(self, client: Client, _data: object, _flags: object, reason: Any, _more: object) -> None:
        if reason.is_failure:
            self._refused = reason.value in (134, 135)  # bad user name or password, not authorised
            return self._note(str(reason))
        log.info("connected to the broker %s:%d", self._settings.host, self._settings.port)
        self._connected, self._sent, self._ask_state = True, None, True
        self._asked.clear()
        self._delivery.progressed(self._machine.mono_ns())
        wanted = {"ack": self._settings.delivery == "backend_ack", "inputs": self._settings.inputs}
        self._subscribe(client, [topic for topic, is_wanted in wanted.items() if is_wanted])
        return None

    def _subscribe(self, client: Client, topics: Sequence[str]) -> None:
        self._subscribed_ns = self._machine.mono_ns()
        for topic in topics:
            _, mid = client.subscribe(f"{self._topic}/{topic}", qos=int(topic == "ack"))
            if mid is not None:
                self._asked[mid] = topic

    def _subscribe_again(self, client: Client, now_ns: int) -> None:
        """An access list may be mended while the connection lives."""
        if self._denied and now_ns - self._subscribed_ns > REFUSED_PAUSE_S * 1e9:
            self._subscribe(client, [topic for topic in ("ack", "inputs") if topic in self._denied])

    def _on_subscribe(
        self, _client: Client, _data: object, mid: int, reasons: Sequence[Any], _more: object
    ) -> None:
        if (topic := self._asked.pop(mid, None)) is not None:
            self._judge(topic, reasons[0])

    def _on_publish(self, _client: Client, _data: object, mid: int, reason: Any, _more: object) -> None:
        if mid == self._last_word:
            self._last_word = 0
        if self._asked.pop(mid, None) is not None:
            self._ask_state = reason.is_failure
            self._judge("state", reason)
        entry_id = self._delivery.broker_has(mid)
        if entry_id is None:
            return
        self._judge("events", reason)
        if self._settings.delivery == "broker_ack" and not reason.is_failure:
            self._events.delivered([entry_id])

    def _judge(self, topic: str, reason: Any) -> None:
        """A broker that refuses a topic keeps the connection: nobody would miss what does not come."""
        others = {name: why for name, why in self._denied.items() if name != topic}
        if reason.is_failure and topic not in self._denied:
            log.warning("the broker refuses %s/%s: %s", self._topic, topic, reason)
        elif not reason.is_failure and topic in self._denied:
            log.info("the broker takes %s/%s again", self._topic, topic)
        self._denied = {**others, topic: str(reason)} if reason.is_failure else others

    def _on_message(self, _client: Client, _data: object, message: Any) -> None:
        if message.topic == f"{self._topic}/inputs":
            return None if message.retain else self._take_input(message.payload)  # retained: of unknown age
        try:
            ack = parse_ack(message.payload)
        except EdgeRoadError as error:
            return log.warning("a message on the ack topic is ignored: %s", error)
        self._delivery.progressed(self._machine.mono_ns())
        self._events.delivered_up_to(ack.boot_id, ack.up_to_seq, self._delivery.cursor)
        return None

    def _on_disconnect(
        self, _client: Client, _data: object, _flags: object, reason: Any, _more: object
    ) -> None:
        if not self._closing.is_set() and self._connected:
            self._note(f"the connection was lost: {reason}")

    def _note(self, trouble: str) -> None:
        self._explained = True
        if trouble != self._trouble:
            log.warning("broker %s:%d: %s", self._settings.host, self._settings.port, trouble)
        self._trouble = trouble


def credentials(settings: MqttOutput) -> tuple[str | None, ssl.SSLContext | None]:
    """Password and certificates, read at the start: what cannot be read is the user's to mend."""
    password = read_secret(settings.password_file) if settings.password_file else None
    return password, _tls(settings) if settings.tls else None


def _word(message: RoadState) -> tuple[str, tuple[str, ...]]:
    return message.state, message.reasons


def _expiry(message: RoadState) -> Any:
    """A road state must not outlive its validity in the broker; `unknown` never becomes wrong."""
    if message.state == UNKNOWN:
        return None
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    properties.MessageExpiryInterval = max(1, -(-message.valid_for_ms // 1000))
    return properties


def _tls(settings: MqttOutput) -> ssl.SSLContext:
    where: object = settings.ca_file
    try:
        context = ssl.create_default_context(cafile=str(where) if where else None)
        if settings.cert_file is not None and settings.key_file is not None:
            for where in (settings.cert_file, settings.key_file):
                where.open().close()  # ssl does not say which of them cannot be opened
            where = f"{settings.cert_file}, {settings.key_file}"
            context.load_cert_chain(settings.cert_file, settings.key_file, password=_nobody_to_ask)
    except (OSError, ValueError) as error:
        raise ConfigError("a certificate for the broker cannot be read", where=where, got=error) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _nobody_to_ask() -> str:
    """Without it, OpenSSL asks for the password of a key on the terminal, and waits."""
    raise ValueError("the key is encrypted; a vehicle has nobody to ask for its password")
