from __future__ import annotations

import numpy as np
import pytest

from edge_road.backends.fake import LEVEL_OF_STATE, NAN_COLOR, FakePredictor
from edge_road.conditions import RSCD_CLASSES, ClassList
from edge_road.frames import Frame, Image, Images, Prediction
from edge_road.predictor import Predictor
from edge_road.preprocess import Crop, Preprocessing
from edge_road.runtime.perception import Perception
from edge_road.runtime.vehicle import Region

PREPROCESSING = Preprocessing(height=32, width=32)
LEFT = Region(name="left", crop=Crop(right=0.5))
RIGHT = Region(name="right", crop=Crop(left=0.5))


def road(left: str, right: str | None = None, seed: int = 0) -> Image:
    noise = np.random.default_rng(seed).integers(-10, 11, (64, 64, 1))
    levels = np.full((64, 64, 1), LEVEL_OF_STATE[left])
    levels[:, 32:] = LEVEL_OF_STATE[right or left]
    return np.repeat((levels + noise).astype(np.uint8), 3, axis=2)


def frame(pixels: Image, number: int = 1) -> Frame:
    return Frame(pixels, number, number * 10**8, "2026-01-01T00:00:00.000Z")


def test_a_frame_becomes_evidence_with_its_number_and_times() -> None:
    evidence = Perception(FakePredictor(), PREPROCESSING).judge(frame(road("wet"), number=3))
    assert (evidence.number, evidence.captured_mono_ns) == (3, 300_000_000)
    assert evidence.captured_utc == "2026-01-01T00:00:00.000Z"
    assert evidence.problems == ()
    assert evidence.regions[0].name == "road"
    assert evidence.regions[0].probabilities[1] > 0.99
    assert set(evidence.stage_ms) == {"check", "prepare", "predict"}


def test_regions_are_judged_by_themselves() -> None:
    perception = Perception(FakePredictor(), PREPROCESSING, (LEFT, RIGHT))
    evidence = perception.judge(frame(road("dry", "icy")))
    assert [region.name for region in evidence.regions] == ["left", "right"]
    assert evidence.regions[0].probabilities[0] > 0.99
    assert evidence.regions[1].probabilities[2] > 0.99


def test_the_bundles_own_crop_is_the_default_region() -> None:
    right_half = Preprocessing(height=32, width=32, crop=RIGHT.crop)
    evidence = Perception(FakePredictor(), right_half).judge(frame(road("dry", "icy")))
    assert evidence.regions[0].probabilities[2] > 0.99


def test_a_27_class_model_says_its_state_by_adding_probabilities() -> None:
    predictor = FakePredictor(classes=ClassList(RSCD_CLASSES))
    evidence = Perception(predictor, PREPROCESSING).judge(frame(road("icy")))
    assert sum(evidence.regions[0].probabilities) == pytest.approx(1, abs=1e-6)
    assert evidence.regions[0].probabilities[2] > 0.99


def test_a_bad_picture_is_never_shown_to_the_model() -> None:
    class Untouchable(FakePredictor):
        def predict(self, images_NHWC: Images) -> Prediction:
            raise AssertionError("the model must not see this")

    evidence = Perception(Untouchable(), PREPROCESSING).judge(frame(np.zeros((64, 64, 3), np.uint8)))
    assert evidence.problems == ("exposure", "low_detail")
    assert evidence.regions == ()


def test_nan_travels_to_the_decision() -> None:
    grain = np.random.default_rng(0).integers(-10, 11, (64, 64, 1))
    pixels = np.asarray(grain + NAN_COLOR, np.uint8)
    evidence = Perception(FakePredictor(), PREPROCESSING).judge(frame(pixels))
    assert all(p != p for p in evidence.regions[0].probabilities)


def test_finite_probabilities_beside_sick_features_do_not_count() -> None:
    class SickFeatures(FakePredictor):
        def predict(self, images_NHWC: Images) -> Prediction:
            answer = super().predict(images_NHWC)
            return Prediction(answer.probabilities_NC, answer.logits_NC, answer.features_ND * np.nan)

    evidence = Perception(SickFeatures(), PREPROCESSING).judge(frame(road("dry")))
    assert all(p != p for p in evidence.regions[0].probabilities)


def test_the_fake_is_a_predictor() -> None:
    fake = FakePredictor(latency_s=0.001)
    assert isinstance(fake, Predictor)
    states = np.stack([road(state)[:32, :32] for state in LEVEL_OF_STATE])
    assert fake.predict(states).labels_N.tolist() == [0, 1, 2]
    assert len(fake.predict(np.zeros((0, 32, 32, 3), np.uint8))) == 0
