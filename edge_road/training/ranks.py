"""Which of the processes that train together this one is, as torchrun tells it."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Group:
    rank: int = 0
    ranks: int = 1
    local_rank: int = 0

    @property
    def is_alone(self) -> bool:
        return self.ranks == 1

    @property
    def is_first(self) -> bool:
        """The first one alone writes and talks."""
        return self.rank == 0


ALONE = Group()


def group_of_environment() -> Group:
    names = {"rank": "RANK", "ranks": "WORLD_SIZE", "local_rank": "LOCAL_RANK"}
    found = {key: int(os.environ[name]) for key, name in names.items() if name in os.environ}
    return Group(**found)
