"""One `edge-road` command over the same functions as the scripts; nothing heavy is imported here."""

from __future__ import annotations

import errno
import importlib
import json
import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from edge_road import __version__
from edge_road.errors import ConfigError, EdgeRoadError, suggestion

# name -> (module with `main(arguments) -> exit code`, one line of help)
COMMANDS = {
    "train": ("edge_road.training.main", "train a classifier from a recipe"),
    "data": ("edge_road.training.data_command", "check a data set, count its classes, pack it into shards"),
    "tune": ("edge_road.training.tune", "find better numbers for a recipe by many short trainings"),
    "evaluate": ("edge_road.training.evaluate", "judge runs and bundles under perturbation, write a report"),
    "compare": ("edge_road.training.compare.main", "train methods alike and write the papers' tables"),
    "pool": ("edge_road.training.pool.main", "measure several runs and put them together by method"),
    "to-onnx": ("edge_road.export.to_onnx", "turn a run into a checked ONNX file"),
    "to-trt": ("edge_road.export.to_trt", "turn a run into a bundle: ONNX, INT8, engine where a GPU is"),
    "verify": ("edge_road.export.verify", "check a bundle's integrity and its gate"),
    "keys": ("edge_road.keys", "make the pair of keys that signs bundles"),
    "sign": ("edge_road.signing", "sign a bundle, so that vehicles can tell whose it is"),
    "engine": ("edge_road.export.engine_command", "TensorRT engines of a bundle: build, list, verify, prune"),
    "smoke": ("edge_road.runtime.smoke", "robustness self-test of a bundle on this machine"),
    "run": ("edge_road.runtime.main", "the on-vehicle daemon"),
    "swap": ("edge_road.runtime.swap_command", "give the running daemon a new bundle"),
    "doctor": ("edge_road.runtime.doctor", "what this machine has and lacks for the daemon"),
    "replay": ("edge_road.runtime.replay", "say again what a recorded drive said"),
    "fleet": ("edge_road.fleet.main", "the vehicles of a broker on one page"),
    "demo": ("edge_road.demo", "photographs to a running daemon, the whole way"),
}

_ENVIRONMENT = Path(__file__).resolve().parents[1] / ".venv"
"""what `make setup` makes in a clone"""
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NOT_OURS = (
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOENT),
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOTEMPTY),
)


def command(name: str, arguments: Sequence[str] | None = None) -> int:
    """Run one command and turn what goes wrong into a message and an exit code."""
    module = COMMANDS[name][0]
    try:
        with _answering(name):
            return int(importlib.import_module(module).main(arguments))
    except EdgeRoadError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if not _is_refusal(error):
            return _report_bug()
        print(f"error: {_refused_by_the_system(error)}", file=sys.stderr)
        return ConfigError.exit_code
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("edge_road"):
            raise
        print(_missing_package(error.name or "?", module), file=sys.stderr)
        return 2
    except Exception:
        return _report_bug()


def _answering(name: str) -> AbstractContextManager[None]:
    """The daemon answers signals from its first moment on."""
    if name != "run":
        return nullcontext()
    early: AbstractContextManager[None] = importlib.import_module("edge_road.runtime.signals").answer_early()
    return early


def _report_bug() -> int:
    traceback.print_exc()
    print("error: this is a bug in edge_road; please report the lines above", file=sys.stderr)
    return EdgeRoadError.exit_code


def _is_refusal(error: OSError) -> bool:
    """A file or folder that the machine does not let us make, or a full disk; all else is our mistake."""
    return error.errno in _FULL or (error.errno in _NOT_OURS and error.filename is not None)


def _refused_by_the_system(error: OSError) -> ConfigError:
    place = error.filename2 or error.filename
    return ConfigError(
        "a file or folder cannot be read or written",
        where=place.decode(errors="replace") if isinstance(place, bytes) else place,
        got=error.strerror,
        fix="make room" if error.errno in _FULL else "choose another place, or change its permissions",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help"):
        print(_help())
        return 0
    if words[0] in ("-V", "--version", "version"):
        print(_version_json() if "--json" in words else f"edge-road {__version__}")
        return 0
    if words[0] not in COMMANDS:
        hint = suggestion(words[0], COMMANDS) or "edge-road --help lists them"
        print(f"error: no command '{words[0]}'; {hint}", file=sys.stderr)
        return 2
    if arguments is None:
        sys.argv[0] = f"edge-road {words[0]}"  # usage lines name what was typed: this, or a script
    return command(words[0], words[1:])


def _version_json() -> str:
    return json.dumps(importlib.import_module("edge_road.runtime.doctor").version_facts())


def _help() -> str:
    rows = "\n".join(f"  {name:<10} {text}" for name, (_, text) in COMMANDS.items())
    return (
        "usage: edge-road COMMAND [options]\n\n"
        "From road photographs to a small, robust road-condition classifier in a vehicle.\n\n"
        f"{rows}\n\nedge-road COMMAND --help tells the options of each."
    )


def _missing_package(name: str, module: str) -> str:
    extras = {"training": "train", "export": "export", "demo": "export"}
    extra = extras.get(module.split(".")[1], "vehicle")
    activate = _ENVIRONMENT / "bin" / "activate"
    forgotten = activate.is_file() and Path(sys.prefix).resolve() != _ENVIRONMENT.resolve()
    first = f"source {shlex.quote(str(activate))}, or: " if forgotten else ""
    return (
        f"error: the Python package '{name}' is not installed\n"
        f"  to do:    {first}make setup, or: pip install -c constraints.txt -e '.[{extra}]'"
    )


if __name__ == "__main__":
    sys.exit(main())
