"""What a requirement and all that it needs take on disk, as installed here; prints megabytes.

python -m benchmarks.package_size 'edge-road[vehicle]'
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def installed_mb(requirements: Sequence[str]) -> float:
    found = {dist.metadata["Name"]: dist for dist in _closure([Requirement(text) for text in requirements])}
    return sum(map(_bytes_of, found.values())) / 1e6


def _closure(wanted: list[Requirement]) -> Iterator[Distribution]:
    seen: set[tuple[str, frozenset[str]]] = set()
    while wanted:
        requirement = wanted.pop()
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        try:
            dist = distribution(requirement.name)
        except PackageNotFoundError:  # optional on this system
            continue
        yield dist
        for text in dist.requires or ():
            needed = Requirement(text)
            extras = requirement.extras or {""}
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                wanted.append(needed)


def _bytes_of(dist: Distribution) -> int:
    """An editable install lists no modules; they are counted where they lie."""
    sizes = [_size(Path(str(file.locate()))) for file in dist.files or ()]
    if canonicalize_name(dist.metadata["Name"]) == "edge-road":
        sizes += [_size(path) for path in (Path(__file__).parents[1] / "edge_road").rglob("*.[phtjc]*")]
    return sum(sizes)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


if __name__ == "__main__":
    print(installed_mb(sys.argv[1:]))
