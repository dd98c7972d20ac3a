"""The one message that leaves the vehicle: a road state with the evidence for it."""

from __future__ import annotations

import json
import zlib
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from edge_road.conditions import STATES, UNKNOWN
from edge_road.config import StrictModel
from edge_road.errors import EdgeRoadError

Share = Annotated[float, Field(ge=0.0, le=1.0)]


class Position(StrictModel):
    latitude: float = Field(ge=-90, le=90)
    """degrees, north positive"""
    longitude: float = Field(ge=-180, le=180)
    """degrees, east positive"""
    accuracy_m: float | None = Field(default=None, ge=0)
    """radius in metres, as the receiver estimates it"""


class RegionState(StrictModel):
    """What one region of the picture says by itself."""

    name: str
    """as in the vehicle file"""
    probabilities: dict[str, Share]
    """of dry, wet and icy in the newest frame; empty when it is covered"""


class RoadState(StrictModel):
    schema_name: Literal["edge_road.state/1"] = Field(default="edge_road.state/1", alias="schema")
    """kind and version of the message"""
    vehicle: str
    """who says it"""
    boot_id: str
    """drawn anew at each start of the daemon"""
    seq: int = Field(ge=0)
    """counts the messages of one start from 0"""
    state: Literal["dry", "wet", "icy", "unknown"]
    """what may be acted upon; unknown whenever there is doubt"""
    probabilities: dict[str, Share]
    """of dry, wet and icy after the temporal filter; empty when there is no evidence"""
    reasons: tuple[str, ...] = ()
    """why the state is unknown or doubted, e.g. no_frames, model_output, low_confidence"""
    published_mono_ns: int
    """when this message was made; the only time of a message without a frame"""
    captured_mono_ns: int | None
    """when the newest frame behind this state was taken; none without a frame"""
    captured_utc: str | None
    """the same moment by the wall clock"""
    clock_synced: bool
    """whether the wall clock can be believed"""
    position: Position | None = None
    speed_mps: float | None = Field(default=None, ge=0)
    """of the vehicle, in metres a second; none when unknown"""
    regions: tuple[RegionState, ...] = ()
    age_ms: float | None = Field(ge=0)
    """from capture to publication"""
    valid_for_ms: int = Field(gt=0)
    """a consumer treats the state as unknown when this time has passed"""
    stage_ms: dict[str, float] = Field(default_factory=dict)
    """time that the newest frame spent in each stage"""
    dropped: int = Field(default=0, ge=0)
    """frames that a newer one replaced, since the start"""
    model_digest: str
    """of the bundle that decided it"""
    config_digest: str
    """of the vehicle's settings"""
    version: str
    """of the daemon"""

    @model_validator(mode="after")
    def _a_state_needs_evidence(self) -> RoadState:
        if self.state == UNKNOWN:
            if not self.reasons:
                raise ValueError("unknown needs a reason")
            return self
        if self.captured_mono_ns is None or set(self.probabilities) != set(STATES):
            raise ValueError(f"{self.state} needs a frame and the probabilities of {', '.join(STATES)}")
        return self

    def to_json(self) -> str:
        """One line; `crc32` covers every other byte of it, in this order."""
        text = _dump(self.model_dump(mode="json", by_alias=True))
        return f'{text[:-1]},"crc32":{zlib.crc32(text.encode())}}}'


def message_schema() -> dict[str, Any]:
    """The message as JSON Schema, with the checksum that every line ends with."""
    from edge_road.meanings import explain

    schema = RoadState.model_json_schema(by_alias=True, mode="serialization")
    explain(RoadState, schema)
    for model in (Position, RegionState):
        explain(model, schema["$defs"][model.__name__])
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "edge_road state message"
    schema["properties"]["crc32"] = {
        "type": "integer",
        "minimum": 0,
        "maximum": 2**32 - 1,
        "description": "CRC-32 of the line without this field, written without spaces",
    }
    schema["required"] = sorted({*schema["properties"]})
    return schema


def parse_message(line: str | bytes) -> RoadState:
    """The state behind one line, or an error: damaged, foreign and incomplete lines are refused."""
    try:
        values: dict[str, Any] = json.loads(line)
        crc = values.pop("crc32")
        if crc != _crc(values):
            raise ValueError("the checksum does not match")
        return RoadState.model_validate(values)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ValidationError) as error:
        raise EdgeRoadError("not a road state message", got=str(error)[:300]) from None


def _dump(values: dict[str, Any]) -> str:
    return json.dumps(values, separators=(",", ":"), allow_nan=False)


def _crc(values: dict[str, Any]) -> int:
    return zlib.crc32(_dump(values).encode())
