"""Figures of `datum bench`: bars in a terminal, or one HTML page without network or scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from datum import Measurement
from datum.cli.feature_table import bar
from datum.cli.terminal import is_plain, signs_for
from datum.errors import count_of, format_bytes, inert

__all__ = [
    "STAGES",
    "apart",
    "describe_programs",
    "describe_run",
    "describe_split",
    "describe_threads",
    "gain",
    "make_page",
    "percent",
    "rounded",
    "show",
    "verdict",
]

STAGES = {
    "read": "bytes from files",
    "crc": "checksum of every record",
    "parse": "records into columns",
    "shuffle": "records in random order",
    "decode": "images into pixels",
    "callback": "the function of --map",
    "batch": "arrays into batches",
}


def rounded(value: float) -> str:
    """Round a number to three significant digits.

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
    """Format a share in percent.

    >>> percent(0.914), percent(0.001), percent(0)
    ('91 %', '<1 %', '0 %')
    """
    return "<1 %" if 0 < share < 0.005 else f"{share * 100:.0f} %"


def apart(spread: float | None, sign: str = "±") -> str:
    """Format the spread of repeated turns; empty for a single turn.

    >>> apart(0.04), apart(None)
    ('±4 %', '')
    """
    return "" if spread is None else f"{sign}{percent(spread)}"


def gain(factor: float) -> str:
    """Format a speed-up.

    >>> gain(1.234), gain(45.6)
    ('1.2x', '46x')
    """
    return f"{factor:.1f}x" if factor < 10 else f"{factor:,.0f}x"


def describe_split(found: Measurement) -> str:
    """Describe the measured split in one line."""
    parts = [
        count_of(found.records, "record"),
        count_of(found.shards, "shard"),
        format_bytes(found.bytes),
        *([found.compression] if found.compression else []),
    ]
    return f"split {found.split}: {', '.join(parts)}"


def describe_threads(found: Measurement) -> str:
    """Describe the number of threads."""
    return count_of(found.options["threads"], "thread")


def describe_programs(found: Measurement) -> str:
    """List the versions of the programs in one line."""
    return ", ".join(f"{name} {version}" for name, version in found.machine.versions.items())


def describe_run(found: Measurement) -> str:
    """Describe the settings of the measurement in one line."""
    options = found.options
    part = "all" if found.measured_records == found.records else f"{found.measured_records:,}"
    words = [
        f"{part} records of {format_bytes(found.record_bytes)}",
        f"batches of {options['batch_size']:,}",
        "shuffled" if options["shuffle"] else "in order",
    ]
    if options["columns"] is not None:
        words.append(f"columns {', '.join(options['columns'])}")
    return ", ".join(words)


def verdict(found: Measurement) -> str:
    """Say how long a training step must be not to wait for data."""
    best = found.best
    if best is None or not best.records_per_s:
        return ""
    size = found.options["batch_size"]
    step_ms = size / best.records_per_s * 1000
    return (
        f"A training step of {count_of(size, 'record')} that takes longer than"
        f" {rounded(step_ms)} ms does not wait for data ({best.name})."
    )


NARROW, WIDE = 72, 110  # below, columns are dropped; above, descriptions fit
BAR_WIDTH = (8, 44)  # at least, at most
INDENT = (0, 0, 0, 2)
_COLOURS = {"numpy": "cyan", "torch": "red", "jax": "magenta", "tf": "yellow"}


def show(found: Measurement, console: Console) -> None:
    """Print the figures; in a file, without trailing blanks."""
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
        drawn = bar(stage.share, width, signs_for(console.options))
        speeds = [] if is_narrow else [rounded(stage.records_per_s), rounded(stage.mb_per_s)]
        table.add_row(
            Text(stage.name, style=style),
            *words,
            Text(percent(stage.share), style=style),
            Text(drawn, style=colour),
            rounded(stage.us_per_record),
            *speeds,
        )
    return Padding(table, INDENT, expand=False)


def _once(found: Measurement, console: Console) -> Iterator[RenderableType]:
    """Costs outside the shares."""
    paid, micro = found.paid, _spelt("µs", console)
    costs = []
    if paid.inflate_us_per_record is not None:
        costs.append(f"inflating {rounded(paid.inflate_us_per_record)} {micro} per record")
    if paid.disk_mb_per_s is not None:
        costs.append(f"disk {rounded(paid.disk_mb_per_s)} MB/s")
    if paid.open_us_per_shard:
        costs.append(f"opening {rounded(paid.open_us_per_shard)} {micro} per shard")
    if costs:
        yield Padding(Text(f"on the first read: {', '.join(costs)}", "dim"), INDENT, expand=False)


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
        drawn = bar(speed.records_per_s / most, width, signs_for(console.options))
        table.add_row(
            _label(speed.name, found),
            Text(drawn, style=_COLOURS.get(speed.framework, "blue")),
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


_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #5d6672; --paper: #fff; --line: #d9dee4;
  --track: #eef1f4; --bar: #4b7bec; --hot: #e8710a; --good: #1a7f37; --code: #f4f6f8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --dim: #9aa4b0; --paper: #14181d;
  --line: #2c333b; --track: #20262d; --bar: #6f9bff; --hot: #ff9f43; --good: #4ac26b;
  --code: #1e242b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 56rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0 0 .5rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .75rem; }
p { margin: .25rem 0; } .dim { color: var(--dim); font-size: .875rem; }
.verdict { border-left: 4px solid var(--hot); padding: .25rem 0 .25rem .75rem; margin: 1.5rem 0 0; }
.bars { display: grid; gap: .6rem; margin: 0; padding: 0; list-style: none; }
.bars .head { display: flex; justify-content: space-between; gap: 1rem; }
.bars b { font-weight: 600; }
.bars .num { white-space: nowrap; font-variant-numeric: tabular-nums; }
.track { background: var(--track); height: .8rem; border-radius: 3px; overflow: hidden; }
.fill { display: block; height: 100%; min-width: 2px; background: var(--bar); }
.hot .fill { background: var(--hot); }
.advice { padding-left: 1.5rem; } .advice li { margin: .75rem 0; }
.gain { color: var(--good); font-weight: 600; }
code { display: block; background: var(--code); border-radius: 4px; padding: .4rem .6rem;
  margin-top: .25rem; font: .875rem/1.4 ui-monospace, monospace; white-space: pre-wrap; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .875rem; }
th, td { text-align: right; padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--line);
  font-variant-numeric: tabular-nums; white-space: nowrap; }
th { color: var(--dim); font-weight: 500; }
th:first-child, td:first-child { text-align: left; }
"""


def make_page(found: Measurement) -> str:
    """Make the HTML page; text from the dataset is escaped."""
    title = f"datum bench: {Path(found.path).name or found.path}"
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_html_text(title)}</title>",
            f"<style>{_STYLE}</style>",
            "</head>",
            "<body>",
            *_html_head(found, title),
            *_html_stages(found),
            *_html_speeds(found),
            *_html_advice(found),
            *_html_tables(found),
            "</body>",
            "</html>",
            "",
        ]
    )


def _html_text(text: str) -> str:
    """Escape text, and replace bytes that are not UTF-8."""
    return escape(text.encode("utf-8", "replace").decode("utf-8"))


def _html_head(found: Measurement, title: str) -> Iterator[str]:
    yield f"<h1>{_html_text(title)}</h1>"
    yield f"<p>{_html_text(f'{found.path}: {describe_split(found)}')}</p>"
    for line in (str(found.machine), describe_programs(found), describe_run(found)):
        yield f'<p class="dim">{_html_text(line)}</p>'
    if found.bottleneck is not None:
        sentence = found.bottleneck.text[:1].upper() + found.bottleneck.text[1:]
        text = f"<b>{_html_text(sentence)}.</b><br>{_html_text(verdict(found))}"
        yield f'<p class="verdict">{text}</p>'


def _html_bar(name: str, note: str, figure: str, share: float, *, hot: bool = False) -> str:
    kind = ' class="hot"' if hot else ""
    small = f' <span class="dim">{_html_text(note)}</span>' if note else ""
    width = max(0.0, min(100.0, share * 100))
    fill = f'<span class="fill" style="width: {width:.2f}%"></span>' if share else ""
    return (
        f'<li{kind}><div class="head"><span><b>{_html_text(name)}</b>{small}</span>'
        f'<span class="num">{_html_text(figure)}</span></div><div class="track">{fill}</div></li>'
    )


def _html_stages(found: Measurement) -> Iterator[str]:
    slowest = None if found.bottleneck is None else found.bottleneck.stage
    yield "<h2>Where one thread spends its time</h2>"
    yield '<ul class="bars">'
    for stage in found.stages:
        figure = f"{percent(stage.share)}, {rounded(stage.us_per_record)} µs"
        note = STAGES.get(stage.name, "")
        yield _html_bar(stage.name, note, figure, stage.share, hot=stage.name == slowest)
    yield "</ul>"
    for line in _html_once(found):
        yield f'<p class="dim">{_html_text(line)}</p>'


def _html_once(found: Measurement) -> Iterator[str]:
    paid = found.paid
    if paid.inflate_us_per_record is not None:
        yield f"Inflating takes another {rounded(paid.inflate_us_per_record)} µs per record."
    if paid.disk_mb_per_s is not None:
        yield f"The disk reads {rounded(paid.disk_mb_per_s)} MB/s of files that are not in memory."


def _html_speeds(found: Measurement) -> Iterator[str]:
    if not found.speeds:
        return
    most = max((speed.records_per_s or 0.0 for speed in found.speeds), default=0.0) or 1.0
    yield f"<h2>What a program gets, with {describe_threads(found)}</h2>"
    yield '<ul class="bars">'
    for speed in found.speeds:
        if speed.records_per_s is None:
            yield _html_bar(speed.name, speed.problem or "", "not measured", 0.0)
            continue
        figure = f"{rounded(speed.records_per_s)} records/s"
        yield _html_bar(speed.name, "", figure, speed.records_per_s / most)
    yield "</ul>"
    if found.missing:
        yield f'<p class="dim">Not installed: {_html_text(", ".join(found.missing))}</p>'


def _html_advice(found: Measurement) -> Iterator[str]:
    if found.advice:
        yield "<h2>What to change</h2>"
        yield '<ol class="advice">'
        for one in found.advice:
            head = f'<span class="gain">{gain(one.gain)} {one.basis}</span>'
            yield f"<li>{head}: {_html_text(one.text)}<code>{_html_text(one.call)}</code></li>"
        yield "</ol>"
    elif found.speeds:
        yield "<h2>What to change</h2>"
        yield "<p>Nothing stands out.</p>"
    for note in found.notes:
        yield f'<p class="dim">Note: {_html_text(note)}.</p>'


def _html_tables(found: Measurement) -> Iterator[str]:
    yield "<h2>Figures</h2>"
    yield from _html_table(
        ("stage", "share", "µs/record", "records/s so far", "MB/s so far", "spread"),
        (
            (
                stage.name,
                percent(stage.share),
                rounded(stage.us_per_record),
                rounded(stage.records_per_s),
                rounded(stage.mb_per_s),
                apart(stage.spread),
            )
            for stage in found.stages
        ),
    )
    if found.speeds:
        yield from _html_table(
            ("loader", "records/s", "MB/s", "µs/record", "spread"),
            (
                (
                    speed.call if speed.name == "DataLoader" else speed.name,
                    rounded(speed.records_per_s or 0.0),
                    rounded(speed.mb_per_s or 0.0),
                    rounded(speed.us_per_record or 0.0),
                    apart(speed.spread),
                )
                for speed in found.speeds
                if speed.records_per_s is not None
            ),
        )


def _html_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield '<div class="scroll"><table>'
    yield (
        "<thead><tr>" + "".join(f"<th>{_html_text(head)}</th>" for head in heads) + "</tr></thead>"
    )
    yield "<tbody>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{_html_text(cell)}</td>" for cell in row) + "</tr>"
    yield "</tbody></table></div>"
