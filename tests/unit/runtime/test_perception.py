from __future__ import annotations

import numpy as np
import pytest

from edge_road.backends.fake import LEVEL_OF_STATE, NAN_COLOR, FakePredictor
from edge_road.conditions import RSCD_CLASSES, ClassList
from edge_road.frames import Frame, Image, Images, Prediction
from edge_road.predictor import Predictor
from edge_road.preprocess import Crop, Preprocessing
from edge_road.runtime.evidence import Evidence
from edge_road.runtime.geometry import Geometry
from edge_road.runtime.perception import Perception
from edge_road.runtime.sources.base import Unreadable
from edge_road.runtime.vehicle import Region
from edge_road.runtime.vehicle_inputs import VehicleInputs

PREPROCESSING = Preprocessing(height=32, width=32)
LEFT = Region(name="left", crop=Crop(right=0.5))
RIGHT = Region(name="right", crop=Crop(left=0.5))


def road(left: str, right: str | None = None, seed: int = 0) -> Image:
    noise = np.random.default_rng(seed).integers(-10, 11, (64, 64, 1))
    noise += np.linspace(-8, 8, 64).astype(int)[:, None, None]  # light from one side
    levels = np.full((64, 64, 1), LEVEL_OF_STATE[left])
    levels[:, 32:] = LEVEL_OF_STATE[right or left]
    return np.repeat((levels + noise).astype(np.uint8), 3, axis=2)


def frame(pixels: Image, number: int = 1) -> Frame:
    return Frame(pixels, number, number * 10**8, "2026-01-01T00:00:00.000Z")


def judged(perception: Perception, picture: Frame | Unreadable, *inputs: VehicleInputs) -> Evidence:
    return perception.judge(perception.view(picture, *inputs))


def test_a_frame_becomes_evidence_with_its_number_and_times() -> None:
    evidence = judged(Perception(FakePredictor(), PREPROCESSING), frame(road("wet"), number=3))
    assert (evidence.number, evidence.captured_mono_ns) == (3, 300_000_000)
    assert evidence.captured_utc == "2026-01-01T00:00:00.000Z"
    assert evidence.problems == ()
    assert evidence.regions[0].name == "road"
    assert evidence.regions[0].probabilities[1] > 0.99
    assert set(evidence.stage_ms) == {"check", "prepare", "predict"}


def test_regions_are_judged_by_themselves() -> None:
    perception = Perception(FakePredictor(), PREPROCESSING, (LEFT, RIGHT))
    evidence = judged(perception, frame(road("dry", "icy")))
    assert [region.name for region in evidence.regions] == ["left", "right"]
    assert evidence.regions[0].probabilities[0] > 0.99
    assert evidence.regions[1].probabilities[2] > 0.99


def test_the_bundles_own_crop_is_the_default_region() -> None:
    right_half = Preprocessing(height=32, width=32, crop=RIGHT.crop)
    evidence = judged(Perception(FakePredictor(), right_half), frame(road("dry", "icy")))
    assert evidence.regions[0].probabilities[2] > 0.99


def test_a_27_class_model_says_its_state_by_adding_probabilities() -> None:
    predictor = FakePredictor(classes=ClassList(RSCD_CLASSES))
    evidence = judged(Perception(predictor, PREPROCESSING), frame(road("icy")))
    assert sum(evidence.regions[0].probabilities) == pytest.approx(1, abs=1e-6)
    assert evidence.regions[0].probabilities[2] > 0.99


def test_a_bad_picture_is_never_shown_to_the_model() -> None:
    class Untouchable(FakePredictor):
        def predict(self, images_NHWC: Images) -> Prediction:
            raise AssertionError("the model must not see this")

    evidence = judged(Perception(Untouchable(), PREPROCESSING), frame(np.zeros((64, 64, 3), np.uint8)))
    assert evidence.problems == ("exposure",)
    assert evidence.regions == ()


def test_nan_travels_to_the_decision() -> None:
    pixels = np.asarray(road("dry").astype(int) - LEVEL_OF_STATE["dry"] + NAN_COLOR, np.uint8)
    evidence = judged(Perception(FakePredictor(), PREPROCESSING), frame(pixels))
    assert all(p != p for p in evidence.regions[0].probabilities)


def test_finite_probabilities_beside_sick_features_do_not_count() -> None:
    class SickFeatures(FakePredictor):
        def predict(self, images_NHWC: Images) -> Prediction:
            answer = super().predict(images_NHWC)
            return Prediction(answer.probabilities_NC, answer.logits_NC, answer.features_ND * np.nan)

    evidence = judged(Perception(SickFeatures(), PREPROCESSING), frame(road("dry")))
    assert all(p != p for p in evidence.regions[0].probabilities)


def test_what_cannot_be_decoded_is_evidence_of_trouble_and_counted() -> None:
    perception = Perception(FakePredictor(), PREPROCESSING)
    evidence = judged(perception, Unreadable(4, 400, "2026-01-01T00:00:00.000Z"))
    assert (evidence.number, evidence.captured_mono_ns, evidence.problems) == (4, 400, ("decode",))
    assert evidence.regions == ()
    judged(perception, Unreadable(5, 500))
    black = judged(perception, frame(np.zeros((64, 64, 3), np.uint8)))
    assert black.rejected_by["decode"] == 2
    assert black.rejected_by["exposure"] == 1


def test_distances_to_what_was_learnt_travel_with_each_region() -> None:
    learnt = Geometry([[60.0] * 3, [120.0] * 3, [200.0] * 3], [10.0, 10.0, 20.0])
    perception = Perception(FakePredictor(), PREPROCESSING, (LEFT, RIGHT), geometry=learnt)
    near, far = judged(perception, frame(road("dry", "wet"))).regions
    assert near.distance < 0.5
    assert far.distance < 0.5
    bright = np.clip(road("icy").astype(int) + 40, 0, 255).astype(np.uint8)
    regions = judged(perception, frame(bright, number=2)).regions
    assert regions[0].distance == pytest.approx(40 * 3**0.5 / 20, rel=0.1)


def test_a_sick_model_is_counted_until_it_is_well() -> None:
    perception = Perception(FakePredictor(), PREPROCESSING)
    sick = np.asarray(road("dry").astype(int) - LEVEL_OF_STATE["dry"] + NAN_COLOR, np.uint8)
    for number in range(1, 4):
        judged(perception, frame(sick, number))
    assert perception.sick_in_a_row == 3
    judged(perception, frame(road("dry"), 4))
    assert perception.sick_in_a_row == 0


def test_a_smeared_region_is_marked_while_the_vehicle_moves() -> None:
    for speed_mps, marked in ((10.0, True), (0.2, False)):
        perception = Perception(FakePredictor(), PREPROCESSING, (LEFT, RIGHT))
        for number in range(50):
            moving = VehicleInputs().with_speed(speed_mps, number * 10**8)
            smeared = road("dry", seed=number)
            smeared[:, 32:] = 60
            evidence = judged(perception, frame(smeared, number), moving)
        assert [region.obstructed for region in evidence.regions] == [False, marked]


def test_the_fake_is_a_predictor() -> None:
    fake = FakePredictor(latency_s=0.001)
    assert isinstance(fake, Predictor)
    states = np.stack([road(state)[:32, :32] for state in LEVEL_OF_STATE])
    assert fake.predict(states).labels_N.tolist() == [0, 1, 2]
    assert len(fake.predict(np.zeros((0, 32, 32, 3), np.uint8))) == 0
