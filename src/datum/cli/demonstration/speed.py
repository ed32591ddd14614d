"""How fast the demo's digits come, with Datum and without it, measured side by side."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

import datum
from datum import Dataset
from datum.cli.terminal import is_plain

__all__ = ["measure_in_turn", "show_rates", "write_larger_copy", "write_pixels"]

_BAR_WIDTH = 24


def write_larger_copy(
    images: Sequence[tuple[bytes, int]], like: Dataset, out: Path, *, copies: int
) -> Dataset:
    """Write encoded images many times over, as a dataset of one split with the image of `like`."""
    columns = {
        "image": [image for image, _ in images] * copies,
        "label": [label for _, label in images] * copies,
    }
    datum.write(columns, out, schema={"image": like.schema["image"]}, progress=False)
    return datum.load(out)


def write_pixels(
    pixels: NDArray[np.uint8], labels: NDArray[np.int64], out: Path, *, copies: int
) -> Dataset:
    """Write the pixels as often, as numbers instead of PNG."""
    images = np.tile(pixels[..., None], (copies, 1, 1, 1))
    datum.write({"image": images, "label": np.tile(labels, copies)}, out, progress=False)
    return datum.load(out)


def measure_in_turn(
    feeds: Mapping[str, Callable[[], Iterable[Mapping[str, Any]]]],
    *,
    turns: int,
    seconds: float,
    tell: Callable[[int, int], None],
) -> dict[str, float]:
    """Records a second of each feed: the median of some turns, taken in turn.

    A feed makes batches without end. The first batch of a turn is not counted: it waits for files
    to be opened and buffers to be filled.
    """
    rates: dict[str, list[float]] = {name: [] for name in feeds}
    for turn in range(turns):
        for at, (name, make) in enumerate(feeds.items()):
            tell(turn * len(feeds) + at, turns * len(feeds))
            rates[name].append(_rate(make(), seconds))
    return {name: statistics.median(values) for name, values in rates.items()}


def _rate(batches: Iterable[Mapping[str, Any]], seconds: float) -> float:
    iterator = iter(batches)
    next(iterator)
    records, started = 0, time.perf_counter()
    for batch in iterator:
        records += len(batch["label"])
        if time.perf_counter() - started >= seconds:
            break
    return records / (time.perf_counter() - started)


def show_rates(rates: Mapping[str, float], console: Console) -> Table:
    """Rates as bars, and how many times the first each is."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True, justify="right")
    best, first = max(rates.values()), next(iter(rates.values()))
    block = "#" if is_plain(console) else "█"
    width = min(_BAR_WIDTH, max(console.width - 56, 4))
    for name, rate in rates.items():
        is_ours = name != next(iter(rates))
        bar = Text(block * max(1, round(width * rate / best)), "green" if is_ours else "dim")
        table.add_row(name, bar, f"{rate:,.0f} records/s", f"{rate / first:.1f}x")
    return table
