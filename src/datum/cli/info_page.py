"""The page of `datum info`."""

from __future__ import annotations

import glob
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from rich.console import Group, RenderableType
from rich.text import Text

from datum import DatumError, specs
from datum.cli.feature_table import balance, balanced_features, bar, feature_table
from datum.cli.formatting import (
    Column,
    Sized,
    cut,
    cut_middle,
    describe_range,
    describe_share,
    lay_out,
    one_line,
)
from datum.cli.shell import say
from datum.cli.terminal import FILE_WIDTH, Signs, data
from datum.errors import Message, count_of, format_bytes, shell_word

if TYPE_CHECKING:
    from datum import Dataset, Profile
    from datum._inspect.profile.results import PayloadProfile, ProfileWarning

__all__ = [
    "Dialect",
    "describe_look",
    "describe_unknown",
    "make_spec",
    "print_spec",
    "render",
    "show_heading",
    "show_payloads",
    "show_splits",
    "show_warnings",
]

ROW_BYTES = 16
_KINDS = {
    "text": "plain text",
    "json": "JSON",
    "protobuf": "protobuf messages, but not tf.train.Example",
    "bytes": "bytes of unknown type",
    "empty": "empty",
}


def show_payloads(payloads: PayloadProfile, width: int, signs: Signs) -> list[Text]:
    """Lines about records without features: their type, fields, and the first record."""
    kind = _KINDS.get(payloads.kind, f"{payloads.kind.upper()} images")
    sizes = payloads.sizes
    facts = [f"{kind}"]
    if sizes.count:
        facts.append(f"{describe_range(sizes.lowest, sizes.highest, signs)} bytes each")
    between = f" {signs.between} "
    lines = [Text.assemble(("records", "bold"), "  ", (between.join(facts), ""))]
    if payloads.fields:
        lines += _show_fields(payloads, width, signs)
    if payloads.first:
        lines += [Text(), Text("first record", "dim"), *_show_bytes(payloads.first, width)]
    return lines


def _show_fields(payloads: PayloadProfile, width: int, signs: Signs) -> list[Text]:
    fields = payloads.fields
    columns = [
        Column("field", [str(number) for number, *_ in fields], "right", "bold"),
        Column("type", [kind for _, kind, *_ in fields], style="cyan"),
        Column("in records", [f"{records:,} of {payloads.seen:,}" for *_, records, _ in fields]),
        Column("example", [one_line(example) for *_, example in fields]),
    ]
    room = width - sum(column.width + 2 for column in columns[:-1])
    examples = [cut(str(cell), max(8, room), signs) for cell in columns[-1].cells]
    return [Text(), *lay_out([*columns[:-1], Column("example", examples)])]


def _show_bytes(data: bytes, width: int) -> list[Text]:
    """Dump bytes in hexadecimal and as text."""
    size = ROW_BYTES if width >= 3 * ROW_BYTES + 2 + ROW_BYTES else ROW_BYTES // 2
    rows = [data[at : at + size] for at in range(0, len(data), size)]
    texts = ["".join(chr(byte) if 32 <= byte < 127 else "." for byte in row) for row in rows]
    return lay_out(
        [
            Column("", [row.hex(" ") for row in rows], style="dim"),
            Column("", texts),
        ],
        indent="  ",
    )


def describe_unknown(error: DatumError) -> str:
    """Reason for unknown features, without the path."""
    return error.problem


SHOWN_WARNINGS = 6  # of one kind; the others are only counted
MAX_NAME = 32
MAX_TEXT = 110  # of a readable line


def show_warnings(
    warnings: Sequence[ProfileWarning], width: int, signs: Signs, *, is_cut: bool = True
) -> list[Text]:
    """Return one paragraph per kind of warning, the most serious first, uncut in a file."""
    is_file = width >= FILE_WIDTH
    room = 10**9 if is_file else min(width, MAX_TEXT)  # no limit
    lines: list[Text] = []
    for _, group in groupby(warnings, lambda warning: warning.kind):
        lines += _show_kind(list(group), room, signs, is_cut=is_cut and not is_file)
    return lines


def _show_kind(
    group: list[ProfileWarning], width: int, signs: Signs, *, is_cut: bool
) -> list[Text]:
    first = group[0]
    title = Text.assemble((f"{signs.bad} ", "bold yellow"), (first.title, "yellow"))
    text = _sentence(first) if len(group) == 1 else _list(group, signs, is_cut=is_cut)
    return [
        title,
        *_wrapped(text, width, ""),
        *_wrapped(f"hint: {say(first.hint)}", width, "cyan"),
    ]


def _wrapped(text: str, width: int, style: str) -> list[Text]:
    room = max(20, width - 2)
    lines = textwrap.wrap(one_line(text), room, break_long_words=False, break_on_hyphens=False)
    return [Text(f"  {line}", style) for line in lines]


def _sentence(warning: ProfileWarning) -> str:
    return f"{warning.feature}: {warning.text}" if warning.feature else warning.text


def _name(warning: ProfileWarning, signs: Signs, is_cut: bool) -> str:
    name = one_line(warning.feature or "")
    return cut_middle(name, MAX_NAME, signs) if is_cut else name


def _list(group: list[ProfileWarning], signs: Signs, *, is_cut: bool) -> str:
    """Join warnings of one kind: features with figures, or sentences."""
    shown = group[:SHOWN_WARNINGS] if is_cut else group
    more = len(group) - len(shown)
    rest = f" and {more:,} more" if more else ""
    if not all(warning.feature and warning.figure for warning in group):
        return "; ".join(map(_sentence, shown)) + rest
    named = ", ".join(f"{_name(warning, signs, is_cut)} ({warning.figure})" for warning in shown)
    return f"{count_of(len(group), 'feature')}: {named}{rest}"


SHARE_WIDTH = 12
MAX_BALANCES = 3  # features with classes shown; the others are only named
_WRITERS = {
    "datum": "Datum dataset",
    "tfds": "TFDS dataset",
    "older datum": "dataset of the older library",
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
    """Make the page of `datum info`, for a console of any width.

    Args:
        profile: Result of `datum.profile`.
        title: Name of the dataset; its folder by default.
        unknown: Error that left the features unknown, from `open_any`.
        features: Number of features to show; None for all.
        classes: Number of classes of a label to show.
        all_features: Number of features of the dataset, if the profile covers only some.
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
        """Yield the parts of the page as functions of width and signs."""
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
            seen = "" if self.profile.is_complete else " in the records read"
            yield Text()
            yield Text.assemble((f"{signs.good} ", "bold green"), f"no warnings{seen}")

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
    """Lines with the name, the writer and the size of a dataset."""
    version = f" (format {profile.version})" if profile.version is not None else ""
    compression = profile.compression or _mixed(profile)
    writer = _WRITERS[profile.writer]
    if profile.writer == "tfrecord files" and profile.shards == 1:
        writer = "TFRecord file"
    facts = [
        f"{writer}{version}",
        count_of(profile.records, "record"),
        format_bytes(profile.bytes),
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
    """Table of splits: records, sizes, shards."""
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
        Column("size", [format_bytes(split.bytes) for split in splits], "right"),
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
    return format_bytes(split.bytes / split.records) if split.records else ""


def describe_look(profile: Profile, *, how_to_see_all: str = "--full reads all") -> str:
    """Describe how much of a dataset was read, and how to read all of it."""
    seconds = f"{profile.seconds:.2f} s" if profile.seconds < 10 else f"{profile.seconds:.0f} s"
    if profile.is_complete:
        return f"read all {count_of(profile.records, 'record')} in {seconds}"
    is_known = profile.features and all(one.is_exact for one in profile.features.values())
    known = " (counts, ranges and means of all records are in the manifest)" if is_known else ""
    seen = f"read {profile.seen:,} of {profile.records:,} records in {seconds}"
    return f"{seen}{known}{': ' if how_to_see_all else ''}{how_to_see_all}"


Dialect = Literal["tf", "dali", "tfrecord"]


def print_spec(dataset: Dataset, dialect: str) -> None:
    """Print code that reads a dataset with TensorFlow ("tf"), DALI or the package `tfrecord`.

    It is coloured on a terminal, and plain UTF-8 elsewhere.
    """
    code = make_spec(dataset, dialect)
    console = data()
    if console.is_terminal:
        from rich.syntax import Syntax

        syntax = Syntax(code.rstrip("\n"), "python", theme="ansi_dark", background_color="default")
        console.print(syntax, soft_wrap=True)
        return
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None:  # replaced by a text-only stream
        sys.stdout.write(code)
        return
    sys.stdout.flush()
    stream.write(code.encode())
    stream.flush()


def make_spec(dataset: Dataset, dialect: str) -> str:
    """Return the code for the files and the compression of a dataset."""
    if dialect not in get_args(Dialect):
        known = ", ".join(get_args(Dialect))
        raise ValueError(Message(f"--spec: expected one of {known}, got {dialect!r}"))
    files, compression = _files_of(dataset), dataset.compression
    if dialect == "dali":
        return specs.dali(dataset.schema, files=files, compression=compression)
    if dialect == "tfrecord":
        return specs.tfrecord(dataset.schema, files=files, compression=compression)
    return specs.tensorflow(
        dataset.schema, files=files, compression=compression, metadata=dataset.metadata
    )


def _files_of(dataset: Dataset) -> str | list[str]:
    """Pattern or names of the files of the split `train`, or of the first split."""
    names = [name for name, info in dataset.splits.items() if info.records] or list(dataset.splits)
    split = "train" if "train" in names else names[0]
    files = [dataset.path / shard.name for shard in dataset.splits[split].shards]
    patterns = _patterns_of(files)
    return patterns or [str(file) for file in files]


def _patterns_of(files: Sequence[Path]) -> str | None:
    """Return a pattern that matches exactly these files, or None."""
    folders: dict[Path, list[str]] = defaultdict(list)
    for file in files:
        folders[file.parent].append(file.name)
    if len(files) < 2 or len(folders) > 1 or glob.has_magic(str(files[0].parent)):
        return None
    folder, names = next(iter(folders.items()))
    start = _shared(names).rstrip("0123456789")
    end = _shared([name[::-1] for name in names])[::-1].lstrip("0123456789")
    if glob.has_magic(start + end):
        return None
    pattern = f"{start}*{end}"
    found = sorted(path.name for path in folder.glob(pattern))
    return str(folder / pattern) if found == sorted(names) else None


def _shared(names: Sequence[str]) -> str:
    """Common prefix of all names."""
    first, last = min(names), max(names)
    count = next((at for at, one in enumerate(first) if last[at : at + 1] != one), len(first))
    return first[:count]
