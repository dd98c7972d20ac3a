from __future__ import annotations

from pathlib import Path

import pytest

from edge_road.errors import ConfigError
from edge_road.run_record import RECIPE_FILE, RECORD_FILE, load_record


def test_only_a_run_that_was_begun_is_to_be_finished(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a finished run") as error:
        load_record(tmp_path)
    assert "makes one" in error.value.details["to do"]
    (tmp_path / RECIPE_FILE).touch()
    with pytest.raises(ConfigError) as error:
        load_record(tmp_path)
    assert f"--run {tmp_path}" in error.value.details["to do"]


@pytest.mark.parametrize(
    ("content", "fault"), [("{", "Invalid JSON"), ("{}", "name: Field required"), ('{"name": 3}', "name: ")]
)
def test_a_damaged_record_is_told_in_one_line_with_a_way_out(
    tmp_path: Path, content: str, fault: str
) -> None:
    (tmp_path / RECORD_FILE).write_text(content)
    with pytest.raises(ConfigError, match="cannot be read") as error:
        load_record(tmp_path)
    assert fault in error.value.details["got"]
    assert "\n" not in error.value.details["got"]
    assert "pydantic" not in str(error.value)
    assert "continue the run" in error.value.details["to do"]
