"""Figures of `datum bench` as bars in a terminal, as wide as it is."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from datum import Measurement
from datum.cli.measured.words import (
    STAGES,
    apart,
    describe_programs,
    describe_run,
    describe_split,
    describe_threads,
    gain,
    percent,
    rounded,
    verdict,
)
from datum.cli.terminal import is_plain
from datum.errors import inert

__all__ = ["draw_bar", "show"]

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
