"""What a soak found, and which promises it broke."""

from __future__ import annotations

from dataclasses import dataclass, field

from daemon_harness import crowding


@dataclass(frozen=True)
class Sample:
    at_s: float
    rss_mb: float
    descriptors: int
    threads: int


@dataclass(frozen=True)
class Soaked:
    seconds: float
    samples: list[Sample]
    states: list[str]
    longest_silence_s: float
    seqs_in_a_row: bool
    missing: dict[str, list[int]]
    events: int
    repeated: int
    troubles: dict[str, int]
    exit_code: int
    said: list[str] = field(default_factory=list)

    @property
    def slope_mb_per_hour(self) -> float:
        """Least squares over the second half: the first fills caches."""
        half = self.samples[len(self.samples) // 2 :]
        mean_t = sum(s.at_s for s in half) / len(half)
        mean_m = sum(s.rss_mb for s in half) / len(half)
        above = sum((s.at_s - mean_t) * (s.rss_mb - mean_m) for s in half)
        return 3600 * above / sum((s.at_s - mean_t) ** 2 for s in half)

    @property
    def grown_mb(self) -> float:
        """Over the last third, as the mean of its last samples less that of its first."""
        third = [sample.rss_mb for sample in self.samples[-len(self.samples) // 3 :]]
        few = max(1, len(third) // 5)
        return sum(third[-few:]) / few - sum(third[:few]) / few

    def broken(self) -> list[str]:
        """Which promises were not kept."""
        settled, last = self.samples[len(self.samples) // 2], self.samples[-1]
        kept = {
            "exit code 0": self.exit_code == 0,
            "every trouble came": all(self.troubles.values()),
            "no event missing": not self.missing,
            "no message missing": self.seqs_in_a_row,
            "no state that the road never had": set(self.states) <= {"dry", "unknown"},
            "no traceback": "Traceback" not in self.said,
            "the full disk was felt and left": "disk full" not in self.troubles
            or {"kept in memory", "stored again"} <= set(self.said),
            "never silent": self.longest_silence_s <= 1.25 * crowding(),
            "descriptors flat": last.descriptors <= settled.descriptors + 4,
            "threads flat": last.threads <= settled.threads + 1,
            "memory flat": self.grown_mb <= 1.0,
            "memory below 70 MB": max(sample.rss_mb for sample in self.samples) <= 70.0,
        }
        return [promise for promise, is_kept in kept.items() if not is_kept]

    def __str__(self) -> str:
        first, last = self.samples[len(self.samples) // 2], self.samples[-1]
        troubles = ", ".join(f"{count} x {name}" for name, count in self.troubles.items())
        missing = sum(map(len, self.missing.values()))
        return (
            f"{self.seconds:.0f} s: {troubles}\n"
            f"{self.events} events, {missing} missing, {self.repeated} repeated\n"
            f"RSS {first.rss_mb:.1f} -> {last.rss_mb:.1f} MB ({self.slope_mb_per_hour:+.1f} MB an hour), "
            f"most {max(sample.rss_mb for sample in self.samples):.1f} MB\n"
            f"descriptors {first.descriptors} -> {last.descriptors}, "
            f"threads {first.threads} -> {last.threads}\n"
            f"longest silence {self.longest_silence_s:.2f} s, states {self.states}, exit {self.exit_code}\n"
            f"broken promises: {', '.join(self.broken()) or 'none'}"
        )
