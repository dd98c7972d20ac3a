"""Eight bytes for a CAN bus, after AUTOSAR's end-to-end idea: a counter and a checksum guard the state. Pure.

byte 0    CRC-8 (SAE J1850) over the identifier and bytes 1 to 7
byte 1    counter 0..14 in the low half (15 is not used), state in the high half
byte 2    probability of the state in 0.5 %, 255 without one
byte 3    flags: bit 0 doubted, bit 1 changing, bit 2 valid (a message came in time)
byte 4-5  age of the picture in ms, little endian, 65535 without one
byte 6    first reason as a number, 0 without one
byte 7    0
"""

from __future__ import annotations

from dataclasses import dataclass

from edge_road.conditions import STATES, UNKNOWN
from edge_road.errors import EdgeRoadError

NO_AGE, NO_SHARE, COUNTERS = 0xFFFF, 0xFF, 15
STATE_CODES = {UNKNOWN: 0, **{state: number for number, state in enumerate(STATES, start=1)}}
REASONS = (
    "starting",
    "settling",
    "no_frames",
    "exposure",
    "low_detail",
    "frozen",
    "frame_size",
    "timestamp",
    "model_output",
    "low_confidence",
    "inference_stalled",
    "worker_died",
    "end_of_stream",
    "shutdown",
    "failure",
    "changing",
    "obstructed",
    "unfamiliar",
    "decode",
    "blurred",
    "implausible_temperature",
    "noise",
    "rehearsal",
)
"""numbers are for ever: new reasons go to the end"""
OTHER_REASON = 255


@dataclass(frozen=True)
class CanState:
    state: str = UNKNOWN
    share: float | None = None
    age_ms: float | None = None
    reasons: tuple[str, ...] = ()
    valid: bool = False


def pack(state: CanState, counter: int, arbitration_id: int) -> bytes:
    code = STATE_CODES[state.state if state.valid else UNKNOWN]
    share = NO_SHARE if state.share is None or not state.valid else round(min(1.0, state.share) * 200)
    age = NO_AGE if state.age_ms is None or not state.valid else min(NO_AGE - 1, round(state.age_ms))
    is_doubted = bool(state.reasons)
    flags = is_doubted | ("changing" in state.reasons) << 1 | state.valid << 2
    reason = _reason_code(state.reasons)
    body = bytes([code << 4 | counter % COUNTERS, share, flags, age & 0xFF, age >> 8, reason, 0])
    return bytes([crc8(arbitration_id.to_bytes(2, "little") + body)]) + body


def unpack(payload: bytes, arbitration_id: int) -> tuple[CanState, int]:
    """The state and its counter; a frame with a wrong length or checksum is refused."""
    if len(payload) != 8 or crc8(arbitration_id.to_bytes(2, "little") + payload[1:]) != payload[0]:
        raise EdgeRoadError("not a road state frame", got=payload.hex())
    names = {code: name for name, code in STATE_CODES.items()}
    code, counter = payload[1] >> 4, payload[1] & 0x0F
    if code not in names or counter >= COUNTERS:
        raise EdgeRoadError("not a road state frame", got=payload.hex())
    age = payload[4] | payload[5] << 8
    number = payload[6]
    reasons = (REASONS[number - 1],) if 0 < number <= len(REASONS) else ()
    state = CanState(
        names[code],
        None if payload[2] == NO_SHARE else payload[2] / 200,
        None if age == NO_AGE else float(age),
        reasons,
        bool(payload[3] & 4),
    )
    return state, counter


def crc8(content: bytes) -> int:
    """SAE J1850: polynomial 0x1D, start and final xor 0xFF."""
    crc = 0xFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ 0x1D if crc & 0x80 else crc << 1) & 0xFF
    return crc ^ 0xFF


def _reason_code(reasons: tuple[str, ...]) -> int:
    if not reasons:
        return 0
    return REASONS.index(reasons[0]) + 1 if reasons[0] in REASONS else OTHER_REASON
