"""What goes into shards comes out of them bit for bit; a shard that is cut or changed is refused."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import numpy as np
import pytest
from planted_defects import make_folders, write

from edge_road import cli
from edge_road.datasets import open_dataset
from edge_road.datasets.guess import guess_data
from edge_road.datasets.index import SPLITS, RoadDataset
from edge_road.datasets.prepared import load_prepared
from edge_road.errors import DataError
from edge_road.preprocess import Preprocessing
from edge_road.recipe_data import RscdData, ShardData, SyntheticData
from edge_road.synthetic.rscd_tree import write_rscd_tree
from edge_road.training import data_pack
from edge_road.training.data_pack import pack
from edge_road.training.recipes import Wishes, read_recipe


def open_packed(path: Path) -> RoadDataset:
    return open_dataset(ShardData(kind="shards", path=path))


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_folders(tmp_path_factory.mktemp("photos"), dry=12, wet=10, icy=10)
    (folder / "dry" / "000.jpg").rename(folder / "dry" / "with.dots and spaces é.jpg")
    return folder


@pytest.fixture
def packed(photos: Path, tmp_path: Path) -> Path:
    pack(open_dataset(guess_data(photos)), tmp_path / "packed", shard_bytes=20_000)
    return tmp_path / "packed"


def test_the_same_samples_come_back_bit_for_bit(photos: Path, packed: Path) -> None:
    before, after = open_dataset(guess_data(photos)), open_packed(packed)
    assert len(list(packed.glob("train-*.tar"))) > 2
    assert after.classes == before.classes
    assert after.digest == before.digest
    assert before.content is not None
    assert after.content is not None
    for name in SPLITS:
        assert after.splits[name].keys == before.splits[name].keys
        assert after.splits[name].labels_N.tolist() == before.splits[name].labels_N.tolist()
        for key in before.splits[name].keys:
            assert after.content(key) == before.content(key)
    size = Preprocessing(height=32, width=32)
    for one, other in zip(load_prepared(before, "train", size), load_prepared(after, "train", size)):
        assert np.array_equal(one, other)


def test_packed_labels_are_made_coarser_as_those_of_the_files(tmp_path: Path) -> None:
    write_rscd_tree(tmp_path / "rscd", 1, np.random.default_rng(0), height=30, width=20)
    settings = RscdData(kind="rscd", path=tmp_path / "rscd")
    pack(open_dataset(settings), tmp_path / "packed")
    asked = Wishes(recipe="rscd", data=tmp_path / "packed", overrides=["data.labels=state3"])
    before = open_dataset(settings.model_copy(update={"labels": "state3"}))
    assert open_dataset(read_recipe(asked).data).digest == before.digest
    assert "labels" not in ShardData(kind="shards", path=tmp_path).model_dump(), "older digests stay"


def test_rendered_scenes_are_packed_without_loss(tmp_path: Path) -> None:
    scenes = open_dataset(SyntheticData(train=4, validation=3, test=3, height=40, width=48))
    pack(scenes, tmp_path / "packed")
    again = open_packed(tmp_path / "packed")
    assert again.digest == scenes.digest
    for key in scenes.splits["train"].keys:
        assert np.array_equal(again.read(key), scenes.read(key))


def test_the_webdataset_library_reads_the_shards(photos: Path, packed: Path) -> None:
    webdataset = pytest.importorskip("webdataset")
    shards = [str(path) for path in sorted(packed.glob("validation-*.tar"))]
    samples = list(webdataset.WebDataset(shards, shardshuffle=False))
    split = open_dataset(guess_data(photos)).splits["validation"]
    assert len(samples) == len(split)
    for sample in samples:
        position = int(sample["__key__"])
        assert sample["jpg"] == (photos / split.keys[position]).read_bytes()
        assert int(sample["cls"]) == split.labels_N[position]


def test_packing_twice_gives_the_same_files(photos: Path, packed: Path, tmp_path: Path) -> None:
    pack(open_dataset(guess_data(photos)), tmp_path / "again", shard_bytes=20_000)
    first, second = ({p.name: p.read_bytes() for p in f.iterdir()} for f in (packed, tmp_path / "again"))
    assert first == second


def test_a_shard_cut_anywhere_is_refused_by_name(packed: Path) -> None:
    path = packed / "train-000001.tar"
    whole = path.read_bytes()
    for length in (0, 1, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError) as error:
            open_packed(packed)
        assert "a shard is cut" in str(error.value)
        assert "train-000001.tar" in str(error.value)
        assert f"{len(whole)} bytes" in str(error.value)


def test_a_changed_byte_spoils_its_own_picture_alone(packed: Path) -> None:
    index = json.loads((packed / "train-000000.json").read_text())
    content = bytearray((packed / "train-000000.tar").read_bytes())
    content[index["offsets"][0] + 5] ^= 1
    (packed / "train-000000.tar").write_bytes(content)
    dataset = open_packed(packed)
    with pytest.raises(DataError, match="have changed"):
        dataset.read(index["keys"][0])
    assert dataset.read(index["keys"][1]).shape == (96, 96, 3)


@pytest.mark.parametrize(
    ("file", "change", "words"),
    [
        ("shards.json", None, "No such file"),
        ("train-000000.tar", None, "No such file"),
        ("train-000000.json", None, "No such file"),
        ("shards.json", b"{", "Invalid JSON"),
        ("shards.json", b'{"classes": ["dry", "wet"]}', "digest: Field required"),
        ("train-000000.json", b'{"keys": []}', "labels: Field required"),
    ],
)
def test_missing_and_damaged_parts_are_named(
    packed: Path, file: str, change: bytes | None, words: str
) -> None:
    (packed / file).unlink()
    if change is not None:
        (packed / file).write_bytes(change)
    with pytest.raises(DataError) as error:
        open_packed(packed)
    assert file in str(error.value)
    assert words in str(error.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda index: index["offsets"].__setitem__(0, 10**9),
        lambda index: index["offsets"].__setitem__(0, -5),
        lambda index: index["labels"].__setitem__(0, 7),
        lambda index: index["labels"].__setitem__(0, 1 - min(1, index["labels"][0])),
        lambda index: index["sizes"].pop(),
        lambda index: [column.pop() for column in index.values()],
    ],
)
def test_an_index_that_does_not_fit_is_refused(packed: Path, change: object) -> None:
    path = packed / "train-000000.json"
    index = json.loads(path.read_text())
    change(index)  # type: ignore[operator]
    path.write_text(json.dumps(index))
    with pytest.raises(DataError, match="cannot be used"):
        open_packed(packed)


def test_a_full_disk_leaves_nothing_behind(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(data_pack.os, "fsync", full)
    with pytest.raises(DataError, match=r"(?s)cannot be written.*No space left"):
        pack(open_dataset(guess_data(photos)), tmp_path / "packed")
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_not_written_over(photos: Path, packed: Path) -> None:
    before = sorted(packed.iterdir())
    with pytest.raises(DataError, match="will not write over"):
        pack(open_dataset(guess_data(photos)), packed)
    assert sorted(packed.iterdir()) == before


def test_a_file_that_vanishes_while_packing_is_named(photos: Path, tmp_path: Path) -> None:
    folder = make_folders(tmp_path / "photos", dry=5, wet=5, icy=5)
    dataset = open_dataset(guess_data(folder))
    (folder / "wet" / "002.jpg").unlink()
    with pytest.raises(DataError, match=r"(?s)cannot be read.*wet/002.jpg"):
        pack(dataset, tmp_path / "packed")
    assert not (tmp_path / "packed").exists()


@pytest.mark.parametrize("place", ["packed", "table.csv", "photos"])
def test_training_takes_any_kind_of_data_by_its_path(tmp_path: Path, packed: Path, place: str) -> None:
    (tmp_path / "table.csv").write_text("file,label\n")
    kinds = {"packed": "shards", "table.csv": "csv", "photos": "folder"}
    recipe = read_recipe(Wishes(data=tmp_path / place))
    assert recipe.data.kind == kinds[place]
    assert recipe.data.path == tmp_path / place


def test_the_commands_pack_count_and_check(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "packed"
    assert cli.main(["data", "pack", str(photos), str(out), "--shard-mb", "1"]) == 0
    assert "32 pictures in 3 shards" in capsys.readouterr().out
    assert cli.main(["data", "counts", str(out)]) == 0
    assert "dry" in capsys.readouterr().out
    assert cli.main(["data", "check", str(out), "--out", str(tmp_path / "check")]) == 0
    write(out / "train-000000.tar", b"cut")
    assert cli.main(["data", "counts", str(out)]) == 2
    assert "a shard is cut" in capsys.readouterr().err
