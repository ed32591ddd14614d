"""`datum repair`: what is whole of a damaged dataset, in a new one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

import datum
from datum.cli.arguments import FollowLinks
from datum.cli.terminal import data, print_json, talk
from datum.errors import count_of, format_bytes, inert, shell_word

if TYPE_CHECKING:
    from datum import RepairReport

__all__ = ["command"]

MAX_SHOWN = 20  # places of damage; --json has all
_WHOLE_FILES = ("missing file", "unreadable file")


def command(
    path: Annotated[
        str, typer.Argument(help="A dataset, a folder of TFRecord files, a file or a pattern.")
    ],
    out: Annotated[str, typer.Argument(help="The folder of the new dataset.")],
    deep: Annotated[
        bool, typer.Option("--deep", help="Leave out records whose images cannot be decoded, too.")
    ] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="How many cores to use.")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the dataset at OUT.")
    ] = False,
    follow_links: FollowLinks = False,
    as_json: Annotated[bool, typer.Option("--json", help="The report as JSON.")] = False,
) -> None:
    """Save what is whole of a damaged dataset, folder or file to a new dataset.

    Damaged records, torn ends, cut streams, missing files and records that are not what the schema
    says are left out and listed; all others keep their order and their bytes. Where the manifest
    is lost, features are inferred from sidecars and the records, and what was lost is listed.
    Records that are no tf.train.Examples are saved as plain TFRecord files. PATH is not changed.
    The exit code is 1 if nothing could be saved.

        $ datum repair photos photos-repaired
        $ datum repair 'logs/*.tfrecord.gz' saved --json
    """
    report = datum.repair(
        path, out, deep=deep, workers=workers, overwrite=overwrite, follow_links=follow_links
    )
    if as_json:
        print_json([report.to_json()])
    else:
        _show(report)
    _conclude(report, out)


def _show(report: RepairReport) -> None:
    console = data()
    shown = report.losses[:MAX_SHOWN]
    for file, losses in groupby(shown, lambda loss: loss.damage.file):
        name = inert(_name_within(report, file))
        console.print(Text(name, style="bold"), soft_wrap=True)
        console.print(_loss_table(list(losses)))
        console.print()
    if len(report.losses) > MAX_SHOWN:
        more = f"{len(report.losses) - MAX_SHOWN:,} more are listed by --json"
        console.print(Text(f"{more}\n", style="dim"), soft_wrap=True)
    console.print(_split_table(report))
    for line in report.forgotten:
        console.print(Text(f"lost: {inert(line)}"), soft_wrap=True)
    for note in report.notes:
        console.print(Text(f"note: {inert(note)}", style="dim"), soft_wrap=True)


def _split_table(report: RepairReport) -> Table:
    table = _table()
    table.add_column("split", no_wrap=True)
    table.add_column("saved", justify="right", no_wrap=True)
    table.add_column("lost", justify="right", no_wrap=True)
    for name, kept in report.kept.items():
        lost = report.lost[name]
        style = "" if lost == 0 else "bold red"
        table.add_row(Text(name), f"{kept:,}", Text("?" if lost is None else f"{lost:,}", style))
    return table


def _loss_table(losses: Sequence[Any]) -> Table:
    """A row for each place in a file: where, how much, and why; a file as a whole has no place."""
    table = _table()
    has_places = any(loss.damage.kind not in _WHOLE_FILES for loss in losses)
    table.add_column("")  # under the name of the file
    if has_places:
        table.add_column("record", justify="right", no_wrap=True)
        table.add_column("byte", justify="right", no_wrap=True)
    table.add_column("lost", justify="right", no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    for loss in losses:
        damage = loss.damage
        places = [f"{damage.record:,}", f"{damage.offset:,}"] if has_places else []
        reason = f": {loss.reason}" if loss.reason else ""
        table.add_row(
            "",
            *places,
            "?" if loss.records is None else f"{loss.records:,}",
            format_bytes(loss.bytes) if loss.bytes else "?",
            Text(inert(f"{damage.kind}{reason}")),
        )
    return table


def _name_within(report: RepairReport, file: str) -> str:
    folder = f"{report.path}/"
    return file.removeprefix(folder) if str(report.path) != "." else file


def _table() -> Table:
    return Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))


def _conclude(report: RepairReport, out: str) -> None:
    """Say loudly what came of it, and what to do next."""
    console = talk()
    saved = f"{count_of(report.records, 'record')} saved to {inert(out)}"
    if report.is_whole:
        console.print(Text("whole: ", "bold green") + Text(f"nothing was lost, {saved}", ""))
    else:
        lost = report.lost_records
        told = "some records were lost" if lost is None else f"{count_of(lost, 'record')} lost"
        if report.forgotten:
            part = "part of the schema or metadata"
            told = f"{told}, {part} lost" if report.losses else f"{part}, no records"
        console.print(Text("lost: ", "bold red") + Text(f"{told}, {saved}", "not bold default"))
    if report.forgotten:
        hint = "pass the features you know, in Python: datum.repair(path, out, schema={...})"
        console.print(Text(f"hint: {hint}", "cyan"), soft_wrap=True)
    target = shell_word(out if report.form == "dataset" else f"{out}/*")
    console.print(Text(f"hint: datum verify {target}", "cyan"), soft_wrap=True)
