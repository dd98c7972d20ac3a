"""Runs Python commands of shell blocks in children of one process that has already imported what is slow.

Importing torch and its friends takes six seconds of processor time; the docs have dozens of commands. The
programs `python` and `edge-road` that a block finds are small clients: they hand over arguments, folder,
environment and their three files, and end with the exit code of the child.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SLOW = (
    *("torch", "torchvision", "timm", "albumentations", "cv2", "onnx", "onnxruntime", "jinja2"),
    *(
        "matplotlib.figure",
        "matplotlib.backends.backend_agg",
        "matplotlib.backends.backend_svg",
        "sklearn.linear_model",
    ),
    *("edge_road.training.main", "edge_road.training.evaluate", "edge_road.training.trainer"),
)
CLIENT = f"""#!{sys.executable} -IS
import json, os, socket, sys
channel = socket.socket(socket.AF_UNIX)
channel.connect(os.environ["DOCS_COMMANDS"])
asked = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(channel, [len(asked).to_bytes(4, "big")], [0, 1, 2])
channel.sendall(asked)
sys.exit(int(channel.recv(8) or b"70"))
"""
# Beside each kind of command: what makes it small enough for a test. Later options win over earlier ones.
SMALL_INPUT = ("input.height=64", "input.width=64", "training.batch_size=16", "training.workers=0")
SMALL_DATA = [f"--set=data.{split}" for split in ("train=24", "validation=12", "test=12")]
SMALL_MODEL = ["--weights=none", "--set=model.backbone=mobilenetv3_small_050"]
SMALL_TRAINING = ["--epochs=2", *SMALL_MODEL, *(f"--set={setting}" for setting in SMALL_INPUT)]
SMALLER = {
    "train": SMALL_TRAINING,
    "compare": [*SMALL_TRAINING, "--runs=1", "--perturbations=gaussian_40"],
    "evaluate": ["--images=4", "--runs=1", "--jobs=1"],
    "run": ["--duration=2"],
}
SCRIPTS = {
    "training/train_road.py": "train",
    "training/evaluate_road.py": "evaluate",
    "training/compare_methods.py": "compare",
    "runtime/road_daemon.py": "run",
}


def name_of(words: list[str]) -> str:
    first = "".join(words[1:2])
    return first if Path(words[0]).name == "edge-road" else SCRIPTS.get(first, "")


def smaller(words: list[str]) -> list[str]:
    """The same command with little to do."""
    name = name_of(words)
    more = list(SMALLER.get(name, ()))
    if name == "compare":
        more.append("--folds=2" if "--folds" in words else "--seeds=1")
    if "--lab" in words:
        more.append("--lab=2")
    if name == "train" and not {"--data", "--recipe", "--resume"} & set(words):
        more += SMALL_DATA
    return [*words, *([] if "--help" in words or "--resume" in words else more)]


@contextlib.contextmanager
def command_server() -> Iterator[dict[str, str]]:
    """The environment in which blocks find the clients."""
    with tempfile.TemporaryDirectory() as folder:
        programs, address = Path(folder) / "bin", Path(folder) / "commands"
        programs.mkdir()
        for name in ("python", "python3", "edge-road"):
            _program(programs / name, CLIENT)
        _program(programs / "make", f'#!/bin/sh\nexec /usr/bin/make --dry-run -C "{ROOT}" "$@"\n')
        process = subprocess.Popen([sys.executable, __file__, str(address)])
        try:
            _wait_for(address, process)
            yield {"PATH": f"{programs}:{os.environ['PATH']}", "DOCS_COMMANDS": str(address)}
        finally:
            process.terminate()
            process.wait(10)


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _wait_for(address: Path, process: subprocess.Popen[bytes], timeout_s: float = 900) -> None:
    ends_s = time.monotonic() + timeout_s
    while not address.exists():
        assert process.poll() is None, "the server has ended"
        assert time.monotonic() < ends_s, "the server does not begin"
        time.sleep(0.05)


def serve(address: str) -> None:
    sys.path[0] = str(ROOT)
    for name in SLOW:
        importlib.import_module(name)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    waiting = selectors.DefaultSelector()
    waiting.register(listener, selectors.EVENT_READ, None)
    while True:
        for key, _ in waiting.select():
            if key.data is None:
                _begin(listener.accept()[0], waiting)
            else:
                _end(key, waiting)


def _begin(channel: socket.socket, waiting: selectors.BaseSelector) -> None:
    head, files, _, _ = socket.recv_fds(channel, 4, 3)
    words, folder, environment = json.loads(channel.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL))
    if (child := os.fork()) == 0:
        _become(words, folder, environment, files)
    for file in files:
        os.close(file)
    ended = os.pidfd_open(child)
    waiting.register(ended, selectors.EVENT_READ, (child, ended, channel))
    waiting.register(channel, selectors.EVENT_READ, (child, ended, channel))


def _end(key: selectors.SelectorKey, waiting: selectors.BaseSelector) -> None:
    """The child is over; or its client is, and takes the child along."""
    child, ended, channel = key.data
    if key.fileobj is channel:
        os.kill(child, signal.SIGTERM)
    status = os.waitpid(child, 0)[1]
    with contextlib.suppress(OSError):
        channel.sendall(str(os.waitstatus_to_exitcode(status) & 255).encode())
    waiting.unregister(ended)
    waiting.unregister(channel)
    os.close(ended)
    channel.close()


def _become(words: list[str], folder: str, environment: dict[str, str], files: list[int]) -> None:
    for standard, file in enumerate(files):
        os.dup2(file, standard)
    os.closerange(3, 256)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    try:
        code = _run(smaller(words))
    except SystemExit as leaving:
        code = leaving.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 70
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _run(words: list[str]) -> Any:
    sys.path[0:1] = [str(ROOT), str(ROOT / "tests")]
    if name_of(words) == "run":
        from daemon_harness import Turn

        turn = Turn()  # held until the daemon has ended
        turn.take()
    if Path(words[0]).name == "edge-road":
        from edge_road.cli import main

        sys.argv = words
        return main(words[1:])
    if len(words) < 2 or not words[1].endswith(".py"):
        os.execv(sys.executable, [sys.executable, *words[1:]])
    sys.argv = words[1:]
    runpy.run_path(words[1], run_name="__main__")
    return 0


if __name__ == "__main__":
    serve(sys.argv[1])
