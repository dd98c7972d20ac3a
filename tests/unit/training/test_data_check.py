"""The check finds every planted defect, names the file and the reason, and refuses above its limit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from planted_defects import TINTS, alike, draw_road, jpeg, make_folders, plant_file_defects, write

from edge_road import cli
from edge_road.clock import SystemClock
from edge_road.datasets.guess import guess_data
from edge_road.recipe_data import CsvData, SyntheticData
from edge_road.synthetic.rscd_tree import write_rscd_tree
from edge_road.training.data_check.checking import check_data
from edge_road.training.data_check.findings import CheckReport
from edge_road.training.data_check.inspect import fingerprint_of


def check(path: Path, limit: float = 0.01) -> CheckReport:
    return check_data(guess_data(path), limit=limit)[0]


def found(report: CheckReport) -> set[tuple[str, str]]:
    return {(finding.kind, finding.file) for finding in report.findings if finding.kind != "label_suspect"}


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folders(tmp_path_factory.mktemp("clean"), dry=20, wet=20, icy=20)


def test_a_clean_set_is_accepted_without_a_finding(clean: Path) -> None:
    report = check(clean)
    assert found(report) == set()
    assert (report.pictures, report.bad_files, report.refused) == (60, 0, False)


def test_every_planted_file_defect_is_found_and_nothing_else(tmp_path: Path) -> None:
    make_folders(tmp_path, dry=20, wet=20, icy=20)
    planted = plant_file_defects(tmp_path)
    report = check(tmp_path)
    assert found(report) == {(kind, key) for key, kind in planted.items()}
    assert all(finding.reason for finding in report.findings)
    assert report.bad_files == 6
    assert report.refused


def test_copies_are_found_in_one_split_and_across_splits_and_with_two_labels(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = []
    for split in ("train", "validation", "test"):
        for label in TINTS:
            for number in range(8):
                name = f"{split}_{label}_{number}.jpg"
                write(tmp_path / name, jpeg(draw_road(label, rng)))
                rows.append(f"{name},{label},{split}")
    original = draw_road("dry", rng)
    copies = {"copy_train.jpg": "dry,train", "copy_test.jpg": "dry,test", "copy_wet.jpg": "wet,train"}
    for name, rest in {"original.jpg": "dry,train", **copies}.items():
        write(tmp_path / name, jpeg(original))
        rows.append(f"{name},{rest}")
    expected = {
        ("duplicate", "original.jpg"),  # `copy_train.jpg` comes first by name
        ("leak", "copy_test.jpg"),
        ("label_conflict", "copy_wet.jpg"),
    }
    near = draw_road("wet", rng)
    write(tmp_path / "near.jpg", jpeg(near))
    rows.append("near.jpg,wet,train")
    for number, (change, content) in enumerate(alike(near).items()):
        name = f"near_{change}.{'png' if change == 'as_png' else 'jpg'}"
        split = ("test", "validation", "train", "test")[number]
        write(tmp_path / name, content)
        rows.append(f"{name},wet,{split}")
        expected.add(("near_duplicate" if split == "train" else "near_leak", name))
    (tmp_path / "table.csv").write_text("\n".join(["file,label,split", *rows]))
    report = check(tmp_path / "table.csv")
    assert found(report) == expected
    leak = next(finding for finding in report.findings if finding.kind == "leak")
    assert leak.other == "copy_train.jpg"
    assert "one in test, one in train" in leak.reason


def test_misspelt_folders_empty_classes_and_imbalance_are_named(tmp_path: Path) -> None:
    make_folders(tmp_path, dry=60, wet=5)
    rng = np.random.default_rng(0)
    write(tmp_path / "icey" / "a.jpg", jpeg(draw_road("icy", rng)))
    write(tmp_path / "misc" / "b.jpg", jpeg(draw_road("icy", rng)))
    write(tmp_path / "misc" / "c.jpg", jpeg(draw_road("icy", rng)))
    report = check(tmp_path)
    assert found(report) == {
        ("label_typo", "icey"),
        ("unknown_folder", "misc"),
        ("empty_class", "icy"),
        ("imbalance", "wet"),
    }
    reasons = {finding.kind: finding.reason for finding in report.findings}
    assert reasons["label_typo"] == "its one picture is left out; did you mean 'icy'?"
    assert reasons["unknown_folder"] == "its 2 pictures are left out"
    assert report.refused


def test_classes_that_lie_in_train_and_test_are_said_to_lie_there(tmp_path: Path) -> None:
    for split in ("train", "test"):
        make_folders(tmp_path / split, dry=1, wet=1, icy=1)
    reasons = {finding.file: finding.reason for finding in check(tmp_path).findings}
    assert reasons["train"].startswith("its 3 pictures are left out; put the folders of the classes side by")


def test_a_class_too_small_for_three_splits_is_named(tmp_path: Path) -> None:
    make_folders(tmp_path, dry=6, wet=6, icy=2)
    report = check(tmp_path)
    assert {kind for kind, _ in found(report)} == {"too_few"}
    assert report.refused


def test_rows_and_names_without_a_label_are_listed_each(tmp_path: Path) -> None:
    make_folders(tmp_path, dry=6, wet=6, icy=6)
    rows = [f"{label}/{i:03d}.jpg,{label}" for label in TINTS for i in range(6)]
    rows[3] = "dry/003.jpg,dyr"
    rows.append("dry/gone.jpg,dry")
    (tmp_path / "table.csv").write_text("\n".join(["file,label", *rows]))
    report = check_data(CsvData(kind="csv", path=tmp_path / "table.csv"))[0]
    assert found(report) == {("no_label", "dry/003.jpg"), ("no_label", "dry/gone.jpg")}
    assert "did you mean 'dry'?" in report.findings[0].reason


def test_rscd_names_that_lie_are_listed(tmp_path: Path) -> None:
    write_rscd_tree(tmp_path / "rscd", 1, np.random.default_rng(0), height=48, width=36)
    wrong = tmp_path / "rscd" / "train" / "ice" / "202201021200001-wet-mud.jpg"
    write(wrong, jpeg(draw_road("wet", np.random.default_rng(1))))
    report = check(tmp_path / "rscd")
    assert ("no_label", "train/ice/202201021200001-wet-mud.jpg") in found(report)


def test_flipped_labels_lead_the_ranking_and_are_not_counted_as_bad(tmp_path: Path) -> None:
    make_folders(tmp_path, dry=60, wet=60, icy=60)
    rng = np.random.default_rng(5)
    flipped = set()
    for number, (label, other) in enumerate([("dry", "wet"), ("wet", "icy"), ("icy", "dry")] * 3):
        key = f"{other}/flip_{number}.jpg"
        write(tmp_path / key, jpeg(draw_road(label, rng)))
        flipped.add(key)
    report = check(tmp_path)
    ranked = [finding.file for finding in report.findings if finding.kind == "label_suspect"]
    assert flipped <= set(ranked[:12])  # all 9 of 5 % among the first 12
    assert report.bad_files == 0
    assert "ranked for a person" in report.notes[0]


def test_rendered_roads_can_be_checked_like_files() -> None:
    settings = SyntheticData(train=6, validation=3, test=3, height=48, width=64)
    report = check_data(settings)[0]
    assert report.pictures == 12
    assert not {kind for kind, _ in found(report)} & {"unreadable", "leak"}


def test_of_a_million_pictures_without_files_only_digests_are_kept() -> None:
    picture = np.zeros((48, 64, 3), np.uint8)
    assert len(fingerprint_of(picture, picture.tobytes()).sha256) == 32


def test_the_command_writes_page_and_json_and_exits_by_the_limit(
    clean: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_folders(tmp_path / "photos", dry=20, wet=20, icy=20)
    write(folder / "dry" / "<b>cut.jpg", b"\xff\xd8\xff")
    out = tmp_path / "out"
    assert cli.main(["data", "check", str(folder), "--out", str(out)]) == 2
    assert cli.main(["data", "check", str(folder), "--out", str(out), "--limit", "0.02"]) == 0
    written = json.loads((out / "data_check.json").read_text())
    assert written["found"]["unreadable"] == 1
    assert written["bad_share"] == pytest.approx(1 / 61)
    page = (out / "data_check.html").read_text()
    assert "<b>cut.jpg" not in page
    assert "&lt;b&gt;cut.jpg" in page
    assert "http" not in page.replace("http-equiv", "")
    assert "dry" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "value", "told"), [("--limit", "2", "0 to 1, not 2"), ("--workers", "0", "1 or more, not 0")]
)
def test_a_number_out_of_range_is_told_with_its_range(
    option: str, value: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["data", "check", "photos", option, value])
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [[], ["photos", "--recipe", "synthetic"], ["nowhere"], ["--recipe", "no_such_recipe"]],
)
def test_a_data_set_that_is_not_named_or_not_there_is_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["data", "check", *words]) == 2
    assert "error:" in capsys.readouterr().err


def test_the_real_roads_have_no_bad_file_and_are_read_within_two_minutes(shared_data: Path) -> None:
    clock = SystemClock()
    begin_ns = clock.mono_ns()
    report = check(shared_data / "road3")
    assert clock.mono_ns() - begin_ns < 120e9
    assert report.pictures == 1301
    assert report.bad_files == 0


def test_what_is_not_read_is_named_and_not_passed_by_in_silence(tmp_path: Path) -> None:
    make_folders(tmp_path, dry=20, wet=20, icy=20)
    left_out = {
        "icy/IMG_1.HEIC": "left out; save it as JPEG or PNG",
        "icy/scan.tiff": "left out; save it as JPEG or PNG",
        "icy/saved.JFIF": "left out; rename it to .jpg",
        "icy/drive.MP4": "left out; save frames of it as JPEG or PNG",
        "unsorted.jpg": "left out; move it into the folder of its class",
    }
    for name in (*left_out, "icy/notes.txt", ".hidden.jpg"):
        (tmp_path / name).write_bytes(b"x")
    report = check(tmp_path)
    assert {finding.file: finding.reason for finding in report.findings} == left_out
    assert {kind for kind, _ in found(report)} == {"foreign_format", "loose"}
    assert (report.pictures, report.bad_files, report.refused) == (60, 0, False)


@pytest.mark.parametrize("counts", [{"dry": 20}, {"dry": 20, "wet": 3, "icy": 3}])
def test_labels_that_nothing_could_judge_are_not_said_to_be_judged(
    tmp_path: Path, counts: dict[str, int]
) -> None:
    report = check(make_folders(tmp_path, **counts))
    assert report.notes == ("labels were not judged: fewer than two classes have 5 readable pictures",)


def test_a_limit_that_is_no_number_is_answered_with_what_it_should_be(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["data", "check", "x", "--limit", "many"])
    assert left.value.code == 2
    assert "a share from 0 to 1, not many" in capsys.readouterr().err


def test_a_file_name_cannot_move_the_cursor_or_forge_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_folders(tmp_path / "set", dry=6, wet=6, icy=6)
    (tmp_path / "set" / "dry" / "a\x1b[2J\n  error none.jpg").write_bytes(b"x")
    cli.main(["data", "check", str(tmp_path / "set"), "--out", str(tmp_path / "out")])
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert r"dry/a\x1b[2J\x0a  error none.jpg: neither JPEG" in shown
