"""What is wrong with settings, for the person who wrote them: the line or the option, and the nearest key."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from edge_road.errors import ConfigError, nearest, suggestion
from edge_road.logs import safe_text

Place = tuple[int | str, ...]
"""sections, numbers in lists, and the key"""
_MOST_OTHERS = 3
_QUOTED = re.compile(r"'([^']*)'")
_HEADER = re.compile(r"\s*(\[\[?)([^\[\],]+)\]\]?\s*(#.*)?$")


@dataclass(frozen=True)
class Origin:
    """Where settings come from: a file, its text, and what the command line changed."""

    where: object
    text: str
    overrides: Sequence[str]

    def place_of(self, place: Place, keys: Place) -> object:
        given = [override.partition("=")[0].strip() for override in self.overrides]
        inside = dict.fromkeys(safe_text(key) for key in given if _lies_in(_names(key), keys))
        changed = f", with {', '.join(inside)} of the command line" if inside else ""
        for key in reversed(given):  # the last one counts
            if _leads_to(_names(key), place):
                return f"the command line: {safe_text(key)}{changed}"
        line = _line_of(self.text, place)
        return f"{self.where}:{line}{changed}" if line else f"{self.where}{changed}"


def as_config_error(kind: type[BaseModel], error: ValidationError, origin: Origin) -> ConfigError:
    first, *others = error.errors()
    fault = _explained(kind, first)
    _, keys = _located(kind, first["loc"])
    return ConfigError(
        fault.what + _also([_explained(kind, other).what for other in others[:_MOST_OTHERS]], len(others)),
        where=origin.place_of(first["loc"], keys),
        got=fault.got,
        expected=fault.expected,
        fix=fault.fix or _remedy(first, ".".join(map(str, keys)), origin),
    )


def _also(faults: list[str], total: int) -> str:
    rest = [f"and {total - len(faults)} more"] if total > len(faults) else []
    return f" (also: {'; '.join([*faults, *rest])})" if faults else ""


def first_fault(error: ValidationError) -> str:
    """One line of it, for what a person did not write."""
    first, *others = error.errors()
    place = ".".join(str(part) for part in first["loc"])
    return (f"{place}: " if place else "") + first["msg"] + (f" (and {len(others)} more)" if others else "")


class _Fault(NamedTuple):
    what: str
    got: str | None = None
    expected: str | None = None
    fix: str | None = None


def _explained(kind: type[BaseModel], error: ErrorDetails) -> _Fault:
    _, keys = _located(kind, error["loc"])
    return _EXPLANATIONS.get(error["type"], _any_fault)(kind, error, ".".join(map(str, keys)))


def _remedy(error: ErrorDetails, key: str, origin: Origin) -> str | None:
    if key and error["type"] != "missing":
        return None
    act, option = (f"give {key}", f"{key}=VALUE") if key else ("change one of these keys", "KEY=VALUE")
    places = ["in the file"] * bool(origin.text) + [f"by --set {option}"] * bool(origin.overrides)
    return f"{act} {' or '.join(places)}".strip()


def _any_fault(_: type[BaseModel], error: ErrorDetails, key: str) -> _Fault:
    said = error["msg"].removeprefix("Value error, ")
    if not error["loc"]:  # keys that do not fit one another: everything was got
        return _Fault(said)
    return _Fault(f"'{key}': {said}", _shown(error["input"]))


def _missing(kind: type[BaseModel], error: ErrorDetails, key: str) -> _Fault:
    return _Fault(f"'{key}' is required", expected=_meaning(kind, error))


def _unknown_key(kind: type[BaseModel], error: ErrorDetails, key: str) -> _Fault:
    known = list(_section_of(kind, error).model_fields)
    hint = _nearest_key(kind, known, str(error["loc"][-1]))
    return _Fault(f"unknown key '{key}'", None, "one of " + ", ".join(known), hint)


def _nearest_key(kind: type[BaseModel], known: list[str], name: str) -> str | None:
    """In the same section, unless a key of just this name stands in others."""
    everywhere = list(dict.fromkeys(_dotted_keys(kind)))
    names = [key.rpartition(".")[2] for key in everywhere]
    if name not in names and (hint := suggestion(name, known)):
        return hint
    match = nearest(name, names, cutoff=0.6)
    found = [f"'{key}'" for key, last in zip(everywhere, names) if last == match]
    return f"did you mean {' or '.join(found)}?" if found else None


def _dotted_keys(kind: type[BaseModel], section: str = "") -> Iterator[str]:
    for name, field in kind.model_fields.items():
        yield section + name
        for model in _models_in(field.annotation):
            yield from _dotted_keys(model, f"{section}{name}.")


def _unknown_choice(_: type[BaseModel], error: ErrorDetails, key: str) -> _Fault:
    tag, choices = str(error["ctx"]["tag"]), _QUOTED.findall(error["ctx"]["expected_tags"])
    (chooser,) = _QUOTED.findall(error["ctx"]["discriminator"])
    what = f"'{key}.{chooser}': there is no such choice"
    return _Fault(what, _shown(tag), "one of " + ", ".join(choices), suggestion(tag, choices))


def _missing_choice(_: type[BaseModel], error: ErrorDetails, key: str) -> _Fault:
    (chooser,) = _QUOTED.findall(error["ctx"]["discriminator"])
    return _Fault(f"'{key}.{chooser}' is missing: it says what the other keys are")


def _wrong_form(kind: type[BaseModel], error: ErrorDetails, key: str) -> _Fault:
    meaning = _meaning(kind, error)
    form = f"text of the form {error['ctx']['pattern']}"
    expected = f"{meaning}; {form}" if meaning else form
    return _Fault(f"'{key}': not written as it should be", _shown(error["input"]), expected)


def _meaning(kind: type[BaseModel], error: ErrorDetails) -> str | None:
    # Meanings are read from the source, which a daemon that starts well need not do.
    from edge_road.meanings import meanings

    return meanings(_section_of(kind, error)).get(str(error["loc"][-1]))


def _wrong_word(kind: type[BaseModel], error: ErrorDetails, key: str) -> _Fault:
    hint = suggestion(str(error["input"]), _QUOTED.findall(error["ctx"]["expected"]))
    return _any_fault(kind, error, key)._replace(fix=hint)


def _no_list(_: type[BaseModel], error: ErrorDetails, key: str) -> _Fault:
    return _Fault(f"'{key}' is a list", _shown(error["input"]), 'values in brackets, as [1, 2] or ["a", "b"]')


def _no_section(kind: type[BaseModel], error: ErrorDetails, key: str) -> _Fault:
    fields = list(_located(kind, error["loc"])[0].model_fields)
    first = next((name for name in ("kind", "name") if name in fields), fields[0])
    return _Fault(f"'{key}' is a section", _shown(error["input"]), f"keys of it, as {key}.{first}")


_EXPLANATIONS = {
    "missing": _missing,
    "extra_forbidden": _unknown_key,
    "union_tag_invalid": _unknown_choice,
    "union_tag_not_found": _missing_choice,
    "string_pattern_mismatch": _wrong_form,
    "literal_error": _wrong_word,
    "tuple_type": _no_list,
    "list_type": _no_list,
    "model_type": _no_section,
    "model_attributes_type": _no_section,
}


def _shown(value: object) -> str:
    try:
        return safe_text(repr(value))[:200]
    except (ValueError, RecursionError):  # thousands of digits, or nested as deeply
        return f"a {type(value).__name__} too large to show"


def _line_of(text: str, place: Place) -> int | None:
    """That of the key, or of whatever in the file comes nearest to holding it."""
    found = [(len(path), -number) for number, path in _lines(text) if _leads_to(path, place)]
    return -max(found)[1] if found else None


def _lines(text: str) -> Iterator[tuple[int, Place]]:
    section: Place = ()
    tables: Counter[str] = Counter()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            section = _names(header[2])
            if header[1] == "[[":
                section += (tables[header[2]],)
                tables[header[2]] += 1
            yield number, section
        elif "=" in line:
            yield number, section + _names(line.split("=", 1)[0])


def _names(dotted: str) -> Place:
    return tuple(name.strip().strip("\"'") for name in dotted.split("."))


def _leads_to(path: Place, place: Place) -> bool:
    """A place also names the tags that chose between models, which stand in no path."""
    rest = iter(place)
    return path[:1] == place[:1] and all(name in rest for name in path)


def _lies_in(path: Place, keys: Place) -> bool:
    return len(keys) < len(path) and path[: len(keys)] == keys


def _section_of(kind: type[BaseModel], error: ErrorDetails) -> type[BaseModel]:
    section, _ = _located(kind, error["loc"][:-1])
    return section


def _located(kind: type[BaseModel], place: Place) -> tuple[type[BaseModel], Place]:
    """The section of a place (sections nest as models), and its keys without the tags that chose models."""
    section: type[BaseModel] = kind
    choices: list[type[BaseModel]] = []
    keys: Place = ()
    for part in place:
        chosen = [model for model in choices if _is_tagged(model, part)]
        if chosen:
            section, choices = chosen[0], []
            continue
        keys += (part,)
        if part in section.model_fields:
            choices = _models_in(section.model_fields[str(part)].annotation)
            section = choices[0] if choices else section
    return section, keys


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]


def _is_tagged(model: type[BaseModel], tag: object) -> bool:
    """A tag is a field that can have this value only; other fields may offer the same word."""
    return any(get_args(field.annotation) == (tag,) for field in model.model_fields.values())
