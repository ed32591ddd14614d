"""`datum write`: any dataset as sharded TFRecord files."""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import datum
from datum import SourceError, WriteError, sources
from datum._options import options_of
from datum.cli.arguments import parse_pairs
from datum.cli.flags import parse_flags, takes_options
from datum.cli.running import print_message
from datum.cli.shell import hinted
from datum.cli.terminal import print_json
from datum.cli.write_options import STDIN, WRITE_FLAGS, LinesOfStdin, read_options
from datum.cli.write_report import report_to_json, show_plan, show_report, tell_plan
from datum.errors import Message, Option, Text, shell_word

if TYPE_CHECKING:
    from datum import WritePlan

__all__ = ["command"]

_SHARDINGS = {"shard_bytes", "shards", "records_per_shard"}  # of which one decides
# What describes datasets of Datum, of the older library and of TFDS.
_DESCRIPTIONS = ("datum.json", "shard_info.json", "dataset_info.json")

_TABLED = [one.name for one in fields(sources.TableOptions)] + ["root"]

_READ = "What is read"
_DONE = "How it is done"


@takes_options(datum.write, WRITE_FLAGS)
def command(
    src: Annotated[
        str | None,
        typer.Argument(metavar="SRC", help="A folder, a file, a pattern, or - for JSON lines."),
    ] = None,
    out: Annotated[
        str | None, typer.Argument(metavar="OUT", help="The folder of the new dataset, or its URL.")
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SPLIT=PATH",
            help="Source of a split, in place of SRC. Repeatable.",
            rich_help_panel=_READ,
        ),
    ] = None,
    options: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.toml",
            help="File of options; flags take precedence.",
            rich_help_panel=_READ,
        ),
    ] = None,
    *,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            "-n",
            help="Show what would be written, and write nothing.",
            rich_help_panel=_DONE,
        ),
    ] = False,
    json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print the report, or the plan, as JSON.", rich_help_panel=_DONE
        ),
    ] = False,
    **flags: Any,
) -> None:
    """Write any dataset as TFRecord shards: folders, tables, JSON lines.

    The layout of SRC is detected: class folders, Pascal VOC, masks, images with a CSV of labels,
    CSV, Parquet, Arrow, JSON, NumPy. Output is published atomically. The same command resumes an
    interrupted one.

    With --options FILE.toml, options come from a file, too, under their names in datum.write:
    shard_bytes = "256MiB", and tables [splits], [schema.FEATURE], [encoders.FEATURE], [source].

        $ datum write photos out --splits train=0.9,val=0.1
        $ datum write table.csv out --dry-run
        $ datum write table.csv out --no-header --delimiter ';' --schema zip=str
        $ datum write out --source train=a.csv --source test=b.csv
        $ zcat log.jsonl.gz | datum write - out --on-error quarantine
    """
    given = {} if options is None else read_options(options)
    on_line = parse_flags(WRITE_FLAGS, flags)
    if source:
        if "splits" in on_line:
            raise ValueError(Message("expected --splits or --source, got both"))
        on_line["splits"] = parse_pairs(source, option="--source")
    if on_line.keys() & _SHARDINGS:  # what the line says of shards replaces all the file says
        given = {name: value for name, value in given.items() if name not in _SHARDINGS}
    given |= on_line
    place, target = _find_places(src, out, given, is_dry=dry_run)
    with hinted(place, target):
        _run(place, target, given, is_dry=dry_run, is_json=json)


def _find_places(
    src: str | None, out: str | None, given: dict[str, Any], *, is_dry: bool
) -> tuple[Any, str | None]:
    """What is read, and the folder that is written; names in the options file stand back."""
    place, target = given.pop("source", None), given.pop("out", None)
    has_sources = any(not isinstance(one, (int, float)) for one in given.get("splits", {}).values())
    if out is None and src is not None and (has_sources or place is not None):
        src, out = None, src  # the only path there is, is where to write
    if src is not None and has_sources:
        raise ValueError(
            Message(
                f"expected SRC or a source for each split, got both: {src}",
                hint="datum write OUT --source train=PATH --source val=PATH",
            )
        )
    place, target = (place if src is None else src), (target if out is None else out)
    if place is None and not has_sources:
        raise ValueError(
            Message("expected SRC, what to write, got none", hint="datum write SRC OUT")
        )
    if target is None and not is_dry:
        shown = shell_word(place) if isinstance(place, str) else "SRC"
        raise ValueError(
            Message(
                "expected OUT, the folder of the new dataset, got none",
                hint=f"datum write {shown} OUT, or --dry-run to see what would be written",
            )
        )
    return place, target


def _run(
    place: Any, target: str | None, given: dict[str, Any], *, is_dry: bool, is_json: bool
) -> None:
    if target is not None and not is_dry:
        _check_free(target, given)
    planned = {name: value for name, value in given.items() if name in options_of(datum.plan)}
    if place == STDIN:
        if sys.stdin.isatty():
            print_message("reading", "JSON lines from the terminal; Ctrl-D ends them")
        if table := [name for name in planned if name in _TABLED]:
            applies = " applies to tables in files; stdin holds JSON lines"
            raise ValueError(Message(Text(Option(table[0]), applies)))
        source: Any = LinesOfStdin()
        plan = _plan_lines(source, planned)
    else:
        _check_not_written(place)
        plan = datum.plan(place, **planned)
        source = plan.source
    if is_dry:
        if is_json:
            print_json([plan.to_json()])
        else:
            show_plan(plan, target)
        return
    assert target is not None
    tell_plan(plan)
    known = ("problem", *_TABLED)  # the plan's source knows them
    rest = {name: value for name, value in given.items() if name not in known}
    if any(not isinstance(one, (int, float)) for one in rest.get("splits", {}).values()):
        del rest["splits"]  # the source has them
    report = datum.write(source, target, **rest)
    if is_json:
        print_json([report_to_json(report)])
    else:
        show_report(report, shell_word(target))


def _plan_lines(source: LinesOfStdin, options: dict[str, Any]) -> WritePlan:
    plan = datum.plan(lambda: iter(source.head), **options)
    return replace(plan, layout="JSON lines of stdin")


def _check_not_written(place: Any) -> None:
    """Refuse a dataset, whose description would be taken for data in JSON."""
    folder = Path(place).expanduser() if isinstance(place, str) else None
    if folder is None or not any((folder / name).is_file() for name in _DESCRIPTIONS):
        return
    if (folder / "datum.json").is_file() or any(folder.glob("*.tfrecord*")):
        raise SourceError("expected data to write, got a dataset of TFRecord files", where=place)


def _check_free(target: str, given: dict[str, Any]) -> None:
    """Refuse before looking at the source, which may take a while."""
    is_allowed = given.get("overwrite") or given.get("append")
    if (Path(target).expanduser() / "datum.json").is_file() and not is_allowed:
        raise WriteError(
            "a dataset already exists",
            where=target,
            hint=Text(
                Option("overwrite", True), " replaces it, ", Option("append", True), " adds to it"
            ),
        )
