"""The crop is changed while the daemon drives: it is taken up, and no event is lost over it."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from daemon_harness import Daemon, pattern_vehicle

httpx = pytest.importorskip("httpx")
TOKEN = "a-token-for-tests"
CROP = {"left": 0.1, "top": 0.5, "right": 0.9, "bottom": 1.0}
PATIENCE_S = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def events_in(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text().splitlines() if path.exists() else []
    return [value for value in map(json.loads, lines) if "details" in value]


def wait_for_event(path: Path, kind: str) -> dict[str, Any]:
    end_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        found = [event for event in events_in(path) if event["kind"] == kind]
        if found:
            return found[-1]
        time.sleep(0.1)
    raise AssertionError(f"no event {kind}: {events_in(path)}")


def test_a_new_crop_is_taken_up_without_losing_an_event(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "token").write_text(TOKEN)
    page = {"kind": "http", "port": port, "token_file": str(tmp_path / "token")}
    log = {"path": str(tmp_path / "log.jsonl"), "events": True}
    outputs = [{"kind": "json_lines", "path": "-"}, {"kind": "json_lines", **log}, page]
    vehicle = {**pattern_vehicle(("wet", 600.0)), "outputs": outputs}
    patient = httpx.HTTPTransport(verify=False, retries=8)  # the first state may be there before the page
    with Daemon(tmp_path, vehicle=vehicle) as daemon:
        daemon.wait_for_state("wet", timeout_s=PATIENCE_S)
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", transport=patient, timeout=PATIENCE_S
        ) as client:
            answer = client.post(
                "/setup",
                json={"region": "track", "crop": CROP},
                headers={"Authorization": f"Bearer {TOKEN}"},
            )
            assert answer.status_code == 200, answer.text
            assert wait_for_event(tmp_path / "log.jsonl", "config")["details"] == {"accepted": True}
            assert client.get("/about").json()["regions"] == [{"name": "track", **CROP}]
        judged = daemon.wait_for(
            lambda message: [region.name for region in message.regions] == ["track"], PATIENCE_S
        )[1]
        assert judged.state in ("wet", "unknown")
        assert daemon.stop() == 0
    seqs = [event["seq"] for event in events_in(tmp_path / "log.jsonl")]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))
    assert [message.seq for message in daemon.messages] == list(range(len(daemon.messages)))
