"""What a check can find, how grave it is, and the verdict over all findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Level = Literal["error", "warning", "note"]

# kind -> (level, title); an error makes the file a bad one, or the whole set when it names no picture
KINDS: dict[str, tuple[Level, str]] = {
    "label_typo": ("error", "Names that were probably meant to be a class"),
    "empty_class": ("error", "Classes without pictures"),
    "too_few": ("error", "Classes too small to be split"),
    "no_label": ("error", "Entries without a usable label"),
    "empty_file": ("error", "Files of zero bytes"),
    "unreadable": ("error", "Files that cannot be read"),
    "cmyk": ("error", "Colours of print (CMYK)"),
    "huge": ("error", "Pictures that are too large to be decoded"),
    "tiny": ("error", "Pictures that are too small to show a road"),
    "leak": ("error", "The same picture in two splits"),
    "near_leak": ("error", "Nearly the same picture in two splits"),
    "label_conflict": ("error", "The same picture with two labels"),
    "large": ("warning", "Very large pictures, slow to decode"),
    "blank": ("warning", "Pictures of a single colour"),
    "deep": ("warning", "More than 8 bits a colour (reduced to 8 when read)"),
    "turned": ("warning", "Turned or mirrored by EXIF (made upright when read)"),
    "duplicate": ("warning", "The same picture twice in one split"),
    "near_duplicate": ("warning", "Nearly the same picture twice in one split"),
    "unknown_folder": ("warning", "Folders that are no class and are passed by"),
    "loose": ("warning", "Pictures in no folder of a class that are passed by"),
    "foreign_format": ("warning", "Pictures and videos that are not read and are passed by"),
    "imbalance": ("warning", "Classes of very different size"),
    "label_suspect": ("note", "Labels to look at, the most doubtful first: a ranking, not a verdict"),
}
OF_THE_SET = frozenset({"label_typo", "empty_class", "too_few"})


@dataclass(frozen=True)
class Finding:
    kind: str
    file: str
    """a picture's key, or the class or folder"""
    reason: str
    other: str | None = None
    """the picture that it is compared with"""

    @property
    def level(self) -> Level:
        return KINDS[self.kind][0]

    def as_json(self) -> dict[str, str | None]:
        return {
            "kind": self.kind,
            "level": self.level,
            "file": self.file,
            "other": self.other,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class CheckReport:
    source: str
    pictures: int
    counts: dict[str, dict[str, int]]
    """split -> class -> pictures"""
    findings: tuple[Finding, ...]
    limit: float
    notes: tuple[str, ...] = ()

    @property
    def bad_files(self) -> int:
        errors = {f.file for f in self.findings if f.level == "error" and f.kind not in OF_THE_SET}
        return len(errors)

    @property
    def bad_share(self) -> float:
        return self.bad_files / max(1, self.pictures)

    @property
    def set_errors(self) -> int:
        return sum(finding.kind in OF_THE_SET for finding in self.findings)

    @property
    def refused(self) -> bool:
        return self.bad_share > self.limit or self.set_errors > 0

    @property
    def by_kind(self) -> dict[str, list[Finding]]:
        """In the order of KINDS, those that were found."""
        groups: dict[str, list[Finding]] = {kind: [] for kind in KINDS}
        for finding in self.findings:
            groups[finding.kind].append(finding)
        return {kind: found for kind, found in groups.items() if found}

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "source": self.source,
            "pictures": self.pictures,
            "bad_files": self.bad_files,
            "bad_share": self.bad_share,
            "limit": self.limit,
            "refused": self.refused,
            "counts": self.counts,
            "found": dict(Counter(finding.kind for finding in self.findings)),
            "notes": list(self.notes),
            "findings": [finding.as_json() for finding in self.findings],
        }


def sorted_findings(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """By kind, then by file; suspects keep their rank."""
    order = list(KINDS)
    return tuple(
        sorted(findings, key=lambda f: (order.index(f.kind), "" if f.kind == "label_suspect" else f.file))
    )
