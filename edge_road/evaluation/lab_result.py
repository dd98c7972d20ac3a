"""What only a torch model can tell: attacks, curvature, thickness, flatness, feature geometry."""

from __future__ import annotations

from edge_road.config import StrictModel


class AttackScore(StrictModel):
    name: str
    """e.g. `PGD-7 Linf 8/255`"""
    eps: float
    """for pixels in [0, 1]; an L2 radius is scaled from 32x32x3 to the size of the pictures"""
    steps: int
    accuracy: float


class CountGroup(StrictModel):
    """Figure 9: pictures that were right in so many noisy runs."""

    times_right: int
    pictures: int
    curvature: float


class CurvatureResult(StrictModel):
    """Eq. 21, K = 20 directions, t = 1e-2."""

    median: float
    lowest: tuple[float, float, float, float, float]
    """least, quartiles and largest of the 90 % of least curvature (Figure 10)"""
    mean_of_lowest: float
    """of the same 90 %; a few steep pictures count here, and not in the median"""
    sigma: float
    """of the noise below, pixels in [0, 1]"""
    noisy_runs: int
    retained: tuple[tuple[float, float], ...]
    """(portion of least curvature, accuracy under noise), Figure 8"""
    groups: tuple[CountGroup, ...]
    correlation: float | None
    """Pearson's, of times right and mean curvature; none below two groups"""


class SurfaceResult(StrictModel):
    """Figure 11: the loss around one picture."""

    picture: int
    """its position in the test set that a report is about"""
    label: str
    offsets: tuple[float, ...]
    loss: tuple[tuple[float, ...], ...]
    """rows: along the gradient; columns: across it"""


class ThicknessResult(StrictModel):
    mean: float
    pictures: int
    """of those attacked: right before and wrong after, so that there is a boundary between"""


class GeometryResult(StrictModel):
    dispersion: dict[str, float | None]
    """by class: the largest distance of two features (Definition 3.1); none without pictures"""
    margin: dict[str, float | None]
    """by class: the smallest signed distance of a picture to a boundary (Definition 5.1)"""
    median_margin: float
    centroid_margin: dict[str, float | None]
    """by class: of its centroid; training asks for delta_d"""
    delta_v: float
    within: float
    """share of the pictures within delta_v of their class's centroid"""
    stability: float
    """mean eta of Definition 6.1, with delta = 2 delta_v"""
    sigma: float


class LabResult(StrictModel):
    pictures: int
    """drawn from the test set by the seed of the report"""
    attacks: tuple[AttackScore, ...]
    curvature: CurvatureResult
    surface: SurfaceResult
    thickness: ThicknessResult | None
    """none where no attack crossed a boundary"""
    flatness: tuple[tuple[float, float], ...]
    """(step in the weights, as a share of their length; mean loss)"""
    geometry: GeometryResult
