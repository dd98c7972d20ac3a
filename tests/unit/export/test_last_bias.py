"""The mean error of a reduced model, and its last bias."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_onnx import conv_bytes, conv_graph, noise_images

from edge_road.conditions import ROAD_CLASSES
from edge_road.export.half import to_float16
from edge_road.export.last_bias import without_mean_error
from edge_road.export.sensitivity import logits_of

IMAGES_NHWC = noise_images(40)
OTHER = conv_bytes(seed=1)
"""another model in the place of a badly quantised one"""


@pytest.mark.parametrize("content", [OTHER, to_float16(OTHER, {})], ids=["float32", "float16"])
def test_the_mean_error_is_gone_and_nothing_else_changes(content: bytes) -> None:
    wanted_NC = logits_of(conv_bytes(), ROAD_CLASSES, IMAGES_NHWC)
    before_NC = logits_of(content, ROAD_CLASSES, IMAGES_NHWC)
    after_NC = logits_of(
        without_mean_error(conv_bytes(), content, ROAD_CLASSES, IMAGES_NHWC), ROAD_CLASSES, IMAGES_NHWC
    )
    scale = float(np.abs(wanted_NC).max())
    assert np.abs((wanted_NC - before_NC).mean(axis=0)).max() > 0.01 * scale
    np.testing.assert_allclose(after_NC.mean(axis=0), wanted_NC.mean(axis=0), atol=0.002 * scale)
    np.testing.assert_allclose(np.ptp(after_NC - before_NC, axis=0), 0, atol=0.002 * scale)


def test_a_model_without_a_last_bias_stays_as_it_is() -> None:
    model = conv_graph(seed=1)
    del model.graph.node[11].input[2]
    content = model.SerializeToString()
    assert without_mean_error(conv_bytes(), content, ROAD_CLASSES, IMAGES_NHWC) == content
