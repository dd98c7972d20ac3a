"""Every picture once an epoch, in an order that (seed, epoch) decides, whatever the number of workers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from edge_road.errors import DataError
from edge_road.frames import Image
from edge_road.recipe import AugmentSettings
from edge_road.training.augment import Augmentation
from edge_road.training.batches import Batch, Batches
from edge_road.training.pictures import PicturesInMemory


def numbered(count: int) -> PicturesInMemory:
    images = np.repeat(np.arange(count, dtype=np.uint8), 8 * 8 * 3).reshape(count, 8, 8, 3)
    return PicturesInMemory(images, np.arange(count))


def seen(batches: list[Batch]) -> list[int]:
    return [int(label) for batch in batches for label in batch.labels_B]


def test_an_epoch_shows_every_picture_once_in_an_order_of_its_own() -> None:
    batches = Batches(numbered(20), batch_size=6, seed=1)
    first, second = seen(list(batches.shuffled(0))), seen(list(batches.shuffled(1)))
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second != list(range(20))
    assert first == seen(list(batches.shuffled(0)))
    assert first != seen(list(Batches(numbered(20), 6, seed=2).shuffled(0)))


def test_images_are_floats_in_unit_range_with_channels_last_and_belong_to_their_labels() -> None:
    for images_BCHW, labels_B in Batches(numbered(10), 4).shuffled(0):
        assert images_BCHW.shape[1:] == (3, 8, 8)
        assert images_BCHW.dtype == torch.float32
        assert images_BCHW.is_contiguous(memory_format=torch.channels_last)
        torch.testing.assert_close(images_BCHW[:, 0, 0, 0], labels_B / 255)


@pytest.mark.parametrize(("images", "sizes"), [(8, [4, 4]), (9, [4, 4]), (10, [4, 4, 2])])
def test_a_last_batch_of_one_is_left_out_of_training(images: int, sizes: list[int]) -> None:
    batches = Batches(numbered(images), batch_size=4)
    assert [len(batch.labels_B) for batch in batches.shuffled(0)] == sizes
    assert len(batches) == len(sizes)


def test_validation_sees_every_picture_in_order() -> None:
    assert seen(list(Batches(numbered(9), 4).in_order())) == list(range(9))


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_change_nothing_but_speed(workers: int, pictures: Callable[[int], PicturesInMemory]) -> None:
    augmentation = Augmentation(AugmentSettings(), 5)
    alone = list(Batches(pictures(30), 4, 5, workers=0).shuffled(2, augmentation))
    helped = list(Batches(pictures(30), 4, 5, workers=workers).shuffled(2, augmentation))
    for ours, theirs in zip(alone, helped, strict=True):
        assert torch.equal(ours.images_BCHW, theirs.images_BCHW)
        assert torch.equal(ours.labels_B, theirs.labels_B)


class Patchy:
    """Pictures of which some cannot be read."""

    def __init__(self, count: int, bad: set[int]) -> None:
        self.labels_N = np.arange(count)
        self.keys = tuple(f"{number}.jpg" for number in range(count))
        self.bad = bad

    def picture(self, index: int) -> Image | None:
        return None if index in self.bad else np.full((4, 4, 3), index, np.uint8)


@pytest.mark.parametrize("bad", [{3}, {0, 1, 2, 3}, {4, 5, 6}])
def test_unreadable_pictures_are_missing_from_their_batch(bad: set[int]) -> None:
    batches = Batches(Patchy(8, bad), batch_size=4)
    assert seen(list(batches.in_order())) == [i for i in range(8) if i not in bad]
    assert all(len(batch.labels_B) >= 2 for batch in batches.shuffled(0))


def test_of_several_processes_none_leaves_out_a_step_in_silence() -> None:
    few = [Batches(Patchy(8, {5}), batch_size=4, rank=rank, ranks=2) for rank in range(2)]
    assert [len(list(share.shuffled(0))) for share in few] == [2, 2]
    nearly_all = Batches(Patchy(4, {0, 1, 2}), batch_size=4, rank=0, ranks=2)
    shares = [nearly_all, replace(nearly_all, rank=1)]
    with pytest.raises(DataError, match="share of a batch can be read") as caught:
        list(map(list, (share.shuffled(0) for share in shares)))
    assert "3.jpg" not in caught.value.details["got"]


def test_an_error_in_a_worker_reaches_the_trainer() -> None:
    class Broken(Patchy):
        def picture(self, index: int) -> Image:
            raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError, match="the disk is gone"):
        list(Batches(Broken(8, set()), 4, workers=2).shuffled(0))


def test_leaving_an_epoch_early_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    epoch = Batches(numbered(100), 4, workers=2).shuffled(0)
    next(epoch)
    del epoch
    assert threading.active_count() == before
