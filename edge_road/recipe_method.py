"""The part of a recipe that names the training method and its own numbers."""

from __future__ import annotations

from typing import Annotated, Literal, Union, get_args

from pydantic import Field

from edge_road.config import NotNegative, Positive, Probability, StrictModel

Passes = Literal["two", "joint"]
"""two: clean and noisy images go through the network one after the other, as in the paper"""
Momentum = Annotated[float, Field(ge=0.0, lt=1.0)]


class SoftmaxMethod(StrictModel):
    """Cross-entropy on clean images."""

    name: Literal["softmax"]


class NoisyMethod(StrictModel):
    """Cross-entropy on images with Gaussian noise (robust_discriminative_noise, 7.1)."""

    name: Literal["noisy"]
    sigma: Probability = 40 / 255
    """standard deviation of the noise, in [0, 1] pixel units before normalisation"""


class CleanNoisyMethod(StrictModel):
    """Cross-entropy on clean images and on their noisy copies (same, 7.1)."""

    name: Literal["clean_noisy"]
    sigma: Probability = 40 / 255
    """standard deviation of the copies' noise, in [0, 1] pixel units"""
    passes: Passes = "two"
    """two: clean and noisy images one after the other, as in the paper; joint: in one batch"""


class StabilityMethod(StrictModel):
    """Cross-entropy on clean images, and noisy copies near them in feature space (same, 7.1)."""

    name: Literal["stability"]
    sigma: Probability = 40 / 255
    """standard deviation of the copies' noise, in [0, 1] pixel units"""
    weight: NotNegative = 1.0
    """of the distance between the features of image and copy"""
    passes: Passes = "two"
    """two: clean and noisy images one after the other, as in the paper; joint: in one batch"""


class LargeMarginMethod(StrictModel):
    """Compact classes and wide margins of clean images (large_margin_discriminative_loss, 4)."""

    name: Literal["large_margin"] = "large_margin"
    alpha: NotNegative = 1.0
    """weight of compactness"""
    beta: NotNegative = 1.0
    """weight of the margin"""
    gamma_reg: NotNegative = 1e-3
    """weight of the centroids' length, which keeps the feature space from growing"""
    delta_v: Positive = 0.5
    """distance to its centroid within which a feature is left alone"""
    delta_d: Positive = 6.0
    """wanted distance of a centroid to its nearest class boundary; above 2 delta_v"""
    centroids: Literal["naive", "momentum", "partial"] = "partial"
    """naive: of the batch; momentum: running; partial: running to pull features, of the batch for margins"""
    momentum: Momentum = 0.99
    """share of the running centroid that a batch leaves as it was"""


class SphereSettings(StrictModel):
    """Copies on spheres of random radius, the less certain the farther (spider, Algorithm 2)."""

    tau: Positive = 16.0
    """largest radius at the paper's 32x32 pixels; it grows with the root of their number"""
    xi: NotNegative = 0.4
    """how much more than guessing is known of a copy at radius tau: its confidence is 1/classes + xi"""


class SpiderMethod(SphereSettings):
    name: Literal["spider"]


class DiscriminativeMethod(LargeMarginMethod, SphereSettings):
    """The same with copies aligned to the clean classes (robust_discriminative_noise, 4)."""

    name: Literal["discriminative"] = "discriminative"  # type: ignore[assignment]
    delta_d: Positive = 3.0
    momentum: Momentum = 0.9
    lambda_align: NotNegative = 1.0
    """weight of the copies' distance to the clean centroids; 0: no gaussian copies are made"""
    perturbation: Literal["gaussian", "spider"] = "gaussian"
    """spider: copies of tau and xi, which also learn their softened labels"""
    sigma: Probability = 40 / 255
    """of gaussian copies: standard deviation, in [0, 1] pixel units"""
    passes: Passes = "two"
    """two: images and copies one after the other, as in the paper; joint: in one batch"""


class CenterMethod(StrictModel):
    """Cross-entropy and distance to learnt centres (center loss, Wen et al. 2016)."""

    name: Literal["center"]
    weight: NotNegative = 0.1
    """of half the squared distance to the centre"""
    rate: Probability = 0.5
    """how fast the centres follow the features"""


class LabelSmoothingMethod(StrictModel):
    """Cross-entropy with a share of each label given to the other classes (spider, 4.3)."""

    name: Literal["label_smoothing"]
    smoothing: float = Field(default=0.1, ge=0.0, lt=1.0)
    """share of each label that the other classes divide among them; below 1 - 1/classes"""


class MixupMethod(StrictModel):
    """Mixed images and labels (noisy_feature_mixup, 3)."""

    name: Literal["mixup"]
    alpha: Positive = 1.0
    """shares are drawn from Beta(alpha, alpha)"""


class ManifoldMixupMethod(StrictModel):
    """Mixing at a random layer (same)."""

    name: Literal["manifold_mixup"]
    alpha: Positive = 1.0
    """shares are drawn from Beta(alpha, alpha)"""


class NoisyMixupMethod(StrictModel):
    """Mixed images with noise on them (same)."""

    name: Literal["noisy_mixup"]
    alpha: Positive = 1.0
    """shares are drawn from Beta(alpha, alpha)"""
    sigma_add: NotNegative = 0.4
    """level of the added noise, in units of normalised pixels"""
    sigma_mult: NotNegative = 0.2
    """level of the noise that multiplies each pixel"""
    published_noise: bool = False
    """as the paper's code draws it: uniform factors, and levels scaled by Beta(2, 5)"""


class NfmMethod(StrictModel):
    """Mixing with noise at a random layer (same, Eq. 1 and 2)."""

    name: Literal["nfm"] = "nfm"
    alpha: Positive = 1.0
    """shares are drawn from Beta(alpha, alpha)"""
    sigma_add: NotNegative = 0.4
    """level of the added noise, in units of the layer's values"""
    sigma_mult: NotNegative = 0.2
    """level of the noise that multiplies each value"""
    layers: Literal["any", "input"] = "any"
    """where it mixes: at the input or any stage of the backbone, drawn for each batch; input: there alone"""
    published_noise: bool = False
    """as the paper's code draws it: uniform factors, and levels scaled by Beta(2, 5)"""


MethodSettings = Annotated[
    Union[
        SoftmaxMethod,
        NoisyMethod,
        CleanNoisyMethod,
        StabilityMethod,
        DiscriminativeMethod,
        LargeMarginMethod,
        CenterMethod,
        LabelSmoothingMethod,
        SpiderMethod,
        MixupMethod,
        ManifoldMixupMethod,
        NoisyMixupMethod,
        NfmMethod,
    ],
    Field(discriminator="name"),
]
WITHOUT_CLEAN_PASS = (
    NoisyMethod,
    SpiderMethod,
    MixupMethod,
    ManifoldMixupMethod,
    NoisyMixupMethod,
    NfmMethod,
)
"""methods that never show the model a picture as it is"""
METHOD_KINDS: dict[str, type[StrictModel]] = {
    get_args(kind.model_fields["name"].annotation)[0]: kind for kind in get_args(get_args(MethodSettings)[0])
}
