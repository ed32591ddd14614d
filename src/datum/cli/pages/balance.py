"""How many records each class has, as bars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.text import Text

from datum.cli.pages.histograms import bar
from datum.cli.terminal import FILE_WIDTH
from datum.cli.words.figures import cut, describe_share, one_line
from datum.cli.words.grid import Column, lay_out
from datum.cli.words.signs import Signs
from datum.cli.words.wording import count_of

if TYPE_CHECKING:
    from datum import Profile
    from datum.profiling import FeatureProfile, ValueCounts

__all__ = ["balance", "balanced_features"]

BAR_WIDTH = 24
LEAST_BAR_WIDTH = 6
MAX_NAME = 40
BALANCED_RATIO = 1.5  # of the most frequent class to the rarest
MAX_SPLITS = 4  # whose counts stand beside the bars


def balanced_features(features: Mapping[str, FeatureProfile]) -> list[str]:
    """The features whose classes are worth showing."""
    return [name for name, one in features.items() if one.is_label and one.counts]


def balance(profile: Profile, name: str, width: int, signs: Signs, *, shown: int) -> list[Text]:
    """The most frequent classes of a feature, and all others together."""
    one = profile.features[name]
    counts = one.counts
    assert counts is not None
    rows = [(one_line(counts.name_of(value)), count) for value, count in counts.values[:shown]]
    total = max(1, counts.total)
    rest = total - sum(count for _, count in rows)
    more = counts.distinct - len(rows)
    if rest > 0 and more > 0:
        rows.append((f"{signs.dots} {more:,} more", rest))
    bars = max(count for _, count in rows[:shown])
    about = "" if counts.is_exact else signs.about
    per_split = _split_columns(profile, name, [value for value, _ in counts.values[:shown]])
    most_name = width if width >= FILE_WIDTH else min(MAX_NAME, max(8, width // 3))
    names = [cut(text, most_name, signs) for text, _ in rows]
    for bar_width, others in ((BAR_WIDTH, per_split), (BAR_WIDTH, []), (LEAST_BAR_WIDTH, [])):
        columns = [
            Column("", names),
            Column("", _bars(rows, bars, bar_width, len(counts.values[:shown]), signs)),
            Column("", [f"{about}{count:,}" for _, count in rows], "right"),
            Column("", [describe_share(count / total) for _, count in rows], "right", "dim"),
            *(_filled_up(column, len(rows)) for column in others),
        ]
        lines = lay_out(columns, indent="  ")
        if max(line.cell_len for line in lines) <= width:
            break
    return [_heading(name, counts, signs), *lines]


def _bars(
    rows: list[tuple[str, int]], most: int, width: int, classes: int, signs: Signs
) -> list[Text]:
    """A bar for each class; what stands for several has none, for it is no class."""
    return [
        Text(bar(count / most, width, signs), "green") if at < classes else Text("")
        for at, (_, count) in enumerate(rows)
    ]


def _split_columns(profile: Profile, name: str, values: list[object]) -> list[Column]:
    """The counts of each split, where they are all known."""
    if not 2 <= len(profile.splits) <= MAX_SPLITS:
        return []
    columns = []
    for split, part in profile.splits.items():
        found = part.features[name].counts if name in part.features else None
        if found is None or not found.is_exact:
            return []
        known = dict(found.values)
        columns.append(
            Column("", [f"{split} {known.get(value, 0):,}" for value in values], "right", "dim")
        )
    return columns


def _filled_up(column: Column, rows: int) -> Column:
    cells = [*column.cells, *[""] * (rows - len(column.cells))]
    return Column(column.title, cells, column.align, column.style)


def _heading(name: str, counts: ValueCounts, signs: Signs) -> Text:
    what = ("class", "classes") if counts.names else ("value", None)
    facts = [count_of(counts.distinct, *what)]
    if counts.is_complete and len(counts.values) > 1:
        ratio = counts.values[0][1] / max(1, counts.values[-1][1])
        is_even = ratio < BALANCED_RATIO
        facts.append(
            "balanced" if is_even else f"most frequent {ratio:,.1f} {signs.times} the rarest"
        )
    between = f" {signs.between} "
    return Text.assemble((one_line(name), "bold"), "  ", (between.join(facts), "dim"))
