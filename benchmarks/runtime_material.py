"""The same work for everyone: one network as a bundle, as a plain ONNX file and as weights, and one video."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
VIDEOS = ROOT.parent / "shared" / "data" / "video"
SIZE = (540, 960)
FRAMES = 120
BRIGHTNESS = "brightness"

DECODED_FRAMES = 200


@dataclass(frozen=True)
class Material:
    home: Path

    @property
    def bundle(self) -> Path:
        """for us: uint8 NHWC in, normalised within the graph"""
        return self.home / "bundles" / "road"

    @property
    def plain_model(self) -> Path:
        """the same layers and weights for the others: float NCHW in, probabilities out"""
        return self.home / "plain.onnx"

    @property
    def weights(self) -> Path:
        return self.home / "weights.safetensors"

    @property
    def video(self) -> Path:
        return self.home / "drive.mp4"


def write_models(material: Material, backbone: str, side: int) -> None:
    """Weights are random: they do not change the time. `brightness` is no network, and needs no torch."""
    if backbone == BRIGHTNESS:
        return _write_bundle(material.bundle, None, side, features=3)
    import torch
    from safetensors.torch import save_file

    from edge_road.conditions import STATES
    from edge_road.export.onnx_graph import export_graph
    from edge_road.nn.model import build_model
    from edge_road.preprocess import Preprocessing
    from edge_road.recipe import ModelSettings

    torch.manual_seed(0)
    model = build_model(ModelSettings(backbone=backbone), classes=len(STATES)).eval()
    content = export_graph(model, Preprocessing(height=side, width=side), STATES)
    _write_bundle(material.bundle, content, side, features=128)
    save_file(model.state_dict(), material.weights)
    _write_plain_model(material.plain_model, model, side)


def _write_bundle(path: Path, content: bytes | None, side: int, features: int) -> None:
    sys.path.insert(0, str(ROOT / "tests"))
    from small_bundles import brightness_model, write_small_bundle

    size = (side, side)
    write_small_bundle(path, content or brightness_model(size=size), size=size, features=features)


def _write_plain_model(path: Path, model: Any, side: int) -> None:
    """As Ultralytics and OpenCV want it: one float picture in [0, 1]; the metadata is what predict reads."""
    import onnx
    import torch

    from edge_road.conditions import STATES
    from edge_road.export.onnx_graph import OPSET

    class Probabilities(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, images_NCHW: torch.Tensor) -> torch.Tensor:
            return torch.softmax(self.model(images_NCHW).logits_BC, dim=1)

    example = (torch.zeros(1, 3, side, side),)
    program = torch.onnx.export(
        Probabilities().eval(), example, dynamo=True, opset_version=OPSET, external_data=False, verbose=False
    )
    assert program is not None
    proto = program.model_proto
    facts = {"task": "classify", "stride": "1", "batch": "1", "imgsz": str([side, side])}
    names = str(dict(enumerate(STATES)))
    onnx.helper.set_model_props(proto, {**facts, "names": names, "channels": "3"})
    path.write_bytes(proto.SerializeToString())


def write_video(path: Path, fps: int, seconds: float) -> str:
    """The dash-camera drive where it is, else a rendered one, again and again; says which."""
    source = next(iter(sorted(VIDEOS.glob("*carnd*.mp4"))), None)
    if source is None:
        source = path.with_name("rendered.mp4")
        _render(source)
    _repeat(source, path, fps, round(fps * seconds))
    return source.name


def write_decoded(video: Path, path: Path, fps: int) -> None:
    """The first pictures of a video as a CSI camera gives them: decoded, in the planes of YUV 4:2:0."""
    import av

    with av.open(str(video)) as opened, av.open(str(path), "w", format="nut") as out:
        given = opened.streams.video[0]
        stream: Any = out.add_stream("rawvideo", rate=fps)
        stream.width, stream.height, stream.pix_fmt = given.width, given.height, "yuv420p"
        for number, picture in enumerate(islice(opened.decode(given), DECODED_FRAMES)):
            picture.pts, picture.time_base = number, Fraction(1, fps)
            out.mux(stream.encode(picture.reformat(format="yuv420p")))
        out.mux(stream.encode(None))


def _repeat(source: Path, target: Path, fps: int, frames: int) -> None:
    """Packets are copied as they are, only their times change: nobody decodes anything else."""
    import av

    with av.open(str(target), "w") as out:
        stream: Any = None
        written = 0
        while written < frames:
            with av.open(str(source)) as opened:
                video = opened.streams.video[0]
                stream = stream or out.add_stream_from_template(video)
                ticks = round(1 / (float(video.average_rate or 25) * float(video.time_base or 1)))
                last = written
                for packet in _packets(opened):
                    step = round(1 / (fps * float(video.time_base or 1)))
                    packet.dts = (packet.dts // ticks + written) * step
                    packet.pts = (packet.pts // ticks + written) * step
                    packet.duration, packet.stream = step, stream
                    out.mux(packet)
                    last += 1
                written = last


def _packets(container: Any) -> Iterator[Any]:
    return (packet for packet in container.demux(video=0) if packet.dts is not None)


def _render(path: Path) -> None:
    """A rendered road that the camera pans over."""
    import av

    from edge_road.synthetic.scenes import render_scene

    height, width = SIZE
    wide = render_scene("dry", np.random.default_rng(0), height, 2 * width)
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("mpeg4", rate=25)
        stream.height, stream.width, stream.bit_rate = height, width, 8_000_000
        for number in range(FRAMES):
            view = np.ascontiguousarray(wide[:, 4 * number : 4 * number + width])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(view, format="rgb24")))
        container.mux(stream.encode())
