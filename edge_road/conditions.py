"""Road states, the 27 RSCD labels, and how a list of classes adds up to a state."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from edge_road.errors import DataError, suggestion

if TYPE_CHECKING:  # a daemon's supervisor names states without numpy: it must speak at once
    import numpy as np
    import numpy.typing as npt

STATES = ("dry", "wet", "icy")
UNKNOWN = "unknown"

# `icy` covers every slippery white or glazed surface, snow included.
STATE_OF_FRICTION = {
    "dry": "dry",
    "wet": "wet",
    "water": "wet",
    "fresh_snow": "icy",
    "melted_snow": "icy",
    "ice": "icy",
}
PAVED = ("asphalt", "concrete")
LOOSE = ("mud", "gravel")
UNEVENNESS = ("smooth", "slight", "severe")


@dataclass(frozen=True)
class RscdLabel:
    """Snow and ice hide the material; mud and gravel have no graded unevenness."""

    friction: str
    material: str | None = None
    unevenness: str | None = None

    @property
    def name(self) -> str:
        parts = (self.friction, self.material, self.unevenness)
        return "-".join(part for part in parts if part)

    @property
    def state(self) -> str:
        return STATE_OF_FRICTION[self.friction]


def _all_rscd_labels() -> tuple[RscdLabel, ...]:
    covered = [f for f, state in STATE_OF_FRICTION.items() if state != "icy"]
    labels = [RscdLabel(f, m, u) for f in covered for m in PAVED for u in UNEVENNESS]
    labels += [RscdLabel(f, m) for f in covered for m in LOOSE]
    labels += [RscdLabel(f) for f, state in STATE_OF_FRICTION.items() if state == "icy"]
    return tuple(labels)


RSCD_LABELS = _all_rscd_labels()
RSCD_CLASSES = tuple(label.name for label in RSCD_LABELS)
_LABEL_BY_NAME = {label.name: label for label in RSCD_LABELS}
# The data set's folders join the parts with `_` where its file names use `-`.
_LABEL_BY_FOLDER = {label.name.replace("-", "_"): label for label in RSCD_LABELS}


def rscd_label(text: str) -> RscdLabel:
    """The label behind `wet-asphalt-smooth` (file name) or `wet_asphalt_smooth` (folder)."""
    label = _LABEL_BY_NAME.get(text) or _LABEL_BY_FOLDER.get(text)
    if label is None:
        raise DataError(
            "not one of the 27 RSCD labels",
            got=repr(text),
            expected="friction[-material[-unevenness]], e.g. wet-asphalt-smooth or fresh_snow",
            fix=suggestion(text, _LABEL_BY_NAME),
        )
    return label


@dataclass(frozen=True)
class RscdName:
    """What an RSCD file name tells: the second and serial of the picture, and its label."""

    taken: str
    serial: str
    label: RscdLabel

    @property
    def day(self) -> str:
        return self.taken[:8]


_RSCD_NAME = re.compile(
    r"(?P<taken>20\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[01]\d|2[0-3])[0-5]\d[0-5]\d)"
    r"(?P<serial>\d{1,4})-(?P<label>[a-z_]+(?:-[a-z_]+)*)\.(?:jpg|jpeg|png)",
    re.ASCII,
)


def parse_rscd_name(file_name: str) -> RscdName:
    """`202201252341355-wet-asphalt-smooth.jpg` -> time, serial and label."""
    match = _RSCD_NAME.fullmatch(file_name)
    if match is None:
        raise DataError(
            "not an RSCD file name",
            got=repr(file_name),
            expected="YYYYMMDDhhmmss + 1 to 4 digits + '-' + label + '.jpg'",
        )
    return RscdName(match["taken"], match["serial"], rscd_label(match["label"]))


def state_of(class_name: str) -> str:
    """The road state that a class stands for; a state's own name stands for itself."""
    if class_name in STATES:
        return class_name
    if class_name in STATE_OF_FRICTION:
        return STATE_OF_FRICTION[class_name]
    try:
        return rscd_label(class_name).state
    except DataError:
        known = (*STATES, *STATE_OF_FRICTION, *RSCD_CLASSES)
        raise DataError(
            "no road state is known for this class",
            got=repr(class_name),
            expected="dry, wet, icy, an RSCD friction or an RSCD label",
            fix=suggestion(class_name, known),
        ) from None


CIFAR10_CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
SVHN_CLASSES = tuple("0123456789")
# The papers' other data sets, to repeat their tables: their classes stand for no road state.
NOT_ROADS = (CIFAR10_CLASSES, SVHN_CLASSES)


@dataclass(frozen=True)
class ClassList:
    """The ordered classes of a model; the order is that of its outputs."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(set(self.names)) != len(self.names) or len(self.names) < 2:
            raise DataError(
                "a model needs two or more different classes", got=", ".join(self.names) or "none"
            )
        for name in () if self.names in NOT_ROADS else self.names:
            state_of(name)

    def __len__(self) -> int:
        return len(self.names)

    def index(self, name: str) -> int:
        return self.names.index(name)

    @cached_property
    def states(self) -> tuple[str, ...]:
        """The state of each class, in class order."""
        if self.names in NOT_ROADS:
            return (UNKNOWN,) * len(self.names)
        return tuple(state_of(name) for name in self.names)

    @cached_property
    def _membership_CS(self) -> npt.NDArray[np.float64]:
        import numpy as np

        return np.array([[float(state == s) for s in STATES] for state in self.states])

    def state_probabilities(self, probabilities_NC: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
        """Add the probabilities of each state's classes (not: map the arg-max)."""
        import numpy as np

        return np.asarray(probabilities_NC, dtype=np.float64) @ self._membership_CS


ROAD_CLASSES = ClassList(STATES)
