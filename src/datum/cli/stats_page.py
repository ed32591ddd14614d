"""The page of `datum stats`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from datum.cli.feature_table import (
    balance,
    densities,
    describe_shape,
    describe_stored,
    describe_type,
    rows,
)
from datum.cli.formatting import (
    Column,
    Sized,
    cut,
    describe_number,
    describe_range,
    describe_share,
    lay_out,
    one_line,
)
from datum.cli.info_page import (
    describe_look,
    show_heading,
    show_payloads,
    show_splits,
    show_warnings,
)
from datum.cli.terminal import Signs
from datum.errors import count_of

if TYPE_CHECKING:
    from datum import Profile
    from datum._inspect.profile.results import Distribution, FeatureProfile, ImageProfile

__all__ = [
    "render",
]

CHART_ROWS = 4
SHOWN_VALUES = 12
MAX_CHART_WIDTH = 64
MAX_BIN_WIDTH = 6
FEW_VALUES = 24  # of a feature without labels, listed with counts


def render(profile: Profile, *, title: str | None = None) -> RenderableType:
    """Make the page of `datum stats`, for a console of any width."""
    name = title or str(profile.path)

    def show_head(width: int, signs: Signs) -> Iterator[Text]:
        yield from show_heading(profile, name, width, signs)
        yield Text()
        yield from show_splits(profile, width, signs)
        for split in profile.splits.values():
            if split.payloads is not None:
                yield Text()
                yield from show_payloads(split.payloads, width, signs)

    blocks = [_Block(profile, feature) for feature in profile.features]
    parts = [Sized(show_head), *(Sized(block.show) for block in blocks)]
    return Group(*parts, Sized(lambda width, signs: _show_end(profile, width, signs)))


def _show_end(profile: Profile, width: int, signs: Signs) -> Iterator[Text]:
    yield Text()
    if profile.warnings:
        yield from show_warnings(profile.warnings, width, signs, is_cut=False)
    else:
        yield Text.assemble((f"{signs.good} ", "bold green"), "no warnings")
    yield Text()
    within = sum(one.records for one in profile.duplicates if one.split == one.other)
    across = sum(one.records for one in profile.duplicates if one.split != one.other)
    exact = "" if profile.is_complete else "at least "
    look = f"duplicates: {exact}{within:,} within, {exact}{across:,} across splits"
    for text in (look, describe_look(profile, how_to_see_all="")):
        for line in textwrap.wrap(text, width):
            yield Text(line, "dim")


class _Block:
    """One feature in full."""

    def __init__(self, profile: Profile, name: str) -> None:
        self.profile = profile
        self.name = name
        self.one = profile.features[name]

    def show(self, width: int, signs: Signs) -> Iterator[Text]:
        one = self.one
        yield Text()
        yield self._heading(width, signs)
        yield from _facts(_count_facts(one), width, signs)
        if one.images is not None:
            yield from _show_images(one.images, width, signs)
        for what, found in _distributions(one):
            dtype = one.feature.dtype if found is one.numbers else ""
            yield from _show_distribution(what, found, dtype, width, signs)
        yield from self._show_values(width, signs)
        if one.examples and not (one.counts and one.counts.is_complete and _are_few(one)):
            shown = (
                example if isinstance(example, str) else repr(example) for example in one.examples
            )
            for example in shown:
                yield Text(f"  {cut(f'e.g. {one_line(example)}', width - 2, signs)}", "dim")

    def _heading(self, width: int, signs: Signs) -> Text:
        feature = self.one.feature
        facts = (describe_shape(feature, signs), describe_stored(feature))
        rest = f"  {describe_type(self.one)}"
        name = cut(one_line(self.name), max(16, width - len(rest) - 30), signs)
        between = f" {signs.between} "
        return Text.assemble(
            (name, "bold"), (rest, "cyan"), "  ", (between.join(filter(None, facts)), "dim")
        )

    def _show_values(self, width: int, signs: Signs) -> Iterator[Text]:
        """Yield values with bars: all if they are few, else the repeated ones."""
        one, counts = self.one, self.one.counts
        if counts is None or not counts.values or counts.values[0][1] < 2:
            return
        if not (one.is_label or one.sizes is not None or _are_few(one)):
            return
        again = sum(count > 1 for _, count in counts.values[:SHOWN_VALUES])
        shown = SHOWN_VALUES if one.is_label or _are_few(one) else again
        yield from balance(self.profile, self.name, width, signs, shown=shown)[1:]


def _are_few(one: FeatureProfile) -> bool:
    return one.counts is not None and 2 <= one.counts.distinct <= FEW_VALUES


def _count_facts(one: FeatureProfile) -> list[str]:
    about = "" if one.is_exact else "about "
    facts = [f"{about}{count_of(one.present, 'record')}"]
    if one.missing:
        facts.append(f"{one.missing:,} lack it ({describe_share(one.missing_share)})")
    if one.counts is not None and one.counts.distinct:
        exactly = "" if one.counts.is_counted else "at least " if one.counts.is_known else "about "
        facts.append(f"{exactly}{count_of(one.counts.distinct, 'distinct value')}")
    if one.filled is not None:
        facts.append(f"{describe_share(one.filled)} filled")
    if one.empty:
        facts.append(f"{one.empty:,} empty")
    return facts


def _facts(facts: list[str], width: int, signs: Signs) -> Iterator[Text]:
    between = f" {signs.between} "
    line = ""
    for fact in facts:
        joined = f"{line}{between}{fact}" if line else fact
        if line and len(joined) > width - 2:
            yield Text(f"  {line}")
            joined = fact
        line = joined
    if line:
        yield Text(f"  {line}")


def _distributions(one: FeatureProfile) -> Iterator[tuple[str, Distribution]]:
    """Distributions to chart; classes and few texts have counts instead."""
    for what, found in (("", one.numbers), ("items", one.lengths), ("bytes", one.sizes)):
        is_class = what != "items" and (one.is_label or (what == "bytes" and _are_few(one)))
        if found is not None and (found.count or found.nan or found.infinite) and not is_class:
            yield what, found


def _show_images(images: ImageProfile, width: int, signs: Signs) -> Iterator[Text]:
    facts = [f"{count:,} {name.upper()}" for name, count in images.formats.items()]
    if images.width.count:
        sides = (
            describe_range(side.lowest, side.highest, signs)
            for side in (images.width, images.height)
        )
        facts.append(f"{f' {signs.times} '.join(sides)} pixels")
        facts += [
            f"{count_of(channels, 'channel')}: {count:,}"
            for channels, count in images.channels.items()
        ]
    if images.unreadable:
        facts.append(f"{images.unreadable:,} unreadable")
    yield from _facts(facts, width, signs)


def _show_distribution(
    what: str, found: Distribution, dtype: str, width: int, signs: Signs
) -> Iterator[Text]:
    yield from _facts([*_range_facts(what, found, dtype, signs)], width, signs)
    if found.count and found.lowest != found.highest:
        yield from _show_quantiles(found, dtype, width)
        yield from _show_chart(found, dtype, width, signs)


def _range_facts(what: str, found: Distribution, dtype: str, signs: Signs) -> Iterator[str]:
    unit = f" {what}" if what else ""
    if found.count:
        yield describe_range(found.lowest, found.highest, signs, dtype=dtype) + unit
    if found.count and found.lowest != found.highest:
        yield f"mean {describe_number(found.mean, dtype=dtype)}"
        if found.std is not None and "64[" not in dtype:
            yield f"std {describe_number(found.std)}"
        if found.zeros and what != "bytes":
            yield f"{describe_share(found.zeros / found.count)} zeros"
    for name, count in (("NaN", found.nan), ("infinite", found.infinite)):
        if count:
            yield f"{count:,} {name}"


def _show_quantiles(found: Distribution, dtype: str, width: int) -> list[Text]:
    """Show as many of five quantiles as fit, from the middle."""
    columns = [
        Column(
            f"{100 * share:.0f} %", [describe_number(_whole(found, value), dtype=dtype)], "right"
        )
        for share, value in found.quantiles.items()
    ]
    lines = lay_out(columns, indent="  ")
    while len(columns) > 1 and max(line.cell_len for line in lines) > width:
        columns = columns[1:-1]
        lines = lay_out(columns, indent="  ")
    return lines


def _whole(found: Distribution, value: float) -> float:
    """Return a whole quantile of integers as an integer."""
    return int(value) if isinstance(found.lowest, int) and value == int(value) else value


def _show_chart(found: Distribution, dtype: str, width: int, signs: Signs) -> Iterator[Text]:
    if found.histogram is None or len(found.histogram.counts) < 2:
        return
    room = max(8, min(MAX_CHART_WIDTH, width - 2))
    heights = densities(found.histogram.edges, found.histogram.counts, room)
    wide = max(1, min(MAX_BIN_WIDTH, room // len(heights)))
    for row in rows([height for height in heights for _ in range(wide)], CHART_ROWS, signs):
        yield Text(f"  {row.rstrip()}", "green")
    low = describe_number(found.lowest, dtype=dtype)
    high = describe_number(found.highest, dtype=dtype)
    yield Text(f"  {low}{high.rjust(max(1, wide * len(heights) - len(low)))}", "dim")
