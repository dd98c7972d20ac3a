"""Settings over TOML: strict keys, errors that name file, line and the nearest key."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

import tomli_w
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from edge_road.errors import ConfigError, nearest
from edge_road.files import write_atomically
from edge_road.settings_errors import Origin, as_config_error

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class StrictModel(BaseModel):
    """Frozen settings that refuse unknown keys and non-finite numbers."""

    # Before 2.10 pydantic warned of every field called model_something.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=())


class GrownModel(StrictModel):
    """Settings with new keys: while these have their defaults they are not written, so older digests stay."""

    NEW_KEYS: ClassVar[tuple[str, ...]] = ()

    @model_serializer(mode="wrap")
    def _as_before(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = write(self)
        new = {key: type(self).model_fields[key].default for key in self.NEW_KEYS}
        return {key: value for key, value in values.items() if key not in new or value != new[key]}


LONGEST_TEXT = 2**20
"""of a file of settings; a device has no end"""
Settings = TypeVar("Settings", bound=StrictModel)
Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
TopicPart = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}(/[A-Za-z0-9_.-]{1,64}){0,5}$")]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
NotNegative = Annotated[float, Field(ge=0.0)]


def load_settings(kind: type[Settings], path: Path | None, overrides: Iterable[str] = ()) -> Settings:
    """Read `path` (none: only defaults) as `kind`; `overrides` are `section.key=value` with TOML values."""
    text = "" if path is None else read_settings_text(kind, path)
    values = parse_toml(text, path)
    given = tuple(overrides)
    for override in given:
        _apply_override(values, override)
    where = path or f"the default {kind.__name__.lower()}"
    return check_settings(kind, values, where=where, text=text, overrides=given)


def parse_toml(text: str, where: object) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits, and deep nesting
        raise ConfigError("the file is not valid TOML", where=where, got=error) from None


def check_settings(
    kind: type[Settings],
    values: Mapping[str, Any],
    *,
    where: object,
    text: str = "",
    overrides: Sequence[str] = (),
) -> Settings:
    """`text` and `overrides` are what `values` were read from: an error names the line or the override."""
    try:
        if _has_nul(values):  # no path, name or address may hold one
            raise ConfigError("a text holds a NUL character", where=where)
        return kind.model_validate(values)
    except ValidationError as error:
        raise as_config_error(kind, error, Origin(where, text, overrides)) from None
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
        with open(path, encoding="utf-8") as file:
            text = file.read(LONGEST_TEXT + 1)
        if len(text) > LONGEST_TEXT:
            raise ValueError(f"more than {LONGEST_TEXT >> 20} MB")
        return text
    except (OSError, ValueError) as error:  # also what is no text
        siblings = [p.name for p in path.parent.glob("*.toml")] if path.parent.is_dir() else []
        stems = [Path(name).stem for name in siblings]
        match = None if path.name in siblings else nearest(path.stem, stems, cutoff=0.6)
        raise ConfigError(
            f"cannot read the {kind.__name__.lower()} file",
            where=path,
            got=error.strerror if isinstance(error, OSError) else error,
            expected="a TOML file" + (f"; this folder has {', '.join(siblings)}" if siblings else ""),
            fix=f"did you mean '{match}.toml'?" if match else None,
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
