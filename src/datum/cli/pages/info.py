"""The page that `datum info` shows: what a dataset is, what it holds, and what to beware of."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from datum import DatumError
from datum.cli.pages.balance import balance, balanced_features
from datum.cli.pages.feature_table import feature_table
from datum.cli.pages.histograms import bar
from datum.cli.pages.payloads import describe_unknown, show_payloads
from datum.cli.pages.warnings import show_warnings
from datum.cli.words.figures import describe_share, one_line
from datum.cli.words.grid import Column, Sized, lay_out
from datum.cli.words.signs import Signs
from datum.cli.words.wording import count_of, describe_size
from datum.errors import shell_word

if TYPE_CHECKING:
    from datum import Profile

__all__ = ["describe_look", "render", "show_heading", "show_splits"]

SHARE_WIDTH = 12
MAX_BALANCES = 3  # features whose classes are shown; the rest is named
_WRITERS = {
    "datum": "Datum dataset",
    "tfds": "TFDS dataset",
    "older datum": "dataset of the older Datum",
    "tfrecord files": "TFRecord files",
}


def render(
    profile: Profile,
    *,
    title: str | None = None,
    unknown: DatumError | None = None,
    features: int | None = None,
    classes: int = 10,
    all_features: int | None = None,
) -> RenderableType:
    """What is known of a dataset, as something that rich prints at any width.

    Args:
        profile: what `datum.profile` found.
        title: what to call the dataset; by default its folder.
        unknown: why there are no features, as `open_any` tells.
        features: how many features to show; None for all of them.
        classes: how many classes of a label to show.
        all_features: how many features there are, if the profile is of some of them.
    """
    page = _Page(profile, title or str(profile.path), unknown, features, classes, all_features)
    return Group(*(Sized(part) for part in page.parts()))


@dataclass(frozen=True, slots=True)
class _Page:
    profile: Profile
    title: str
    unknown: DatumError | None
    features: int | None
    classes: int
    all_features: int | None

    def parts(self) -> Iterator[Any]:
        """Each part of the page, as a function of width and signs."""
        yield lambda width, signs: show_heading(self.profile, self.title, width, signs)
        yield lambda width, signs: [Text(), *show_splits(self.profile, width, signs)]
        if self.unknown is not None:
            yield self._show_unknown
        if self.profile.features:
            yield self._show_features
            yield self._show_balances
        yield self._show_warnings
        yield self._show_next

    def _show_unknown(self, width: int, signs: Signs) -> Iterator[Text]:
        assert self.unknown is not None
        yield Text()
        yield Text.assemble((f"{signs.bad} ", "bold yellow"), ("no features are known", "yellow"))
        for line in textwrap.wrap(describe_unknown(self.unknown), max(20, width - 2)):
            yield Text(f"  {line}")
        for name, split in self.profile.splits.items():
            if split.payloads is not None:
                yield Text()
                if len(self.profile.splits) > 1:
                    yield Text(one_line(name), "bold")
                yield from show_payloads(split.payloads, width, signs)

    def _show_features(self, width: int, signs: Signs) -> Iterator[Text]:
        names = list(self.profile.features)[: self.features]
        yield Text()
        yield from feature_table(
            {name: self.profile.features[name] for name in names}, width, signs
        )
        for note in self.profile.floats.lines():
            yield from (Text(line, "dim") for line in textwrap.wrap(one_line(note), width))
        more = (self.all_features or len(self.profile.features)) - len(names)
        if more > 0:
            yield Text(f"{signs.dots} {count_of(more, 'more feature')}: --all shows them", "dim")

    def _show_balances(self, width: int, signs: Signs) -> Iterator[Text]:
        names = balanced_features(self.profile.features) if self.classes else []
        for name in names[:MAX_BALANCES]:
            yield Text()
            yield from balance(self.profile, name, width, signs, shown=self.classes)
        if len(names) > MAX_BALANCES:
            more = ", ".join(map(one_line, names[MAX_BALANCES:]))
            yield Text(f"{signs.dots} more labels: {more}", "dim")

    def _show_warnings(self, width: int, signs: Signs) -> Iterator[Text]:
        if self.profile.warnings:
            yield Text()
            yield from show_warnings(self.profile.warnings, width, signs)
        elif self.profile.features:
            seen = "" if self.profile.is_complete else " in what was looked at"
            yield Text()
            yield Text.assemble((f"{signs.good} ", "bold green"), f"nothing to warn of{seen}")

    def _show_next(self, width: int, signs: Signs) -> Iterator[Text]:
        yield Text()
        for line in textwrap.wrap(describe_look(self.profile), width):
            yield Text(line, "dim")
        path = shell_word(self.title)
        steps = [f"datum head {path}", f"datum stats {path}"]
        if self.profile.features:
            steps.append(f"datum info {path} --spec tf")
        line = f"next: {f' {signs.between} '.join(steps)}"
        yield Text(line if len(line) <= width else f"next: {steps[0]}", "dim")


def show_heading(profile: Profile, title: str, width: int, signs: Signs) -> list[Text]:
    """What it is called, who wrote it, and how large it is."""
    version = f" (format {profile.version})" if profile.version is not None else ""
    compression = profile.compression or _mixed(profile)
    writer = _WRITERS[profile.writer]
    if profile.writer == "tfrecord files" and profile.shards == 1:
        writer = "TFRecord file"
    facts = [
        f"{writer}{version}",
        count_of(profile.records, "record"),
        describe_size(profile.bytes),
        count_of(profile.shards, "shard" if profile.writer != "tfrecord files" else "file"),
        compression,
    ]
    between = f" {signs.between} "
    name = one_line(title)
    line = Text.assemble((name, "bold"), "  ", (between.join(facts), "dim"))
    if line.cell_len <= width:
        return [line]
    return [Text(name, "bold"), *_wrapped_facts(facts, width, between)]


def _mixed(profile: Profile) -> str:
    return "not compressed" if profile.bytes else "empty"


def _wrapped_facts(facts: list[str], width: int, between: str) -> list[Text]:
    lines: list[str] = []
    for fact in facts:
        if lines and len(lines[-1]) + len(between) + len(fact) <= width:
            lines[-1] += between + fact
        else:
            lines.append(fact)
    return [Text(line, "dim") for line in lines]


def show_splits(profile: Profile, width: int, signs: Signs) -> list[Text]:
    """How many records and bytes each split has."""
    splits = list(profile.splits.values())
    total = max(1, profile.records)
    names = [one_line(name) for name in profile.splits]
    columns = [
        Column("split", names, style="bold"),
        Column("records", [f"{split.records:,}" for split in splits], "right"),
        Column("share", [describe_share(split.records / total) for split in splits], "right"),
        Column(
            "", [bar(split.records / total, SHARE_WIDTH, signs) for split in splits], style="blue"
        ),
        Column("size", [describe_size(split.bytes) for split in splits], "right"),
        Column("shards", [f"{split.shards:,}" for split in splits], "right"),
        Column("a record", [_bytes_each(split) for split in splits], "right"),
    ]
    if len(splits) == 1:
        columns = [column for column in columns if column.title not in ("share", "")]
    for dropped in ("", "a record", "share", "shards"):
        lines = lay_out(columns)
        if max(line.cell_len for line in lines) <= width:
            break
        columns = [column for column in columns if column.title != dropped]
    return lay_out(columns)


def _bytes_each(split: Any) -> str:
    return describe_size(split.bytes / split.records) if split.records else ""


def describe_look(profile: Profile, *, how_to_see_all: str = "--full looks at all") -> str:
    """How much of a dataset was looked at, and how more of it would be."""
    seconds = f"{profile.seconds:.2f} s" if profile.seconds < 10 else f"{profile.seconds:.0f} s"
    if profile.is_complete:
        return f"looked at all {count_of(profile.records, 'record')} in {seconds}"
    is_known = profile.features and all(one.is_exact for one in profile.features.values())
    known = " (counts, ranges and means are of all, from the manifest)" if is_known else ""
    seen = f"looked at {profile.seen:,} of {profile.records:,} records in {seconds}"
    return f"{seen}{known}{': ' if how_to_see_all else ''}{how_to_see_all}"
