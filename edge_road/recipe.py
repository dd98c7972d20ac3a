"""A recipe: everything that decides what a training run does."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from edge_road.config import GrownModel, NotNegative, Positive, Probability, Seed, StrictModel
from edge_road.preprocess import Crop
from edge_road.recipe_data import DataSettings, SyntheticData
from edge_road.recipe_method import (
    WITHOUT_CLEAN_PASS,
    DiscriminativeMethod,
    LargeMarginMethod,
    MethodSettings,
)


class InputSettings(GrownModel):
    """The model's picture: its size and the part of the photograph that it shows."""

    NEW_KEYS = ("shrink",)

    height: int = Field(default=192, ge=32, le=2048)
    """of the picture that the model sees, in pixels; more costs time in proportion"""
    width: int = Field(default=192, ge=32, le=2048)
    """likewise"""
    crop: Crop = Crop()
    fit: Literal["stretch", "cover"] = "stretch"
    """stretch: resize both sides; cover: cut the centre to the model's shape first"""
    shrink: Literal["area", "halves"] = "area"
    """area: averages in one step; halves: by two while both sides allow it, in less than half the time"""


class ModelSettings(GrownModel):
    NEW_KEYS = ("stem",)

    backbone: str = "tf_mobilenetv3_small_100"
    """a timm model name, or `torchvision/` and a torchvision model name"""
    stem: Literal["standard", "small"] = "standard"
    """small: a 3x3 convolution without stride or pooling begins a ResNet, for pictures of some 32 pixels"""
    features: int = Field(default=128, ge=2, le=4096)
    """length of the feature vector before the classifier, in which centroids and margins are measured"""
    heads: Literal["flat", "rscd"] = "flat"
    """rscd: friction, material and unevenness as three questions that make up the 27 classes"""
    weights: str = "none"
    """none: from scratch; hub: the library's pretrained weights; else a local .safetensors file"""


class AugmentSettings(GrownModel):
    """The paper's augmentation: colour jitter, rotation, perspective, flip; 0 leaves a part out.

    Erasing is not the paper's, and off unless asked for, as are the crops, which are for CIFAR-10 and SVHN.
    """

    NEW_KEYS = ("padded_crop",)

    padded_crop: int = Field(default=0, ge=0, le=31)
    """pixels added around the picture, from which one of its old size is cut at random"""
    color_jitter: Probability = 0.3
    """brightness, contrast and saturation change by up to this share"""
    rotation_degrees: float = Field(default=10.0, ge=0.0, le=180.0)
    """turns by up to this much either way"""
    perspective: Probability = 0.5
    """how far the corners move, as torchvision's `distortion_scale` (its default, as in the paper)"""
    perspective_probability: Probability = 0.5
    """how often the corners move at all"""
    corners: Literal["black", "filled"] = "black"
    """what crop, rotation and perspective leave empty: as in the paper, or filled by reflection and zoom"""
    flip: Probability = 0.5
    """probability of mirroring left and right"""
    erase: Probability = 0.0
    """probability of one black rectangle over 2 to 33 % of the picture (random erasing, Zhong et al. 2017)"""


class OptimizerSettings(StrictModel):
    name: Literal["adam", "adamw", "sgd"] = "adam"
    """sgd takes `momentum`; adamw keeps weight decay out of the gradient"""
    learning_rate: Positive = 1e-4
    """highest rate, reached after the warm-up"""
    head_factor: Positive = 1.0
    """how many times faster the layers behind the backbone learn, which no pretraining has seen"""
    weight_decay: NotNegative = 0.0
    """of weight matrices and kernels only; biases and normalisation are exempt"""
    momentum: float = Field(default=0.9, ge=0.0, lt=1.0)
    """SGD only; always Nesterov's"""
    schedule: Literal["constant", "step", "cosine"] = "step"
    """step: falls at the milestones; cosine: falls to 0 by the last epoch"""
    milestones: tuple[int, ...] = (50,)
    """epochs after which `step` multiplies the rate by `factor`"""
    factor: float = Field(default=0.1, gt=0.0, le=1.0)
    """of `step`: what the rate is multiplied by at each milestone"""
    warmup_epochs: NotNegative = 0.0
    """the rate rises from 0 for this long; fractions of an epoch count"""


class TrainingSettings(StrictModel):
    epochs: int = Field(default=70, ge=1)
    """passes over the training pictures at most; the best one on validation is kept"""
    patience: int = Field(default=0, ge=0)
    """stop after this many epochs without a better one; 0: never"""
    batch_size: int = Field(default=64, ge=2)
    """of all processes together"""
    sampling: Literal["shuffled", "balanced"] = "shuffled"
    """balanced: an epoch shows every class equally often"""
    class_weights: Literal["none", "balanced"] = "none"
    """balanced: in cross-entropy a class counts inversely to its frequency"""
    batch_norm: Literal["running", "clean", "seen", "separate"] = "seen"
    """statistics for use: gathered while training; or estimated after each epoch on clean
    training pictures, or on all that the method shows the model (noisy copies included);
    separate: gathered while training from clean passes alone, which noisy, spider and mixing lack"""
    clip_norm: NotNegative = 0.0
    """longest gradient over all weights; 0: any"""
    ema_decay: float = Field(default=0.0, ge=0.0, lt=1.0)
    """validate and keep moving averages of the weights; 0: the weights themselves"""
    roll_backs: int = Field(default=2, ge=0)
    """how often a loss that is no number sends training back to the last checkpoint"""
    roll_back_factor: float = Field(default=0.5, gt=0.0, le=1.0)
    """the learning rate falls by this each time"""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: cuda where there is one"""
    precision: Literal["auto", "float32", "bf16", "fp16"] = "auto"
    """of the network's arithmetic; auto: bf16 or fp16 on a GPU, float32 on a CPU"""
    compile: bool = False
    """let torch.compile translate the network first"""
    deterministic: bool = False
    """refuse operations that round differently from run to run (a GPU has some)"""
    workers: int = Field(default=1, ge=0)
    """threads that prepare batches ahead; 0: none"""
    threads: int = Field(default=0, ge=0, le=1024)
    """torch threads; 0: OMP_NUM_THREADS, else as many as there are cores"""
    memory_gb: NotNegative = 2.0
    """a split that needs more than this is read from disk batch by batch"""
    keep_checkpoints: int = Field(default=3, ge=1)
    """newest checkpoints to keep; if the last is damaged, training continues from the one before"""


class Recipe(StrictModel):
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")
    """names the run's folder"""
    seed: Seed = 0
    """of weights, order, augmentation and noise; the data has a seed of its own"""
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
            numbers = f"{self.optimizer.warmup_epochs:g} is not below {self.training.epochs}"
            raise ValueError(f"optimizer.warmup_epochs must be below training.epochs (--epochs): {numbers}")
        return self

    @model_validator(mode="after")
    def _keeps_noisy_passes_apart(self) -> Recipe:
        if self.training.batch_norm != "separate":
            return self
        if getattr(self.method, "passes", "two") == "joint":
            raise ValueError("training.batch_norm = 'separate' needs method.passes = 'two'")
        if isinstance(self.method, WITHOUT_CLEAN_PASS):
            raise ValueError(
                f"training.batch_norm = 'separate' needs clean passes, and '{self.method.name}' has none"
            )
        return self

    @model_validator(mode="after")
    def _measures_margins_to_flat_boundaries(self) -> Recipe:
        if self.model.heads == "rscd" and isinstance(self.method, LargeMarginMethod):
            problem = f"needs a method without a margin (softmax, noisy, ...), not '{self.method.name}'"
            reason = "boundaries between labels that answer different questions are not flat"
            raise ValueError(f"model.heads = 'rscd' {problem}: {reason}")
        return self
