"""The docstring below a key is its meaning, for the reference and for schemas."""

from __future__ import annotations

from pydantic import Field

from edge_road.config import StrictModel
from edge_road.meanings import explain, meanings


class Road(StrictModel):
    """A road."""

    width: float = Field(default=3.5, alias="width_m")
    """from kerb
    to kerb"""
    name: str = ""


def test_only_what_is_explained_has_a_meaning() -> None:
    assert meanings(Road) == {"width": "from kerb\nto kerb"}


def test_a_schema_takes_the_meanings_by_the_names_of_the_file() -> None:
    schema = Road.model_json_schema()
    explain(Road, schema)
    assert schema["properties"]["width_m"]["description"] == "from kerb\nto kerb"
    assert "description" not in schema["properties"]["name"]


def test_settings_are_made_without_reading_their_own_source() -> None:
    assert Road.model_fields["width"].description is None
