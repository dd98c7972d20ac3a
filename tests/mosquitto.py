"""A real Mosquitto in a process of its own, that can be taken down and brought back."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Broker:
    def __init__(self, folder: Path, *lines: str) -> None:
        if (program := shutil.which("mosquitto") or shutil.which("/usr/sbin/mosquitto")) is None:
            pytest.skip("mosquitto is not installed")
        self.port = free_port()
        self._program, self._folder = program, folder
        settings = (f"listener {self.port} 127.0.0.1", "user root", *(lines or ("allow_anonymous true",)))
        (folder / "mosquitto.conf").write_text("\n".join(settings) + "\n")
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Broker:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def up(self) -> None:
        log = open(self._folder / "mosquitto.log", "ab")  # noqa: SIM115
        command = [self._program, "-c", str(self._folder / "mosquitto.conf")]
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        for _ in range(500):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError((self._folder / "mosquitto.log").read_text())

    def down(self, gently: bool = False) -> None:
        """Killed; or gently, so that it saves what it has promised to keep."""
        if self.process is not None:
            self.process.terminate() if gently else self.process.kill()
            self.process.wait()
            self.process = None


class Backend:
    """Subscribes to everything of a vehicle, and comes back when the broker does."""

    def __init__(self, port: int, topic: str = "edge_road/#", session: bool = False) -> None:
        from paho.mqtt.client import Client, MQTTv5
        from paho.mqtt.enums import CallbackAPIVersion
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        self.received: list[tuple[str, bytes, bool]] = []
        self._changed = threading.Condition()
        self.client = Client(
            CallbackAPIVersion.VERSION2, protocol=MQTTv5, client_id="backend" if session else ""
        )
        keep = Properties(PacketTypes.CONNECT)
        keep.SessionExpiryInterval = 3600 if session else 0
        self.client.reconnect_delay_set(0.1, 0.3)
        self._subscribed = threading.Event()
        self.client.on_connect = lambda client, *_: client.subscribe(topic, qos=1)
        self.client.on_subscribe = lambda *_: self._subscribed.set()
        self.client.on_message = self._on_message
        self.client.connect_async("127.0.0.1", port, keepalive=5, clean_start=not session, properties=keep)
        self.client.loop_start()

    def __enter__(self) -> Backend:
        assert self._subscribed.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self.client.disconnect()
        self.client.loop_stop()

    def of(self, what: str) -> list[bytes]:
        return [payload for topic, payload, _ in tuple(self.received) if topic.endswith(f"/{what}")]

    def wait_for(self, condition: Callable[[], Any], timeout_s: float = 40) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, timeout_s), self.received[-3:]

    def _on_message(self, _client: object, _data: object, message: Any) -> None:
        with self._changed:
            self.received.append((message.topic, message.payload, message.retain))
            self._changed.notify_all()
