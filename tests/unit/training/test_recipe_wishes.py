"""What the command line says ends up in the recipe, with paths that mean the same everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_road.config import load_settings, write_settings
from edge_road.errors import ConfigError
from edge_road.recipe import Recipe
from edge_road.recipe_data import FolderData, RscdData, SyntheticData
from edge_road.recipe_method import DiscriminativeMethod
from edge_road.run_record import RECIPE_FILE
from edge_road.training.recipes import Wishes, read_recipe
from edge_road.workspace import shipped

RECIPE = """
name = "mine"
[data]
kind = "folder"
path = "photos"
validation = 0.3
[model]
weights = "weights/backbone.safetensors"
[method]
name = "discriminative"
delta_d = 4.0
[training]
epochs = 9
"""


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "recipes"
    folder.mkdir()
    (folder / "mine.toml").write_text(RECIPE)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return "../recipes/mine.toml"


def test_paths_in_a_file_count_from_its_folder(recipe: str, tmp_path: Path) -> None:
    found = read_recipe(Wishes(recipe=recipe))
    assert isinstance(found.data, FolderData)
    assert found.data.path == tmp_path / "recipes" / "photos"
    assert found.model.weights == str(tmp_path / "recipes" / "weights" / "backbone.safetensors")


def test_paths_on_the_command_line_count_from_the_current_folder(recipe: str, tmp_path: Path) -> None:
    shortcuts = read_recipe(Wishes(recipe=recipe, data=Path("roads"), weights="b.safetensors"))
    overrides = read_recipe(
        Wishes(recipe=recipe, overrides=["data.path=roads", "model.weights = 'b.safetensors'"])
    )
    assert shortcuts == overrides
    assert isinstance(shortcuts.data, FolderData)
    assert shortcuts.data.path == tmp_path / "here" / "roads"
    assert shortcuts.model.weights == str(tmp_path / "here" / "b.safetensors")


@pytest.mark.parametrize("word", ["none", "hub"])
def test_none_and_hub_are_no_files(recipe: str, word: str) -> None:
    assert read_recipe(Wishes(recipe=recipe, weights=word)).model.weights == word


def test_other_data_of_the_same_kind_keeps_the_settings_of_its_section(recipe: str) -> None:
    data = read_recipe(Wishes(recipe=recipe, data=Path("roads"))).data
    assert isinstance(data, FolderData)
    assert data.validation == 0.3


def test_a_tree_with_train_is_rscd_and_replaces_the_section(recipe: str, tmp_path: Path) -> None:
    (tmp_path / "here" / "rscd" / "train").mkdir(parents=True)
    data = read_recipe(Wishes(recipe=recipe, data=Path("rscd"))).data
    assert data == RscdData(kind="rscd", path=tmp_path / "here" / "rscd")


def test_a_run_goes_on_when_a_link_to_its_pictures_lies_where_they_were(tmp_path: Path) -> None:
    run, photos = tmp_path / "run", tmp_path / "photos"
    run.mkdir()
    photos.mkdir()
    begun = read_recipe(Wishes(recipe="road_small", data=photos))
    write_settings(begun, run / RECIPE_FILE)
    photos.rename(tmp_path / "other-disk")
    photos.symlink_to(tmp_path / "other-disk")
    assert read_recipe(Wishes(run=run)) == begun


def test_finer_class_folders_are_read_as_data_check_reads_them(recipe: str, tmp_path: Path) -> None:
    for name in ("dry", "wet", "water", "ice"):
        (tmp_path / "here" / "roads" / name).mkdir(parents=True)
    data = read_recipe(Wishes(recipe=recipe, data=Path("roads"))).data
    assert isinstance(data, FolderData)
    assert data.classes == ("dry", "ice", "water", "wet")
    named = Path(recipe)
    named.write_text(named.read_text().replace("validation", 'classes = ["wet", "dry"]\nvalidation'))
    data = read_recipe(Wishes(recipe=recipe, data=Path("roads"))).data
    assert isinstance(data, FolderData)
    assert data.classes == ("wet", "dry"), "the recipe's word goes first"


def test_a_folder_name_with_quotes_and_spaces_survives(recipe: str, tmp_path: Path) -> None:
    data = read_recipe(Wishes(recipe=recipe, data=Path('it\'s "mine" = ours'))).data
    assert isinstance(data, FolderData)
    assert data.path == tmp_path / "here" / 'it\'s "mine" = ours'


def test_the_same_method_keeps_its_settings_and_another_starts_from_its_own(recipe: str) -> None:
    same = read_recipe(Wishes(recipe=recipe, method="discriminative")).method
    assert isinstance(same, DiscriminativeMethod)
    assert same.delta_d == 4.0
    assert read_recipe(Wishes(recipe=recipe, method="softmax")).method.name == "softmax"


@pytest.mark.parametrize("method", [None, "discriminative"])
def test_keys_of_sections_that_the_file_leaves_out_are_those_of_the_defaults(
    tmp_path: Path, method: str | None
) -> None:
    (tmp_path / "short.toml").write_text('name = "short"\n')
    overrides = ["method.delta_d=0.3", "data.train=9"]
    found = read_recipe(Wishes(recipe=str(tmp_path / "short.toml"), method=method, overrides=overrides))
    assert found.method == DiscriminativeMethod(delta_d=0.3)
    assert found.data == SyntheticData(train=9)


def test_overrides_have_the_last_word(recipe: str) -> None:
    wishes = Wishes(recipe=recipe, epochs=5, overrides=["training.epochs=3", "seed=8"])
    found = read_recipe(wishes)
    assert (found.training.epochs, found.seed) == (3, 8)


def test_an_unknown_method_is_named_with_those_that_are_known(recipe: str) -> None:
    with pytest.raises(ConfigError, match="softmax"):
        read_recipe(Wishes(recipe=recipe, method="sofmax"))


def test_zero_epochs_are_refused(recipe: str) -> None:
    with pytest.raises(ConfigError, match=r"training\.epochs"):
        read_recipe(Wishes(recipe=recipe, epochs=0))


def test_a_warm_up_as_long_as_the_training_is_refused(recipe: str) -> None:
    with pytest.raises(ConfigError, match="warmup_epochs must be below"):
        read_recipe(Wishes(recipe=recipe, overrides=["optimizer.warmup_epochs=9"]))


def test_without_wishes_it_is_the_synthetic_recipe() -> None:
    found = read_recipe(Wishes())
    assert found == load_settings(Recipe, shipped("recipes", "synthetic"))
    assert isinstance(found.data, SyntheticData)


def test_shipped_recipes_are_known_by_name() -> None:
    assert read_recipe(Wishes(recipe="road")).name == "road"


def test_a_folder_of_pictures_does_not_hide_a_recipe_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rscd").mkdir()
    monkeypatch.chdir(tmp_path)
    assert read_recipe(Wishes(recipe="rscd")).name == "rscd"


def test_a_misspelt_name_lists_what_there_is() -> None:
    with pytest.raises(ConfigError, match="cannot read") as error:
        read_recipe(Wishes(recipe="roda"))
    assert "did you mean 'road.toml'?" in str(error.value)


def test_a_runs_own_recipe_is_used_when_only_the_run_is_given(recipe: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "recipe.toml").write_text('name = "earlier"\n')
    assert read_recipe(Wishes(run=run)).name == "earlier"
    assert read_recipe(Wishes(run=run, epochs=3)).training.epochs == 3
    assert read_recipe(Wishes(run=run, recipe=recipe)).name == "mine"
