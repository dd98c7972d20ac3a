"""`make bench-quality`: our recipe beside timm's and Ultralytics' default training, to the end.

python -m benchmarks.quality [--data DIR] [--weights FILE] [--seeds 2] [--minutes 110] [--out DIR]

The same pictures, split, backbone, first weights and number of pictures seen; one laboratory judges all
of them on the same test pictures, as trained and as INT8. Interrupted, the same command continues. A
further seed begins only when there is time for it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks import machine, pictures
from benchmarks.outcome import Claim, Outcome, Table, with_provenance
from benchmarks.peers.setup import version_of_peer
from benchmarks.quality_runs import OURS, PEER, ROOT, Contest, command, render_roads, train_all
from benchmarks.rounds import Spread
from benchmarks.summary import write_summary
from edge_road import workspace
from edge_road.bundle import MANIFEST_FILE, load_bundle
from edge_road.clock import SystemClock
from edge_road.evaluation.report import Entry, Report, load_report
from edge_road.evaluation.scores import Score

PHOTOGRAPHS = ROOT.parent / "shared" / "data" / "road3"
WEIGHTS = ROOT.parent / "shared" / "weights" / "tf_mobilenetv3_small_100.safetensors"
GROUPS = {
    "noise": ("gaussian_10", "gaussian_30", "gaussian_40", "gaussian_60"),
    "occlusion": ("occlusion", "stripes", "down_up"),
}
COLUMNS = (
    "clean",
    "noise",
    "occlusion",
    "combinations",
    "mean",
    "danger",
    "danger, mean",
    "ECE",
    "INT8 clean",
    "INT8 mean",
)
Figures = dict[str, float]


@dataclass(frozen=True)
class Effort:
    perturbations: str = "paper"
    runs: int = 10
    int8: bool = True


@with_provenance
def measure(contest: Contest, effort: Effort, seeds: int, minutes: float) -> Outcome:
    clock = SystemClock()
    began_ns, reports, continued = clock.mono_ns(), [], contest.finished(OURS)
    for seed in range(seeds):
        spent_s = (clock.mono_ns() - began_ns) / 1e9
        if seed and spent_s * (seed + 1) / seed > 60 * minutes:
            print(f"  no time for another seed after {seed}", flush=True)
            break
        reports.append(judge(replace(contest, seed=seed), effort))
    outcome = _outcome(reports, contest, effort)
    if continued:
        outcome.notes.append("continued: what an earlier call had finished is not in the time it took")
    return outcome


def judge(contest: Contest, effort: Effort) -> Report:
    """All runs and their bundles in one report, ours first; made once."""
    out = contest.home / f"seed{contest.seed}" / "report"
    if not (out / "report.json").is_file():
        runs = train_all(contest)
        bundles = [_bundle(run) for run in runs.values()] if effort.int8 else []
        subjects = [*runs.values(), *(bundle for bundle in bundles if _has_int8(bundle))]
        print(f"  judging, seed {contest.seed}", flush=True)
        options = ["--perturbations", effort.perturbations, "--runs", str(effort.runs), "--out", str(out)]
        options += ["--precision", "int8"]
        command([sys.executable, "training/evaluate_road.py", *map(str, subjects), *options])
    return load_report(out / "report.json")


def _bundle(run: Path) -> Path:
    """There is none where the gate refused everything."""
    bundle = run.parent / "bundles" / run.name
    if not (bundle / MANIFEST_FILE).is_file():
        print(f"  export: {run.name}", flush=True)
        command([sys.executable, "export/to_trt.py", str(run), "--out", str(bundle)])
    return bundle


def _has_int8(bundle: Path) -> bool:
    return (bundle / MANIFEST_FILE).is_file() and "int8" in load_bundle(bundle).manifest.artefacts


def _outcome(reports: Sequence[Report], contest: Contest, effort: Effort) -> Outcome:
    found = [_by_rival(report) for report in reports]
    rivals = list(found[0])
    recipe = contest.recipe
    columns = COLUMNS if effort.int8 else COLUMNS[:-2]
    rows = [
        (rival, *(_cell([seed[rival] for seed in found], column) for column in columns)) for rival in rivals
    ]
    return Outcome(
        name="quality",
        title="Quality: our recipe beside the peers' default training",
        method=(
            f"{recipe.model.backbone} at {recipe.input.height} x {recipe.input.width}, {len(reports)} "
            f"seed(s), {reports[0].entries[0].evaluation.images} test pictures, {effort.runs} runs of every "
            "random perturbation; percent, mean over seeds ± standard deviation. All saw as many pictures: "
            "the peers twice the epochs, because ours shows each picture clean and noisy. Danger: icy "
            "called dry or wet."
        ),
        tables=[Table("Percent", ("", *columns), rows)],
        claims=_claims(reports, found, rivals),
        figures={"seeds": found, "epochs": recipe.training.epochs},
        picture=pictures.bars(
            {
                column + ", %": {r: Spread.of([seed[r][column] for seed in found]) for r in rivals}
                for column in ("clean", "noise", "mean", "danger, mean")
            }
        ),
        versions=machine.versions(("edge-road", "torch", "timm", "albumentations", "onnxruntime"))
        | ({"ultralytics": version_of_peer()} if PEER in rivals else {}),
    )


def _by_rival(report: Report) -> dict[str, Figures]:
    """Figures of each run in percent, with those of its INT8 model where the gate let it pass."""
    figures = {e.subject.name: _figures(e) for e in report.entries if e.subject.kind == "run"}
    for entry in report.entries:
        if entry.subject.kind == "bundle" and "int8" in entry.evaluation.artefact:
            whole = _figures(entry)
            figures[entry.subject.name] |= {"INT8 clean": whole["clean"], "INT8 mean": whole["mean"]}
    return figures


def _figures(entry: Entry) -> Figures:
    scores = {score.name: score for score in entry.evaluation.perturbed}
    clean = entry.evaluation.clean
    groups = {name: [scores[n] for n in names if n in scores] for name, names in GROUPS.items()}
    groups["combinations"] = [score for name, score in scores.items() if "+" in name]
    groups["mean"] = list(scores.values())
    accuracies = {name: _percent([s.accuracy for s in some]) for name, some in groups.items() if some}
    return {
        "clean": 100 * clean.accuracy,
        **accuracies,
        "danger": _danger([clean]),
        "danger, mean": _danger(list(scores.values())),
        "ECE": _percent([] if clean.calibration_error is None else [clean.calibration_error]),
    }


def _danger(scores: list[Score]) -> float:
    return _percent([score.danger.rate for score in scores if score.danger])


def _percent(shares: list[float]) -> float:
    return 100 * float(np.mean(shares)) if shares else float("nan")


def _cell(found: list[Figures], column: str) -> str:
    """Without a figure in some seed: the gate refused the model there; a dash: it cannot be told."""
    values = [figures[column] for figures in found if column in figures]
    if len(values) < len(found):
        return f"refused in {len(found) - len(values)} of {len(found)}"
    if np.isnan(values).any():
        return "–"
    spread = f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
    return f"{np.mean(values):.1f}{spread}"


def _claims(reports: Sequence[Report], found: list[dict[str, Figures]], rivals: list[str]) -> list[Claim]:
    claims = []
    for rival in rivals[1:]:
        ahead = Spread.of([seed[OURS]["mean"] - seed[rival]["mean"] for seed in found])
        claims.append(Claim(f"mean over perturbations: ours - {rival}, points", ahead, least=0.0))
        clean = Spread.of([seed[OURS]["clean"] - seed[rival]["clean"] for seed in found])
        bar = max(_error_bar(report, rival) for report in reports)
        claims.append(Claim(f"clean: ours - {rival}, points (limit: the error bar)", clean, least=-bar))
    return claims


def _error_bar(report: Report, rival: str) -> float:
    """Half of the 95 % interval of the paired bootstrap, in points."""
    position = [entry.subject.name for entry in report.entries].index(rival)
    (comparison,) = (each for each in report.comparisons if each.entry == position)
    difference = comparison.conditions["clean"]
    return 50 * (difference.high - difference.low)


def main() -> None:
    chosen = _parser().parse_args()
    contest = Contest(chosen.home.resolve(), *_material(chosen), 0, chosen.epochs, threads=chosen.threads)
    effort = Effort(runs=chosen.runs, int8=not chosen.no_int8)
    outcome = measure(contest, effort, chosen.seeds, chosen.minutes)
    print(outcome.markdown())
    out = chosen.out or ROOT / "docs" / "benchmarks" / f"{SystemClock().utc():%Y-%m-%d}"
    outcome.write(out)
    print(write_summary(out))


def _material(chosen: argparse.Namespace) -> tuple[Path, str]:
    """Real photographs and ImageNet weights where they are, else rendered roads, learnt from nothing."""
    data: Path = chosen.data or (
        PHOTOGRAPHS if PHOTOGRAPHS.is_dir() else render_roads(chosen.home / "rendered")
    )
    weights = chosen.weights or (str(WEIGHTS) if WEIGHTS.is_file() else "none")
    return data.resolve(), weights


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--data", type=Path, help="a folder with dry/ wet/ icy/ (default: rendered roads)")
    add("--weights", metavar="FILE", help="backbone weights (.safetensors), or: none")
    add("--seeds", type=int, default=2, metavar="N")
    add("--minutes", type=float, default=110.0, help="no further seed that would end later")
    add("--epochs", type=int, metavar="N", help="of ours; the others get twice as many")
    add("--runs", type=int, default=Effort.runs, metavar="N", help="of every random perturbation")
    add("--threads", type=int, default=2, metavar="N", help="of torch")
    add("--no-int8", action="store_true", help="leave out the export")
    add("--home", type=Path, default=workspace.home() / "comparisons" / "quality", help="where runs are kept")
    add("--out", type=Path, help="default: docs/benchmarks/<date>")
    return parser


if __name__ == "__main__":
    main()
