"""Output of commands: data on stdout, messages on stderr; width, colour and signs."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from datum.errors import inert, json_text

__all__ = [
    "ASCII",
    "UNICODE",
    "Signs",
    "data",
    "drop_output",
    "is_plain",
    "prepare_streams",
    "print_json",
    "show_bar",
    "signs_for",
    "talk",
]

FILE_WIDTH = 4096  # without a terminal nothing is cut or wrapped
READER_GONE = 141  # 128 + SIGPIPE, as in shells


def prepare_streams() -> None:
    """Make stdout and stderr accept any text; call it once, before any output.

    A terminal shows `?` for characters outside its encoding. In files and pipes, file names that
    are not UTF-8 keep their bytes. Output to a closed stream is discarded.
    """
    codecs.register_error("datum", _encode_anyhow)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - open until the end
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace" if stream.isatty() else "datum")


def _encode_anyhow(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        return codecs.lookup_error("surrogateescape")(error)
    wrong = error.object[error.start : error.end]
    made = b"".join(
        bytes([ord(char) - 0xDC00]) if "\udc80" <= char <= "\udcff" else b"?" for char in wrong
    )
    return made, error.end


def drop_output() -> NoReturn:
    """Exit silently because the reader is gone, as in `datum head ... | head -1`."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):  # Python flushes both once more at exit
        with suppress(OSError, ValueError):
            try:
                stream.flush()
            except OSError:
                os.dup2(nowhere, stream.fileno())
    raise SystemExit(READER_GONE)


class _Console(Console):
    """A console for untrusted text, which exits as shells expect when its reader is gone.

    Names and values are made inert where a line is composed, so that they cannot start a new line.
    Here all other text is: only the styles of rich can control the terminal.
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            is_inert = control or text.isprintable()
            yield Segment(text if is_inert else _inert_lines(text), style, control)

    def on_broken_pipe(self) -> None:
        self.quiet = True
        drop_output()


def data() -> Console:
    """Return the console of stdout; without a terminal it has no colour and no limit of width."""
    return _console(stderr=False)


def talk() -> Console:
    """Return the console of stderr, for progress, messages and errors."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    console = _Console(stderr=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = _Console(stderr=stderr, width=FILE_WIDTH)
    return console


def is_plain(console: Console) -> bool:
    """Return whether the encoding may lack block characters."""
    return not console.encoding.lower().startswith("utf")


def _inert_lines(text: str) -> str:
    return "\n".join(map(inert, text.split("\n")))


def print_json(lines: Iterable[Any]) -> None:
    """Print one JSON value per line to stdout; NaN and infinities become null."""
    is_ascii = not (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    dump = json.dumps if is_ascii else json_text
    sys.stdout.writelines(dump(_finite(line)) + "\n" for line in lines)
    sys.stdout.flush()


def _finite(value: Any) -> Any:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


@contextmanager
def show_bar(what: str) -> Iterator[Any]:
    """Show a progress bar on a terminal; yield a function of (done, total)."""
    console = talk()
    if not console.is_terminal:
        yield lambda _done, _total: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@dataclass(frozen=True, slots=True)
class Signs:
    """Characters for charts and text, in Unicode or ASCII.

    Attributes:
        levels: Heights of a column in a small histogram, from empty to full.
        parts: Widths of the last cell of a bar, from empty to full.
        to: Sign between the ends of a range.
        times: Sign between the sides of a shape.
        dots: Mark where text was cut.
        about: Sign before an estimate.
        within: Sign before a standard deviation.
        between: Separator of facts on a line.
        good, bad: Signs before good news and warnings.
    """

    levels: str
    parts: str
    to: str
    times: str
    dots: str
    about: str
    within: str
    between: str
    good: str
    bad: str


UNICODE = Signs(" ▁▂▃▄▅▆▇█", " ▏▎▍▌▋▊▉█", "\u2013", "\u00d7", "…", "≈", "±", "·", "✓", "!")
ASCII = Signs(" .:-=+*#%", " #", "-", "x", "...", "~", "+-", "|", "ok", "!")


def signs_for(options: ConsoleOptions) -> Signs:
    """Return the signs that the encoding of a console supports."""
    return ASCII if options.ascii_only else UNICODE
