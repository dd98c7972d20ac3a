from __future__ import annotations

import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from road_messages import road

from edge_road.errors import ConfigError
from edge_road.road_state import parse_message
from edge_road.runtime.outputs.unix_socket import UnixSocket
from edge_road.runtime.vehicle_outputs import UnixSocketOutput


@pytest.fixture
def output(tmp_path: Path) -> Iterator[UnixSocket]:
    opened = UnixSocket(UnixSocketOutput(kind="unix_socket", path=tmp_path / "s"), "van")
    opened.start()
    yield opened
    opened.close(2)


def connect(output: UnixSocket) -> socket.socket:
    before = output._hub.readers
    channel = socket.socket(socket.AF_UNIX)
    channel.settimeout(10)
    channel.connect(str(output.path))
    for _ in range(500):
        if output._hub.readers > before:
            return channel
        time.sleep(0.01)
    raise AssertionError("it was not let in")


def say(output: UnixSocket, seq: int) -> None:
    message = road("wet", seq)
    output.publish(message, message.to_json())


def test_every_reader_gets_every_line(output: UnixSocket) -> None:
    readers = [connect(output) for _ in range(3)]
    for seq in range(20):
        say(output, seq)
        time.sleep(0.002)
    for reader in readers:
        lines = reader.makefile()
        assert [parse_message(lines.readline()).seq for _ in range(20)] == list(range(20))


def test_a_reader_that_stands_still_loses_its_oldest_and_the_others_nothing(output: UnixSocket) -> None:
    asleep, awake = connect(output), connect(output)
    lines = awake.makefile()
    for seq in range(2000):
        say(output, seq)
        assert parse_message(lines.readline()).seq == seq
    assert output.health().lost > 0
    seqs = []
    asleep.settimeout(1)
    text = asleep.makefile()
    while True:
        try:
            seqs.append(parse_message(text.readline()).seq)
        except (TimeoutError, OSError):
            break
        if seqs[-1] == 1999:
            break
    assert seqs == sorted(set(seqs))
    assert seqs[-1] == 1999


def test_a_reader_that_leaves_is_forgotten(output: UnixSocket) -> None:
    connect(output).close()
    for seq in range(500):
        say(output, seq)
        if output._hub.readers == 0:
            return
        time.sleep(0.01)
    raise AssertionError("it is still counted")


def test_the_socket_of_a_killed_daemon_is_replaced_and_ours_is_removed(tmp_path: Path) -> None:
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(tmp_path / "s"))
    stale.close()
    output = UnixSocket(UnixSocketOutput(kind="unix_socket", path=tmp_path / "s"), "van")
    assert stat.S_IMODE(output.path.stat().st_mode) == 0o660
    output.start()
    output.close(2)
    assert not output.path.exists()


def test_the_socket_of_a_daemon_that_lives_is_not_taken_away(output: UnixSocket) -> None:
    """Two vehicle files of one machine, one of them a copy of the other."""
    with pytest.raises(ConfigError, match="another process serves"):
        UnixSocket(UnixSocketOutput(kind="unix_socket", path=output.path), "rear")
    connect(output).close()


def test_a_file_in_the_way_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("mine")
    with pytest.raises(ConfigError, match="unix socket"):
        UnixSocket(UnixSocketOutput(kind="unix_socket", path=tmp_path / "s"), "van")
    assert (tmp_path / "s").read_text() == "mine"
