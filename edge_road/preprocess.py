"""The one way from a camera picture to what a model sees, used by every stage.

Crop and resize happen here, outside the model; the cast to float, the normalisation and the
transposition happen inside it (`mean` and `std` travel along for whoever builds the graph).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from pydantic import Field, model_validator

from edge_road.config import GrownModel, StrictModel

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from edge_road.frames import Image

    Value = TypeVar("Value", bound=np.generic)

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Triple = tuple[float, float, float]


class Crop(StrictModel):
    """A part of the picture, in shares of its width and height."""

    left: Share = 0.0
    """share of the width at which the part begins"""
    top: Share = 0.0
    """share of the height at which it begins"""
    right: Share = 1.0
    """share of the width at which it ends"""
    bottom: Share = 1.0
    """share of the height at which it ends"""

    @model_validator(mode="after")
    def _not_empty(self) -> Crop:
        if self.left >= self.right or self.top >= self.bottom:
            raise ValueError("left must be below right and top below bottom")
        return self

    def cut(self, image: npt.NDArray[Value]) -> npt.NDArray[Value]:
        height, width = image.shape[:2]
        rows = slice(int(self.top * height), max(int(self.bottom * height), int(self.top * height) + 1))
        columns = slice(int(self.left * width), max(int(self.right * width), int(self.left * width) + 1))
        return image[rows, columns]


class Preprocessing(GrownModel):
    NEW_KEYS = ("shrink",)

    height: int = Field(ge=16, le=4096)
    width: int = Field(ge=16, le=4096)
    crop: Crop = Crop()
    fit: Literal["stretch", "cover"] = Field(
        default="stretch",
        description="stretch: resize both sides; cover: cut the centre to the model's shape first",
    )
    shrink: Literal["area", "halves"] = Field(
        default="area",
        description="area: averages in one step; halves: by two while both sides allow it, in half the time",
    )
    mean: Triple = (0.5, 0.5, 0.5)
    std: Triple = (0.5, 0.5, 0.5)

    def prepare(self, image: Image, crop: Crop | None = None) -> Image:
        """Cut (`crop` replaces our own) and resize one RGB uint8 picture to the model's size."""
        import numpy as np

        part = (crop or self.crop).cut(image)
        if self.fit == "cover":
            part = _centre_of_shape(part, self.width / self.height)
        if self.shrink == "halves":
            while part.shape[0] >= 2 * self.height and part.shape[1] >= 2 * self.width:
                part = _resized(part, part.shape[0] // 2, part.shape[1] // 2)
        return np.ascontiguousarray(_resized(part, self.height, self.width))


def _resized(image: Image, height: int, width: int) -> Image:
    """Area averaging does not alias when shrinking; it is blocky when growing."""
    import cv2  # here, so that a process which only reads settings stays light
    import numpy as np

    if image.shape[:2] == (height, width):
        return image
    shrinks = image.shape[0] > height or image.shape[1] > width
    how = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(image, (width, height), interpolation=how), dtype=np.uint8)


def _centre_of_shape(image: Image, aspect: float) -> Image:
    height, width = image.shape[:2]
    keep_width = min(width, max(1, round(height * aspect)))
    keep_height = min(height, max(1, round(width / aspect)))
    top, left = (height - keep_height) // 2, (width - keep_width) // 2
    return image[top : top + keep_height, left : left + keep_width]
