"""The part of a recipe that names the training method and its own numbers."""

from __future__ import annotations

from typing import Annotated, Literal, Union

from pydantic import Field

from edge_road.config import NotNegative, Positive, Probability, StrictModel


class SoftmaxMethod(StrictModel):
    """Cross-entropy on clean images."""

    name: Literal["softmax"]


class DiscriminativeMethod(StrictModel):
    """Discriminative loss and Gaussian-noise alignment (robust_discriminative_noise, section 4)."""

    name: Literal["discriminative"] = "discriminative"
    alpha: NotNegative = 1.0
    beta: NotNegative = 1.0
    gamma_reg: NotNegative = 1e-3
    lambda_align: NotNegative = 1.0
    delta_v: Positive = 0.5
    delta_d: Positive = 3.0
    sigma: Probability = 40 / 255
    """standard deviation of the noise, in [0, 1] pixel units before normalisation"""
    centroids: Literal["naive", "momentum", "partial"] = "partial"
    momentum: float = Field(default=0.9, ge=0.0, lt=1.0)
    passes: Literal["two", "joint"] = "two"
    """two: clean and noisy images go through the network one after the other, as in the paper"""


MethodSettings = Annotated[Union[SoftmaxMethod, DiscriminativeMethod], Field(discriminator="name")]
