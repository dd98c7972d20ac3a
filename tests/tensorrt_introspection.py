"""Run apart, with the name of the module as argument: what NVIDIA's real bindings offer, as JSON."""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any


def describe(member: Any) -> dict[str, Any]:
    text = (getattr(member, "__doc__", None) or "").strip()
    lines = [line.split(". ", 1)[-1] if line[:1].isdigit() else line for line in text.splitlines()]
    signatures = [line for line in lines if "(self" in line and ")" in line and "*args" not in line]
    return {"property": isinstance(member, property), "signatures": signatures}


def describe_module(module: Any) -> dict[str, Any]:
    classes = {name: kind for name, kind in vars(module).items() if isinstance(kind, type)}
    return {
        name: {member: describe(getattr(kind, member)) for member in dir(kind)}
        for name, kind in classes.items()
    }


if __name__ == "__main__":
    bindings = importlib.import_module(sys.argv[1])
    flags = bindings.NetworkDefinitionCreationFlag.__members__
    answer = {"version": bindings.__version__, "classes": describe_module(bindings)}
    answer["network_flags"] = {name: int(flag) for name, flag in flags.items()}
    print(json.dumps(answer))
