"""A loss that is no finite number: where it happened, and what to say when going back does not help."""

from __future__ import annotations

from collections.abc import Sequence

from edge_road.errors import TrainingError

_MOST_NAMED = 12


class Diverged(TrainingError):
    """Going back did not help: the recipe cannot be trained, others may."""


class LossIsNoNumber(Exception):
    """Training can go back to its last checkpoint and try a lower rate."""

    def __init__(self, where: str, names: Sequence[str] = ()) -> None:
        super().__init__(f"the loss is no longer a finite number: {where}")
        self.where = where
        self.names = names

    def for_good(self, roll_backs: int, epochs: int) -> Diverged:
        """`epochs` are those that came to their end."""
        more = f" and {len(self.names) - _MOST_NAMED} more" if len(self.names) > _MOST_NAMED else ""
        return Diverged(
            "the loss is no longer a finite number"
            + (f", after {roll_backs} roll-backs" if roll_backs else ""),
            where=self.where,
            got=f"the pictures {', '.join(self.names[:_MOST_NAMED])}{more}" if self.names else None,
            fix="lower optimizer.learning_rate, warm up with optimizer.warmup_epochs or limit "
            "training.clip_norm" + ("; the checkpoint of the epoch before is intact" if epochs else ""),
        )
