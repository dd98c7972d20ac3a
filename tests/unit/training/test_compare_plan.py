"""Which trainings a comparison needs: every method, every varied value, every fold or seed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from edge_road.errors import ConfigError
from edge_road.evaluation.perturbations import expand
from edge_road.recipe_data import FolderData
from edge_road.training.compare import main as compare
from edge_road.training.compare.plan import Trial, Variation, plan_trials
from edge_road.training.recipes import Wishes

RECIPE = """
name = "plan"
seed = 7
[data]
kind = "folder"
path = "pictures"
[method]
name = "discriminative"
passes = "joint"
sigma = 0.1
delta_d = 2.5
[training]
epochs = 3
"""


@pytest.fixture
def wishes(tmp_path: Path) -> Wishes:
    (tmp_path / "plan.toml").write_text(RECIPE)
    return Wishes(recipe=str(tmp_path / "plan.toml"))


def method_of(trial: Trial, key: str) -> object:
    return getattr(trial.recipe.method, key)


def test_every_method_comes_once_for_every_fold_each_with_its_own_seed(wishes: Wishes) -> None:
    trials = plan_trials(wishes, ["softmax", "spider"], "fold", 3)
    assert [(t.row, t.number) for t in trials] == [
        (name, k) for k in range(3) for name in ("softmax", "spider")
    ]
    assert [trial.recipe.seed for trial in trials] == [7, 7, 8, 8, 9, 9]
    for trial in trials:
        assert isinstance(trial.recipe.data, FolderData)
        assert (trial.recipe.data.folds, trial.recipe.data.fold) == (3, trial.number)
        assert trial.recipe.training.epochs == 3
    assert len({trial.folder for trial in trials}) == 6


def test_seeds_keep_the_one_split(wishes: Wishes) -> None:
    trials = plan_trials(wishes, ["softmax"], "seed", 2)
    assert [trial.recipe.seed for trial in trials] == [7, 8]
    assert trials[0].recipe.data == trials[1].recipe.data


def test_all_methods_meet_the_noise_of_the_recipe_and_keep_their_other_defaults(wishes: Wishes) -> None:
    noisy, stability, large, ours = plan_trials(
        wishes, ["noisy", "stability", "large_margin", "discriminative"], "seed", 1
    )
    assert method_of(noisy, "sigma") == method_of(stability, "sigma") == method_of(ours, "sigma") == 0.1
    assert method_of(stability, "passes") == "joint"
    assert method_of(ours, "delta_d") == 2.5
    assert method_of(large, "delta_d") == 6.0


def test_overrides_of_a_method_reach_those_that_know_them(wishes: Wishes) -> None:
    asked = Wishes(recipe=wishes.recipe, overrides=["method.sigma=0.3", "training.batch_size=16"])
    softmax, noisy = plan_trials(asked, ["softmax", "noisy"], "seed", 1)
    assert method_of(noisy, "sigma") == 0.3
    assert softmax.recipe.training.batch_size == noisy.recipe.training.batch_size == 16


def test_a_variation_is_a_row_for_each_value_of_the_methods_that_have_it(wishes: Wishes) -> None:
    varied = [Variation.parse("method.delta_d=1,3"), Variation.parse("method.momentum=0.5, 0.9")]
    trials = plan_trials(wishes, ["softmax", "discriminative"], "seed", 1, varied)
    assert [trial.row for trial in trials] == [
        "softmax",
        *(f"discriminative delta_d={d} momentum={m}" for d in (1, 3) for m in (0.5, 0.9)),
    ]
    assert method_of(trials[1], "delta_d") == 1.0
    assert method_of(trials[-1], "momentum") == 0.9
    assert " " not in trials[1].folder


@pytest.mark.parametrize(
    ("methods", "overrides", "vary", "told"),
    [
        (["sofmax"], [], [], "did you mean 'softmax'?"),
        (["softmax", "softmax"], [], [], "each method once"),
        (["softmax"], ["method.sigma=0.1"], [], "none of the methods has this key"),
        (["softmax"], [], ["method.delta_d=1,2"], "none of the methods has this key"),
        (["discriminative"], [], ["method.delta_d=-1"], "greater than 0"),
        (["softmax"], [], ["training.epoch=1,2"], "did you mean 'epochs'?"),
    ],
)
def test_what_cannot_be_planned_is_said_before_anything_is_trained(
    wishes: Wishes, methods: list[str], overrides: list[str], vary: list[str], told: str
) -> None:
    asked = Wishes(recipe=wishes.recipe, overrides=overrides)
    with pytest.raises(ConfigError) as caught:
        plan_trials(asked, methods, "seed", 1, [Variation.parse(text) for text in vary])
    assert told in str(caught.value)


@pytest.mark.parametrize("text", ["delta_d", "=1,2", "method.delta_d=", "method.delta_d=1,,2"])
def test_a_variation_without_key_or_values_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="a variation is"):
        Variation.parse(text)


def test_folds_need_pictures_that_can_be_drawn() -> None:
    with pytest.raises(ConfigError, match="cross-validation") as caught:
        plan_trials(Wishes(recipe="synthetic"), ["softmax"], "fold", 5)
    assert "--seeds" in caught.value.details["to do"]


def test_every_ablation_of_the_guide_can_be_planned(wishes: Wishes, root: Path) -> None:
    text = (root / "docs" / "methods.md").read_text(encoding="utf-8")
    commands = [line.split("`BASE ")[1].split("`")[0] for line in text.splitlines() if "`BASE " in line]
    varied = set()
    for command in commands:
        chosen = compare._parser().parse_args(["--folds", "2", *shlex.split(command)])
        variations = [Variation.parse(text) for text in chosen.vary]
        asked = Wishes(recipe=wishes.recipe, overrides=chosen.overrides)
        trials = plan_trials(asked, chosen.methods.split(","), "fold", chosen.folds, variations)
        assert len({trial.folder for trial in trials}) == len(trials)
        assert compare._reference(chosen.reference, trials) in {trial.row for trial in trials}
        varied |= {variation.key for variation in variations}
    wanted = ("data.train_share", "method.alpha", "method.beta", "method.gamma_reg", "method.momentum")
    assert {*wanted, "method.delta_d"} <= varied


def test_every_table_of_the_papers_can_be_planned(root: Path) -> None:
    text = (root / "docs" / "methods.md").read_text(encoding="utf-8")
    block = text.split("### The papers' tables")[1].split("```bash\n")[1].split("```")[0]
    for command in block.splitlines():
        chosen = compare._parser().parse_args(shlex.split(command)[2:])
        variations = [Variation.parse(text) for text in chosen.vary]
        asked = Wishes(recipe=chosen.recipe)
        trials = plan_trials(asked, chosen.methods.split(","), "seed", chosen.seeds, variations)
        rows = 10 if variations else 5
        assert len({trial.folder for trial in trials}) == len(trials) == rows
        assert compare._reference(chosen.reference, trials) in {trial.row for trial in trials}
        levels = [name for name in chosen.perturbations.split(",") if name]
        assert len(expand(levels)) == {"": 0, "paper": 10}.get(chosen.perturbations, 5)
