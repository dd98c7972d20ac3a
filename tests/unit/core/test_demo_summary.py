"""What a person reads at the end of the demo."""

from __future__ import annotations

from pathlib import Path

from edge_road.demo import _summary
from edge_road.synthetic.score import Segment, score_states


def test_the_summary_tells_of_the_drive_and_of_its_ice() -> None:
    score = score_states([Segment("dry", 60), Segment("icy", 30)], [(0, "dry"), (9, "icy"), (10, "dry")])
    summary = _summary(Path("run"), Path("bundle"), Path("drive.jsonl"), 0.99, score, 12.0)
    assert "drive        65.6% of the seconds right (at least 95%), longest wrong 30.00 s" in summary
    assert "ice          false alarms 1 (60.0 per hour without ice), called dry or wet 30.0 s" in summary
