"""Input-loss curvature of several runs: measured once for each, kept, and pooled over all pictures."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from edge_road.datasets.prepared import Prepared
from edge_road.evaluation.metrics import wilson_interval
from edge_road.files import write_atomically
from edge_road.nn.curvature import DIRECTIONS, STEP
from edge_road.nn.predictor import load_model
from edge_road.training.lab import NOISY_RUNS, SIGMA, LabBench, curvature_result, curvatures, pixels
from edge_road.training.pool.members import Member
from edge_road.training.pool.result import CurvatureRow

Curvatures = npt.NDArray[np.float64]
Right = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CurvatureSample:
    """Of one run: its pictures, their curvature, and whether each noisy copy was right."""

    keys: tuple[str, ...]
    curvature_N: Curvatures
    right_RN: Right


def curvature_sample(member: Member, images: int, seed: int, kept: Path) -> CurvatureSample:
    """Read from the folder `kept` where the same run was measured on the same pictures before."""
    assert member.run is not None
    pictures = member.test_pictures(images, seed)
    method = ["curvature", DIRECTIONS, STEP, NOISY_RUNS, SIGMA]
    identity = json.dumps([*method, seed, member.dataset.digest, *pictures.keys])
    path = kept / f"{member.artefact.subject.sha256[:16]}.npz"
    if sample := _read(path, identity):
        return sample
    sample = _measured(member.run, pictures, member.artefact.predictor.classes.names, seed)
    _write(path, sample, identity)
    return sample


def _measured(run: Path, pictures: Prepared, classes: Sequence[str], seed: int) -> CurvatureSample:
    model = load_model(run).requires_grad_(False)
    labels_N = torch.from_numpy(pictures.labels_N)
    bench = LabBench(model, pixels(pictures.images_NHWC), labels_N, classes, seed)
    return CurvatureSample(pictures.keys, curvatures(bench).numpy(), bench.noisy[1].numpy())


def curvature_row(
    name: str, samples: Sequence[CurvatureSample], reference: Sequence[CurvatureSample]
) -> CurvatureRow:
    curvature_N = np.concatenate([sample.curvature_N for sample in samples])
    right_RN = np.concatenate([sample.right_RN for sample in samples], axis=1)
    share, low, high = _flatter(samples, reference) if samples is not reference else (None, None, None)
    return CurvatureRow(
        name=name,
        runs=len(samples),
        pictures=len(curvature_N),
        medians=tuple(float(np.median(sample.curvature_N)) for sample in samples),
        pooled=curvature_result(torch.from_numpy(curvature_N), torch.from_numpy(right_RN), SIGMA),
        flatter=share,
        flatter_low=low,
        flatter_high=high,
    )


def _flatter(
    samples: Sequence[CurvatureSample], reference: Sequence[CurvatureSample]
) -> tuple[float | None, float | None, float | None]:
    """Picture by picture, run by run; none where the two did not see the same pictures."""
    if [sample.keys for sample in samples] != [sample.keys for sample in reference]:
        return None, None, None
    ours, theirs = (np.concatenate([s.curvature_N for s in part]) for part in (samples, reference))
    hits = float((ours < theirs).sum())
    return hits / len(ours), *wilson_interval(hits, len(ours))


def _write(path: Path, sample: CurvatureSample, identity: str) -> None:
    content = io.BytesIO()
    np.savez_compressed(
        content,
        identity=np.array(identity),
        keys=np.array(sample.keys),
        curvature=sample.curvature_N,
        right=sample.right_RN,
    )
    write_atomically(path, content.getvalue())


def _read(path: Path, identity: str) -> CurvatureSample | None:
    if not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as file:
        if str(file["identity"]) != identity:
            return None
        return CurvatureSample(tuple(file["keys"].tolist()), file["curvature"], file["right"])
