"""Batches of a split in an order that depends on (seed, epoch) alone, prepared ahead by threads.

Threads, not processes: OpenCV works without the interpreter lock, nothing is copied between
processes, and no orphan outlives a killed training.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from edge_road.datasets.index import Labels
from edge_road.frames import Images
from edge_road.training.augment import Augmentation
from edge_road.training.pictures import Pictures

SMALLEST_BATCH = 2  # batch norm needs two samples: a last batch of one is left out of training

Positions = npt.NDArray[np.int64]


class Batch(NamedTuple):
    images_BCHW: torch.Tensor
    """float32 in [0, 1], channels last"""
    labels_B: torch.Tensor


@dataclass(frozen=True, eq=False)
class Batches:
    pictures: Pictures
    batch_size: int
    seed: int = 0
    workers: int = 0
    device: torch.device = torch.device("cpu")  # noqa: RUF009  (immutable)

    @property
    def images(self) -> int:
        return len(self.pictures.labels_N)

    def __len__(self) -> int:
        """Batches of a training epoch."""
        full, rest = divmod(self.images, self.batch_size)
        return full + (rest >= SMALLEST_BATCH)

    def shuffled(self, epoch: int, augmentation: Augmentation | None = None) -> Iterator[Batch]:
        """One training epoch: every picture once, each as its own random view."""
        order = np.random.default_rng((self.seed, epoch)).permutation(self.images)
        return self._batches(
            order, lambda positions: self._gather(positions, augmentation, epoch), SMALLEST_BATCH
        )

    def in_order(self) -> Iterator[Batch]:
        """Every picture once, as it is."""
        return self._batches(np.arange(self.images), self._gather, 1)

    def _batches(
        self, order: Positions, gather: Callable[[Positions], tuple[Images, Labels]], smallest: int
    ) -> Iterator[Batch]:
        groups = (order[start : start + self.batch_size] for start in range(0, len(order), self.batch_size))
        wanted = (group for group in groups if len(group) >= smallest)
        for images_BHWC, labels_B in _ahead(gather, wanted, self.workers):
            if len(labels_B) >= smallest:
                yield Batch(_as_floats(images_BHWC, self.device), torch.from_numpy(labels_B).to(self.device))

    def _gather(
        self, positions: Positions, augmentation: Augmentation | None = None, epoch: int = 0
    ) -> tuple[Images, Labels]:
        found = {int(i): image for i in positions if (image := self.pictures.picture(int(i))) is not None}
        if augmentation is not None:
            found = {i: augmentation.view(image, epoch, i) for i, image in found.items()}
        return np.array(list(found.values()), np.uint8), self.pictures.labels_N[
            np.array(list(found), np.int64)
        ]


def _as_floats(images_BHWC: Images, device: torch.device) -> torch.Tensor:
    """A transposed view of NHWC memory is channels last already."""
    return torch.from_numpy(images_BHWC).to(device).permute(0, 3, 1, 2).float().div_(255)


def _ahead(
    gather: Callable[[Positions], tuple[Images, Labels]], groups: Iterable[Positions], workers: int
) -> Iterator[tuple[Images, Labels]]:
    """`map(gather, groups)`, in order, with at most one batch more than there are workers under way."""
    if workers == 0:
        yield from map(gather, groups)
        return
    pending: deque[Future[tuple[Images, Labels]]] = deque()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="batches")
    try:
        for group in groups:
            pending.append(pool.submit(gather, group))
            if len(pending) > workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
