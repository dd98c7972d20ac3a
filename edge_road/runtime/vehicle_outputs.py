"""The part of a vehicle file that says where states and events go; secrets stay in files of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Union

from pydantic import BeforeValidator, Field, model_validator

from edge_road.config import Positive, StrictModel, TopicPart
from edge_road.web.settings import ServerSettings


class JsonLinesOutput(StrictModel):
    kind: Literal["json_lines"] = "json_lines"
    path: str = "-"
    """a file that is appended to, or - for the standard output"""
    rotate_mb: float = Field(default=0.0, ge=0)
    """begin a new file at this size; 0: never"""
    keep: int = Field(default=4, ge=1, le=100)
    """old files to keep, as PATH.1, PATH.2, ..."""
    events: bool = False
    """write events between the states"""


class UnixSocketOutput(StrictModel):
    """Every local process that connects reads JSON lines; a slow one loses the oldest."""

    kind: Literal["unix_socket"]
    path: Path | None = None
    """none: edge-road-VEHICLE.sock in the runtime folder"""
    group_may_read: bool = True
    """false: only the daemon's own user may connect"""
    events: bool = True
    """send events between the states"""
    inputs: bool = False
    """whoever may connect may also tell the vehicle's speed, temperature and position, as JSON lines"""


class MqttOutput(StrictModel):
    kind: Literal["mqtt"]
    host: str = Field(default="127.0.0.1", pattern=r"^[A-Za-z0-9_.:-]{1,253}$")
    """of the broker"""
    port: Annotated[int, Field(ge=1, le=65535)] = 1883
    """of the broker; 8883 is usual with TLS"""
    prefix: TopicPart = "edge_road"
    """topics are PREFIX/VEHICLE/state, /events and /ack"""
    username: str | None = None
    """none: nobody logs in"""
    password_file: Path | None = None
    """its first line is the password"""
    tls: bool = False
    """encrypt, and check the broker's certificate"""
    ca_file: Path | None = None
    """none: the system's"""
    cert_file: Path | None = None
    """the vehicle's own certificate, for brokers that ask for one; with `key_file`"""
    key_file: Path | None = None
    """its private key"""
    keepalive_s: int = Field(default=10, ge=2, le=600)
    """idle connections are probed this often, so that a lost one is noticed"""
    connect_s: float = Field(default=5.0, gt=0, le=60)
    """longest wait for the broker to answer"""
    state_every_s: float = Field(default=0.5, ge=0)
    """an unchanged state goes out this often, or twice while it is valid; a changed one at once"""
    delivery: Literal["broker_ack", "backend_ack"] = "broker_ack"
    """an event is delivered when the broker has it, or when the backend says so on the ack topic"""
    window: int = Field(default=20, ge=1, le=20)
    """events on their way at once"""
    events_per_s: Positive = 200.0
    """most, when a backlog is sent"""
    inputs: bool = False
    """listen on PREFIX/VEHICLE/inputs for the vehicle's speed, temperature and position"""
    resend_s: Positive = 120.0
    """without progress of the backend's acknowledgement, everything it has not named is sent again"""

    @model_validator(mode="after")
    def _secrets_need_partners(self) -> MqttOutput:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file come together")
        if (self.cert_file and not self.tls) or (self.ca_file and not self.tls):
            raise ValueError("certificates need tls = true")
        return self


class HttpOutput(ServerSettings):
    kind: Literal["http"]
    snapshots: bool = False
    """serve the newest picture; off, because pictures may show people"""


class CanOutput(StrictModel):
    kind: Literal["can"]
    interface: str = Field(default="socketcan", pattern=r"^[a-z0-9_]{1,32}$")
    """of python-can: socketcan for Linux, virtual to rehearse"""
    channel: str = Field(default="can0", pattern=r"^[A-Za-z0-9_.:/-]{1,64}$")
    """the bus, as the interface calls it"""
    arbitration_id: int = Field(default=0x6E0, ge=0, le=0x7FF)
    """of the frame, 11 bits (0x6E0); lower ones go first on the bus"""
    period_s: float = Field(default=0.1, ge=0.01, le=1)
    """from one frame to the next"""


def _json_lines_by_default(settings: Any) -> Any:
    if isinstance(settings, dict) and "kind" not in settings:
        return {"kind": "json_lines", **settings}
    return settings


OutputSettings = Annotated[
    Annotated[
        Union[JsonLinesOutput, UnixSocketOutput, MqttOutput, HttpOutput, CanOutput],
        Field(discriminator="kind"),
    ],
    BeforeValidator(_json_lines_by_default),
]


class EventSettings(StrictModel):
    """Where events wait until they are delivered, and how many may wait."""

    path: Path | None = None
    """none: events-VEHICLE.sqlite in the state folder"""
    most_mb: float = Field(default=256.0, gt=0, le=65_536)
    """of event text; beyond it the least important go first and leave a record of the gap"""
    most_unsaved_kb: float = Field(default=1024.0, gt=0, le=65_536)
    """of event text in memory, while the disk is full or broken"""
