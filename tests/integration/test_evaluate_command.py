"""`evaluate_road.py` on real files: runs and bundles, their own pictures, other ones, changed ones."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from tiny_bundle import LEVELS, write_tiny_bundle

from edge_road.cli import main as edge_road
from edge_road.datasets import open_dataset
from edge_road.datasets.prepared import Prepared
from edge_road.errors import DataError
from edge_road.evaluation.perturbations import SUITES
from edge_road.evaluation.report import Report, load_report
from edge_road.preprocess import Preprocessing
from edge_road.recipe import Recipe
from edge_road.recipe_data import DataSettings, FolderData, RscdData, SyntheticData
from edge_road.synthetic.rscd_tree import write_rscd_tree

pytest.importorskip("jinja2")  # pages are made where models are trained

QUICK = ["--runs", "2", "--perturbations", "gaussian_40,dark"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EDGE_ROAD_HOME", str(tmp_path))
    return tmp_path


def make_photos(folder: Path, per_class: int = 10) -> Path:
    for name, level in zip(("dry", "wet", "icy"), LEVELS):
        (folder / name).mkdir(parents=True)
        for number in range(per_class):
            picture = np.full((48, 64, 3), level + number - per_class // 2, np.uint8)
            cv2.imwrite(str(folder / name / f"{number:02d}.png"), picture)
    return folder


def recipe_for(folder: Path) -> Recipe:
    return Recipe(name="tiny", data=FolderData(kind="folder", path=folder))


def make_bundle(home: Path, data: DataSettings, name: str = "tiny") -> Path:
    return write_tiny_bundle(
        home / "bundles" / name, Recipe(name="tiny", data=data), data_digest=open_dataset(data).digest
    )


def make_run(home: Path, recipe: Recipe) -> Path:
    """A finished run with random weights: what is judged does not matter here, only how."""
    torch = pytest.importorskip("torch")
    from tiny_run import write_run

    from edge_road.nn.model import build_model

    torch.manual_seed(0)
    model = build_model(recipe.model, classes=3)
    return write_run(home / "runs" / "tiny-0001", recipe, model, Preprocessing(height=32, width=32))


def evaluate(*words: object) -> int:
    return edge_road(["evaluate", *map(str, words)])


def only_report(folder: Path) -> Report:
    assert (folder / "report.html").stat().st_size > 10_000
    return load_report(folder / "report.json")


def test_one_precision_of_a_bundle_is_judged_alone_or_refused_where_it_is_not_there(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_bundle(home, FolderData(kind="folder", path=make_photos(home / "photos")))
    assert evaluate("tiny", *QUICK, "--precision", "float32") == 0
    assert len(only_report(home / "reports" / "tiny").entries) == 1
    assert evaluate("tiny", *QUICK, "--precision", "int8") == 3
    assert "the bundle has no int8 model" in capsys.readouterr().err


def test_a_bundle_is_judged_on_its_test_pictures_and_stays_sealed(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos = make_photos(home / "photos")
    bundle = make_bundle(home, FolderData(kind="folder", path=photos))
    before = sorted(bundle.iterdir())
    assert evaluate("tiny", *QUICK) == 0
    assert sorted(bundle.iterdir()) == before
    report = only_report(home / "reports" / "tiny")
    (entry,) = report.entries
    assert entry.evaluation.images_of_class == {"dry": 2, "wet": 2, "icy": 2}
    assert entry.evaluation.clean.accuracy == 1.0
    assert [score.name for score in entry.evaluation.perturbed] == ["gaussian_40", "dark"]
    assert report.test_set.as_trained
    shown = capsys.readouterr().out
    assert "Gaussian noise 40/255" in shown
    assert str(home / "reports" / "tiny" / "report.html") in shown


def test_a_suite_judged_once_is_the_baseline_of_the_next(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_bundle(home, FolderData(kind="folder", path=make_photos(home / "photos")))
    assert evaluate("tiny", "--perturbations", "common", "--runs", "1") == 0
    stored = home / "reports" / "tiny" / "report.json"
    assert [s.name for s in load_report(stored).entries[0].evaluation.perturbed] == list(SUITES["common"])
    again = ("tiny", "--perturbations", "dark,bands:2", "--runs", "1", "--out", home / "again")
    assert evaluate(*again, "--baseline", stored) == 0
    assert "[1] mCE against the baseline" in capsys.readouterr().out
    assert evaluate(*again, "--baseline", home / "missing.json") == 2


def test_the_newest_run_is_the_default_and_keeps_its_report(home: Path) -> None:
    run = make_run(home, recipe_for(make_photos(home / "photos")))
    assert evaluate(*QUICK) == 0
    report = only_report(run)
    assert report.entries[0].subject.kind == "run"
    assert report.entries[0].evaluation.artefact.startswith("torch float32")


def test_run_and_bundle_side_by_side(home: Path) -> None:
    photos = make_photos(home / "photos")
    run = make_run(home, recipe_for(photos))
    bundle = make_bundle(home, FolderData(kind="folder", path=photos))
    assert evaluate(run, bundle, "--out", home / "both", "--perturbations", "", "--split", "all") == 0
    report = only_report(home / "both")
    assert [entry.subject.kind for entry in report.entries] == ["run", "bundle"]
    assert [entry.evaluation.images for entry in report.entries] == [30, 30]
    assert all(not entry.evaluation.perturbed for entry in report.entries)


def test_pictures_that_changed_since_are_refused_unless_they_are_named(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos = make_photos(home / "photos")
    bundle = make_bundle(home, FolderData(kind="folder", path=photos))
    (photos / "dry" / "00.png").rename(photos / "wet" / "moved.png")
    assert evaluate(bundle, *QUICK) == 2
    assert "not the pictures that the model was made with" in capsys.readouterr().err
    assert not (home / "reports").exists()
    assert evaluate(bundle, "--data", photos, *QUICK) == 0
    assert not only_report(home / "reports" / "tiny").test_set.as_trained


def test_a_model_of_rendered_scenes_can_be_judged_on_photographs(home: Path) -> None:
    photos = make_photos(home / "photos")
    bundle = make_bundle(home, SyntheticData(train=9, validation=3, test=3))
    assert evaluate(bundle, "--data", photos, "--split", "all", "--images", 12, *QUICK) == 0
    report = only_report(home / "reports" / "tiny")
    assert report.entries[0].evaluation.images == 12
    assert report.test_set.kind == "folder"


def test_other_pictures_may_be_a_table_or_rscd_with_the_labels_of_the_model(home: Path) -> None:
    photos = make_photos(home / "photos")
    files = sorted(photos.glob("*/*.png"))
    table = photos / "table.csv"
    table.write_text("file,label\n" + "".join(f"{p.parent.name}/{p.name},{p.parent.name}\n" for p in files))
    bundle = make_bundle(home, FolderData(kind="folder", path=photos))
    assert evaluate(bundle, "--data", table, "--split", "all", *QUICK) == 0
    report = only_report(home / "reports" / "tiny")
    assert (report.test_set.kind, report.entries[0].evaluation.images) == ("csv", 30)

    rscd = home / "rscd"
    write_rscd_tree(rscd, 1, np.random.default_rng(0), height=48, width=32)
    coarse = make_bundle(home, RscdData(kind="rscd", path=rscd, labels="state3"), "coarse")
    rscd.rename(home / "moved")
    assert evaluate(coarse, "--data", home / "moved", *QUICK) == 0
    assert only_report(home / "reports" / "coarse").test_set.as_trained


def test_other_classes_are_refused(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photos = make_photos(home / "photos")
    data = FolderData(kind="folder", path=photos, classes=("icy", "wet", "dry"))
    assert evaluate(make_bundle(home, data), *QUICK) == 2
    assert "different classes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["tinny"], 2, "did you mean 'tiny'?"),
        (["--perturbations", "gausian_40"], 2, "did you mean 'gaussian_40'"),
        (["nowhere/at/all"], 2, "neither a finished run nor a bundle"),
    ],
)
def test_a_mistyped_command_is_refused_early(
    home: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, message: str
) -> None:
    make_bundle(home, SyntheticData(train=9, validation=3, test=3))
    assert evaluate(*words) == code
    assert message in capsys.readouterr().err


def test_no_run_yet_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate() == 2
    assert "python training/train_road.py" in capsys.readouterr().err


def test_a_sabotaged_int8_model_is_visibly_worse_than_its_float_twin(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A scale four times too small: bright pictures saturate, and ice looks wet."""
    data = FolderData(kind="folder", path=make_photos(home / "photos", per_class=20))
    digest = open_dataset(data).digest
    limits = {"clean": 0.9, "gaussian_40": 0.8}
    bundle = write_tiny_bundle(
        home / "bundles" / "bad",
        Recipe(name="tiny", data=data),
        data_digest=digest,
        int8_step=0.5,
        smoke_limits=limits,
    )
    run = make_run(home, recipe_for(home / "photos"))
    assert evaluate(bundle, run, "--split", "all", "--out", home / "reports" / "bad", *QUICK) == 0
    report = only_report(home / "reports" / "bad")
    assert [entry.evaluation.artefact for entry in report.entries] == [
        "onnx float32 on CPU",
        "onnx int8 on CPU",
        "torch float32 on cpu",
    ]
    comparison, of_torch = report.comparisons
    assert (comparison.entry, of_torch.entry) == (1, 2)
    assert set(of_torch.conditions) == {"clean", "gaussian_40", "dark"}
    for condition in ("clean", "gaussian_40"):
        assert comparison.conditions[condition].high < -0.3
        assert comparison.conditions[condition].significant
    danger = report.entries[1].evaluation.clean.danger
    assert danger is not None
    assert danger.rate == 1.0
    assert "sure worse" in (home / "reports" / "bad" / "report.html").read_text()
    assert "*" in capsys.readouterr().out
    assert edge_road(["smoke", str(bundle)]) == 6
    assert "int8 clean 33.3%" in capsys.readouterr().err


def test_strangers_are_told_by_an_artefact_that_brings_its_geometry(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_bundle(home, FolderData(kind="folder", path=make_photos(home / "photos")))
    assert evaluate("tiny", "--ood") == 0
    report = only_report(home / "reports" / "tiny")
    (entry,) = report.entries
    assert entry.ood is not None
    assert entry.evaluation.perturbed == ()
    assert entry.ood.roads == entry.ood.strange == 6
    shown = capsys.readouterr().out
    assert "upside_down" in shown
    assert "largest mean AUROC" in shown
    assert evaluate("tiny", "--ood", "--split", "validation") == 0
    assert "(read off every other of these pictures)" in capsys.readouterr().out


def test_what_was_asked_for_and_cannot_be_measured_is_said(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos = make_photos(home / "photos")
    make_bundle(home, FolderData(kind="folder", path=photos))
    run = make_run(home, recipe_for(photos))
    others = make_photos(home / "others", per_class=4)
    asked = ["--data", others, "--perturbations", "", "--ood", "--lab", "2", "--out", home / "both"]
    assert evaluate("tiny", run, *asked) == 0
    shown = capsys.readouterr().out
    assert "tiny-0001, torch float32 on cpu: strange pictures were not judged" in shown
    assert shown.count("strange pictures were not judged") == 1, "a bundle brings what this takes"
    assert shown.count("no laboratory, which needs the gradients of a run") == 1
    assert len(only_report(home / "both").notes) >= 4


def test_jobs_do_not_change_the_report(home: Path) -> None:
    make_bundle(home, FolderData(kind="folder", path=make_photos(home / "photos")))
    for jobs in ("1", "2"):
        assert evaluate("tiny", *QUICK, "--jobs", jobs, "--out", home / jobs) == 0
    assert (home / "1" / "report.json").read_bytes() == (home / "2" / "report.json").read_bytes()
    assert (home / "1" / "report.html").read_bytes() == (home / "2" / "report.html").read_bytes()


def test_a_run_is_calibrated_on_validation_pictures_and_examined_in_the_lab(home: Path) -> None:
    recipe = recipe_for(make_photos(home / "photos", per_class=20))
    recipe = recipe.model_copy(update={"model": recipe.model.model_copy(update={"features": 16})})
    run = make_run(home, recipe)
    assert evaluate(run, "--perturbations", "", "--lab", "4", "--ood", "--seed", "1") == 0
    (entry,) = only_report(run).entries
    assert entry.calibration is not None
    assert "validation split" in entry.calibration.fitted_on
    assert entry.ood is not None
    assert entry.ood.limits_from == "validation pictures"
    lab = entry.lab
    assert lab is not None
    assert lab.pictures == 4
    assert [attack.name for attack in lab.attacks][-1] == "PGD-7 Linf 8/255"
    assert {4 * attack.accuracy for attack in lab.attacks} <= {0, 1, 2, 3, 4}
    assert len(lab.curvature.retained) == 10
    assert lab.curvature.median >= 0
    assert lab.flatness[0][0] == 0
    assert len(lab.surface.loss) == len(lab.surface.offsets)
    assert lab.surface.picture in (4, 7, 8, 11), "the four of twelve that this seed draws"
    page = (run / "report.html").read_text()
    for words in ("Laboratory", "Pictures without a road", "Loss around one"):
        assert words in page


def test_a_tiny_set_and_a_missing_class_are_said_before_the_figures(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_bundle(home, FolderData(kind="folder", path=make_photos(home / "photos")))
    assert evaluate("tiny", "--data", make_photos(home / "few", 3), "--split", "all", *QUICK) == 0
    shown = capsys.readouterr().out
    assert "Only 9 pictures: the intervals are wide" in shown
    assert "Only 3 icy pictures" in shown
    assert "not of the data set" in shown
    assert evaluate("tiny", "--images", "1", *QUICK) == 0
    shown = capsys.readouterr().out
    assert "Only 1 picture: the intervals are wide" in shown
    assert re.search("No picture of (dry, wet|dry, icy|wet, icy)", shown)
    report = only_report(home / "reports" / "tiny")
    assert report.notes
    assert sum(value is None for value in report.entries[0].evaluation.clean.recall.values()) == 2


def test_no_pictures_and_too_few_are_refused(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_bundle(home, FolderData(kind="folder", path=make_photos(home / "photos")))
    empty = make_photos(home / "empty")
    for path in (empty / "icy").iterdir():
        path.unlink()
    assert evaluate("tiny", "--data", empty, *QUICK) == 2
    assert "'icy' has no pictures" in capsys.readouterr().err
    assert evaluate("tiny", "--data", make_photos(home / "few", per_class=1), *QUICK) == 2
    assert "too few pictures" in capsys.readouterr().err
    assert not (home / "reports").exists()


@pytest.mark.parametrize("as_table", [False, True])
def test_others_without_a_class_are_judged_all_together(
    home: Path, capsys: pytest.CaptureFixture[str], as_table: bool
) -> None:
    make_bundle(home, FolderData(kind="folder", path=make_photos(home / "photos")))
    summer = make_photos(home / "summer", per_class=2)
    shutil.rmtree(summer / "icy")
    if as_table:
        rows = [f"{path.relative_to(summer)},{path.parent.name}" for path in sorted(summer.glob("*/*"))]
        summer = summer / "table.csv"
        summer.write_text("\n".join(["file,label", *rows]))
    assert evaluate("tiny", "--data", summer, *QUICK) == 2
    assert "judge all of these pictures together: --split all" in capsys.readouterr().err
    assert evaluate("tiny", "--data", summer, "--split", "all", *QUICK) == 0
    shown = capsys.readouterr().out
    assert "No picture of icy" in shown
    assert "4 pictures of all splits" in shown
    assert "4 pictures of all splits" in (home / "reports" / "tiny" / "report.html").read_text()
    report = only_report(home / "reports" / "tiny")
    assert report.entries[0].evaluation.images_of_class == {"dry": 2, "wet": 2, "icy": 0}
    assert report.entries[0].evaluation.clean.danger is None
    assert not report.test_set.as_trained


def test_a_misspelt_class_is_no_missing_one(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_bundle(home, FolderData(kind="folder", path=make_photos(home / "photos")))
    other = make_photos(home / "other")
    (other / "icy").rename(other / "Icy")
    assert evaluate("tiny", "--data", other, "--split", "all", *QUICK) == 2
    assert "did you mean 'Icy'?" in capsys.readouterr().err


def test_grey_and_alpha_pictures_are_judged_like_any_other(home: Path) -> None:
    make_bundle(home, FolderData(kind="folder", path=make_photos(home / "photos")))
    other = make_photos(home / "other")
    for path in other.glob("*/0[0-4].png"):
        grey = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
        cv2.imwrite(str(path), grey)
    for path in other.glob("*/0[5-7].png"):
        colour = cv2.imread(str(path))
        cv2.imwrite(str(path), np.dstack([colour, np.full(colour.shape[:2], 128, np.uint8)]))
    assert evaluate("tiny", "--data", other, "--split", "all", *QUICK) == 0
    (entry,) = only_report(home / "reports" / "tiny").entries
    assert entry.evaluation.images == 30
    assert entry.evaluation.clean.accuracy == 1.0


def test_folders_of_other_classes_are_refused_by_name(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_bundle(home, FolderData(kind="folder", path=make_photos(home / "photos")))
    strange = home / "strange"
    for name in ("cat", "dog", "dry"):
        (strange / name).mkdir(parents=True)
        cv2.imwrite(str(strange / name / "a.png"), np.zeros((40, 50, 3), np.uint8))
    assert evaluate("tiny", "--data", strange, *QUICK) == 2
    error = capsys.readouterr().err
    assert "'wet' has no folder" in error
    assert "cat, dog, dry" in error


def test_pictures_smaller_than_a_patch_are_judged_clean_or_not_at_all() -> None:
    pytest.importorskip("torch")
    from edge_road.training.evaluate import check_perturbable

    small = Prepared(np.zeros((2, 16, 40, 3), np.uint8), np.zeros(2, np.int64), ("a", "b"))
    check_perturbable([small], [])
    with pytest.raises(DataError, match="too small to be perturbed") as caught:
        check_perturbable([small], ["occlusion"])
    assert caught.value.details["got"] == "16 x 40"
