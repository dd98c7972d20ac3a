from __future__ import annotations

from pathlib import Path

import pytest

from edge_road.config import load_settings, settings_digest, write_settings
from edge_road.errors import ConfigError
from edge_road.recipe import Recipe
from edge_road.road_state import RoadState
from edge_road.runtime.evidence import Ready
from edge_road.runtime.vehicle import Vehicle

MINIMAL = 'name = "trial"\n'


def recipe_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "trial.toml"
    path.write_text(MINIMAL + text)
    return path


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[optimizer]\nlearnig_rate = 1e-3\n", ["trial.toml:3", "did you mean 'learning_rate'?"]),
        ("[trainig]\nepochs = 3\n", ["trial.toml:2", "did you mean 'training'?"]),
        ("[training]\nepochs = 0\n", ["training.epochs", "greater than or equal to 1", "trial.toml:3"]),
        ('[method]\nname = "discriminative"\nsigma = 40\n', ["'method.sigma'", "40"]),
        ('[method]\nname = "magic"\n', ["magic", "softmax", "discriminative"]),
        (
            '[data]\nkind = "folder"\n',
            ["'data.path' is required", "the folder; a relative one", "give data.path in the file"],
        ),
        ("[optimizer]\nlearning_rate = inf\n", ["learning_rate", "finite"]),
        ("[method]\nsigma = 0.1\n", ["'method.name' is missing", "trial.toml:2"]),
        ('[data]\nkind = "folder"\npath = "."\nfolds = 1\n', ["'data': folds must be", "trial.toml:2"]),
        ("[training\n", ["not valid TOML"]),
        ("[training]\nepochs = 3\n[optimizer]\nepochs = 1\n", ["optimizer.epochs", "trial.toml:5"]),
        ("input.crop = { left = -1 }\n", ["input.crop.left", "trial.toml:2"]),
        ("[input.crop]\nleft = 0.9\nright = 0.1\n", ["left must be below right"]),
    ],
)
def test_a_typo_is_named_with_file_line_and_nearest_key(tmp_path: Path, text: str, parts: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        load_settings(Recipe, recipe_file(tmp_path, text))
    for part in parts:
        assert part in str(error.value)
    assert error.value.exit_code == 2


def test_of_several_tables_of_one_name_the_right_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "van.toml"
    path.write_text('[[outputs]]\nkind = "http"\nport = 1\n[[outputs]]  # more\nkind = "mqtt"\nport = -1\n')
    with pytest.raises(ConfigError, match=r"van\.toml:6"):
        load_settings(Vehicle, path)


def test_nearest_key_is_found_inside_a_chosen_method(tmp_path: Path) -> None:
    text = '[method]\nname = "discriminative"\ndelta_w = 1.0\n'
    with pytest.raises(ConfigError, match=r"did you mean 'delta_[vd]'"):
        load_settings(Recipe, recipe_file(tmp_path, text))


def test_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    recipe_file(tmp_path, "")
    with pytest.raises(ConfigError, match=r"did you mean 'trial\.toml'"):
        load_settings(Recipe, tmp_path / "trail.toml")


@pytest.mark.parametrize("name", ["nosuch.toml", "another.toml", "elsewhere.toml"])
def test_a_file_is_not_suggested_for_its_suffix(tmp_path: Path, name: str) -> None:
    recipe_file(tmp_path, "").rename(tmp_path / "svhn.toml")
    with pytest.raises(ConfigError, match="cannot read") as error:
        load_settings(Recipe, tmp_path / name)
    assert "svhn.toml" in error.value.details["expected"]
    assert "to do" not in error.value.details


def test_a_file_without_an_end_is_not_read_into_memory() -> None:
    with pytest.raises(ConfigError, match="more than 1 MB"):
        load_settings(Vehicle, Path("/dev/zero"))


def test_overrides_take_toml_values_and_bare_words(tmp_path: Path) -> None:
    overrides = [
        "training.epochs=3",
        "optimizer.name=sgd",
        "model.weights=hub",
        "optimizer.milestones=[1, 2]",
    ]
    recipe = load_settings(Recipe, recipe_file(tmp_path, ""), overrides)
    assert (recipe.training.epochs, recipe.optimizer.name) == (3, "sgd")
    assert recipe.optimizer.milestones == (1, 2)


@pytest.mark.parametrize("override", ["epochs", "=3", "name.first=1"])
def test_broken_override_is_refused(tmp_path: Path, override: str) -> None:
    with pytest.raises(ConfigError, match="override"):
        load_settings(Recipe, recipe_file(tmp_path, ""), [override])


def test_resolved_settings_round_trip_with_the_same_digest(tmp_path: Path) -> None:
    recipe = load_settings(Recipe, recipe_file(tmp_path, ""), ["seed=7"])
    write_settings(recipe, tmp_path / "resolved.toml")
    again = load_settings(Recipe, tmp_path / "resolved.toml")
    assert again == recipe
    assert settings_digest(again) == settings_digest(recipe)
    assert settings_digest(again) != settings_digest(recipe.model_copy(update={"seed": 8}))


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("training.epochs=0", ["the command line: training.epochs", "greater than or equal to 1"]),
        ("training.epoch=3", ["the command line: training.epoch", "did you mean 'epochs'?"]),
        ("method.sigma=1.5", ["the command line: method.sigma", "less than or equal to 1"]),
        ("method={name = 'magic'}", ["the command line: method", "'method.name'"]),
    ],
)
def test_a_bad_override_is_blamed_on_the_command_line_and_not_on_a_line_of_the_file(
    tmp_path: Path, override: str, parts: list[str]
) -> None:
    path = recipe_file(tmp_path, '[training]\nepochs = 3\n[method]\nname = "discriminative"\n')
    with pytest.raises(ConfigError) as error:
        load_settings(Recipe, path, ["training.epochs=4", override])
    for part in parts:
        assert part in str(error.value)
    assert "trial.toml" not in str(error.value)


def test_keys_that_do_not_fit_name_the_section_and_what_the_command_line_changed_in_it(
    tmp_path: Path,
) -> None:
    path = recipe_file(tmp_path, '[data]\nkind = "folder"\npath = "."\n')
    with pytest.raises(ConfigError, match="must leave 10 %") as error:
        load_settings(Recipe, path, ["data.validation=0.9", "training.epochs=4"])
    assert error.value.details["where"] == f"{path}:2, with data.validation of the command line"


@pytest.mark.parametrize(
    ("override", "what", "expected"),
    [
        ("method=softmax", "'method' is a section", "method.name"),
        ("input=64", "'input' is a section", "input.height"),
        ("input.crop=0.5", "'input.crop' is a section", "input.crop.left"),
        ("optimizer.milestones=3", "'optimizer.milestones' is a list", "[1, 2]"),
    ],
)
def test_a_value_in_place_of_a_section_or_a_list_is_told_how_these_are_written(
    tmp_path: Path, override: str, what: str, expected: str
) -> None:
    with pytest.raises(ConfigError, match=what) as error:
        load_settings(Recipe, recipe_file(tmp_path, ""), [override])
    assert expected in error.value.details["expected"]


@pytest.mark.parametrize(
    ("override", "match"),
    [
        ("epochs=3", "did you mean 'training.epochs'?"),
        ("batchsize=8", "did you mean 'training.batch_size'?"),
        ("input.batch_size=8", "did you mean 'training.batch_size'?"),
        ("left=0.1", "did you mean 'input.crop.left'?"),
        ("training.seed=8", "did you mean 'seed' or 'data.seed'?"),
        ("optimizer.lr=0.1", None),
    ],
)
def test_a_key_of_another_section_is_found_there(tmp_path: Path, override: str, match: str | None) -> None:
    with pytest.raises(ConfigError, match="unknown key") as error:
        load_settings(Recipe, recipe_file(tmp_path, ""), [override])
    assert error.value.details.get("to do") == match


def test_the_other_faults_are_told_too(tmp_path: Path) -> None:
    path = recipe_file(tmp_path, '[data]\nkind = "folder"\n[training]\nepochs = 0\nepoch = 1\n')
    with pytest.raises(ConfigError) as error:
        load_settings(Recipe, path, ["x=1", "y=1", "seed=2"])
    assert error.value.what == (
        "'data.path' is required (also: 'training.epochs': Input should be greater than or equal to 1; "
        "unknown key 'training.epoch'; unknown key 'x'; and 1 more)"
    )
    assert error.value.details["to do"] == "give data.path in the file or by --set data.path=VALUE"


def test_of_two_overrides_of_one_key_the_one_that_counts_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"the command line: training\.epochs\n") as error:
        load_settings(Recipe, recipe_file(tmp_path, ""), ["training.epochs=-1", "training.epochs=0"])
    assert error.value.details["got"] == "0"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('[method]\nname = "discrimnative"\n', "did you mean 'discriminative'?"),
        ('[data]\nkind = "foldr"\n', "did you mean 'folder'?"),
        ('[optimizer]\nname = "adamm"\n', "did you mean 'adam"),
    ],
)
def test_a_misspelt_choice_is_answered_with_the_nearest_one(tmp_path: Path, text: str, match: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_settings(Recipe, recipe_file(tmp_path, text))
    assert match in str(error.value)


def test_a_text_of_the_wrong_form_is_answered_with_what_it_stands_for(tmp_path: Path) -> None:
    path = tmp_path / "van.toml"
    path.write_text('[source]\nkind = "v4l2"\ndevice = "/dev/nope"\n')
    with pytest.raises(ConfigError, match="not written as it should be") as error:
        load_settings(Vehicle, path)
    assert "a link below /dev/v4l" in error.value.details["expected"]


def test_a_password_on_the_command_line_is_not_repeated_in_the_error(tmp_path: Path) -> None:
    override = 'source={kind="rtsp", url="rtsp://driver:secret@bad host/x"}'
    with pytest.raises(ConfigError) as error:
        load_settings(Vehicle, None, [override])
    assert "secret" not in str(error.value)
    assert error.value.details["where"] == "the command line: source"


def test_a_file_that_is_there_but_no_text_is_not_suggested_instead_of_itself(tmp_path: Path) -> None:
    path = tmp_path / "trial.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot read") as error:
        load_settings(Recipe, path)
    assert "to do" not in error.value.details


def test_keys_that_do_not_fit_one_another_are_told_with_their_numbers_and_not_with_the_whole_file(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError, match="5 is not below 3") as error:
        load_settings(
            Recipe, recipe_file(tmp_path, "[optimizer]\nwarmup_epochs = 5\n"), ["training.epochs=3"]
        )
    assert error.value.what.startswith("optimizer.warmup_epochs must be below training.epochs (--epochs)")
    assert error.value.details == {
        "where": f"{tmp_path / 'trial.toml'}, with training.epochs of the command line",
        "to do": "change one of these keys in the file or by --set KEY=VALUE",
    }


@pytest.mark.parametrize("value", [-1, 2**63, 10**30])
def test_a_seed_that_no_generator_takes_is_refused(tmp_path: Path, value: int) -> None:
    with pytest.raises(ConfigError, match="the command line: seed"):
        load_settings(Recipe, recipe_file(tmp_path, ""), [f"seed={value}"])


def test_more_threads_than_any_machine_has_are_refused_and_not_started(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'training\.threads'"):
        load_settings(Recipe, recipe_file(tmp_path, ""), ["training.threads=100000"])


@pytest.mark.parametrize("kind", [RoadState, Ready], ids=lambda kind: str(kind.__name__))
def test_the_oldest_pydantic_has_nothing_to_warn_of(kind: type[RoadState] | type[Ready]) -> None:
    """Before 2.10 it kept names in model_ for itself, and told so at every start of the daemon."""
    assert any(name.startswith("model_") for name in kind.model_fields)
    assert kind.model_config["protected_namespaces"] == ()


@pytest.mark.parametrize("method", ["", '[method]\nname = "large_margin"\n'])
def test_a_margin_to_boundaries_that_are_not_flat_is_refused(tmp_path: Path, method: str) -> None:
    path = recipe_file(tmp_path, '[model]\nheads = "rscd"\n' + method)
    with pytest.raises(ConfigError, match=r"without a margin .*, not '(discrim|large_m)"):
        load_settings(Recipe, path)
    assert load_settings(Recipe, path, ["method={name = 'clean_noisy'}"]).model.heads == "rscd"
