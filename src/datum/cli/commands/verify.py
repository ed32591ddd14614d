"""`datum verify`: every record of a dataset checked, and what is wrong named by file and byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from datum.cli.arguments import FollowLinks
from datum.cli.running import BAD_DATA
from datum.cli.terminal import data, print_json, show_bar, talk
from datum.errors import count_of, format_bytes, inert, shell_word

if TYPE_CHECKING:
    from datum import VerifyReport

__all__ = ["command"]

MAX_SHOWN = 20  # problems of one file; --json has up to a hundred of each
_NOT_REPAIRED = frozenset(("index", "statistics"))  # where no record is lost


def command(
    path: Annotated[
        str, typer.Argument(help="A dataset, a folder of TFRecord files, a file or a pattern.")
    ],
    deep: Annotated[
        bool, typer.Option("--deep", help="Decode every image too, and compare statistics.")
    ] = False,
    threads: Annotated[
        int | None, typer.Option(min=1, help="How many work at once; one for each core.")
    ] = None,
    follow_links: FollowLinks = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write the report as JSON.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Say nothing: the exit code tells.")
    ] = False,
) -> None:
    """Check every record, and name what is damaged by file, record and byte.

    Checked are the CRCs of every record, counts, sizes and checksums of files, indexes, and that
    each record is what the schema says. Nothing is changed. The exit code is 0 if all is sound, 1
    if not.

        $ datum verify photos
        $ datum verify photos --deep
        $ datum verify "logs/*.tfrecord.gz" --json
    """
    from datum import reader

    check = partial(reader.verify, path, deep=deep, threads=threads, follow_links=follow_links)
    if quiet:
        report = check()
    else:
        with show_bar("verifying") as bar:
            report = check(progress=bar)
    if as_json:
        print_json([report.to_json()])
    elif not quiet:
        _show(report)
        _hint(report, path)
    if not report.is_sound:
        raise typer.Exit(BAD_DATA)


def _show(report: VerifyReport) -> None:
    console = data()
    for shard, problems in groupby(report.problems, lambda problem: problem.shard):
        console.print(Text(inert(shard), style="bold"), soft_wrap=True)
        _show_problems(console, list(problems))
        console.print()
    console.print(_summarize(report))
    for note in report.notes:
        console.print(Text(f"note: {inert(note)}", style="dim"), soft_wrap=True)


def _show_problems(console: Console, problems: Sequence[Any]) -> None:
    """A row for each: where in the file, what kind, and what was expected and got."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    has_places = any(problem.record is not None for problem in problems)
    table.add_column("")  # under the name of the file
    if has_places:
        table.add_column("record", justify="right", no_wrap=True)
        table.add_column("byte", justify="right", no_wrap=True)
    table.add_column("kind" if has_places else "", no_wrap=True)
    table.add_column("" if not has_places else "what", overflow="fold")
    table.show_header = has_places
    for problem in problems[:MAX_SHOWN]:
        places = [_number(problem.record), _number(problem.offset)] if has_places else []
        table.add_row("", *places, problem.kind, Text(inert(_describe(problem))))
    if len(problems) > MAX_SHOWN:
        more = f"{len(problems) - MAX_SHOWN:,} more are listed by --json"
        table.add_row("", *([""] * (len(table.columns) - 2)), Text(more, style="dim"))
    console.print(table)


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _describe(problem: Any) -> str:
    return problem.text if problem.feature is None else f"{problem.feature!r}: {problem.text}"


def _summarize(report: VerifyReport) -> Text:
    read = f"{count_of(report.shards, 'shard')}, {format_bytes(report.bytes)}"
    rate = format_bytes(report.bytes / max(report.seconds, 1e-9))
    speed = f"{report.seconds:.{1 if report.seconds >= 0.1 else 2}f} s, {rate}/s"
    if report.is_sound:
        deep = f", {count_of(report.images, 'image')} decoded" if report.is_deep else ""
        text = f": {count_of(report.records, 'record')}, {read}, {speed}{deep}"
        return Text("sound", style="bold green") + Text(text, style="not bold default")
    files = len({problem.shard for problem in report.problems})
    text = f": {count_of(len(report.problems), 'problem')} in {count_of(files, 'file')}"
    text += f"; {count_of(report.lost, 'record')} lost, {report.records:,} sound"
    text += f"\n{read} read, {speed}"
    return Text("damaged", style="bold red") + Text(text, style="not bold default")


def _hint(report: VerifyReport, path: str) -> None:
    """What can be done about it."""
    for hint in _hints(report, shell_word(path)):
        talk().print(Text(f"hint: {inert(hint)}", style="cyan"), soft_wrap=True)


def _hints(report: VerifyReport, path: str) -> Iterator[str]:
    kinds = {problem.kind for problem in report.problems}
    if "index" in kinds:
        yield f"datum index {path} --force makes the indexes anew"
    if "statistics" in kinds:
        yield f"datum reshard {path} OUT counts values anew"
    if kinds - _NOT_REPAIRED:
        what = "it" if kinds == {"manifest"} else "the files"
        deep = " --deep" if "image" in kinds else ""
        sound = count_of(report.records, "sound record")
        yield f"restore {what} from a copy, or datum repair {path} OUT{deep} keeps the {sound}"
