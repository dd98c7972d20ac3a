"""Batches of a split in an order that depends on (seed, epoch) alone, prepared ahead by threads.

Threads, not processes: OpenCV works without the interpreter lock, nothing is copied between
processes, and no orphan outlives a killed training.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from edge_road.datasets.balance import balanced_order
from edge_road.datasets.index import Labels
from edge_road.errors import DataError
from edge_road.frames import Images
from edge_road.training.augment import Augmentation
from edge_road.training.pictures import Pictures

SMALLEST_BATCH = 2  # batch norm needs two samples: a last batch of one is left out of training

Draws = npt.NDArray[np.int64]
"""positions of pictures; the n-th repetition within an epoch lies n times the number of pictures higher,
so that it gets a view of its own"""


class Batch(NamedTuple):
    images_BCHW: torch.Tensor
    """float32 in [0, 1], channels last"""
    labels_B: torch.Tensor


@dataclass(frozen=True, eq=False)
class Batches:
    """Processes that train together share each batch; `batch_size` is that of all of them."""

    pictures: Pictures
    batch_size: int
    seed: int = 0
    workers: int = 0
    device: torch.device = torch.device("cpu")  # noqa: RUF009  (immutable)
    sampling: Literal["shuffled", "balanced"] = "shuffled"
    rank: int = 0
    ranks: int = 1

    @property
    def images(self) -> int:
        return len(self.pictures.labels_N)

    def __len__(self) -> int:
        """Batches of a training epoch."""
        full, rest = divmod(self.images, self.batch_size)
        return full + (rest >= SMALLEST_BATCH * self.ranks)

    def shuffled(self, epoch: int, augmentation: Augmentation | None = None) -> Iterator[Batch]:
        """One training epoch: as many pictures as there are, each as its own random view."""
        wanted = (group[self.rank :: self.ranks] for group in self._training_groups(epoch))
        if self.ranks == 1:
            return self._batches(wanted, lambda d: self._gather(d, augmentation, epoch), SMALLEST_BATCH)
        return self._batches(wanted, lambda d: self._share(d, augmentation, epoch), smallest=1)

    def in_order(self) -> Iterator[Batch]:
        """Every picture once, as it is."""
        groups = _groups(np.arange(self.images), self.batch_size)
        shares = (group[self.rank :: self.ranks] for group in groups)
        return self._batches((share for share in shares if len(share)), self._gather, smallest=1)

    def names(self, epoch: int, batch: int) -> list[str]:
        """The pictures of a training batch by name, where they have names."""
        group = next(islice(self._training_groups(epoch), batch, None))
        return [self.pictures.keys[draw % self.images] for draw in group] if self.pictures.keys else []

    def _training_groups(self, epoch: int) -> Iterator[Draws]:
        for group in _groups(self._order(epoch), self.batch_size):
            if len(group) >= SMALLEST_BATCH * self.ranks:
                yield group[: len(group) // self.ranks * self.ranks]

    def _order(self, epoch: int) -> Draws:
        generator = np.random.default_rng((self.seed, epoch))
        if self.sampling == "shuffled":
            return generator.permutation(self.images)
        order = balanced_order(self.pictures.labels_N, generator)
        return order + self.images * _earlier_occurrences(order)

    def _batches(
        self, groups: Iterable[Draws], gather: Callable[[Draws], tuple[Images, Labels]], smallest: int
    ) -> Iterator[Batch]:
        for images_BHWC, labels_B in _ahead(gather, groups, self.workers):
            if len(labels_B) >= smallest:
                yield Batch(as_floats(images_BHWC, self.device), torch.from_numpy(labels_B).to(self.device))

    def _share(self, draws: Draws, augmentation: Augmentation | None, epoch: int) -> tuple[Images, Labels]:
        """A process that left out its share would be a step ahead of the others from there on."""
        images_BHWC, labels_B = self._gather(draws, augmentation, epoch)
        if not len(labels_B):
            raise DataError(
                "no picture of a process's share of a batch can be read",
                got=", ".join(self.pictures.keys[draw % self.images] for draw in draws),
                fix="repair or remove them, or raise training.batch_size",
            )
        return images_BHWC, labels_B

    def _gather(
        self, draws: Draws, augmentation: Augmentation | None = None, epoch: int = 0
    ) -> tuple[Images, Labels]:
        pictures = {int(d): self.pictures.picture(int(d % self.images)) for d in draws}
        found = {draw: picture for draw, picture in pictures.items() if picture is not None}
        if augmentation is not None:
            found = {draw: augmentation.view(image, epoch, draw) for draw, image in found.items()}
        positions = np.array(list(found), np.int64) % self.images
        return np.array(list(found.values()), np.uint8), self.pictures.labels_N[positions]


def _groups(order: Draws, size: int) -> Iterator[Draws]:
    return (order[start : start + size] for start in range(0, len(order), size))


def _earlier_occurrences(order: Draws) -> Draws:
    """How often each entry was there before."""
    sorting = np.argsort(order, kind="stable")
    begins = np.searchsorted(order[sorting], order[sorting])
    earlier = np.empty_like(order)
    earlier[sorting] = np.arange(len(order)) - begins
    return earlier


def as_floats(images_BHWC: Images, device: torch.device) -> torch.Tensor:
    """A transposed view of NHWC memory is channels last already."""
    return torch.from_numpy(images_BHWC).to(device).permute(0, 3, 1, 2).float().div_(255)


def _ahead(
    gather: Callable[[Draws], tuple[Images, Labels]], groups: Iterable[Draws], workers: int
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
