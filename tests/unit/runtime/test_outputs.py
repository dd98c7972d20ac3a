from __future__ import annotations

import errno
import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from edge_road.errors import ConfigError
from edge_road.runtime.outputs import JsonLines, json_lines
from edge_road.runtime.outputs.opening import check_output
from edge_road.runtime.vehicle_outputs import HttpOutput, JsonLinesOutput, MqttOutput, OutputSettings


def lines_to(path: Path) -> JsonLines:
    return JsonLines(JsonLinesOutput(path=str(path)))


def test_lines_are_appended_in_order(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "messages.jsonl"
    for words in (("a", "b"), ("c",)):
        output = lines_to(path)
        for word in words:
            output.write(word)
        output.close(timeout_s=5)
    assert path.read_text() == "a\nb\nc\n"


def test_a_file_has_one_writer(tmp_path: Path) -> None:
    first = lines_to(tmp_path / "m.jsonl")
    with pytest.raises(ConfigError, match="another process writes"):
        lines_to(tmp_path / "m.jsonl")
    first.close(timeout_s=5)
    lines_to(tmp_path / "m.jsonl").close(timeout_s=5)


def test_a_disk_that_stands_still_does_not_keep_the_next_writer_from_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves, real_write = threading.Event(), os.write

    def write(descriptor: int, content: bytes) -> int:
        moves.wait(10)
        return real_write(descriptor, content)

    monkeypatch.setattr(json_lines.os, "write", write)
    slow = lines_to(tmp_path / "m.jsonl")
    slow.write("first")
    slow.close(timeout_s=0.05)
    following = lines_to(tmp_path / "m.jsonl")
    following.write("second")
    moves.set()
    slow.close(timeout_s=5)
    following.close(timeout_s=5)
    assert set((tmp_path / "m.jsonl").read_text().splitlines()) == {"first", "second"}


def test_a_file_that_cannot_be_opened_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be opened"):
        lines_to(tmp_path)


def test_a_pipe_that_nobody_reads_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="a pipe that nobody reads"):
        lines_to(tmp_path / "pipe")


def test_a_full_disk_loses_lines_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    full, real_write = True, os.write

    def write(descriptor: int, content: bytes) -> int:
        """A disk that takes three more bytes, then none, until there is room again."""
        if full and len(content) > 3:
            return real_write(descriptor, content[:3])
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real_write(descriptor, content)

    output = lines_to(tmp_path / "m.jsonl")
    monkeypatch.setattr(json_lines.os, "write", write)
    output.write("abcdefgh")
    _wait_until(lambda: output.lost == 1)
    full = False
    output.write("whole")
    output.write("again")
    output.close(timeout_s=5)
    assert (tmp_path / "m.jsonl").read_text().splitlines()[-2:] == ["whole", "again"]
    assert not output.gone
    assert ["being lost" in r.message or "written again" in r.message for r in caplog.records] == [True, True]


def test_dev_full_never_blocks_and_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    output = lines_to(Path("/dev/full"))
    for _ in range(50):
        output.write("x")
    output.close(timeout_s=5)
    assert output.lost == 50
    assert len(caplog.records) == 1


@pytest.mark.parametrize("made_anew", [False, True])
def test_a_pipe_finds_its_next_reader(
    tmp_path: Path, made_anew: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """What nobody read is counted and said; the daemon goes on."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    output = lines_to(pipe)
    os.close(reader)
    if made_anew:
        pipe.unlink()
        output.write("the pipe is away")
        _wait_until(lambda: output.lost == 1)
        os.mkfifo(pipe)
    output.write("nobody is there")
    _wait_until(lambda: output.lost == 1 + made_anew)
    assert (output.health().ok, output.gone) == (False, False)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    output.write("heard")
    _wait_until(lambda: output.health().ok)
    assert os.read(reader, 100) == b"heard\n"
    output.close(timeout_s=5)
    os.close(reader)
    assert ["nobody reads" in r.message or "written again" in r.message for r in caplog.records] == [True] * 2


def test_a_standard_output_that_nobody_reads_any_more_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    monkeypatch.setattr(json_lines.os, "dup", lambda descriptor: writer)
    output = lines_to(Path("-"))
    os.close(reader)
    output.write("x")
    _wait_until(lambda: output.gone)
    output.close(timeout_s=5)


def test_a_reader_that_stands_still_costs_the_oldest_lines_and_no_time() -> None:
    reader, writer = os.pipe()
    output = lines_to(Path(f"/dev/fd/{writer}"))
    os.close(writer)
    line = "x" * 1000
    for _ in range(3 * json_lines.MOST_WAITING):
        output.write(line)  # returns at once: the pipe holds 64 kB only
    assert output.lost >= json_lines.MOST_WAITING
    output.close(timeout_s=0.1)
    os.close(reader)


@pytest.mark.parametrize("others_began_one", [False, True])
def test_a_file_that_somebody_moves_away_is_begun_anew(tmp_path: Path, others_began_one: bool) -> None:
    """By hand, or by logrotate, which may put an empty one in its place."""
    path, old = tmp_path / "m.jsonl", tmp_path / "m.jsonl.old"
    output = lines_to(path)
    output.write("before")
    _wait_until(lambda: path.read_text() == "before\n")
    path.rename(old)
    if others_began_one:
        path.touch()
    output.write("after")
    output.close(timeout_s=5)
    assert (old.read_text(), path.read_text()) == ("before\n", "after\n")


def test_a_file_that_grows_too_large_is_rotated(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    output = JsonLines(JsonLinesOutput(path=str(path), rotate_mb=100 / 2**20, keep=2))
    for number in range(40):
        output.write(f"line {number:03d}")
    output.close(timeout_s=5)
    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == ["m.jsonl", "m.jsonl.1", "m.jsonl.2"]
    kept = "".join((tmp_path / name).read_text() for name in reversed(names))
    assert kept.splitlines() == [f"line {number:03d}" for number in range(40)][-len(kept.splitlines()) :]
    assert len(kept.splitlines()) > 20


def test_a_rotation_that_fails_half_way_costs_no_older_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.jsonl"
    output = JsonLines(JsonLinesOutput(path=str(path), rotate_mb=1 / 2**20, keep=2))
    output.write("oldest")
    output.write("older")
    _wait_until(lambda: path.read_text() == "older\n")

    def no_room(path: str, mode: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(json_lines, "_open", no_room)
        for _ in range(5):
            output.write("lost")
        _wait_until(lambda: output.lost == 5)
    output.write("newest")
    output.close(timeout_s=5)
    assert [(tmp_path / f"m.jsonl{n}").read_text() for n in ("", ".1", ".2")] == [
        "newest\n",
        "older\n",
        "oldest\n",
    ]


SECRETS = [
    lambda file: HttpOutput(kind="http", token_file=file),
    lambda file: MqttOutput(kind="mqtt", password_file=file),
    lambda file: MqttOutput(kind="mqtt", tls=True, ca_file=file),
    lambda file: MqttOutput(kind="mqtt", tls=True, cert_file=file, key_file=file),
]


@pytest.mark.parametrize("output", SECRETS)
def test_the_check_refuses_an_output_whose_secrets_cannot_be_read(
    tmp_path: Path, output: Callable[[Path], OutputSettings]
) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        check_output(output(tmp_path / "missing"))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl")
def test_of_three_certificate_files_the_wrong_one_is_named_and_nobody_is_asked(tmp_path: Path) -> None:
    """OpenSSL would ask for the password of an encrypted key on the terminal, and wait."""
    good, key = tmp_path / "good.pem", tmp_path / "key.pem"
    options = f"-x509 -newkey rsa:2048 -keyout {key} -out {good} -passout pass:secret -subj /CN=van"
    subprocess.run(["openssl", "req", *options.split()], check=True, capture_output=True, timeout=60)
    mqtt = MqttOutput(kind="mqtt", tls=True, ca_file=good, cert_file=good, key_file=key)
    missing = tmp_path / "missing.pem"
    for output, where, got in (
        (mqtt.model_copy(update={"cert_file": missing}), missing, "No such file"),
        (mqtt.model_copy(update={"key_file": missing}), missing, "No such file"),
        (mqtt, f"{good}, {key}", "encrypted"),
    ):
        with pytest.raises(ConfigError, match=got) as refused:
            check_output(output)
        assert refused.value.details["where"] == str(where)


def _wait_until(condition) -> None:  # type: ignore[no-untyped-def]
    for _ in range(500):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it never happened")
