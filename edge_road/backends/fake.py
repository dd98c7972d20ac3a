"""A predictor without a model: it reads the state from the brightness of a coded picture."""

from __future__ import annotations

import time

import numpy as np

from edge_road.conditions import ROAD_CLASSES, ClassList
from edge_road.frames import Images, Prediction

LEVEL_OF_STATE = {"dry": 60, "wet": 120, "icy": 200}
"""mean brightness of a picture that stands for a state"""
NAN_COLOR = (220, 100, 220)
"""a picture of this colour makes the fake answer with NaN, as a broken model does"""
SHARPNESS = 0.2
"""logits fall by this much per grey level of distance"""


class FakePredictor:
    """Deterministic and fast; `latency_s` makes it as slow as a real one."""

    def __init__(
        self,
        size: tuple[int, int] = (32, 32),
        classes: ClassList = ROAD_CLASSES,
        latency_s: float = 0.0,
    ) -> None:
        self._size, self._classes, self._latency_s = size, classes, latency_s
        self._levels_C = np.array([LEVEL_OF_STATE[state] for state in classes.states], np.float32)

    @property
    def name(self) -> str:
        return "fake"

    @property
    def classes(self) -> ClassList:
        return self._classes

    @property
    def size(self) -> tuple[int, int]:
        return self._size

    def predict(self, images_NHWC: Images) -> Prediction:
        time.sleep(self._latency_s)
        colors_ND = images_NHWC.mean(axis=(1, 2), dtype=np.float32)
        logits_NC = -SHARPNESS * np.abs(colors_ND.mean(axis=1, keepdims=True) - self._levels_C)
        logits_NC[np.abs(colors_ND - NAN_COLOR).max(axis=1) < 4] = np.nan
        exponentials_NC = np.exp(logits_NC)
        probabilities_NC = exponentials_NC / exponentials_NC.sum(axis=1, keepdims=True)
        return Prediction(probabilities_NC, logits_NC, colors_ND)
