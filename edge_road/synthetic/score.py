"""How well published states follow the known states of a drive."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path

from edge_road.conditions import STATES, UNKNOWN
from edge_road.errors import DataError
from edge_road.road_state import RoadState
from edge_road.synthetic.segments import Segment, begins

__all__ = ["DriveScore", "Segment", "score_messages", "score_states"]

ICY = "icy"


@dataclass(frozen=True)
class DriveScore:
    right_share: float
    """share of the drive's seconds with the right state"""
    unknown_share: float
    longest_wrong_s: float
    """longest stretch in which a wrong state was published without a break"""
    icy_delay_s: float
    """longest time from the true begin of ice to `icy`; all of a stretch that was missed, 0 without ice"""
    false_alarms: int
    """times at which `icy` began to be said on a road that is not"""
    false_alarms_per_hour: float
    """of road without ice; 0 for a drive all on ice"""
    missed_ice_s: float
    """seconds of true ice on which dry or wet was said"""
    unwarned_ice_s: float
    """seconds of true ice on which anything but `icy` was said, `unknown` among it"""

    @property
    def of_ice(self) -> str:
        """What a driver notices, in a line."""
        return (
            f"false alarms {self.false_alarms} ({self.false_alarms_per_hour:.1f} per hour without ice), "
            f"called dry or wet {self.missed_ice_s:.1f} s, not warned of {self.unwarned_ice_s:.1f} s, "
            f"longest delay {self.icy_delay_s:.1f} s"
        )


@dataclass(frozen=True)
class _Piece:
    """A time in which neither the true nor the published state changes."""

    begin_s: float
    end_s: float
    truth: str
    observed: str

    @property
    def seconds(self) -> float:
        return self.end_s - self.begin_s

    @property
    def wrong(self) -> bool:
        return self.observed not in (self.truth, UNKNOWN)

    @property
    def false_icy(self) -> bool:
        return self.wrong and self.observed == ICY


def score_messages(messages: Iterable[RoadState], truth: Path) -> DriveScore:
    """`truth` is the file in which the source of a rendered drive says what it showed, and from when on."""
    try:
        known = json.loads(truth.read_text())
        segments, start_ns = (
            [Segment(**segment) for segment in known["segments"]],
            int(known["start_mono_ns"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError("the true states of the drive cannot be read", where=truth, got=error) from None
    return score_states(segments, [((m.published_mono_ns - start_ns) / 1e9, m.state) for m in messages])


def score_states(truth: Sequence[Segment], observed: Sequence[tuple[float, str]]) -> DriveScore:
    """`observed` are (seconds since the drive's start, published state), in the order of time.

    A state holds until the next observation; before the first one it is unknown. An alarm that begins on
    ice and outlasts it is late, not false.
    """
    pieces = _pieces(truth, observed)
    duration_s = pieces[-1].end_s
    right_s = sum(piece.seconds for piece in pieces if piece.observed == piece.truth)
    unknown_s = sum(piece.seconds for piece in pieces if piece.observed == UNKNOWN)
    icy = [piece for piece in pieces if piece.truth == ICY]
    clear_s = duration_s - sum(piece.seconds for piece in icy)
    alarms = _count_false_alarms(pieces)
    return DriveScore(
        right_share=right_s / duration_s,
        unknown_share=unknown_s / duration_s,
        longest_wrong_s=_longest_wrong_s(pieces),
        icy_delay_s=_icy_delay_s(pieces),
        false_alarms=alarms,
        false_alarms_per_hour=alarms / clear_s * 3600 if alarms else 0.0,
        missed_ice_s=sum(piece.seconds for piece in icy if piece.wrong),
        unwarned_ice_s=sum(piece.seconds for piece in icy if piece.observed != ICY),
    )


def _pieces(truth: Sequence[Segment], observed: Sequence[tuple[float, str]]) -> list[_Piece]:
    _check(observed)
    begins_s = begins(truth)
    inside_s = {time_s for time_s, _ in observed if 0 < time_s < begins_s[-1]}
    cuts_s = sorted(inside_s.union(begins_s))
    pieces, segment, seen, state = [], 0, 0, UNKNOWN
    for begin_s, end_s in pairwise(cuts_s):
        while begins_s[segment + 1] <= begin_s:
            segment += 1
        while seen < len(observed) and observed[seen][0] <= begin_s:
            state = observed[seen][1]
            seen += 1
        pieces.append(_Piece(begin_s, end_s, truth[segment].state, state))
    return pieces


def _check(observed: Sequence[tuple[float, str]]) -> None:
    for number, (time_s, state) in enumerate(observed):
        if state not in (*STATES, UNKNOWN):
            raise DataError("no such road state", where=f"observation {number}", got=repr(state))
        if number and not time_s >= observed[number - 1][0]:
            raise DataError("observations run backwards in time", where=f"observation {number}", got=time_s)


def _longest_wrong_s(pieces: Sequence[_Piece]) -> float:
    runs = [list(run) for wrong, run in groupby(pieces, key=lambda piece: piece.wrong) if wrong]
    return max((run[-1].end_s - run[0].begin_s for run in runs), default=0.0)


def _count_false_alarms(pieces: Sequence[_Piece]) -> int:
    begun = zip([UNKNOWN, *(piece.observed for piece in pieces)], pieces)
    return sum(piece.false_icy and before != ICY for before, piece in begun)


def _icy_delay_s(pieces: Sequence[_Piece]) -> float:
    delays_s = [0.0]
    for truth, run in groupby(pieces, key=lambda piece: piece.truth):
        if truth == ICY:
            stretch = list(run)
            seen_s = [piece.begin_s for piece in stretch if piece.observed == ICY]
            delays_s.append(min([*seen_s, stretch[-1].end_s]) - stretch[0].begin_s)
    return max(delays_s)
