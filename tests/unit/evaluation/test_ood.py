"""What a model does not know: AUROC by counting pairs, drawn pictures, rules on a known geometry."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from edge_road.conditions import ROAD_CLASSES
from edge_road.errors import ConfigError, DataError
from edge_road.evaluation.familiarity import ClassGeometry, Scale, doubt
from edge_road.evaluation.metrics import softmax
from edge_road.evaluation.ood import RULES, auroc, score_strangers, separation, sum_up_strangers
from edge_road.evaluation.strange_pictures import STRANGE, strange_pictures
from edge_road.frames import Images, Prediction

SIZE = (32, 46)


def roads(count: int = 6) -> Images:
    return np.random.default_rng(0).integers(40, 160, (count, *SIZE, 3), dtype=np.uint8)


@pytest.mark.parametrize("seed", range(3))
def test_auroc_equals_counting_all_pairs(seed: int) -> None:
    draw = np.random.default_rng(seed)
    inside, outside = draw.integers(0, 6, 30) * 1.0, draw.integers(2, 9, 20) * 1.0
    outside[0] = np.inf
    pairs = [(o > i) + 0.5 * (o == i) for i in inside for o in outside]
    assert auroc(inside, outside) == pytest.approx(np.mean(pairs))
    assert auroc(outside, inside) == pytest.approx(1 - np.mean(pairs))


def test_the_share_caught_lets_95_percent_of_the_roads_pass() -> None:
    inside = np.arange(100.0)
    assert separation(inside, np.array([94.0, 95.0, 96.0, 500.0])).caught == 0.5
    with pytest.raises(DataError, match="both sides"):
        auroc(inside, np.empty(0))


@pytest.mark.parametrize("kind", STRANGE)
def test_strange_pictures_are_seeded_and_leave_the_roads_alone(kind: str) -> None:
    images_NHWC = roads()
    before = images_NHWC.copy()
    drawn = strange_pictures(images_NHWC, kind, seed=4)
    assert drawn.shape == images_NHWC.shape
    assert drawn.dtype == np.uint8
    assert np.array_equal(images_NHWC, before)
    assert np.array_equal(drawn, strange_pictures(images_NHWC, kind, seed=4))
    assert np.array_equal(drawn[:2], strange_pictures(images_NHWC[:2], kind, seed=4))
    assert not np.array_equal(drawn, images_NHWC)
    if kind != "upside_down":
        assert not np.array_equal(drawn, strange_pictures(images_NHWC, kind, seed=5))
        assert not np.array_equal(drawn[0], drawn[1])


def test_shuffled_patches_keep_every_pixel_of_a_divisible_picture() -> None:
    image = np.random.default_rng(1).integers(0, 256, (1, 32, 48, 3), dtype=np.uint8)
    drawn = strange_pictures(image, "shuffled", 0)
    assert np.array_equal(np.sort(drawn, axis=None), np.sort(image, axis=None))


def test_what_the_drawn_kinds_look_like() -> None:
    images_NHWC = roads()
    means = {kind: float(strange_pictures(images_NHWC, kind, 0).mean()) for kind in STRANGE}
    assert means["black"] < 10
    assert means["white"] > 245
    assert means["noise"] == pytest.approx(127.5, abs=3)
    sky_NHWC = strange_pictures(images_NHWC, "sky", 0).astype(float)
    assert (sky_NHWC[..., 2] >= sky_NHWC[..., 0] - 20).mean() > 0.95


def test_an_unknown_kind_names_the_nearest() -> None:
    with pytest.raises(ConfigError) as caught:
        strange_pictures(roads(), "blac", 0)
    assert "'black'" in str(caught.value)


class ByColour:
    """Features are the mean colour; sure of itself everywhere: only distance tells strange pictures."""

    name, classes, size = "by colour", ROAD_CLASSES, SIZE

    def predict(self, images_NHWC: Images) -> Prediction:
        features_ND = images_NHWC.mean(axis=(1, 2)).astype(np.float32)
        centres_CD = np.array([[60.0] * 3, [100.0] * 3, [150.0] * 3])
        nearest_N = np.linalg.norm(features_ND[:, None] - centres_CD, axis=2).argmin(axis=1)
        logits_NC = (9.0 * np.eye(3)[nearest_N]).astype(np.float32)
        return Prediction(softmax(logits_NC.astype(float)).astype(np.float32), logits_NC, features_ND)


def grey(count: int, seed: int) -> tuple[Images, np.ndarray]:
    draw = np.random.default_rng(seed)
    labels_N = np.arange(count) % 3
    levels_N = np.array([60, 100, 150])[labels_N] + draw.integers(-6, 7, count)
    return np.broadcast_to(levels_N[:, None, None, None], (count, *SIZE, 3)).astype(np.uint8), labels_N


def test_distance_catches_what_a_sure_model_does_not_doubt() -> None:
    predictor = ByColour()
    train, labels_N = grey(60, 0)
    geometry = ClassGeometry.of(predictor.predict(train).features_ND, labels_N, ROAD_CLASSES)
    familiar, test = grey(30, 1)[0], grey(30, 2)[0]
    found = score_strangers(predictor, predictor.predict(test), test, predictor.predict(familiar), geometry)
    assert found is not None
    result = sum_up_strangers(found)
    assert set(result.kinds) == set(STRANGE)
    for kind in ("black", "white"):
        assert result.kinds[kind]["distance"].auroc == 1.0
        assert result.kinds[kind]["distance"].caught == 1.0
        assert result.kinds[kind]["confidence"].auroc == 0.5
        assert result.kinds[kind]["either"].auroc == 1.0
    assert result.kinds["upside_down"]["distance"].auroc == pytest.approx(0.5)
    assert result.best in ("distance", "either")
    assert result.distance_limit is not None
    within = geometry.distance(predictor.predict(familiar)) <= result.distance_limit
    assert 0.95 <= within.mean() <= 1.0
    sure = predictor.predict(test).probabilities_NC.max(axis=1)
    assert (sure >= result.confidence_limit - 1e-6).all()
    assert set(result.means) == set(RULES)


def test_limits_are_read_off_the_familiar_roads_and_not_off_the_judged_ones() -> None:
    predictor = ByColour()
    train, labels_N = grey(60, 0)
    geometry = ClassGeometry.of(predictor.predict(train).features_ND, labels_N, ROAD_CLASSES)
    familiar, near, far = grey(30, 1)[0], grey(40, 2)[0], grey(40, 2)[0] + np.uint8(30)
    results, pairs = [], []
    for test in (near, far):
        found = score_strangers(
            predictor, predictor.predict(test), test, predictor.predict(familiar), geometry, 0, "the others"
        )
        assert found is not None
        results.append(sum_up_strangers(found))
        pairs.append(found.limits())
    assert pairs[0] == pairs[1]
    assert results[0].confidence_limit == results[1].confidence_limit
    assert results[0].distance_limit == results[1].distance_limit
    assert {result.limits_from for result in results} == {"the others"}


def test_the_two_limits_of_either_let_95_percent_of_the_roads_pass_and_refuse_as_it_does() -> None:
    predictor = ByColour()
    train, labels_N = grey(60, 0)
    geometry = ClassGeometry.of(predictor.predict(train).features_ND, labels_N, ROAD_CLASSES)
    familiar, test = grey(30, 1)[0], grey(40, 2)[0]
    found = score_strangers(predictor, predictor.predict(test), test, predictor.predict(familiar), geometry)
    assert found is not None
    limits = found.limits()
    assert limits is not None
    confidence, radii = limits
    on_familiar = replace(found, roads=found.known)
    refused = on_familiar.refused(confidence * (1 - 1e-9), radii * (1 + 1e-9))  # on the limit still passes
    assert refused["roads"] <= 0.05
    assert refused["black"] == refused["white"] == 1.0
    assert found.refused(1.0, radii)["roads"] == 1.0, "nobody is that sure"
    assert found.refused(0.0, np.inf) == dict.fromkeys(["roads", *STRANGE], 0.0)


def test_an_output_that_is_not_finite_is_strange_and_a_silent_model_has_no_result() -> None:
    predictor = ByColour()
    images_NHWC, labels_N = grey(30, 0)
    prediction = predictor.predict(images_NHWC)
    geometry = ClassGeometry.of(prediction.features_ND, labels_N, ROAD_CLASSES)
    prediction.features_ND[3] = np.nan
    assert doubt(prediction, ROAD_CLASSES)[3] == np.inf
    assert geometry.distance(prediction)[3] == np.inf
    prediction.features_ND[:] = np.nan
    assert score_strangers(predictor, prediction, images_NHWC, prediction, geometry) is None
    with pytest.raises(DataError, match="no finite output"):
        Scale.of(np.full(3, np.inf))


def test_geometry_needs_every_class_and_knows_its_radius() -> None:
    features_ND = np.array([[0.0, 0], [2, 0], [10, 0], [10, 4], [0, 50], [0, 50]])
    geometry = ClassGeometry.of(features_ND, np.array([0, 0, 1, 1, 2, 2]), ROAD_CLASSES)
    assert geometry.centroids_CD.tolist() == [[1, 0], [10, 2], [0, 50]]
    assert geometry.radii_C.tolist() == [1, 2, 0]
    with pytest.raises(DataError, match="no training pictures"):
        ClassGeometry.of(features_ND, np.array([0, 0, 1, 1, 1, 1]), ROAD_CLASSES)
