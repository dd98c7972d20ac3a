"""What a driver notices of a drive: false alarms of ice, and ice that nobody warned of."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

from edge_road.conditions import STATES, UNKNOWN
from edge_road.config import StrictModel
from edge_road.errors import DataError

ICY = "icy"
Observed = Sequence[tuple[float, str]]


class Stretch(Protocol):
    """A time in which the true state is one; `edge_road.synthetic.Segment` is such a thing."""

    @property
    def state(self) -> str: ...

    @property
    def seconds(self) -> float: ...


class DriveAlarms(StrictModel):
    duration_s: float
    icy_s: float
    """seconds of true ice"""
    false_alarms: int
    """times at which `icy` began to be said on a road that is not"""
    false_alarms_per_hour: float
    """of road without ice; 0 for a drive all on ice"""
    false_alarm_s: float
    missed_ice_s: float
    """seconds of true ice on which dry or wet was said"""
    unwarned_ice_s: float
    """seconds of true ice on which anything but icy was said, `unknown` among it"""


def drive_alarms(truth: Sequence[Stretch], observed: Observed) -> DriveAlarms:
    """`observed`: (seconds since the start, state), in order; a state holds until the next one.

    An alarm that begins on ice and lasts beyond its end is late, not false: it counts in
    seconds but not as an alarm.
    """
    pieces = _pieces(truth, observed)
    false = [piece for piece in pieces if piece[2] == ICY != piece[1]]
    icy = [piece for piece in pieces if piece[1] == ICY]
    clear_s = sum(seconds for seconds, true, _ in pieces if true != ICY)
    alarms = _count_begins(pieces)
    return DriveAlarms(
        duration_s=sum(seconds for seconds, _, _ in pieces),
        icy_s=sum(seconds for seconds, _, _ in icy),
        false_alarms=alarms,
        false_alarms_per_hour=alarms / clear_s * 3600 if clear_s else 0.0,
        false_alarm_s=sum(seconds for seconds, _, _ in false),
        missed_ice_s=sum(seconds for seconds, _, said in icy if said not in (ICY, UNKNOWN)),
        unwarned_ice_s=sum(seconds for seconds, _, said in icy if said != ICY),
    )


Piece = tuple[float, str, str]  # seconds, true state, state said


def _pieces(truth: Sequence[Stretch], observed: Observed) -> list[Piece]:
    """The drive, cut wherever the true or the published state may change."""
    _check(truth, observed)
    begins_s = [0.0]
    for stretch in truth:
        begins_s.append(begins_s[-1] + stretch.seconds)
    cuts_s = sorted({*begins_s, *(t for t, _ in observed if 0 < t < begins_s[-1])})
    pieces, segment, seen, said = [], 0, 0, UNKNOWN
    for begin_s, end_s in pairwise(cuts_s):
        while begins_s[segment + 1] <= begin_s:
            segment += 1
        while seen < len(observed) and observed[seen][0] <= begin_s:
            said = observed[seen][1]
            seen += 1
        pieces.append((end_s - begin_s, truth[segment].state, said))
    return pieces


def _count_begins(pieces: Sequence[Piece]) -> int:
    before, count = UNKNOWN, 0
    for _, true, said in pieces:
        count += said == ICY != true and before != ICY
        before = said
    return count


def _check(truth: Sequence[Stretch], observed: Observed) -> None:
    if not truth:
        raise DataError("a drive needs a true state at every time", got="none")
    for number, (time_s, state) in enumerate(observed):
        if state not in (*STATES, UNKNOWN):
            raise DataError("no such road state", where=f"observation {number}", got=repr(state))
        if number and not time_s >= observed[number - 1][0]:
            raise DataError("observations run backwards in time", where=f"observation {number}", got=time_s)
