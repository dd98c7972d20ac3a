"""A recipe: everything that decides what a training run does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Union

from pydantic import Field, model_validator

from edge_road.config import StrictModel
from edge_road.preprocess import Crop

Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
NotNegative = Annotated[float, Field(ge=0.0)]


class SyntheticData(StrictModel):
    """Rendered road scenes, the embedded default."""

    kind: Literal["synthetic"] = "synthetic"
    labels: Literal["road", "rscd"] = "road"
    """road: dash-camera views as dry, wet, icy; rscd: patches with the 27 RSCD labels"""
    train: int = Field(default=1200, ge=3)
    validation: int = Field(default=300, ge=3)
    test: int = Field(default=300, ge=3)
    height: int = Field(default=192, ge=32, le=1080)
    width: int = Field(default=256, ge=32, le=1920)
    seed: int = 0


class FolderData(StrictModel):
    """One folder per class (`dry/ wet/ icy/`), split by a seeded, stratified draw."""

    kind: Literal["folder"]
    path: Path
    classes: tuple[str, ...] = ("dry", "wet", "icy")
    validation: Positive = 0.2
    test: Positive = 0.2
    seed: int = 0

    @model_validator(mode="after")
    def _leaves_training_images(self) -> FolderData:
        if self.validation + self.test >= 0.9:
            raise ValueError("validation and test together must leave 10 % or more for training")
        return self


class RscdData(StrictModel):
    """RSCD as published: `train/<class>/`, `vali_20k/`, `test_50k/`, labels from file names."""

    kind: Literal["rscd"]
    path: Path


DataSettings = Annotated[Union[SyntheticData, FolderData, RscdData], Field(discriminator="kind")]


class InputSettings(StrictModel):
    """The model's picture: its size and the part of the photograph that it shows."""

    height: int = Field(default=192, ge=32, le=2048)
    width: int = Field(default=192, ge=32, le=2048)
    crop: Crop = Crop()
    fit: Literal["stretch", "cover"] = "stretch"


class ModelSettings(StrictModel):
    backbone: str = "tf_mobilenetv3_small_100"
    """a timm model name, or `torchvision/` and a torchvision model name"""
    features: int = Field(default=128, ge=2, le=4096)
    weights: str = "none"
    """none: from scratch; hub: the library's pretrained weights; else a local .safetensors file"""


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


class AugmentSettings(StrictModel):
    """The paper's augmentation: colour jitter, rotation, perspective, flip; 0 leaves a part out."""

    color_jitter: Probability = 0.3
    """brightness, contrast and saturation change by up to this share"""
    rotation_degrees: float = Field(default=10.0, ge=0.0, le=180.0)
    perspective: Probability = 0.5
    """how far the corners move, as torchvision's `distortion_scale` (its default, as in the paper)"""
    perspective_probability: Probability = 0.5
    flip: Probability = 0.5
    """probability of mirroring left and right"""


class OptimizerSettings(StrictModel):
    name: Literal["adam", "adamw", "sgd"] = "adam"
    learning_rate: Positive = 1e-4
    weight_decay: NotNegative = 0.0
    momentum: float = Field(default=0.9, ge=0.0, lt=1.0)
    """SGD only; always Nesterov's"""
    schedule: Literal["constant", "step", "cosine"] = "step"
    milestones: tuple[int, ...] = (50,)
    """epochs after which `step` multiplies the rate by `factor`"""
    factor: float = Field(default=0.1, gt=0.0, le=1.0)
    warmup_epochs: NotNegative = 0.0


class TrainingSettings(StrictModel):
    epochs: int = Field(default=70, ge=1)
    batch_size: int = Field(default=64, ge=2)
    batch_norm: Literal["running", "clean", "seen"] = "seen"
    """statistics for use: gathered while training; or estimated after each epoch on clean
    training pictures, or on all that the method shows the model (noisy copies included)"""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    workers: int = Field(default=1, ge=0)
    """threads that prepare batches ahead; 0: none"""
    threads: int = Field(default=0, ge=0)
    """torch threads; 0: OMP_NUM_THREADS, else as many as there are cores"""
    memory_gb: NotNegative = 2.0
    """a split that needs more than this is read from disk batch by batch"""
    keep_checkpoints: int = Field(default=3, ge=1)


class Recipe(StrictModel):
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")
    seed: int = Field(default=0, ge=0)
    data: DataSettings = SyntheticData()
    input: InputSettings = InputSettings()
    model: ModelSettings = ModelSettings()
    method: MethodSettings = DiscriminativeMethod()
    augment: AugmentSettings = AugmentSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    training: TrainingSettings = TrainingSettings()

    @model_validator(mode="after")
    def _warms_up_within_the_training(self) -> Recipe:
        if self.optimizer.warmup_epochs >= self.training.epochs:
            raise ValueError("optimizer.warmup_epochs must be below training.epochs")
        return self
