"""A trained model as a `Predictor`, and the way from a run's folder to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from edge_road.conditions import ClassList
from edge_road.config import check_settings
from edge_road.errors import BackendError, ConfigError
from edge_road.files import sha256
from edge_road.frames import Images, Prediction, join
from edge_road.nn.model import RoadModel, build_model
from edge_road.nn.weights import load_strictly, parse_tensors, read_bytes
from edge_road.recipe import ModelSettings
from edge_road.run_record import RECORD_FILE, WEIGHTS_FILE, RunRecord, load_record


class TorchPredictor:
    """Runs the model in eval mode, wherever it lies, and leaves its mode as it was."""

    def __init__(
        self, model: RoadModel, classes: ClassList, size: tuple[int, int], batch_size: int = 64
    ) -> None:
        self.model = model
        self.classes = classes
        self.size = size
        self.batch_size = batch_size

    @property
    def name(self) -> str:
        return f"torch {str(self.model.mean.dtype).removeprefix('torch.')} on {self.model.mean.device}"

    def predict(self, images_NHWC: Images) -> Prediction:
        if images_NHWC.dtype != np.uint8 or images_NHWC.shape[1:] != (*self.size, 3):
            raise BackendError(
                "the model cannot take these images",
                where=self.name,
                got=f"{images_NHWC.dtype} {images_NHWC.shape}",
                expected=f"uint8 (N, {self.size[0]}, {self.size[1]}, 3)",
            )
        starts = range(0, max(len(images_NHWC), 1), self.batch_size)
        with _evaluating(self.model), torch.inference_mode():
            return join([self._predict_batch(images_NHWC[i : i + self.batch_size]) for i in starts])

    def _predict_batch(self, images_NHWC: Images) -> Prediction:
        # Transposed, an NHWC array is channels_last already.
        pixels_NCHW = torch.from_numpy(np.array(images_NHWC, order="C")).permute(0, 3, 1, 2)
        features_ND, logits_NC = self.model(pixels_NCHW.to(self.model.mean) / 255)
        outputs = (logits_NC.softmax(dim=1), logits_NC, features_ND)
        return Prediction(*(output.float().cpu().numpy() for output in outputs))


def load_run(run: Path) -> TorchPredictor:
    record = load_record(run)
    model = _load(run, record).to(memory_format=torch.channels_last)
    size = (record.preprocessing.height, record.preprocessing.width)
    return TorchPredictor(model, record.class_list, size)


def load_model(run: Path) -> RoadModel:
    """The best model of a finished run, in eval mode."""
    return _load(run, load_record(run))


def _load(run: Path, record: RunRecord) -> RoadModel:
    path = run / WEIGHTS_FILE
    content = read_bytes(path)
    if sha256(content) != record.weights_sha256:
        raise ConfigError(
            "the weights are not those that the run's record names",
            where=path,
            got=f"sha256 {sha256(content)}",
            expected=f"sha256 {record.weights_sha256}",
            fix="restore the file, or train again",
        )
    described = record.model_dump(include={"backbone", "stem", "features", "heads"})
    settings = check_settings(ModelSettings, described, where=run / RECORD_FILE)
    model = build_model(settings, len(record.classes))
    load_strictly(model, parse_tensors(content, where=path), where=path, model=record.backbone)
    return model.eval()


@contextmanager
def _evaluating(model: RoadModel) -> Iterator[None]:
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
