"""Simulated vehicles on a real broker: each drives its own way and says what the road is there."""

from __future__ import annotations

import math
import random
from typing import Any

from road_messages import SHARES, blind, road

STATES = ("dry", "wet", "icy")
MIDDLE = (46.8, 8.2)


class SimulatedVehicle:
    """Deterministic: state, place and number follow from the vehicle's number and the tick."""

    def __init__(self, number: int) -> None:
        self.number, self.name = number, f"van-{number:02d}"
        self._random = random.Random(number)
        self._latitude = MIDDLE[0] + self._random.uniform(-0.1, 0.1)
        self._longitude = MIDDLE[1] + self._random.uniform(-0.15, 0.15)
        self._heading = self._random.uniform(0, 2 * math.pi)
        self.tick = -1

    @property
    def state(self) -> str:
        """Every tenth is blind; the others change every 40 ticks."""
        return "unknown" if self.number % 10 == 9 else STATES[(self.number + max(0, self.tick) // 40) % 3]

    def line(self, valid_for_ms: int = 1000) -> str:
        self.tick += 1
        self._heading += self._random.uniform(-0.15, 0.15)
        self._latitude += 0.0008 * math.cos(self._heading)
        self._longitude += 0.0012 * math.sin(self._heading)
        place = {"latitude": self._latitude, "longitude": self._longitude, "accuracy_m": 3.0}
        told: dict[str, Any] = {"vehicle": self.name, "position": place, "speed_mps": 16.7}
        told["valid_for_ms"] = valid_for_ms
        if self.state == "unknown":
            return blind("no_frames", self.tick, **told).to_json()
        return road(self.state, self.tick, probabilities=SHARES[self.state], **told).to_json()


class Traffic:
    """All of them through one connection, as a gateway would do it."""

    def __init__(self, port: int, count: int) -> None:
        from paho.mqtt.client import Client, MQTTv5
        from paho.mqtt.enums import CallbackAPIVersion

        self.vehicles = [SimulatedVehicle(number) for number in range(count)]
        self.client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()

    def __enter__(self) -> Traffic:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.disconnect()
        self.client.loop_stop()

    def tick(self, valid_for_ms: int = 1000) -> None:
        """One word of each; it has to hold for long where a busy machine looks at it."""
        for vehicle in self.vehicles:
            line = vehicle.line(valid_for_ms)
            self.client.publish(f"edge_road/{vehicle.name}/state", line, retain=True)
