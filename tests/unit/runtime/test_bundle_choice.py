"""The small file that remembers which bundle was accepted, and what was wished for."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_bundles import brightness_model, write_small_bundle

from edge_road.clock import ScriptedClock
from edge_road.errors import BundleError, GateRefused
from edge_road.runtime.bundle_choice import (
    BundleChoice,
    Outcome,
    accepted_bundle,
    choice_path,
    read_choice,
    settle,
    write_wish,
)
from edge_road.runtime.lock import only_one, owner_of
from edge_road.runtime.swap_command import main, wait_for_outcome


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path / "run"))
    return tmp_path


def made(folder: Path) -> Path:
    folder.mkdir()
    (folder / "manifest.json").write_text("{}")
    return folder


def kept(bundle: Path) -> Outcome:
    return Outcome(bundle=str(bundle), running=str(bundle), stage="kept")


def refused(bundle: Path, running: Path) -> Outcome:
    return Outcome(bundle=str(bundle), running=str(running), stage="refused", reason="disagrees")


def test_without_a_file_nothing_is_chosen() -> None:
    assert read_choice("van") == BundleChoice()
    assert accepted_bundle("van", None) is None


def test_a_kept_bundle_runs_at_the_next_start_instead_of_the_named_one(state: Path) -> None:
    named, new = Path("named"), made(state / "new")
    write_wish("van", new)
    assert read_choice("van").wish == new
    settle("van", named, kept(new))
    assert read_choice("van").wish is None
    assert accepted_bundle("van", named) == new
    assert accepted_bundle("van", Path("another")) is None, "the vehicle file was changed since"
    (new / "manifest.json").unlink()
    assert accepted_bundle("van", named) is None


def test_a_refused_wish_changes_nothing_but_is_remembered(state: Path) -> None:
    old = made(state / "old")
    settle("van", None, kept(old))
    write_wish("van", state / "bad")
    settle("van", None, refused(state / "bad", old))
    choice = read_choice("van")
    assert (choice.running, choice.wish) == (old, None)
    assert choice.outcome is not None
    assert choice.outcome.reason == "disagrees"


def test_a_refused_bundle_that_the_file_names_does_not_run_at_the_next_start(state: Path) -> None:
    good, bad = made(state / "good"), made(state / "bad")
    settle("van", bad, refused(bad, running=good))
    assert accepted_bundle("van", bad) == good
    assert accepted_bundle("van", good) is None, "the file was mended"
    assert read_choice("van").refused == bad
    settle("van", bad, kept(made(state / "another")))
    assert read_choice("van").refused == bad, "it is still what the file names"
    settle("van", bad, kept(bad))
    assert read_choice("van").refused is None


@pytest.mark.parametrize("content", [b"", b"{", b'{"wish": 3}', b'{"other": 1}', b"\xff\xfe"])
def test_a_damaged_file_is_no_choice(content: bytes) -> None:
    choice_path("van").parent.mkdir()
    choice_path("van").write_bytes(content)
    assert read_choice("van") == BundleChoice()


def test_a_full_disk_is_told_and_survived(state: Path, caplog: pytest.LogCaptureFixture) -> None:
    (state / "state").write_text("not a folder")
    settle("van", None, refused(Path("new"), Path("old")))
    assert "cannot be kept" in caplog.text


def test_the_owner_of_a_lock_is_known_while_it_lives(state: Path) -> None:
    assert owner_of("van") is None
    with only_one("van"):
        assert owner_of("van") is not None
    assert owner_of("van") is None


def test_the_command_waits_for_the_verdict(state: Path) -> None:
    write_wish("van", state / "new")
    with only_one("van"), pytest.raises(GateRefused, match=r"not decided yet(.|\n)*it goes on"):
        wait_for_outcome("van", 5.0, ScriptedClock())
    with pytest.raises(GateRefused, match="it runs no more; its next start will try the bundle"):
        wait_for_outcome("van", 5.0, ScriptedClock())
    settle("van", None, kept(Path("new")))
    assert wait_for_outcome("van", 5.0, ScriptedClock()).stage == "kept"


def test_the_command_refuses_a_damaged_bundle_before_anybody_hears_of_it(state: Path) -> None:
    write_small_bundle(state / "new", brightness_model())
    (state / "new" / "model.onnx").write_bytes(b"short")
    with pytest.raises(BundleError, match="cut or changed"):
        main([str(state / "new")])
    assert read_choice("demo").wish is None


def test_one_bundle_is_tried_at_a_time(state: Path) -> None:
    write_small_bundle(state / "new", brightness_model())
    write_wish("demo", state / "first")
    with only_one("demo"), pytest.raises(GateRefused, match="on trial"):
        main([str(state / "new")])
    assert read_choice("demo").wish == state / "first"


def test_without_a_daemon_the_next_start_tries_it(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_small_bundle(state / "new", brightness_model())
    assert main([str(state / "new")]) == 0
    assert "next start" in capsys.readouterr().out
    assert read_choice("demo").wish == state / "new"
