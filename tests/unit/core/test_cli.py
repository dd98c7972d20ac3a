from __future__ import annotations

import errno
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from edge_road import cli
from edge_road.errors import BundleError, ConfigError, EdgeRoadError, GateRefused


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """A command that raises what a test asks for."""

    def install(error: BaseException) -> None:
        module = ModuleType("edge_road.failing")

        def main(arguments: object) -> int:
            raise error

        module.main = main  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "edge_road.failing", module)
        monkeypatch.setitem(cli.COMMANDS, "fail", ("edge_road.failing", "fails"))

    return install


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), 2),
        (BundleError("x"), 3),
        (GateRefused("x"), 6),
        (EdgeRoadError("x"), 70),
        (ZeroDivisionError("x"), 70),
        (KeyboardInterrupt(), 130),
        (ModuleNotFoundError("no torch", name="torch"), 2),
    ],
)
def test_each_error_has_its_exit_code(failing, error: BaseException, code: int) -> None:  # type: ignore[no-untyped-def]
    failing(error)
    assert cli.main(["fail"]) == code


def test_an_error_says_what_where_got_expected_and_what_to_do(failing, capsys) -> None:  # type: ignore[no-untyped-def]
    failing(ConfigError("the key is not known", where="a.toml:3", got="x", expected="y", fix="write y"))
    cli.main(["fail"])
    assert capsys.readouterr().err == (
        "error: the key is not known\n"
        "  where:    a.toml:3\n"
        "  got:      x\n"
        "  expected: y\n"
        "  to do:    write y\n"
    )


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("compare", "train"),
        ("to-trt", "export"),
        ("run", "vehicle"),
        ("fleet", "vehicle"),
        ("sign", "vehicle"),
    ],
)
def test_a_missing_package_names_the_extra(failing, capsys, monkeypatch, name: str, extra: str) -> None:  # type: ignore[no-untyped-def]
    failing(ModuleNotFoundError("no such", name="such"))
    monkeypatch.setitem(sys.modules, cli.COMMANDS[name][0], sys.modules["edge_road.failing"])
    assert cli.main([name]) == 2
    assert f"[{extra}]" in capsys.readouterr().err


def test_with_an_environment_that_is_not_active_a_missing_package_says_how_to_enter_it(
    failing, capsys, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:  # type: ignore[no-untyped-def]
    failing(ModuleNotFoundError("no such", name="such"))
    monkeypatch.setattr(cli, "_ENVIRONMENT", tmp_path / ".venv")
    assert cli.main(["fail"]) == 2
    assert "to do:    make setup" in capsys.readouterr().err
    activate = tmp_path / ".venv" / "bin" / "activate"
    activate.parent.mkdir(parents=True)
    activate.touch()
    assert cli.main(["fail"]) == 2
    assert f"to do:    source {activate}, or: make setup" in capsys.readouterr().err
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    assert cli.main(["fail"]) == 2
    assert "to do:    make setup" in capsys.readouterr().err


def test_the_version_is_there_for_machines_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["version", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["version"] == cli.__version__


@pytest.mark.parametrize(
    "error",
    [
        PermissionError(errno.EACCES, "Permission denied", "runs/x"),
        NotADirectoryError(errno.ENOTDIR, "Not a directory", "runs/x"),
        OSError(errno.EROFS, "Read-only file system", "runs/x"),
        OSError(errno.ENOSPC, "No space left on device"),
    ],
)
def test_a_place_that_cannot_be_written_is_a_message_and_no_bug(failing, capsys, error: OSError) -> None:  # type: ignore[no-untyped-def]
    failing(error)
    assert cli.main(["fail"]) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert all(part in said for part in (error.strerror, "to do:"))
    assert error.filename is None or "runs/x" in said


@pytest.mark.parametrize("error", [OSError("x"), OSError(errno.EBADF, "Bad file descriptor")])
def test_other_failures_of_the_system_stay_our_bugs(failing, capsys, error: OSError) -> None:  # type: ignore[no-untyped-def]
    failing(error)
    assert cli.main(["fail"]) == 70
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("name", list(cli.COMMANDS))
def test_the_help_of_every_command_fits_a_terminal_of_80_columns(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as left:
        cli.main([name, "--help"])
    assert left.value.code == 0
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > 80] == []
