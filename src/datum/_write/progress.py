"""How far a write has come: a live bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from datum.errors import format_bytes, inert

__all__ = [
    "Progress",
    "show_progress",
]

LINE_SECONDS = 10.0  # between two lines where there is no terminal


class Progress:
    """Counts records and bytes; says nothing."""

    def __init__(self) -> None:
        self.records = 0
        self.nbytes = 0
        self.total: int | None = None
        self.started = time.monotonic()

    def stage(self, name: str, total: int | None) -> None:
        """Begin anew: `total` records are to come, None if nobody knows."""
        self.records, self.nbytes, self.total = 0, 0, total
        self.started = time.monotonic()
        self._name(name)

    def advance(self, records: int, nbytes: int) -> None:
        """Count some records as done."""
        self.records += records
        self.nbytes += nbytes
        self._show()

    def _name(self, name: str) -> None:
        pass

    def _show(self) -> None:
        pass

    @property
    def rates(self) -> tuple[float, float]:
        """Records and bytes a second."""
        seconds = max(time.monotonic() - self.started, 1e-9)
        return self.records / seconds, self.nbytes / seconds


class _Lines(Progress):
    """One line after each while."""

    def __init__(self) -> None:
        super().__init__()
        self._stage = ""
        self._next = time.monotonic() + LINE_SECONDS

    def _name(self, name: str) -> None:
        self._stage = inert(name)

    def _show(self) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + LINE_SECONDS
        rate, bytes_rate = self.rates
        of = f" of {self.total:,}" if self.total else ""
        left = ""
        if self.total and rate:
            left = f", {(self.total - self.records) / rate:.0f} s left"
        print(  # noqa: T201 - what this class is for
            f"{self._stage}: {self.records:,}{of} records, {rate:,.0f}/s,"
            f" {format_bytes(bytes_rate)}/s{left}",
            file=sys.stderr,
        )


class _Bar(Progress):
    """A bar of rich's."""

    def __init__(self, bar: Any) -> None:
        super().__init__()
        self._bar = bar
        self._task = bar.add_task("", total=None, rates="")

    def _name(self, name: str) -> None:
        self._bar.reset(self._task, description=inert(name), total=self.total, rates="")

    def _show(self) -> None:
        rate, bytes_rate = self.rates
        rates = f"{rate:,.0f} records/s, {format_bytes(bytes_rate)}/s"
        self._bar.update(self._task, completed=self.records, rates=rates)


def _find_terminal() -> bool | None:
    """Whether there is a terminal to write to; None if there is nothing to write to at all."""
    try:
        return bool(sys.stderr.isatty())
    except (AttributeError, ValueError):  # there is no stream, or it is closed
        return None


@contextmanager
def show_progress(wanted: bool | None) -> Iterator[Progress]:
    """Show a bar on a terminal and lines elsewhere; nothing if `wanted` is False."""
    is_terminal = _find_terminal()
    if wanted is False or is_terminal is None:
        yield Progress()
    elif not is_terminal:
        yield _Lines()
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rates]}"),
            TimeRemainingColumn(),
        )
        console = Console(stderr=True)
        with RichProgress(*columns, console=console, transient=True) as bar:
            yield _Bar(bar)
