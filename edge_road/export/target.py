"""A target: what an exported model must keep to be allowed onto a device, and how it is made."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from edge_road.config import Seed, StrictModel, load_settings
from edge_road.evaluation.perturbations import find_perturbation
from edge_road.workspace import shipped

DEFAULT = "vehicle"
CalibrationMethod = Literal["mse", "percentile", "min-max", "entropy"]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class CalibrationSettings(StrictModel):
    """Where the INT8 scales come from: training images, clean and as a vehicle's camera may deliver them."""

    images: int = Field(default=128, ge=8, le=4096)
    """every class as often as it can be; 32 suffice for MobileNetV3"""
    perturbed_share: Share = 0.5
    """of them and of every class, dealt evenly to the perturbations below"""
    perturbations: tuple[str, ...] = (
        *("gaussian_40", "night:2", "dark", "motion_blur"),
        *("jpeg", "spray:2", "occlusion", "stripes"),
    )
    """what the perturbed ones undergo; names as in docs/perturbations.md"""
    method: CalibrationMethod = "mse"
    """how far a scale reaches: least squared error, a percentile, everything, or least loss of information"""
    percentile: float = Field(default=99.99, gt=50.0, le=100.0)
    """of |x|, per activation; only for method percentile"""
    refit: bool = True
    """balance the channels of inputs, and fit each layer's INT8 weights to what INT8 leaves of them"""
    keep_float: int = Field(default=0, ge=0)
    """so many of the most sensitive layers stay in float, besides the depthwise convolutions"""
    sensitivity_images: int = Field(default=24, ge=1)
    """of the calibration images, to find those layers"""
    most_float: int = Field(default=16, ge=0)
    """for quantization = "search": it gives up beyond so many"""
    search_images: int = Field(default=240, ge=1)
    """for quantization = "search": validation images, half of them perturbed"""

    @model_validator(mode="after")
    def _perturbations_exist(self) -> CalibrationSettings:
        if unknown := [name for name in self.perturbations if find_perturbation(name) is None]:
            raise ValueError(f"no perturbation is called {unknown[0]!r}")
        if self.perturbed_share and not self.perturbations:
            raise ValueError("perturbed_share needs perturbations")
        return self


class FloatLimits(StrictModel):
    """For the float ONNX model against torch."""

    logit_difference: float = Field(default=1e-4, gt=0.0)
    """largest |torch - ONNX| for logits up to 10, and in proportion above; all labels must be equal"""


class Limits(StrictModel):
    """For a model of lower precision against the float one.

    Agreement needs no truth, so every image bears on it: it is the sharp criterion, and no accuracy can
    fall by more than labels differ. Losses of accuracy are few images against few images: one beyond its
    limit refuses the model if chance alone would rarely give it, or if it is beyond `ceiling` times the
    limit, whatever chance says. One image may always differ.
    """

    agreement: Share = 0.98
    """least share of equal labels on clean images"""
    perturbed_agreement: Share = 0.96
    """the same under perturbation, where more images lie on the fence"""
    accuracy_drop: Share = 0.01
    """of the accuracy on clean images"""
    recall_drop: Share = 0.03
    """of any class"""
    danger_rise: Share = 0.01
    """of the share of icy roads that are called dry or wet; judged clean and under perturbation"""
    robustness_drop: Share = 0.01
    """of the accuracy, as the mean over the perturbations of the smoke test"""
    worst_drop: Share = 0.04
    """of the accuracy under any one of them"""
    calibration_rise: Share = 0.03
    """of the expected calibration error, after the model's own temperature"""
    excess_noise: float = Field(default=2.0, ge=1.0)
    """of INT8 on road images, as a multiple of what the best scales leave (geometric mean over tensors):
    scales calibrated on roads have 1.3, on random images 2.6 to 19, although labels may agree by luck"""
    significance: Share = 0.05
    """a loss that chance alone gives more often than this is not held against the model"""
    ceiling: float = Field(default=3.0, ge=1.0)
    """times the limit, from where on it is"""
    size_share: float = Field(default=1.0, gt=0.0)
    """largest file, as a share of the float one"""
    work_share: Share = 0.0
    """least share of the multiply-adds that TensorRT-RTX does in INT8"""


class Float16Limits(Limits):
    agreement: Share = 0.99
    perturbed_agreement: Share = 0.98
    size_share: float = Field(default=0.55, gt=0.0)


class Int8Limits(Limits):
    size_share: float = Field(default=0.35, gt=0.0)
    work_share: Share = 0.8


class MachineLimits(StrictModel):
    """For each model where it is exported, on one thread of ONNX Runtime; a laptop is no vehicle."""

    measure: bool = True
    """false: neither time nor memory is measured or judged"""
    latency_ms: float = Field(default=1000.0, gt=0.0)
    """median of single images"""
    memory_mb: float = Field(default=2048.0, gt=0.0)
    """of the whole process, Python and ONNX Runtime included"""


class SampleSettings(StrictModel):
    """How many images each measurement looks at; every class is drawn alike."""

    parity: int = Field(default=200, ge=1)
    """validation images on which torch and ONNX must agree"""
    gate: int = Field(default=1000, ge=1)
    """validation images: temperature, scores of each artefact"""
    geometry: int = Field(default=600, ge=1)
    """training images: class centroids and radii"""
    robustness: int = Field(default=120, ge=1)
    """validation images under each perturbation"""
    coverage: int = Field(default=32, ge=1)
    """validation images, half of them perturbed, that tell whether INT8 scales were made for the road"""
    probe: int = Field(default=24, ge=12, le=256)
    """validation images that travel in the bundle"""


class QatSettings(StrictModel):
    """For quantization = "qat": training with INT8 in the graph, depthwise layers included."""

    epochs: int = Field(default=3, ge=1, le=1000)
    """passes over the training images that the export looks at (samples.geometry)"""
    batch_size: int = Field(default=16, ge=1)
    """training images a step"""
    learning_rate: float = Field(default=0.01, gt=0.0)
    """of the weights, in INT8 steps; falls to 0 along a cosine"""


class EngineSettings(StrictModel):
    """For a TensorRT engine, which is built on the device."""

    typical_batch: int = Field(default=1, ge=1, le=64)
    """the engine is tuned for this many images"""
    largest_batch: int = Field(default=8, ge=1, le=64)
    """the engine takes no more images in one call"""
    workspace_mib: int = Field(default=512, ge=16)
    """GPU memory that a kernel may use as scratch space"""
    timing_cache: bool = True
    """remember which kernels were fastest, so that the next build is quick"""
    version_compatible: bool = False
    """the plan carries a lean runtime, so that tools of a newer TensorRT can load it too"""
    dla_core: int | None = Field(default=None, ge=0, le=1)
    """run on this deep-learning accelerator, always `largest_batch` images at once, and on the GPU what it
    cannot; none: on the GPU"""

    @model_validator(mode="after")
    def _typical_fits(self) -> EngineSettings:
        if self.typical_batch > self.largest_batch:
            raise ValueError("typical_batch must not be above largest_batch")
        return self


class Target(StrictModel):
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")
    """as the gate's report calls it"""
    batch: int = Field(default=0, ge=0, le=64)
    """images per call in the ONNX graph; 0: any"""
    float16: bool = True
    """try a float16 model too"""
    int8: bool = True
    """try an INT8 model too"""
    quantization: Literal["mixed", "search", "all", "qat"] = "mixed"
    """which layers stay in float: mixed: the depthwise ones and a fixed number of the most sensitive; search:
    the depthwise ones and as few others as the limits allow; all: none; qat: none, and a few epochs of
    training with INT8 in the graph"""
    tensorrt: bool | Literal["required"] = True
    """the device runs TensorRT: TensorRT-RTX must build every model, where it is installed; "required": it
    must be installed"""
    seed: Seed = 0
    """of all draws of images and perturbations"""
    answer_accuracy: Share = 0.99
    """the confidence threshold is the lowest at which answers on validation images are this right"""
    highest_threshold: Share = 0.8
    """a threshold above it would leave the vehicle without answers"""
    calibration: CalibrationSettings = CalibrationSettings()
    qat: QatSettings = QatSettings()
    samples: SampleSettings = SampleSettings()
    float_limits: FloatLimits = FloatLimits()
    float16_limits: Float16Limits = Float16Limits()
    int8_limits: Int8Limits = Int8Limits()
    machine_limits: MachineLimits = MachineLimits()
    engine: EngineSettings = EngineSettings()


def load_target(wish: str | None = None) -> Target:
    """A file, or the name of one that is shipped; without a wish `vehicle`."""
    path = Path(wish or DEFAULT)
    is_name = path.name == str(path) and not path.suffix and not path.is_file()
    return load_settings(Target, shipped("targets", path.name) if is_name else path)
