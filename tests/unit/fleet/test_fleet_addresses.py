"""Where the fleet page listens and whom it asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_road.errors import ConfigError
from edge_road.fleet.broker import parse_broker
from edge_road.fleet.main import main


@pytest.mark.parametrize(
    ("text", "tls", "expected"),
    [
        ("broker.local", False, ("broker.local", 1883)),
        ("broker.local", True, ("broker.local", 8883)),
        ("10.0.0.1:2000", False, ("10.0.0.1", 2000)),
        ("[::1]:2000", False, ("::1", 2000)),
        ("[::1]", False, ("::1", 1883)),
        ("::1", False, ("::1", 1883)),
    ],
)
def test_broker_addresses(text: str, tls: bool, expected: tuple[str, int]) -> None:
    assert parse_broker(text, tls) == expected


@pytest.mark.parametrize("text", ["", ":1883", "host:", "host:x", "host:0", "host:70000", "[]:1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ConfigError, match="not a broker's address"):
        parse_broker(text, False)


@pytest.mark.parametrize("prefix", ["", "#", "a/+/b", "/a", "a b"])
def test_a_prefix_cannot_listen_to_everything(prefix: str) -> None:
    with pytest.raises(ConfigError, match="prefix"):
        main(["--prefix", prefix])


def test_a_store_without_room_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="room"):
        main(["--port", "0", "--store", str(tmp_path / "fleet.sqlite"), "--store-rows", "0"])


def test_a_page_beyond_this_machine_needs_a_token() -> None:
    with pytest.raises(ConfigError, match="token_file"):
        main(["--host", "0.0.0.0"])
