"""Features of a dataset as a table, with distributions and class balance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from datum import Feature
from datum.cli.formatting import (
    Column,
    cut,
    cut_middle,
    describe_number,
    describe_range,
    describe_share,
    lay_out,
    one_line,
)
from datum.cli.terminal import FILE_WIDTH, Signs
from datum.errors import count_of, format_bytes

if TYPE_CHECKING:
    from datum import Profile
    from datum._inspect.profile.results import (
        Distribution,
        FeatureProfile,
        ImageProfile,
        ValueCounts,
    )

__all__ = [
    "balance",
    "balanced_features",
    "bar",
    "densities",
    "describe_shape",
    "describe_stored",
    "describe_type",
    "describe_values",
    "feature_table",
    "rows",
    "sparkline",
]


def densities(edges: Sequence[float], counts: Sequence[float], bins: int) -> list[float]:
    """Density of values in at most `bins` bins, each joined from the same number of neighbours.

    The last bin may be narrower than the others; its density accounts for that.

    >>> densities([0, 2, 4, 5], [2, 2, 1], 3)
    [1.0, 1.0, 1.0]
    """
    joined = max(1, -(-len(counts) // bins))
    found = []
    for start in range(0, len(counts), joined):
        end = min(start + joined, len(counts))
        width = edges[end] - edges[start]
        found.append(sum(counts[start:end]) / width if 0 < width < math.inf else 1.0)
    return found


def sparkline(counts: Sequence[float], signs: Signs) -> str:
    """Draw a histogram on one line, one character per bin, blank only for empty bins.

    >>> from datum.cli.terminal import UNICODE
    >>> sparkline([1, 0, 4, 8], UNICODE)
    '▁ ▄█'
    """
    most = max(counts, default=0)
    if not most:
        return ""
    top = len(signs.levels) - 1
    return "".join(signs.levels[_level(count, most, top)] for count in counts)


def _level(count: float, most: float, top: int) -> int:
    return max(1, round(count / most * top)) if count else 0


def rows(counts: Sequence[float], height: int, signs: Signs) -> list[str]:
    """Draw a histogram of several rows, from top to bottom, one column per bin."""
    most = max(counts, default=0)
    if not most:
        return []
    steps = len(signs.levels) - 1
    tops = [_level(count, most, height * steps) for count in counts]
    return [
        "".join(signs.levels[min(max(top - row * steps, 0), steps)] for top in tops)
        for row in reversed(range(height))
    ]


def bar(share: float, width: int, signs: Signs) -> str:
    """Draw a bar over a share of the width; any share above 0 is visible.

    >>> from datum.cli.terminal import ASCII
    >>> bar(0.5, 8, ASCII)
    '####'
    """
    steps = len(signs.parts) - 1
    filled = max(1, round(min(1.0, share) * width * steps)) if share > 0 else 0
    whole, rest = divmod(filled, steps)
    return signs.parts[-1] * whole + (signs.parts[rest] if rest else "")


CHART_WIDTH = 16
SMALL_CHART_WIDTH = 8
LEAST_NAME = 16  # cells for a name on a narrow terminal
LEAST_VALUES = 20
FEW_VALUES = 8  # of a text feature, shown with their shares


def feature_table(features: Mapping[str, FeatureProfile], width: int, signs: Signs) -> list[Text]:
    """Return one line per feature; on a narrow terminal, columns are dropped and texts cut."""
    shown = _Cells(features, signs)
    for columns in shown.layouts(width):
        lines = lay_out(columns)
        if max((line.cell_len for line in lines), default=0) <= width:
            return lines
    return lines


class _Cells:
    """Contents of all columns, before the layout is chosen."""

    def __init__(self, features: Mapping[str, FeatureProfile], signs: Signs) -> None:
        self.signs = signs
        self.profiles = list(features.values())
        self.names = [one_line(name) for name in features]
        self.values = [describe_values(one, signs) for one in self.profiles]

    def layouts(self, width: int) -> Sequence[list[Column]]:
        """Return layouts of the table, from the widest to the narrowest."""
        wide = ("type", "shape", "stored", "missing", "values", "mean", "chart")
        no_stored = tuple(part for part in wide if part != "stored")
        small = tuple("small" if part == "chart" else part for part in no_stored)
        no_chart = no_stored[:-1]
        name, values = max(LEAST_NAME, width * 3 // 10), max(LEAST_VALUES, width * 4 // 10)
        short, few = max(LEAST_NAME, width // 5), max(LEAST_VALUES, width * 3 // 10)
        least = max(LEAST_VALUES, width - LEAST_NAME - 36)
        return [
            self._columns(wide, 10**6, 10**6),
            *(self._columns(parts, name, values) for parts in (wide, no_stored, small)),
            *(self._columns(parts, short, few) for parts in (no_stored, small)),
            self._columns(no_chart, name, values),
            self._columns(no_chart[:-1], name, values),
            self._columns(("type", "missing", "values"), name, values),
            self._columns(("type", "missing", "values"), LEAST_NAME, least),
            self._columns(("type", "values"), LEAST_NAME, LEAST_VALUES),
            self._columns(("type",), max(8, width - 12), 0),
        ]

    def _columns(self, parts: Sequence[str], name_width: int, values_width: int) -> list[Column]:
        names = [cut_middle(name, name_width, self.signs) for name in self.names]
        columns = [Column("feature", names, style="bold")]
        columns += [self._column(part, values_width, parts) for part in parts]
        return [column for column in columns if not column.is_empty]

    def _column(self, part: str, values_width: int, parts: Sequence[str]) -> Column:
        features = [one.feature for one in self.profiles]
        if part == "type":
            has_stored = "stored" in parts  # else the type mentions raw bytes
            types = [
                f"{describe_type(one)}{' raw' if one.feature.is_raw and not has_stored else ''}"
                for one in self.profiles
            ]
            return Column("type", types, style="cyan")
        if part == "shape":
            shapes = [describe_shape(feature, self.signs) for feature in features]
            return Column("shape", shapes)
        if part == "stored":
            return Column("stored as", [*map(describe_stored, features)], style="dim")
        if part == "missing":
            return Column("missing", [*map(_missing, self.profiles)], "right", "yellow")
        if part == "values":
            values = [cut(text, values_width, self.signs) for text in self.values]
            return Column("values", values)
        if part == "mean":
            return Column("mean", [_mean(one, self.signs) for one in self.profiles], "right")
        width = SMALL_CHART_WIDTH if part == "small" else CHART_WIDTH
        charts = [_chart(one, width, self.signs) for one in self.profiles]
        return Column("spread" if part == "small" else "distribution", charts, style="green")


def describe_type(one: FeatureProfile) -> str:
    """Describe the type of elements, or an image."""
    feature = one.feature
    if feature.encoding == "image":
        word = "images" if feature.holds_images else "image"
        return word if feature.dtype == "uint8" else f"{word} {feature.dtype}"
    return feature.dtype


def describe_shape(feature: Feature, signs: Signs) -> str:
    """Describe the shape of a value, with `?` for any length; empty for scalars.

    >>> from datum.cli.terminal import ASCII
    >>> describe_shape(Feature("float32", (None, 4)), ASCII)
    '? x 4'
    """
    return f" {signs.times} ".join("?" if n is None else f"{n:,}" for n in feature.shape)


def describe_stored(feature: Feature) -> str:
    """Describe how a feature is stored in a tf.train.Example.

    >>> describe_stored(Feature("float64", (3,))), describe_stored(Feature("bool"))
    ('raw bytes', 'int64 list')
    """
    if feature.encoding == "image":
        return "image files" if feature.holds_images else "image file"
    if feature.is_string:
        kind = "bytes list"
    elif feature.is_raw:
        kind = "raw bytes"
    else:
        kind = "float list" if "float" in feature.dtype else "int64 list"
    if feature.encoding == "sparse":
        return f"sparse, {kind}"
    return f"{kind}, sequence" if feature.sequence else kind


def _missing(one: FeatureProfile) -> str:
    return describe_share(one.missing_share) if one.missing else ""


def _mean(one: FeatureProfile, signs: Signs) -> str:
    numbers = one.numbers
    is_class = one.is_label or one.feature.dtype == "bool"
    if numbers is None or not numbers.count or is_class or numbers.lowest == numbers.highest:
        return ""
    mean = describe_number(numbers.mean, dtype=one.feature.dtype, digits=3)
    if numbers.std is None or "64[" in one.feature.dtype:
        return mean
    return f"{mean} {signs.within} {describe_number(numbers.std, digits=3)}"


def _chart(one: FeatureProfile, width: int, signs: Signs) -> str:
    """Sparkline of the values: sizes for strings and images, classes for labels."""
    counts = one.counts
    if one.is_label and counts is not None and counts.is_complete:
        sizes = [count for _, count in sorted(counts.values)]
        return sparkline(densities(range(len(sizes) + 1), sizes, width), signs)
    shown = one.sizes if one.sizes is not None else one.numbers
    if shown is None or shown.histogram is None or len(shown.histogram.counts) < 2:
        return ""
    return sparkline(densities(shown.histogram.edges, shown.histogram.counts, width), signs)


def describe_values(one: FeatureProfile, signs: Signs) -> str:
    """Describe the values of a feature in a few words."""
    if not one.present:
        return "none"
    parts = []
    if one.images is not None:
        parts.append(_describe_images(one.images, signs))
        if one.sizes is not None and one.sizes.count:
            parts.append(f"{_sizes(one.sizes, signs)} each")
    elif one.is_label and one.counts is not None:
        parts.append(_describe_classes(one.counts))
    elif one.sizes is not None:
        parts += _describe_strings(one, signs)
    elif one.numbers is not None and one.numbers.count:
        parts.append(_describe_numbers(one.numbers, one.feature.dtype, signs))
    if one.numbers is not None and one.numbers.nan + one.numbers.infinite:
        found = (("NaN", one.numbers.nan), ("inf", one.numbers.infinite))
        parts += [f"{count:,} {what}" for what, count in found if count]
    if one.filled is not None:
        parts.append(f"{describe_share(one.filled)} filled")
    elif one.lengths is not None and one.lengths.count:
        items = describe_range(one.lengths.lowest, one.lengths.highest, signs)
        parts.append(f"{items} per record")
    return ", ".join(parts)


def _describe_numbers(numbers: Distribution, dtype: str, signs: Signs) -> str:
    if dtype == "bool":
        return f"{describe_share(numbers.mean or 0.0)} true"
    return describe_range(numbers.lowest, numbers.highest, signs, dtype=dtype)


def _describe_classes(counts: ValueCounts) -> str:
    what = ("class", "classes") if counts.names else ("value", None)
    return count_of(counts.distinct, *what)


def _describe_strings(one: FeatureProfile, signs: Signs) -> list[str]:
    """Describe strings: few values by their shares, many by their sizes and an example."""
    sizes, counts = one.sizes, one.counts
    assert sizes is not None
    if counts is not None and counts.is_complete and 0 < counts.distinct <= FEW_VALUES:
        if counts.distinct == 1:
            return [f"always {one_line(counts.name_of(counts.values[0][0])) or 'empty'}"]
        if counts.distinct < counts.total:
            shares = (
                f"{one_line(counts.name_of(value))} {describe_share(count / counts.total)}"
                for value, count in counts.values
            )
            return [f"{count_of(counts.distinct, 'value')}: {', '.join(shares)}"]
    parts = [] if counts is None else _describe_distinct(counts, signs)
    if sizes.count:
        parts.append(_sizes(sizes, signs))
    return parts + [_quote(example) for example in one.examples[:1]]


def _describe_distinct(counts: ValueCounts, signs: Signs) -> list[str]:
    """Describe the number of distinct values, if it is known or clearly small."""
    if counts.is_exact and counts.distinct == counts.total > 0:
        return ["all differ"]
    if (counts.is_exact or counts.is_known) and counts.is_counted and counts.distinct:
        return [count_of(counts.distinct, "value")]
    if counts.is_known:
        return [f"at least {count_of(counts.distinct, 'value')}"]
    is_few = 0 < counts.distinct <= counts.total / 4
    return [f"{signs.about}{count_of(counts.distinct, 'value')}"] if is_few else []


def _quote(example: str | bytes) -> str:
    if isinstance(example, bytes):
        return repr(example[:24])
    return f'"{one_line(example)}"'


def _sizes(sizes: Distribution, signs: Signs) -> str:
    low, high = format_bytes(sizes.lowest), format_bytes(sizes.highest)
    if low == high:
        return low
    if low.split()[1] == high.split()[1]:
        low = low.split()[0]
    return f"{low}{signs.to}{high}"


def _describe_images(images: ImageProfile, signs: Signs) -> str:
    formats = " and ".join(name.upper() for name in images.formats) or "no image"
    if not images.width.count:
        return formats
    sides = (
        describe_range(side.lowest, side.highest, signs) for side in (images.width, images.height)
    )
    return f"{formats} {f' {signs.times} '.join(sides)}"


BAR_WIDTH = 24
LEAST_BAR_WIDTH = 6
MAX_NAME = 40
BALANCED_RATIO = 1.5  # most frequent to rarest class
MAX_SPLITS = 4  # with counts beside the bars


def balanced_features(features: Mapping[str, FeatureProfile]) -> list[str]:
    """Return the names of label features."""
    return [name for name, one in features.items() if one.is_label and one.counts]


def balance(profile: Profile, name: str, width: int, signs: Signs, *, shown: int) -> list[Text]:
    """Return lines for the most frequent classes of a feature and the sum of the others."""
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
    """Bars of classes; the sum of the others has none."""
    return [
        Text(bar(count / most, width, signs), "green") if at < classes else Text("")
        for at, (_, count) in enumerate(rows)
    ]


def _split_columns(profile: Profile, name: str, values: list[object]) -> list[Column]:
    """Counts by split, if all are known."""
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
