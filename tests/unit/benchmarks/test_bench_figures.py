"""What the benchmarks say must be what was measured: spreads, ratios, limits, exponents."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="benchmarks are made where the training packages are")

import benchmarks.__main__ as driver
from benchmarks import machine
from benchmarks.outcome import Claim, Outcome, Table, with_provenance
from benchmarks.pictures import _end_of_axis, bars, growth
from benchmarks.rounds import Spread, ratio, take_turns
from benchmarks.scale import exponent
from benchmarks.stopwatch import WARM_UP, Stopwatch
from benchmarks.summary import summary

PNG = b"\x89PNG"


def test_rivals_take_turns_and_none_always_goes_first() -> None:
    order: list[str] = []
    measured = take_turns({name: lambda name=name: order.append(name) or len(order) for name in "abc"}, 3)
    assert order == list("abcbcacab")
    assert measured == {"a": [1, 6, 8], "b": [2, 4, 9], "c": [3, 5, 7]}


def test_an_optional_rival_that_fails_is_left_out_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> int:
        raise RuntimeError("no such model")

    assert take_turns({"a": lambda: 1, "b": fail}, 2, optional={"b"}) == {"a": [1, 1]}
    assert "left out: b: no such model" in capsys.readouterr().err
    with pytest.raises(RuntimeError, match="no such model"):
        take_turns({"a": lambda: 1, "b": fail}, 2)


def test_a_ratio_is_taken_within_each_round() -> None:
    """The machine was twice as slow in the second round: the ratio does not notice."""
    assert ratio([1.0, 2.0, 1.2], [2.0, 4.0, 2.0]) == Spread(median=0.5, low=0.5, high=0.6)


@pytest.mark.parametrize(
    ("least", "most", "met"),
    [(0.9, None, True), (1.1, None, False), (None, 1.0, True), (None, 0.9, False), (0.5, 2.0, True)],
)
def test_a_claim_is_met_by_the_median(least: float | None, most: float | None, met: bool) -> None:
    assert Claim("speed", Spread(1.0, 0.1, 9.0), least, most).met is met


def test_a_missed_limit_is_published(tmp_path: Path) -> None:
    outcome = Outcome(
        name="runtime",
        title="Runtime",
        method="In turn.",
        tables=[Table("Speed", ("", "frames/s"), [("edge_road", "42")])],
        claims=[
            Claim("fast enough", Spread.of([1.0]), least=2.0),
            Claim("small enough", Spread.of([1.0]), most=2.0),
        ],
        picture=bars({"frames/s": {"edge_road": Spread(3, 2, 4), "another": Spread(2, 1, 3)}}),
    )
    outcome.write(tmp_path)
    page = summary(tmp_path)
    assert "1 of 2 limits are met" in page
    assert "- missed: fast enough" in page
    assert "| edge_road | 42 |" in page
    assert [claim["met"] for claim in json.loads((tmp_path / "runtime.json").read_text())["claims"]] == [
        False,
        True,
    ]
    assert (tmp_path / "runtime.png").read_bytes().startswith(PNG)


def test_results_of_one_folder_keep_the_commit_and_load_they_were_made_with(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, commit, load in (("runtime", "aaaa", "0.1"), ("scale", "bbbb-dirty", "7.9")):
        found = {"commit": commit, "load at the start": load}
        monkeypatch.setattr(machine, "description", lambda found=found: found)
        outcome = with_provenance(lambda name=name: Outcome(name, name.title(), "In turn."))()
        outcome.write(tmp_path)
    first, second = summary(tmp_path).split("## Scale")
    assert "commit aaaa; load at the start 0.1" in first
    assert "commit bbbb-dirty; load at the start 7.9" in second
    assert re.search(r"Measured: began \d{4}-\d\d-\d\d \d\d:\d\d UTC; took \d+ s; ", first)
    written = json.loads((tmp_path / "runtime.json").read_text())["provenance"]
    assert written["commit"] == "aaaa"
    assert written.keys() == {"began", "took", "commit", "load at the start"}


def test_a_benchmark_that_fails_is_named_and_the_others_still_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def measure(name: str, out: Path, quick: bool) -> bool:
        asked.append(name)
        return name != "runtime"

    monkeypatch.setattr(driver, "_measure", measure)
    assert driver.run(["runtime", "scale"], tmp_path, quick=True) == 1
    assert asked == ["runtime", "scale"]
    assert "failed: runtime" in capsys.readouterr().err
    assert "0 of 0 limits are met" in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_the_exponent_of_a_power_is_found(power: float) -> None:
    assert exponent([(n, 1e-5 * n**power) for n in (10, 100, 1000)]) == pytest.approx(power, abs=1e-6)


def test_n_log_n_passes_as_such_and_n_squared_does_not() -> None:
    sizes = (10_000, 100_000, 1_000_000)
    assert exponent([(n, n * math.log(n) / math.log(n)) for n in sizes]) == pytest.approx(1.0)
    assert exponent([(n, n**2 / math.log(n)) for n in sizes]) > 1.5


def test_growth_is_drawn() -> None:
    curves = {str(number): [(10.0, 1.0), (100.0, 10.0 + number)] for number in range(9)}
    assert growth(curves, {"1": 1.0}).startswith(PNG)


@pytest.mark.parametrize(
    ("title", "highest", "end"),
    [("clean, %", 98.0, 100.0), ("danger, %", 4.0, 5.0), ("frames/s", 98.0, 122.5)],
)
def test_an_axis_of_percent_ends_at_100(title: str, highest: float, end: float) -> None:
    assert _end_of_axis(title, highest) == end


def test_a_stopwatch_leaves_out_the_warm_up(capsys: pytest.CaptureFixture[str]) -> None:
    stopwatch = Stopwatch(seconds=0.0)
    for _ in range(WARM_UP):
        assert stopwatch.answered(decoded_ns=0)
    assert not stopwatch.answered(decoded_ns=0), "the time is up with the first frame that counts"
    stopwatch.print_report()
    report = json.loads(capsys.readouterr().out)
    assert len(report["latency_ms"]) == 1
    assert report["fps"] > 0
    assert report["resident_mb"] > 1
