"""A trainer that stops where a power cut would: the epoch is trained, its checkpoint not yet written."""

from __future__ import annotations

import pytest

from edge_road.training.trainer import Trainer


class PowerCut(Exception):
    pass


def interrupt_after(trainer: Trainer, epochs: int) -> None:
    save = trainer._save

    def save_unless_dead() -> None:
        if len(trainer.history) > epochs:
            raise PowerCut
        save()

    trainer._save = save_unless_dead  # type: ignore[method-assign]
    with pytest.raises(PowerCut):
        trainer.fit()
