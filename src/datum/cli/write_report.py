"""Plan and report of `datum write` as text and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from datum.cli.formatting import describe_feature, spell_feature
from datum.cli.running import print_message
from datum.cli.shell import say
from datum.cli.terminal import data
from datum.errors import count_of, format_bytes, inert

if TYPE_CHECKING:
    from datum import WritePlan, WriteReport

__all__ = [
    "report_to_json",
    "show_plan",
    "show_report",
    "tell_plan",
]

_SHOWN_CLASSES = 5
_SHOWN_FEATURES = 6  # in one line
_SHOWN_FILES = 3
_LEAST_ORIGIN = 12  # characters; less of a path is useless


def tell_plan(plan: WritePlan) -> None:
    """Print the plan to stderr in two lines, with notes and warnings."""
    counted = ", ".join(
        f"{name} {_records(split.records, split.estimated_records)}"
        for name, split in plan.splits.items()
    )
    size = plan.estimated_bytes
    about = "" if size is None else f", about {format_bytes(size)}"
    print_message("found", f"{plan.layout}; {counted}{about}")
    shown = [f"{name}={spell_feature(one)}" for name, one in plan.schema.items()]
    more = len(shown) - _SHOWN_FEATURES
    text = ", ".join(shown[:_SHOWN_FEATURES]) + (f" and {more} more" if more > 0 else "")
    guess = f" (inferred from {count_of(plan.looked_at, 'record')})" if plan.guessed else ""
    print_message("features", text + guess)
    for note in plan.notes:
        print_message("note", note)
    for warning in plan.warnings:
        print_message("warning", warning)


def _records(exact: int | None, guess: int | None) -> str:
    if exact is not None:
        return count_of(exact, "record")
    return "records not counted yet" if guess is None else f"about {count_of(guess, 'record')}"


def show_plan(plan: WritePlan, out: str | None) -> None:
    """Print the plan to stdout: layout, splits, shards, sizes, schema, warnings."""
    console = data()
    compression = f", {plan.compression}" if plan.compression else ""
    console.print(Text(inert(f"{plan.layout}{compression}"), style="bold"), soft_wrap=True)
    console.print()
    console.print(_split_table(plan, console.width))
    console.print()
    console.print(_feature_table(plan))
    console.print()
    notes = []
    if plan.guessed:
        looked = count_of(plan.looked_at, "record")
        notes.append(f"* inferred from {looked}; others may widen it")
    if plan.skipped:
        more = ", ..." if len(plan.skipped) > _SHOWN_FILES else ""
        listed = ", ".join(plan.skipped[:_SHOWN_FILES])
        counted = count_of(len(plan.skipped), "file")
        notes.append(f"skipped {counted} without records: {listed}{more}")
    for note in (*notes, *map(say, plan.notes)):
        console.print(Text(inert(note), style="dim"))
    for warning in plan.warnings:
        text = inert(say(warning))
        console.print(Text.assemble(("warning: ", "yellow"), text))
    where = "" if out is None else f" {inert(out)} is unchanged."
    console.print(Text(f"dry run: nothing was written.{where}"), soft_wrap=True)


def _split_table(plan: WritePlan, width: int) -> Table:
    """Table of splits, with the end of their origin if there is room."""
    table = _table()
    table.add_column("split", no_wrap=True)
    has_many = any((split.shards or 0) > 1 for split in plan.splits.values())
    for heading in ("records", "size", "shards", *(["each"] if has_many else [])):
        table.add_column(heading, justify="right", no_wrap=True)
    rows: list[list[Any]] = [
        [
            Text(inert(name)),
            _count(split.records, split.estimated_records),
            _size(split.estimated_bytes),
            "?" if split.shards is None else f"{split.shards:,}",
            *([_size(split.shard_bytes)] if has_many else []),
        ]
        for name, split in plan.splits.items()
    ]
    headings = [str(column.header) for column in table.columns]
    taken = sum(
        max(len(str(cell)) for cell in cells) + 2 for cells in zip(headings, *rows, strict=True)
    )
    left = width - taken
    if left >= _LEAST_ORIGIN:
        table.add_column("from", no_wrap=True)
        for row, split in zip(rows, plan.splits.values(), strict=True):
            row.append(Text(_end_of(inert(split.origin), left)))
    for row in rows:
        table.add_row(*row)
    return table


def _end_of(text: str, width: int) -> str:
    return text if len(text) <= width else f"...{text[len(text) - width + 3 :]}"


def _count(exact: int | None, guess: int | None) -> str:
    if exact is not None:
        return f"{exact:,}"
    return "?" if guess is None else f"~{guess:,}"


def _size(nbytes: int | None) -> str:
    return "?" if nbytes is None else f"~{format_bytes(nbytes)}"


def _feature_table(plan: WritePlan) -> Table:
    table = _table()
    table.add_column("feature", overflow="fold")
    table.add_column("holds", no_wrap=True)
    table.add_column("", overflow="fold")
    for name, feature in plan.schema.items():
        mark = " *" if name in plan.guessed else ""
        table.add_row(
            Text(inert(name)),
            Text(describe_feature(feature) + mark),
            Text(inert(_classes(plan, name))),
        )
    return table


def _classes(plan: WritePlan, name: str) -> str:
    classes = plan.class_names.get(name)
    if classes is None:
        return ""
    more = ", ..." if len(classes) > _SHOWN_CLASSES else ""
    listed = ", ".join(map(str, classes[:_SHOWN_CLASSES]))
    return f"{count_of(len(classes), 'class', 'classes')}: {listed}{more}"


def _table() -> Table:
    return Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))


def show_report(report: WriteReport, out: str) -> None:
    """Print the report to stdout, and a next step to stderr."""
    lines = [inert(say(line)) for line in report.lines]
    data().print(Text("\n".join(lines)), soft_wrap=True)
    rejected = sum(split.rejected for split in report.splits.values())
    if rejected:
        where = "" if report.quarantine is None else f"; the reasons are in {report.quarantine}"
        said = f"{count_of(rejected, 'record')} could not be written{where}"
        print_message("warning", said)
    print_message("next", f"datum info {out}")


def report_to_json(report: WriteReport) -> dict[str, Any]:
    """Return the report as plain values: sizes in bytes, times in seconds."""
    return {
        "path": str(report.path),
        "records": report.records,
        "bytes": report.bytes,
        "shards": report.shards,
        "seconds": round(report.seconds, 3),
        "splits": {
            name: {
                "records": split.records,
                "bytes": split.bytes,
                "shards": split.shards,
                "rejected": split.rejected,
            }
            for name, split in report.splits.items()
        },
        "resumed_shards": report.resumed_shards,
        "quarantine": None if report.quarantine is None else str(report.quarantine),
        "skipped": list(report.skipped),
        "notes": list(report.notes),
        "rounded": list(report.floats.rounded),
        "kept_float64": {
            name: {"split": split, "record": record, "value": value}
            for name, (split, record, value) in report.floats.kept.items()
        },
        "warnings": list(report.warnings),
    }
