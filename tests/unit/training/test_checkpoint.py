"""A checkpoint is whole or it is not used; one of another training is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from edge_road.errors import ConfigError
from edge_road.training.checkpoint import (
    Checkpoint,
    Identity,
    Notes,
    encode_tensors,
    joined,
    newest_checkpoint,
    write_checkpoint,
)
from edge_road.training.journal import EpochRecord


def record(epoch: int) -> EpochRecord:
    return EpochRecord(
        epoch=epoch,
        learning_rate=1e-3,
        loss=0.1 + 0.2,
        terms={},
        train_accuracy=0.5,
        validation_accuracy=0.5,
        validation_loss=1.0,
        seconds=1.0,
        images_per_s=1.0,
    )


def checkpoint(identity: Identity, epoch: int) -> Checkpoint:
    generator = torch.Generator().manual_seed(epoch)
    model = {"weight": torch.randn(4, 3, generator=generator), "seen": torch.tensor([True, False])}
    notes = Notes(identity=identity, history=tuple(record(e + 1) for e in range(epoch)))
    return Checkpoint(notes, joined(model=model, optimizer={"weight:step": torch.tensor(7.0)}))


def write(run: Path, identity: Identity, epochs: int, keep: int = 3) -> list[Path]:
    return [write_checkpoint(run, checkpoint(identity, e), keep=keep) for e in range(1, epochs + 1)]


def ignore(report: str) -> None:
    del report


def test_what_was_written_comes_back_bit_for_bit(tmp_path: Path, identity: Identity) -> None:
    write(tmp_path, identity, 2)
    found = newest_checkpoint(tmp_path, identity, ignore)
    wanted = checkpoint(identity, 2)
    assert found is not None
    assert found.notes == wanted.notes
    assert found.tensors.keys() == wanted.tensors.keys()
    assert all(torch.equal(found.tensors[name], tensor) for name, tensor in wanted.tensors.items())
    assert found.part("model").keys() == {"weight", "seen"}


def test_a_new_run_has_none(tmp_path: Path, identity: Identity) -> None:
    assert newest_checkpoint(tmp_path, identity, ignore) is None


def test_only_the_last_few_are_kept(tmp_path: Path, identity: Identity) -> None:
    paths = write(tmp_path, identity, 5, keep=2)
    assert sorted((tmp_path / "last").iterdir()) == paths[-2:]


@pytest.mark.parametrize("cut", [0, 7, 100, -1])
def test_a_cut_checkpoint_is_reported_and_the_one_before_is_used(
    tmp_path: Path, identity: Identity, cut: int
) -> None:
    *_, newest = write(tmp_path, identity, 3)
    newest.write_bytes(newest.read_bytes()[:cut])
    reports: list[str] = []
    found = newest_checkpoint(tmp_path, identity, reports.append)
    assert found is not None
    assert found.notes.epoch == 2
    assert len(reports) == 1
    assert str(newest) in reports[0]


def test_every_changed_byte_is_noticed(tmp_path: Path, identity: Identity) -> None:
    """The header as well as the tensors; padding apart, nothing in the file may change unseen."""
    (path,) = write(tmp_path, identity, 1)
    content = path.read_bytes()
    for position in range(0, len(content), 7):
        path.write_bytes(content[:position] + bytes([content[position] ^ 4]) + content[position + 1 :])
        try:
            found = newest_checkpoint(tmp_path, identity, ignore)
        except ConfigError:
            continue
        assert found is not None
        assert content[position : position + 1] == b" ", f"byte {position} changed unseen"


def test_when_all_are_damaged_the_message_says_what_to_do(tmp_path: Path, identity: Identity) -> None:
    for path in write(tmp_path, identity, 2):
        path.write_bytes(b"\0" * 64)
    with pytest.raises(ConfigError, match="no checkpoint of this run can be read") as error:
        newest_checkpoint(tmp_path, identity, ignore)
    assert "2 damaged" in str(error.value)


def test_a_pickled_file_in_its_place_is_never_loaded(tmp_path: Path, identity: Identity) -> None:
    marker = tmp_path / "it ran"

    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (marker,))  # type: ignore[return-value]

    (tmp_path / "last").mkdir()
    torch.save(Evil(), tmp_path / "last" / "epoch-00001.safetensors")
    with pytest.raises(ConfigError):
        newest_checkpoint(tmp_path, identity, ignore)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"recipe": "other"}, "recipe"),
        ({"method": "discriminative"}, "method"),
        ({"classes": ("dry", "icy")}, "classes"),
        ({"data": "other"}, "data"),
    ],
)
def test_a_checkpoint_of_another_training_is_refused(
    tmp_path: Path, identity: Identity, change: dict[str, object], word: str
) -> None:
    write(tmp_path, identity, 1)
    with pytest.raises(ConfigError, match=f"another training: its {word} differ"):
        newest_checkpoint(tmp_path, identity.model_copy(update=change), ignore)
    assert len(list((tmp_path / "last").iterdir())) == 1


def test_the_same_tensors_give_the_same_bytes_in_any_order_and_layout() -> None:
    first = {"a": torch.arange(24.0).view(1, 2, 3, 4), "b": torch.ones(2)}
    second = {"b": first["b"], "a": first["a"].to(memory_format=torch.channels_last)}
    assert encode_tensors(first) == encode_tensors(second)
