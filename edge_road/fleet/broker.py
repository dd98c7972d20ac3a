"""The connection to the broker: subscribes, comes back when the broker does, and hands on what it gets."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

from edge_road.config import StrictModel, TopicPart
from edge_road.errors import ConfigError
from edge_road.logs import safe_text

log = logging.getLogger(__name__)

KEEPALIVE_S = 15
LARGEST_PACKET_BYTES = 128 * 1024
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1, 15
PORT, TLS_PORT = 1883, 8883


class BrokerAddress(StrictModel):
    host: str = "127.0.0.1"
    port: int = PORT
    prefix: TopicPart = "edge_road"
    username: str | None = None
    password: str | None = None
    tls: bool = False
    ca_file: Path | None = None


def parse_broker(text: str, tls: bool) -> tuple[str, int]:
    """`HOST`, `HOST:PORT` or `[IPV6]:PORT`."""
    host, colon, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
    if not colon or (":" in host and not host.startswith("[")):
        host, port = text, str(TLS_PORT if tls else PORT)
    if not host.strip("[]") or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigError("not a broker's address", got=text, expected="HOST or HOST:PORT")
    return host.strip("[]"), int(port)


class Subscriber:
    """One paho client; its thread calls `take` with topic and payload."""

    def __init__(self, address: BrokerAddress, take: Callable[[str, bytes], None]) -> None:
        from paho.mqtt.client import Client, MQTTv5
        from paho.mqtt.enums import CallbackAPIVersion

        self._address, self._take = address, take
        self.trouble = "not connected yet"
        self._client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
        if address.username is not None:
            self._client.username_pw_set(address.username, address.password)
        if address.tls:
            self._client.tls_set_context(_tls(address.ca_file))
        self._client.reconnect_delay_set(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        self._client.on_connect = self._on_connect
        self._client.on_connect_fail = lambda *_: self._note("the broker cannot be reached")
        self._client.on_disconnect = self._on_disconnect
        self._client.on_message = self._on_message

    def start(self) -> None:
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        limits = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        limits.MaximumPacketSize = LARGEST_PACKET_BYTES
        self._client.connect_async(
            self._address.host, self._address.port, KEEPALIVE_S, clean_start=True, properties=limits
        )
        self._client.loop_start()

    def close(self) -> None:
        self._client.on_disconnect = None  # nothing is lost
        self._client.disconnect()
        self._client.loop_stop()

    def _on_connect(self, client: Any, _user: object, _flags: object, reason: Any, _more: object) -> None:
        if reason.is_failure:
            return self._note(str(reason))
        log.info("connected to the broker %s:%d", self._address.host, self._address.port)
        self.trouble = ""
        prefix = self._address.prefix
        client.subscribe([(f"{prefix}/+/state", 0), (f"{prefix}/+/events", 1)])
        return None

    def _on_disconnect(
        self, _client: object, _user: object, _flags: object, reason: Any, _more: object
    ) -> None:
        self._note(f"the connection was lost: {reason}")

    def _on_message(self, _client: object, _user: object, message: Any) -> None:
        try:
            self._take(message.topic, message.payload)
        except Exception:  # one odd message must not end the thread that hears all the others
            log.exception("a message could not be taken")

    def _note(self, trouble: str) -> None:
        if trouble != self.trouble:
            log.warning("broker %s:%d: %s", self._address.host, self._address.port, safe_text(trouble))
        self.trouble = safe_text(trouble)


def _tls(ca_file: Path | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=str(ca_file) if ca_file else None)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError("the broker's certificate cannot be read", where=ca_file, got=error) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
