"""Checkpoints to resume from: one safetensors file an epoch, whole or absent, never pickled.

A checkpoint is the whole truth about a run up to its epoch: weights, method, optimizer, random
states, the best weights so far and the history. All other files of a run follow from it.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from edge_road.config import StrictModel
from edge_road.errors import ConfigError
from edge_road.files import write_atomically
from edge_road.run_record import CHECKPOINT_FOLDER
from edge_road.training.journal import EpochRecord

_NOTES = "edge_road"
_DIGEST = "edge_road_sha256"  # the name of a tensor: the digest of everything else

Tensors = Mapping[str, Tensor]


class Identity(StrictModel):
    """What must be the same for a run to be continued."""

    recipe: str
    """digest"""
    method: str
    classes: tuple[str, ...]
    data: str
    """digest"""
    images: tuple[int, int]
    """usable pictures for training and for validation"""


class Notes(StrictModel):
    schema_version: Literal[1] = 1
    identity: Identity
    history: tuple[EpochRecord, ...]
    roll_backs: int = 0
    """how often a loss that was no number has lowered the rate"""

    @property
    def epoch(self) -> int:
        return len(self.history)


@dataclass(frozen=True, eq=False)
class Checkpoint:
    notes: Notes
    tensors: Tensors

    def part(self, name: str) -> dict[str, Tensor]:
        """The tensors below `name/`, without it."""
        prefix = name + "/"
        return {key.removeprefix(prefix): t for key, t in self.tensors.items() if key.startswith(prefix)}


def joined(**parts: Tensors) -> dict[str, Tensor]:
    """The reverse of `Checkpoint.part`."""
    return {f"{name}/{key}": tensor for name, tensors in parts.items() for key, tensor in tensors.items()}


def write_checkpoint(run: Path, checkpoint: Checkpoint, *, keep: int) -> Path:
    folder = run / CHECKPOINT_FOLDER
    path = folder / f"epoch-{checkpoint.notes.epoch:05d}.safetensors"
    write_atomically(path, _pack(checkpoint))
    for old in _checkpoints(run)[:-keep]:
        old.unlink()
    return path


def newest_checkpoint(run: Path, identity: Identity, report: Callable[[str], None]) -> Checkpoint | None:
    """The newest that is whole; damaged ones are reported (and overwritten later), foreign ones refused."""
    paths = _checkpoints(run)
    for path in reversed(paths):
        try:
            checkpoint = _unpack(path.read_bytes())
        except (OSError, SafetensorError, ValueError, LookupError, struct.error) as error:
            report(f"{path} is damaged ({error}); falling back to the checkpoint before it")
            continue
        _refuse_foreign(checkpoint.notes.identity, identity, path)
        return checkpoint
    if paths:
        raise ConfigError(
            "no checkpoint of this run can be read",
            where=run / CHECKPOINT_FOLDER,
            got=f"{len(paths)} damaged",
            fix="start a new run, or remove the folder to begin this one again",
        )
    return None


def encode_tensors(tensors: Tensors, notes: str | None = None) -> bytes:
    """The same bytes for the same tensors. More than one note would be written in random order."""
    ready = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    content: bytes = save(ready, metadata=None if notes is None else {_NOTES: notes})
    return content


def _checkpoints(run: Path) -> list[Path]:
    return sorted((run / CHECKPOINT_FOLDER).glob("epoch-*.safetensors"))


def _pack(checkpoint: Checkpoint) -> bytes:
    notes = checkpoint.notes.model_dump_json()
    digest = _digest(notes, checkpoint.tensors)
    return encode_tensors({**checkpoint.tensors, _DIGEST: digest}, notes)


def _unpack(content: bytes) -> Checkpoint:
    tensors: dict[str, Tensor] = load(content)
    notes = _read_notes(content)
    if not torch.equal(tensors.pop(_DIGEST), _digest(notes, tensors)):
        raise ValueError("its checksum does not fit")
    return Checkpoint(Notes.model_validate_json(notes), tensors)


def _read_notes(content: bytes) -> str:
    """A safetensors file begins with the length of its JSON header."""
    (length,) = struct.unpack_from("<Q", content)
    return str(json.loads(content[8 : 8 + length])["__metadata__"][_NOTES])


def _digest(notes: str, tensors: Tensors) -> Tensor:
    """safetensors finds a file that was cut, but not a changed bit."""
    state = hashlib.sha256(notes.encode())
    for name in sorted(tensors):
        state.update(name.encode())
        state.update(tensors[name].detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return torch.frombuffer(bytearray(state.digest()), dtype=torch.uint8)


def _refuse_foreign(found: Identity, wanted: Identity, path: Path) -> None:
    ours, theirs = wanted.model_dump(), found.model_dump()
    different = [name for name in ours if ours[name] != theirs[name]]
    if different:
        raise ConfigError(
            f"this checkpoint is of another training: its {' and '.join(different)} differ",
            where=path,
            got="; ".join(f"{name} {theirs[name]}" for name in different),
            expected="; ".join(f"{name} {ours[name]}" for name in different),
            fix="restore what has changed, or start a new run",
        )
