"""`edge-road data`: look at a data set before training, or pack it into shards."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

from edge_road import workspace
from edge_road.datasets.counts import count_table
from edge_road.datasets.guess import guess_data
from edge_road.datasets.opening import open_dataset
from edge_road.errors import ConfigError
from edge_road.files import check_writable
from edge_road.logs import safe_text
from edge_road.recipe_data import DataSettings, RscdData
from edge_road.training.command_line import whole_number
from edge_road.training.data_check.findings import KINDS, CheckReport
from edge_road.training.recipes import Wishes, read_recipe

EXAMPLES = """\
examples:
  edge-road data check photos           class folders, RSCD, a table or shards
  edge-road data check --recipe road_small
  edge-road data counts ../data/RSCD    class counts, of RSCD by both splits
  edge-road data pack photos packed     WebDataset shards with the same samples
"""


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = chosen.run
    return run(chosen)


def _check(chosen: argparse.Namespace) -> int:
    from edge_road.training.data_check.checking import check_data
    from edge_road.training.data_check.page import write_check

    settings = _settings(chosen)
    folder = chosen.out or workspace.home() / "reports" / f"data_check_{_name(settings)}"
    check_writable(folder)
    with Counter() as progress:
        report, dataset = check_data(settings, limit=chosen.limit, workers=chosen.workers, progress=progress)
    paths = write_check(folder, report, dataset)
    print(_text(report), count_table(dataset), "", *paths, sep="\n")
    return 2 if report.refused else 0


def _counts(chosen: argparse.Namespace) -> int:
    settings = _settings(chosen)
    choices = [settings]
    if isinstance(settings, RscdData):
        choices = [settings.model_copy(update={"split": split}) for split in ("official", "per_day")]
    for choice in choices:
        title = f"split: {choice.split}\n" if isinstance(choice, RscdData) else ""
        print(title + count_table(open_dataset(choice)), end="\n\n")
    return 0


def _pack(chosen: argparse.Namespace) -> int:
    from edge_road.training.data_pack import pack

    dataset = open_dataset(_settings(chosen))
    with Counter() as progress:
        packed = pack(dataset, chosen.out, shard_bytes=chosen.shard_mb * 10**6, progress=progress)
    total = sum(shard.samples for shard in packed.shards)
    print(f"{total:,} pictures in {len(packed.shards)} shards: {chosen.out}")
    print('to train on them: [data] kind = "shards", or --data with this folder')
    return 0


def _settings(chosen: argparse.Namespace) -> DataSettings:
    if (chosen.path is None) == (chosen.recipe is None):
        raise ConfigError("name the data set: its path, or --recipe and a recipe", where="edge-road data")
    if chosen.recipe is not None:
        return read_recipe(Wishes(recipe=chosen.recipe)).data
    return guess_data(chosen.path.expanduser().resolve())


def _name(settings: DataSettings) -> str:
    return str(getattr(settings, "path", Path(settings.kind)).stem) or settings.kind


def _text(report: CheckReport) -> str:
    lines = [f"{report.pictures:,} pictures, {report.bad_files} bad ({report.bad_share:.2%})"]
    for kind, found in report.by_kind.items():
        level, title = KINDS[kind]
        lines.append(f"  {level:<8}{len(found):>6}  {title}")
        lines += [f"{'':18}{safe_text(finding.file)}: {safe_text(finding.reason)}" for finding in found[:3]]
    if report.refused:
        lines.append(
            f"refused: at most {report.limit:.1%} of the pictures may be bad, and no class as a whole"
        )
    return "\n".join([*lines, *(textwrap.fill(note, 80) for note in report.notes), ""])


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a share from 0 to 1, not {text}") from None
    if not 0.0 <= share <= 1.0:
        raise argparse.ArgumentTypeError(f"0 to 1, not {text}")
    return share


class Counter:
    """How many pictures are done, on a terminal's last line."""

    def __enter__(self) -> Counter:
        self._done = 0
        return self

    def __call__(self, done: int) -> None:
        before, self._done = self._done, self._done + done
        if sys.stderr.isatty() and self._done // 100 > before // 100:
            print(f"\r{self._done:,} pictures", end="", file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        if sys.stderr.isatty() and self._done >= 100:
            print(file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="edge-road data",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="check | counts | pack")
    check = _subcommand(
        commands, "check", _check, "list what is wrong, file by file; exit code 2 above --limit"
    )
    check.add_argument(
        "--limit", type=_share, default=0.01, metavar="SHARE", help="of bad files (default 0.01)"
    )
    check.add_argument(
        "--out", type=Path, metavar="DIR", help="for the page and the JSON (default: reports/data_check_NAME)"
    )
    check.add_argument("--workers", type=whole_number(1), default=len(os.sched_getaffinity(0)), metavar="N")
    _subcommand(commands, "counts", _counts, "print the class counts of every split")
    pack = _subcommand(commands, "pack", _pack, "write WebDataset shards with the same samples")
    pack.add_argument("out", type=Path, metavar="DIR", help="a folder that does not exist yet")
    pack.add_argument("--shard-mb", type=whole_number(1), default=256, metavar="MB")
    return parser


def _subcommand(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    run: Callable[[argparse.Namespace], int],
    text: str,
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=text)
    command.add_argument("path", type=Path, nargs="?", metavar="PATH", help="the data set")
    command.add_argument("--recipe", metavar="FILE", help="the [data] of a recipe, instead of PATH")
    command.set_defaults(run=run)
    return command
