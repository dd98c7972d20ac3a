"""Networks that do not survive the way to ONNX are told of by name, with what to do."""

from __future__ import annotations

import pytest
from torch import Tensor, nn

from edge_road.errors import BackendError
from edge_road.export.onnx_graph import export_graph
from edge_road.nn.backbone import Backbone
from edge_road.nn.model import RoadModel
from edge_road.preprocess import Preprocessing


class Pooled(nn.Module):
    def forward(self, images_BCHW: Tensor) -> Tensor:
        return images_BCHW.mean((2, 3))


class DecidesByItsInput(Pooled):
    def forward(self, images_BCHW: Tensor) -> Tensor:
        pooled_BC = super().forward(images_BCHW)
        return 2 * pooled_BC if pooled_BC.sum() > 0 else pooled_BC


class Sorts(Pooled):
    def forward(self, images_BCHW: Tensor) -> Tensor:
        return super().forward(images_BCHW).sort(dim=1)[0]


@pytest.mark.parametrize(
    ("module", "what"), [(DecidesByItsInput(), "cannot export"), (Sorts(), "not allowed")]
)
def test_a_network_that_cannot_be_exported_is_named(
    module: nn.Module, what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    backbone = Backbone("my_network", module, 3, (0.5, 0.5, 0.5), (0.2, 0.2, 0.2))
    model = RoadModel(backbone, features=4, classes=3)
    with pytest.raises(BackendError, match=what) as caught:
        export_graph(model, Preprocessing(height=16, width=16), ("dry", "wet", "icy"), 0, "my_network")
    details = caught.value.details
    assert "my_network" in details["where"]
    assert "\n" not in details["got"]
    assert "model.backbone" in details["to do"]
    assert capfd.readouterr().err == ""
