"""Settings over TOML: strict keys, errors that name file, line and the nearest key."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, get_args

import tomli_w
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)
from pydantic_core import ErrorDetails

from edge_road.errors import ConfigError, nearest
from edge_road.files import write_atomically
from edge_road.logs import safe_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class StrictModel(BaseModel):
    """Frozen settings that refuse unknown keys and non-finite numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class GrownModel(StrictModel):
    """Settings with new keys: while these have their defaults they are not written, so older digests stay."""

    NEW_KEYS: ClassVar[tuple[str, ...]] = ()

    @model_serializer(mode="wrap")
    def _as_before(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = write(self)
        new = {key: type(self).model_fields[key].default for key in self.NEW_KEYS}
        return {key: value for key, value in values.items() if key not in new or value != new[key]}


Settings = TypeVar("Settings", bound=StrictModel)
Place = tuple[int | str, ...]
"""sections, numbers in lists, and the key"""
Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
TopicPart = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}(/[A-Za-z0-9_.-]{1,64}){0,5}$")]
NotNegative = Annotated[float, Field(ge=0.0)]


def load_settings(kind: type[Settings], path: Path | None, overrides: Iterable[str] = ()) -> Settings:
    """Read `path` (none: only defaults) as `kind`; `overrides` are `section.key=value` with TOML values."""
    text = "" if path is None else read_settings_text(kind, path)
    values = parse_toml(text, path)
    for override in overrides:
        _apply_override(values, override)
    return check_settings(kind, values, where=path or f"the default {kind.__name__.lower()}", text=text)


def parse_toml(text: str, where: object) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits, and deep nesting
        raise ConfigError("the file is not valid TOML", where=where, got=error) from None


def check_settings(
    kind: type[Settings], values: Mapping[str, Any], *, where: object, text: str = ""
) -> Settings:
    try:
        if _has_nul(values):  # no path, name or address may hold one
            raise ConfigError("a text holds a NUL character", where=where)
        return kind.model_validate(values)
    except ValidationError as error:
        raise _as_config_error(kind, error, where, text) from None
    except RecursionError:
        raise ConfigError("the settings are nested too deeply", where=where) from None


def _has_nul(value: object) -> bool:
    if isinstance(value, dict):
        return any(_has_nul(part) for pair in value.items() for part in pair)
    if isinstance(value, (list, tuple)):
        return any(_has_nul(part) for part in value)
    return isinstance(value, str) and "\0" in value


def write_settings(settings: StrictModel, path: Path) -> None:
    """Save the resolved settings; TOML has no null, so what is unset is left out."""
    values = settings.model_dump(mode="json", exclude_none=True)
    write_atomically(path, tomli_w.dumps(values).encode())


def settings_digest(settings: StrictModel) -> str:
    values = settings.model_dump(mode="json")
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def read_settings_text(kind: type[StrictModel], path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        siblings = [p.name for p in path.parent.glob("*.toml")] if path.parent.is_dir() else []
        match = nearest(path.name, siblings)
        raise ConfigError(
            f"cannot read the {kind.__name__.lower()} file",
            where=path,
            got=error.strerror if isinstance(error, OSError) else error,
            expected="a TOML file" + (f"; this folder has {', '.join(siblings)}" if siblings else ""),
            fix=f"did you mean '{match}'?" if match else None,
        ) from None


def _apply_override(values: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    if not separator or not key.strip():
        raise ConfigError("an override is section.key=value", where="--set", got=override)
    *sections, last = key.strip().split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise ConfigError("an override goes into something that has no keys", where="--set", got=override)
    values[last] = _toml_value(text.strip())


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text  # a bare word is a string


def _as_config_error(
    kind: type[StrictModel], error: ValidationError, where: object, text: str
) -> ConfigError:
    first, *others = error.errors()
    dotted = ".".join(str(part) for part in first["loc"]) or kind.__name__
    line = _line_of(text, first["loc"])
    known = _known_keys(kind, first)
    match = nearest(str(first["loc"][-1]), known) if first["type"] == "extra_forbidden" else None
    more = f" (and {len(others)} more)" if others else ""
    what = f"unknown key '{dotted}'" if first["type"] == "extra_forbidden" else f"'{dotted}': {first['msg']}"
    return ConfigError(
        what + more,
        where=f"{where}:{line}" if line else where,
        got=None if first["type"] in ("extra_forbidden", "missing") else _shown(first["input"]),
        expected="one of " + ", ".join(known) if first["type"] == "extra_forbidden" else None,
        fix=f"did you mean '{match}'?" if match else None,
    )


def _shown(value: object) -> str:
    try:
        return safe_text(repr(value))[:200]
    except (ValueError, RecursionError):  # thousands of digits, or nested as deeply
        return f"a {type(value).__name__} too large to show"


_HEADER = re.compile(r"\s*(\[\[?)([^\[\],]+)\]\]?\s*(#.*)?$")


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


def _known_keys(kind: type[BaseModel], error: ErrorDetails) -> list[str]:
    """The keys of the section in which the error lies (sections nest as models)."""
    section: type[BaseModel] = kind
    choices: list[type[BaseModel]] = []
    for part in error["loc"][:-1]:
        if part in section.model_fields:
            choices = _models_in(section.model_fields[str(part)].annotation)
            section = choices[0] if choices else section
        else:  # the tag that chose one of several models
            section = next((model for model in choices if _is_tagged(model, part)), section)
    return list(section.model_fields)


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]


def _is_tagged(model: type[BaseModel], tag: object) -> bool:
    """A tag is a field that can have this value only; other fields may offer the same word."""
    return any(get_args(field.annotation) == (tag,) for field in model.model_fields.values())
