"""Figures of `datum bench` as one page that needs nothing else: no network, no scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from datum import Measurement
from datum.cli.bench_chart import (
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

__all__ = [
    "make_page",
]

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
    """The page, as HTML; whatever comes from the dataset is escaped."""
    title = f"datum bench: {Path(found.path).name or found.path}"
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_text(title)}</title>",
            f"<style>{_STYLE}</style>",
            "</head>",
            "<body>",
            *_head(found, title),
            *_stages(found),
            *_speeds(found),
            *_advice(found),
            *_tables(found),
            "</body>",
            "</html>",
            "",
        ]
    )


def _text(text: str) -> str:
    """Escaped; bytes of names that are no UTF-8 are replaced."""
    return escape(text.encode("utf-8", "replace").decode("utf-8"))


def _head(found: Measurement, title: str) -> Iterator[str]:
    yield f"<h1>{_text(title)}</h1>"
    yield f"<p>{_text(f'{found.path}: {describe_split(found)}')}</p>"
    for line in (str(found.machine), describe_programs(found), describe_run(found)):
        yield f'<p class="dim">{_text(line)}</p>'
    if found.bottleneck is not None:
        sentence = found.bottleneck.text[:1].upper() + found.bottleneck.text[1:]
        yield f'<p class="verdict"><b>{_text(sentence)}.</b><br>{_text(verdict(found))}</p>'


def _bar(name: str, note: str, figure: str, share: float, *, hot: bool = False) -> str:
    kind = ' class="hot"' if hot else ""
    small = f' <span class="dim">{_text(note)}</span>' if note else ""
    width = max(0.0, min(100.0, share * 100))
    fill = f'<span class="fill" style="width: {width:.2f}%"></span>' if share else ""
    return (
        f'<li{kind}><div class="head"><span><b>{_text(name)}</b>{small}</span>'
        f'<span class="num">{_text(figure)}</span></div><div class="track">{fill}</div></li>'
    )


def _stages(found: Measurement) -> Iterator[str]:
    slowest = None if found.bottleneck is None else found.bottleneck.stage
    yield "<h2>Where one thread spends its time</h2>"
    yield '<ul class="bars">'
    for stage in found.stages:
        figure = f"{percent(stage.share)}, {rounded(stage.us_per_record)} µs"
        note = STAGES.get(stage.name, "")
        yield _bar(stage.name, note, figure, stage.share, hot=stage.name == slowest)
    yield "</ul>"
    for line in _once(found):
        yield f'<p class="dim">{_text(line)}</p>'


def _once(found: Measurement) -> Iterator[str]:
    paid = found.paid
    if paid.inflate_us_per_record is not None:
        yield f"Inflating takes {rounded(paid.inflate_us_per_record)} µs a record beside that."
    if paid.disk_mb_per_s is not None:
        yield f"The disk gives {rounded(paid.disk_mb_per_s)} MB/s of what is not in memory."


def _speeds(found: Measurement) -> Iterator[str]:
    if not found.speeds:
        return
    most = max((speed.records_per_s or 0.0 for speed in found.speeds), default=0.0) or 1.0
    yield f"<h2>What a program gets, with {describe_threads(found)}</h2>"
    yield '<ul class="bars">'
    for speed in found.speeds:
        if speed.records_per_s is None:
            yield _bar(speed.name, speed.problem or "", "not measured", 0.0)
            continue
        figure = f"{rounded(speed.records_per_s)} records/s"
        yield _bar(speed.name, "", figure, speed.records_per_s / most)
    yield "</ul>"
    if found.missing:
        yield f'<p class="dim">Not installed: {_text(", ".join(found.missing))}</p>'


def _advice(found: Measurement) -> Iterator[str]:
    if found.advice:
        yield "<h2>What to change</h2>"
        yield '<ol class="advice">'
        for one in found.advice:
            head = f'<span class="gain">{gain(one.gain)} {one.basis}</span>'
            yield f"<li>{head}: {_text(one.text)}<code>{_text(one.call)}</code></li>"
        yield "</ol>"
    elif found.speeds:
        yield "<h2>What to change</h2>"
        yield "<p>Nothing stands out.</p>"
    for note in found.notes:
        yield f'<p class="dim">Note: {_text(note)}.</p>'


def _tables(found: Measurement) -> Iterator[str]:
    yield "<h2>Figures</h2>"
    yield from _table(
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
        yield from _table(
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


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield '<div class="scroll"><table>'
    yield "<thead><tr>" + "".join(f"<th>{_text(head)}</th>" for head in heads) + "</tr></thead>"
    yield "<tbody>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>"
    yield "</tbody></table></div>"
