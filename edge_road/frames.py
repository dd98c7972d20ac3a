"""The values that travel from a camera to a decision.

Shape suffixes: N images, H height, W width, C classes, D features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.uint8]  # H x W x 3, RGB
Images = npt.NDArray[np.uint8]  # N x H x W x 3, RGB
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Frame:
    """One picture of the road, and when it was taken on the monotonic clock."""

    pixels: Image
    number: int
    captured_mono_ns: int
    captured_utc: str | None = None

    def __post_init__(self) -> None:
        if self.pixels.dtype != np.uint8 or self.pixels.ndim != 3 or self.pixels.shape[2] != 3:
            raise ValueError(f"a frame is uint8 HxWx3, got {self.pixels.dtype} {self.pixels.shape}")


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a model says of N images."""

    probabilities_NC: Floats
    logits_NC: Floats
    features_ND: Floats

    def __len__(self) -> int:
        return len(self.probabilities_NC)

    @property
    def labels_N(self) -> npt.NDArray[np.int64]:
        """The most probable class; meaningless where `finite_N` is false (argmax of NaN is 0)."""
        return np.asarray(self.probabilities_NC.argmax(axis=1), dtype=np.int64)

    @property
    def finite_N(self) -> npt.NDArray[np.bool_]:
        rows = (self.probabilities_NC, self.logits_NC, self.features_ND)
        return np.asarray(np.all([np.isfinite(row).all(axis=1) for row in rows], axis=0))


def join(predictions: list[Prediction]) -> Prediction:
    return Prediction(
        np.concatenate([p.probabilities_NC for p in predictions]),
        np.concatenate([p.logits_NC for p in predictions]),
        np.concatenate([p.features_ND for p in predictions]),
    )
