"""The chart: a panel of bars for each suite, on a logarithmic scale."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

from benchmarks.measure import Timing
from benchmarks.report import Result

OURS, THEIRS, MEMORY = "#1f6fb4", "#a9b1ba", "#e0d3a8"
COLUMNS = 2
BAR_INCHES = 0.3
PANEL_INCHES = 1.1  # title, axis and the space between
TITLE_LETTERS = 60  # a line of them is as wide as a panel


def draw(results: Sequence[Result], path: Path, *, subtitle: str) -> None:
    """Writes the chart of the suites that are about speed."""
    shown = [result for result in results if result.suite.max_rounds is None]
    rows = [shown[first : first + COLUMNS] for first in range(0, len(shown), COLUMNS)]
    bars = [max(len(result.outcome.timings) for result in row) for row in rows]
    if not rows:
        return
    figure, panels = plt.subplots(
        len(rows),
        COLUMNS,
        figsize=(16, sum(bars) * BAR_INCHES + len(rows) * PANEL_INCHES + 0.6),
        squeeze=False,
        layout="constrained",
        gridspec_kw={"height_ratios": [count + 1 for count in bars]},
    )
    for panel in panels.flat[len(shown) :]:
        panel.set_visible(False)
    for result, panel in zip(shown, panels.flat[: len(shown)], strict=True):
        _draw_panel(result, panel)
    figure.suptitle(f"Datum (blue) beside its peers, higher is better\n{subtitle}", fontsize=12)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _draw_panel(result: Result, panel: Any) -> None:
    suite, timings = result.suite, list(result.outcome.timings.values())
    rates = [_rate(timing, in_bytes=suite.is_in_bytes) for timing in timings]
    names = [timing.contender.name for timing in timings]
    bars = panel.barh(names, rates, color=[_colour(name) for name in names], height=0.72)
    reference = rates[names.index(suite.references[0])]
    unit = "GB/s" if suite.is_in_bytes else "records/s"
    labels = [_label(rate, rate / reference, unit) for rate in rates]
    panel.bar_label(bars, labels, padding=4, fontsize=8)
    panel.set_xscale("log")
    panel.set_xlim(min(rates) / 3, max(rates) * 8)  # room for the labels
    panel.invert_yaxis()
    title = textwrap.fill(suite.title, TITLE_LETTERS)
    panel.set_title(title, loc="left", fontsize=9, fontweight="bold")
    panel.set_xlabel(f"{unit} (as a multiple of '{suite.references[0]}')", fontsize=8)
    panel.tick_params(labelsize=8)
    panel.spines[["top", "right"]].set_visible(False)


def _rate(timing: Timing, *, in_bytes: bool) -> float:
    return timing.bytes_per_s / 1e9 if in_bytes else timing.records_per_s


def _colour(name: str) -> str:
    if name.startswith("datum"):
        return OURS
    return MEMORY if name.startswith("memory") else THEIRS


def _label(rate: float, ratio: float, unit: str) -> str:
    figure = f"{rate:.2f}" if unit == "GB/s" else f"{rate:,.0f}"
    return f"{figure}  ({ratio:,.0f}x)" if ratio >= 10 else f"{figure}  ({ratio:.2g}x)"
