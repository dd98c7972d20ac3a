"""How processes that train together (torchrun) meet, agree, and end.

Every process holds the whole model and a share of each batch. The first one writes the run; all of
them read its checkpoints, so its folder must be visible to every machine.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NoReturn

import torch
from torch import distributed as dist

from edge_road.errors import ConfigError, TrainingError
from edge_road.recipe import TrainingSettings
from edge_road.training.batches import SMALLEST_BATCH
from edge_road.training.ranks import Group

PATIENCE = timedelta(minutes=10)
_RESTART = "torchrun --max-restarts 3 ... starts all of them again from the last checkpoint"
_LOST = ("gloo", "nccl", "connection closed", "connection reset", "broken pipe", "timed out", "recvvalue")


def refuse_unless_equal(group: Group, value: int, what: str, fix: str) -> None:
    """Each process brings its `value`."""
    if group.is_alone:
        return
    found = torch.zeros(group.ranks, dtype=torch.int64, device=_device_for_talk())
    found[group.rank] = value
    dist.all_reduce(found)
    if len(set(found.tolist())) > 1:
        raise ConfigError(f"the processes differ in {what}", got=found.tolist(), fix=fix)


@contextmanager
def joined_group(group: Group, settings: TrainingSettings) -> Iterator[None]:
    """Alone, nothing happens. A process that loses the others says so instead of waiting for ever."""
    if group.is_alone:
        yield
        return
    if settings.batch_size % group.ranks or settings.batch_size < SMALLEST_BATCH * group.ranks:
        raise ConfigError(
            "the batch cannot be shared evenly",
            where="training.batch_size",
            got=f"{settings.batch_size} for {group.ranks} processes",
            expected=f"a multiple of the number of processes, {SMALLEST_BATCH} pictures or more for each",
        )
    before = signal.signal(signal.SIGTERM, _told_to_end)
    try:
        with _losing_others_is_an_error(group):
            _join(group, settings)
            yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if dist.is_initialized():
            dist.destroy_process_group()


def _join(group: Group, settings: TrainingSettings) -> None:
    is_cuda = settings.device != "cpu" and torch.cuda.is_available()
    if is_cuda:
        torch.cuda.set_device(group.local_rank)
    dist.init_process_group("nccl" if is_cuda else "gloo", timeout=PATIENCE)


@contextmanager
def _losing_others_is_an_error(group: Group) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        if not any(sign in str(error).lower() for sign in _LOST):
            raise
        raise TrainingError(
            "another process of this training has ended",
            where=f"process {group.rank + 1} of {group.ranks}",
            got=str(error).splitlines()[0][:200],
            fix=_RESTART,
        ) from error


def _told_to_end(*_: Any) -> NoReturn:
    raise TrainingError("told to end, as another process of this training has failed", fix=_RESTART)


def _device_for_talk() -> torch.device:
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")
