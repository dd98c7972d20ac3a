"""What the worker tells the supervisor: one small record per frame, and signs of its life."""

from __future__ import annotations

from typing import Annotated, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from edge_road.errors import EdgeRoadError


class Record(BaseModel):
    # NaN travels: whether an output is usable is judged in one place, the decision.
    model_config = ConfigDict(
        extra="forbid", frozen=True, ser_json_inf_nan="constants", protected_namespaces=()
    )


class RegionEvidence(Record):
    name: str
    probabilities: tuple[float, float, float]
    """of dry, wet and icy, as the model gave them"""
    distance: float = 0.0
    """to the nearest class centroid, in units of its radius; 0 when the model has no centroids"""
    obstructed: bool = False
    """the lens is covered here: what the model says of it does not count"""


class Evidence(Record):
    """What one frame says. A frame with problems says nothing about the road."""

    kind: Literal["evidence"] = "evidence"
    number: int
    captured_mono_ns: int
    captured_utc: str | None = None
    regions: tuple[RegionEvidence, ...] = ()
    problems: tuple[str, ...] = ()
    stage_ms: dict[str, float] = Field(default_factory=dict)
    dropped: int = 0
    """frames that a newer one replaced, since the worker's start"""
    rejected: int = 0
    """pictures that could not be decoded, since the worker's start"""
    rejected_by: dict[str, int] = Field(default_factory=dict)
    """frames that were not judged, by problem, since the worker's start"""


class Ready(Record):
    """The model is loaded and has passed its self-test; a file is open, a camera is waited for."""

    kind: Literal["ready"] = "ready"
    predictor: str
    model_digest: str
    confidence_threshold: float
    source: str
    period_s: float
    """expected time from one frame to the next"""
    origin_mono_ns: int
    """when the source's own time began"""
    first: bool = True
    """of this worker; it speaks again when an opened camera has told its size or its rate"""


class Alive(Record):
    """No new frame, but the worker's loop turns."""

    kind: Literal["alive"] = "alive"


class Failed(Record):
    """The worker cannot do its work, for a reason it can name; it ends."""

    kind: Literal["failed"] = "failed"
    what: str
    details: dict[str, str]
    exit_code: int

    @classmethod
    def because(cls, error: EdgeRoadError) -> Failed:
        return cls(what=error.what, details=error.details, exit_code=error.exit_code)

    def error(self) -> EdgeRoadError:
        error = EdgeRoadError(self.what)
        error.details, error.exit_code = dict(self.details), self.exit_code
        return error


class Ended(Record):
    """The source has come to its end, perhaps with pictures after the last one that was judged."""

    kind: Literal["ended"] = "ended"
    dropped: int
    rejected: int


class Machine(Record):
    """How the computer does: sent when the rate changes, and every few seconds."""

    kind: Literal["machine"] = "machine"
    rate_hz: float
    """most pictures to judge in a second, for now"""
    hottest_c: float | None
    power_mode: str | None
    dropped_share: float
    """of the frames since the last such record; more than 0.01 is too much"""
    throttled: bool = False
    """heat has lowered our rate, or heat or power the processor's clock"""
    available_mb: float | None = None
    """memory that programs could still get"""


class Loaded(Record):
    """A model that is verified and gives its own probe outputs."""

    kind: Literal["loaded"] = "loaded"
    predictor: str
    model_digest: str
    confidence_threshold: float


class SwapStep(Record):
    """How far a new bundle has come. From `swapped` and `rolled_back` on, evidence is that of `loaded`."""

    kind: Literal["swap"] = "swap"
    stage: Literal["canary", "swapped", "refused", "rolled_back"]
    bundle: str
    """that runs from now on, or that is tried"""
    loaded: Loaded | None = None
    reason: str = ""
    figures: dict[str, float] = Field(default_factory=dict)


Report = Annotated[
    Union[Evidence, Ready, Alive, Failed, Ended, Machine, SwapStep], Field(discriminator="kind")
]
REPORT: TypeAdapter[Evidence | Ready | Alive | Failed | Ended | Machine | SwapStep] = TypeAdapter(Report)
