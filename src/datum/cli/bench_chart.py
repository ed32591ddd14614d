"""Figures of `datum bench` as bars in a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from datum import Measurement
from datum.cli.terminal import is_plain
from datum.cli.words import count_of, describe_size
from datum.errors import inert

__all__ = [
    "STAGES",
    "apart",
    "describe_programs",
    "describe_run",
    "describe_split",
    "describe_threads",
    "draw_bar",
    "gain",
    "percent",
    "rounded",
    "show",
    "verdict",
]

STAGES = {
    "read": "bytes out of the files",
    "crc": "every record checked",
    "parse": "columns by the schema",
    "shuffle": "records in random order",
    "decode": "images into pixels",
    "callback": "the function of --map",
    "batch": "arrays put together",
}


def rounded(value: float) -> str:
    """A number with the three digits that a measurement is good for.

    >>> rounded(1_234_567), rounded(45.678), rounded(0.12345), rounded(0)
    ('1,230,000', '45.7', '0.123', '0')
    """
    if not value:
        return "0"
    text = f"{float(f'{value:.3g}'):,.12f}"
    whole, _, decimals = text.partition(".")
    digits = 3 - len(whole.replace(",", "").lstrip("0"))
    if whole != "0":
        return whole if digits <= 0 else f"{whole}.{decimals[:digits]}"
    zeros = len(decimals) - len(decimals.lstrip("0"))
    return f"0.{decimals[: min(zeros + 3, 6)]}" if zeros < 4 else "0"


def percent(share: float) -> str:
    """A part of one.

    >>> percent(0.914), percent(0.001), percent(0)
    ('91 %', '<1 %', '0 %')
    """
    return "<1 %" if 0 < share < 0.005 else f"{share * 100:.0f} %"


def apart(spread: float | None, sign: str = "±") -> str:
    """How far turns lay apart; nothing where there was one alone.

    >>> apart(0.04), apart(None)
    ('±4 %', '')
    """
    return "" if spread is None else f"{sign}{percent(spread)}"


def gain(factor: float) -> str:
    """How many times as fast.

    >>> gain(1.234), gain(45.6)
    ('1.2x', '46x')
    """
    return f"{factor:.1f}x" if factor < 10 else f"{factor:,.0f}x"


def describe_split(found: Measurement) -> str:
    """What was measured, in one line."""
    parts = [
        count_of(found.records, "record"),
        count_of(found.shards, "shard"),
        describe_size(found.bytes),
        *([found.compression] if found.compression else []),
    ]
    return f"split {found.split}: {', '.join(parts)}"


def describe_threads(found: Measurement) -> str:
    """How many threads the loaders had."""
    return count_of(found.options["threads"], "thread")


def describe_programs(found: Measurement) -> str:
    """The versions that it was measured with, in one line."""
    return ", ".join(f"{name} {version}" for name, version in found.machine.versions.items())


def describe_run(found: Measurement) -> str:
    """How it was measured, in one line."""
    options = found.options
    part = "all" if found.measured_records == found.records else f"{found.measured_records:,}"
    words = [
        f"{part} records of {describe_size(found.record_bytes)}",
        f"batches of {options['batch_size']:,}",
        "shuffled" if options["shuffle"] else "in order",
    ]
    if options["columns"] is not None:
        words.append(f"columns {', '.join(options['columns'])}")
    return ", ".join(words)


def verdict(found: Measurement) -> str:
    """When training waits for data, and when it does not."""
    best = found.best
    if best is None or not best.records_per_s:
        return ""
    size = found.options["batch_size"]
    step_ms = size / best.records_per_s * 1000
    return (
        f"A training step of {count_of(size, 'record')} that takes longer than"
        f" {rounded(step_ms)} ms does not wait for data ({best.name})."
    )


NARROW, WIDE = 72, 110  # where columns give way, and where there is room for words
BAR_WIDTH = (8, 44)  # at least, at most
INDENT = (0, 0, 0, 2)
_EIGHTHS = " ▏▎▍▌▋▊▉"
_COLOURS = {"numpy": "cyan", "torch": "red", "jax": "magenta", "tf": "yellow"}


def draw_bar(share: float, width: int, *, plain: bool) -> str:
    """A bar as long as a share of the width; what is not nothing is seen.

    >>> draw_bar(0.5, 8, plain=True), draw_bar(0.001, 8, plain=True)
    ('####', '|')
    """
    share = min(max(share, 0.0), 1.0)
    if plain:
        return "#" * round(share * width) or ("|" if share else "")
    whole, eighths = divmod(round(share * width * 8), 8)
    return ("█" * whole + _EIGHTHS[eighths].strip()) or ("▏" if share else "")


def show(found: Measurement, console: Console) -> None:
    """Print all of it; into a file, without blanks at the ends of lines."""
    if console.is_terminal:
        for part in _parts(found, console):
            console.print(part)
        return
    with console.capture() as captured:
        for part in _parts(found, console):
            console.print(part)
    console.file.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def _parts(found: Measurement, console: Console) -> Iterator[RenderableType]:
    yield from _head(found, console)
    yield Text("\nWhere one thread spends its time", style="bold")
    yield _stages(found, console)
    yield from _once(found, console)
    if found.speeds:
        yield Text(f"\nWhat a program gets, with {describe_threads(found)}", style="bold")
        yield _speeds(found, console)
        yield from _unmeasured(found)
    yield Text("")
    if found.bottleneck is not None:
        text = _spelt(found.bottleneck.text, console)
        yield Text.assemble(("Bottleneck: ", "bold"), f"{text}.")
    if words := verdict(found):
        yield Text(words)
    yield from _advice(found)
    for note in found.notes:
        yield Text(f"Note: {inert(note)}.", style="dim")


def _head(found: Measurement, console: Console) -> Iterator[RenderableType]:
    name, rest = inert(found.path), describe_split(found)
    is_short = len(name) + len(rest) + 2 <= console.width
    yield Text(f"{name}: {rest}" if is_short else f"{name}:\n{rest}", "bold", overflow="fold")
    for line in (str(found.machine), describe_programs(found), describe_run(found)):
        yield Text(inert(line), style="dim")


def _spelt(text: str, console: Console) -> str:
    return text.replace("µ", "u") if is_plain(console) else text


def _room(console: Console, taken: int) -> int:
    least, most = BAR_WIDTH
    return max(least, min(most, console.width - taken))


def _table() -> Table:
    return Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")


def _stages(found: Measurement, console: Console) -> RenderableType:
    is_wide, is_narrow = console.width >= WIDE, console.width < NARROW
    table = _table()
    table.add_column("stage", no_wrap=True)
    if is_wide:
        table.add_column("", no_wrap=True, style="dim")
    table.add_column("share", no_wrap=True, justify="right")
    table.add_column("", no_wrap=True)
    table.add_column(_spelt("µs/record", console), no_wrap=True, justify="right")
    if not is_narrow:
        table.add_column("records/s so far", no_wrap=True, justify="right")
        table.add_column("MB/s", no_wrap=True, justify="right")
    width = _room(console, 30 + 24 * is_wide + 34 * (not is_narrow))
    slowest = None if found.bottleneck is None else found.bottleneck.stage
    for stage in found.stages:
        style, colour = ("bold", "yellow") if stage.name == slowest else ("", "blue")
        words = [Text(STAGES.get(stage.name, ""))] if is_wide else []
        bar = draw_bar(stage.share, width, plain=is_plain(console))
        speeds = [] if is_narrow else [rounded(stage.records_per_s), rounded(stage.mb_per_s)]
        table.add_row(
            Text(stage.name, style=style),
            *words,
            Text(percent(stage.share), style=style),
            Text(bar, style=colour),
            rounded(stage.us_per_record),
            *speeds,
        )
    return Padding(table, INDENT, expand=False)


def _once(found: Measurement, console: Console) -> Iterator[RenderableType]:
    """What is not part of the shares."""
    paid, micro = found.paid, _spelt("µs", console)
    told = []
    if paid.inflate_us_per_record is not None:
        told.append(f"inflating {rounded(paid.inflate_us_per_record)} {micro} a record")
    if paid.disk_mb_per_s is not None:
        told.append(f"the disk gives {rounded(paid.disk_mb_per_s)} MB/s")
    if paid.open_us_per_shard:
        told.append(f"opening {rounded(paid.open_us_per_shard)} {micro} a shard")
    if told:
        yield Padding(Text(f"at first, beside it: {', '.join(told)}", "dim"), INDENT, expand=False)


def _speeds(found: Measurement, console: Console) -> RenderableType:
    plain, is_narrow = is_plain(console), console.width < NARROW
    table = _table()
    table.add_column("loader", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("records/s", no_wrap=True, justify="right")
    if not is_narrow:
        table.add_column("MB/s", no_wrap=True, justify="right")
        table.add_column("", no_wrap=True, justify="right", style="dim")
    most = max((speed.records_per_s or 0.0 for speed in found.speeds), default=0.0)
    width = _room(console, 36 + 20 * (not is_narrow))
    sign = "+-" if plain else "±"
    for speed in found.speeds:
        if speed.records_per_s is None:
            table.add_row(speed.name, Text("not measured", style="dim"))
            continue
        more = [rounded(speed.mb_per_s or 0.0), apart(speed.spread, sign)]
        bar = draw_bar(speed.records_per_s / most, width, plain=plain)
        table.add_row(
            _label(speed.name, found),
            Text(bar, style=_COLOURS.get(speed.framework, "blue")),
            rounded(speed.records_per_s),
            *([] if is_narrow else more),
        )
    return Padding(table, INDENT, expand=False)


def _label(name: str, found: Measurement) -> str:
    return f"{name}, {found.options['workers']} workers" if name == "DataLoader" else name


def _unmeasured(found: Measurement) -> Iterator[RenderableType]:
    lines = [f"{speed.name}: {inert(speed.problem)}" for speed in found.speeds if speed.problem]
    if found.missing:
        lines.append(f"not installed: {', '.join(found.missing)}")
    for line in lines:
        yield Padding(Text(line, style="dim"), INDENT, expand=False)


def _advice(found: Measurement) -> Iterator[RenderableType]:
    if not found.speeds:
        return
    if not found.advice:
        yield Text("\nNothing to change stands out.")
        return
    yield Text("\nWhat to change", style="bold")
    for number, one in enumerate(found.advice, 1):
        factor = (f"{gain(one.gain)} {one.basis}", "bold green")
        call = Text(inert(one.call), style="cyan")
        table = Table.grid(padding=(0, 1))
        table.add_column(no_wrap=True, justify="right")
        table.add_column()
        table.add_row(f"{number}.", Group(Text.assemble(factor, f": {one.text}"), call))
        yield Padding(table, INDENT, expand=False)
