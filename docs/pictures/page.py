"""Draws docs/pictures/page.png: the live page beside a daemon that drives a rendered road.

python docs/pictures/page.py [--bundle DIR] [--out FILE] [--width 1280] [--dark] [--page setup.html]

Needs a bundle (the newest one of `python training/train_road.py` and `python export/to_trt.py`, or of
`make demo`) and Debian's chromium.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import tomli_w
from PIL import Image
from playwright.sync_api import sync_playwright

from edge_road.workspace import newest_bundle

HERE = Path(__file__).resolve().parent
DAEMON = HERE.parents[1] / "runtime" / "road_daemon.py"
DRIVE = (("dry", 12.0), ("wet", 10.0), ("icy", 600.0))
TOKEN = "a-token-for-a-picture"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bundle", type=Path, help="default: the newest")
    parser.add_argument("--out", type=Path, default=HERE / "page.png")
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--page", default="", help="setup.html or login.html (default: the live page)")
    parser.add_argument("--seconds", type=float, default=40.0, help="of the drive before the picture")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        write_vehicle(Path(folder), port, options.bundle or newest_bundle())
        daemon = subprocess.Popen(
            [sys.executable, str(DAEMON), "--vehicle", "vehicle.toml"],
            cwd=folder,
            env={**os.environ, "EDGE_ROAD_HOME": folder},
        )
        try:
            time.sleep(options.seconds)
            take_picture(port, options)
        finally:
            daemon.terminate()
            daemon.wait(10)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def write_vehicle(folder: Path, port: int, bundle: Path) -> None:
    (folder / "token").write_text(TOKEN)
    source: dict[str, Any] = {"kind": "synthetic", "width": 448, "height": 252, "fps": 5.0}
    source["segments"] = [{"state": state, "seconds": seconds} for state, seconds in DRIVE]
    page = {"kind": "http", "port": port, "token_file": "token", "snapshots": True}
    model = {"bundle": str(bundle.absolute()), "trust": {"allow_unsigned": True}}
    vehicle = {"vehicle": "van-7", **model, "source": source, "outputs": [page]}
    (folder / "vehicle.toml").write_text(tomli_w.dumps(vehicle))


def take_picture(port: int, options: argparse.Namespace) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        size = {"width": options.width, "height": 844}
        scheme = "dark" if options.dark else "light"
        page = browser.new_context(viewport=size, locale="en-GB", color_scheme=scheme).new_page()
        home = f"http://127.0.0.1:{port}/"
        if options.page != "login.html":
            sign_in(page, home)
        page.goto(home + options.page)
        if not options.page:
            show_everything(page)
        page.screenshot(path=options.out, full_page=not options.page)
        browser.close()
    make_small(options.out)


def make_small(path: Path) -> None:
    """256 colours are enough to show what a page looks like."""
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE).save(path, optimize=True)


def sign_in(page: Any, home: str) -> None:
    page.goto(f"{home}login.html")
    page.fill("#token", TOKEN)
    page.click("button")
    page.wait_for_selector("#name")


def show_everything(page: Any) -> None:
    page.check("#parts")
    page.click("#run-smoke")
    page.wait_for_selector("#smoke tr", timeout=120_000)
    page.wait_for_selector("#regions .part", state="attached", timeout=30_000)
    page.wait_for_timeout(1000)


if __name__ == "__main__":
    main()
