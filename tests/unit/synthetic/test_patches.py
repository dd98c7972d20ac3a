"""Close-ups with the 27 labels of RSCD, and a data set made of them."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from edge_road.conditions import RSCD_LABELS, RscdLabel, parse_rscd_name, rscd_label
from edge_road.errors import DataError
from edge_road.synthetic.patches import render_patch
from edge_road.synthetic.rscd_tree import rscd_file_name, write_rscd_tree


def rng(*seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("label", RSCD_LABELS, ids=lambda label: label.name)
def test_every_label_has_a_reproducible_picture(label: RscdLabel) -> None:
    first, again, other = (render_patch(label, rng(seed), 96, 64) for seed in (1, 1, 2))
    assert first.shape == (96, 64, 3)
    assert first.dtype == np.uint8
    np.testing.assert_array_equal(first, again)
    assert (first != other).mean() > 0.5


def test_a_patch_has_the_size_of_rscd_unless_told_otherwise() -> None:
    assert render_patch(RSCD_LABELS[0], rng(0)).shape == (360, 240, 3)


def test_a_label_may_be_given_by_its_name() -> None:
    by_name = render_patch("wet-asphalt-slight", rng(3), 96, 64)
    np.testing.assert_array_equal(by_name, render_patch(rscd_label("wet-asphalt-slight"), rng(3), 96, 64))
    with pytest.raises(DataError, match="27 RSCD labels"):
        render_patch("wet-asphalt-rough", rng(3))


def mean_over(label: str, channel: int | None = None) -> float:
    pictures = np.stack([render_patch(label, rng(seed), 96, 64) for seed in range(8)])
    return float(pictures.mean() if channel is None else pictures[..., channel].mean())


def test_labels_look_as_their_words_say() -> None:
    assert (
        mean_over("wet-asphalt-smooth") < mean_over("dry-asphalt-smooth") < mean_over("dry-concrete-smooth")
    )
    assert mean_over("fresh_snow") > mean_over("melted_snow")
    assert mean_over("dry-mud", 0) > 1.5 * mean_over("dry-mud", 2)  # brown
    assert mean_over("ice", 2) > mean_over("ice", 0)  # bluish


def dark_share(label: str) -> float:
    """Share of a shrunken patch that is much darker than its surroundings: cracks and holes."""
    shares = []
    for seed in range(8):
        grey = render_patch(label, rng(seed), 192, 128).mean(axis=2)
        grey = cv2.resize(grey, (64, 96), interpolation=cv2.INTER_AREA)
        shares.append((grey < 0.75 * cv2.GaussianBlur(grey, (0, 0), 8)).mean())
    return float(np.mean(shares))


@pytest.mark.parametrize("material", ["asphalt", "concrete"])
@pytest.mark.parametrize("friction", ["dry", "wet", "water"])
def test_rougher_surfaces_have_more_cracks_and_holes(friction: str, material: str) -> None:
    smooth, slight, severe = (
        dark_share(f"{friction}-{material}-{grade}") for grade in ("smooth", "slight", "severe")
    )
    assert smooth + 0.005 < slight
    assert slight + 0.01 < severe


def test_generated_names_are_names_of_rscd() -> None:
    generator = rng(5)
    names = [parse_rscd_name(rscd_file_name(label, generator)) for label in RSCD_LABELS for _ in range(40)]
    assert [name.label for name in names] == [label for label in RSCD_LABELS for _ in range(40)]
    assert {len(name.serial) for name in names} == {1, 2, 3, 4}
    assert len({name.day for name in names}) > 30


def test_a_tree_has_the_folders_of_rscd_and_readable_pictures(tmp_path: Path) -> None:
    write_rscd_tree(tmp_path / "rscd", 2, rng(6), height=60, width=40)
    folders = sorted(path.name for path in (tmp_path / "rscd" / "train").iterdir())
    assert folders == sorted(label.name.replace("-", "_") for label in RSCD_LABELS)
    for folder in folders:
        files = list((tmp_path / "rscd" / "train" / folder).iterdir())
        assert {parse_rscd_name(file.name).label for file in files} == {rscd_label(folder)}
        assert len(files) == 2
    for split in ("vali_20k", "test_50k"):
        files = list((tmp_path / "rscd" / split).iterdir())
        assert {parse_rscd_name(file.name).label for file in files} == set(RSCD_LABELS)
    assert cv2.imread(str(files[0])).shape == (60, 40, 3)
    assert [path.name for path in tmp_path.iterdir()] == ["rscd"]


def test_the_same_seed_writes_the_same_tree(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_rscd_tree(tmp_path / name, 1, rng(7), height=30, width=20)
    one, two = (
        {str(p.relative_to(tmp_path / name)): p.read_bytes() for p in (tmp_path / name).rglob("*.jpg")}
        for name in ("one", "two")
    )
    assert one == two
    assert len(one) == 3 * 27


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(DataError, match="write over"):
        write_rscd_tree(tmp_path / "mine", 1, rng(8))
    with pytest.raises(DataError, match="at least one patch"):
        write_rscd_tree(tmp_path / "new", 0, rng(8))
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_failure_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered = 0

    def fail_later(*arguments: object) -> np.ndarray:
        nonlocal rendered
        rendered += 1
        if rendered > 10:
            raise OSError("no space left on device")
        return np.zeros((30, 20, 3), dtype=np.uint8)

    monkeypatch.setattr("edge_road.synthetic.rscd_tree.render_patch", fail_later)
    with pytest.raises(OSError, match="no space"):
        write_rscd_tree(tmp_path / "rscd", 1, rng(9))
    assert list(tmp_path.iterdir()) == []
