"""Verification of records, images and statistics, and the report of its findings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from datum import _core
from datum.columns import BytesColumn, Masked, Ragged
from datum.errors import Damage, DatumError, Message, SchemaError, count_of, format_bytes, inert
from datum.format import Parser, Records, Statistics
from datum.format.encode import collect
from datum.format.parse import place_of
from datum.format.statistics import Counts, FeatureStatistics, Range, summarize
from datum.schema import Feature, Schema

__all__ = [
    "MAX_LISTED",
    "Findings",
    "PictureChecks",
    "Problem",
    "RecordChecks",
    "VerifyReport",
    "compare_statistics",
    "cut_records",
    "find_fault",
    "make_parser",
    "slices_of",
    "summarize_columns",
]


def summarize_columns(
    columns: dict[str, Any], records: Records, schema: Schema
) -> Statistics | None:
    """Statistics of parsed records; None if they cannot be computed."""
    if not len(records):
        return Statistics()
    try:
        return summarize(collect(columns, schema), uncounted=(), threads=1)
    except DatumError:  # values that can be read, but not written
        return None


def compare_statistics(
    stored: Mapping[str, Any], found: Statistics
) -> Iterator[tuple[str | None, str]]:
    """Yield feature and problem for each difference between a manifest and the records.

    Sums are not compared, since those of floats depend on the order of addition.
    """
    try:
        expected = Statistics.from_json(stored)
    except SchemaError:  # another writer has another form
        return
    if expected.records != found.records:
        yield None, _differs("records", expected.records, found.records)
    for name, feature in expected.features.items():
        other = found.features.get(name) or FeatureStatistics(0, found.records)
        for problem in _compare_feature(feature, other):
            yield name, problem


def _compare_feature(expected: FeatureStatistics, found: FeatureStatistics) -> Iterator[str]:
    for what in ("present", "missing"):
        counts = getattr(expected, what), getattr(found, what)
        if counts[0] != counts[1]:
            yield _differs(f"records in which it is {what}", *counts)
    for name in ("numbers", "lengths", "bytes"):
        expected_range, found_range = getattr(expected, name), getattr(found, name)
        if expected_range is not None and found_range is not None:
            yield from _compare_range(name, expected_range, found_range)
    if expected.counts is not None and found.counts is not None:
        yield from _compare_counts(expected.counts, found.counts)


def _compare_range(name: str, expected: Range, found: Range) -> Iterator[str]:
    parts = (("count", "count"), ("lowest", "least"), ("highest", "greatest"))
    for part, word in (*parts, ("nan", "count of nan"), ("infinite", "count of infinite")):
        if getattr(expected, part) != getattr(found, part):
            yield _differs(f"{word} of {name}", getattr(expected, part), getattr(found, part))


def _compare_counts(expected: Counts, found: Counts) -> Iterator[str]:
    if found.more_than is not None:
        return
    for value, count in expected.values.items():
        if found.values.get(value, 0) != count:
            yield _differs(f"count of {value!r}", count, found.values.get(value, 0))
            return


def _differs(what: str, expected: object, found: object) -> str:
    return f"expected {what} of {expected}, as the manifest says, got {found}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem that a verification found.

    Attributes:
        split: Split of the shard.
        shard: Name of the file in the dataset.
        kind: "missing file", "unreadable file", "size", "file checksum", "compression",
            "record count" or "index" for a whole file; "torn header", "torn payload",
            "length checksum", "payload checksum", "oversized record" or "compressed stream" for
            damaged bytes; "malformed", "schema" or "image" for an intact record that cannot be
            used; "statistics" for a split; "more" for problems that are only counted.
        text: The expected value, and the value found.
        record: Number of the record in the shard; each damaged place counts as one record.
        offset: First byte, in the decompressed stream if the file is compressed.
        end: First byte after it.
        feature: Name of the feature.

    >>> print(Problem("train", "a.tfrecord", "schema", "expected 1 values, got 2", record=7))
    a.tfrecord: record 7: schema: expected 1 values, got 2
    """

    split: str
    shard: str
    kind: str
    text: str
    record: int | None = None
    offset: int | None = None
    end: int | None = None
    feature: str | None = None

    @property
    def place(self) -> str:
        """The place in the file, such as "record 7 at byte 312, feature 'x'"; empty for a file."""
        record = "" if self.record is None else f"record {self.record}"
        offset = "" if self.offset is None else f"at byte {self.offset}"
        feature = "" if self.feature is None else f"feature {self.feature!r}"
        where = f"{record} {offset}".strip()
        return ", ".join(part for part in (where, feature) if part)

    def __str__(self) -> str:
        parts = (self.shard, self.place, self.kind, self.text)
        return ": ".join(inert(part) for part in parts if part)


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Report of a verification; `str()` is a summary.

    Attributes:
        path: Folder or URL of the dataset.
        records: Number of intact records that were read.
        bytes: Number of bytes of shards that were read.
        shards: Number of shards that the dataset should have.
        problems: Problems in the order of the shards.
        notes: Notes that are no problems: leftover and stray files.
        lost: Number of records that are not intact. If their number is not known, each damaged
            place counts as one.
        is_deep: Whether images were decoded and statistics compared.
        images: Number of images that were decoded.
        seconds: Duration; equal reports may differ in it.
    """

    path: Path | str
    records: int
    bytes: int
    shards: int
    problems: tuple[Problem, ...]
    notes: tuple[str, ...] = ()
    lost: int = 0
    is_deep: bool = False
    images: int = 0
    seconds: float = field(default=0.0, compare=False)

    @property
    def is_sound(self) -> bool:
        """Whether there are no problems."""
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        """The report as plain values that fit into JSON."""
        return {
            "path": str(self.path),
            "is_sound": self.is_sound,
            "records": self.records,
            "lost": self.lost,
            "bytes": self.bytes,
            "shards": self.shards,
            "seconds": round(self.seconds, 6),
            "is_deep": self.is_deep,
            "images": self.images,
            "problems": [asdict(problem) for problem in self.problems],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        found = count_of(len(self.problems), "problem") if self.problems else "sound"
        records, shards = count_of(self.records, "record"), count_of(self.shards, "shard")
        lost = f", {count_of(self.lost, 'record')} lost" if self.lost else ""
        first = f"{self.path}: {found}: {records}, {shards}, {format_bytes(self.bytes)} read{lost}"
        problems = [f"  {problem}" for problem in self.problems]
        return "\n".join(map(inert, [first, *problems, *(f"  note: {one}" for one in self.notes)]))


MAX_LISTED = 100  # problems of records listed for a shard; further ones are counted

_EXPLAINED = {
    "torn header": "expected a record, got {size} at the end",
    "torn payload": "expected a whole record, got the end after {size} of it",
    "length checksum": "expected a length that fits its CRC, got another; {size} lost",
    "payload checksum": "expected a payload that fits its CRC, got another; {size} lost",
    "oversized record": "the record exceeds the size limit of compressed streams",
    "compressed stream": "expected a whole compressed stream, got damage, or its end",
}


class Findings:
    """The problems of one shard, of which a limited number is listed.

    Args:
        split: Split of the shard.
        shard: Name of the shard.

    Attributes:
        damaged: Number of places with damaged bytes.
        lost: Number of these places that cost a record, unlike a stream cut after the last one.
    """

    def __init__(self, split: str, shard: str) -> None:
        self.split = split
        self.shard = shard
        self.damaged = 0
        self.lost = 0
        self._of_file: list[Problem] = []
        self._of_records: list[Problem] = []
        self._hidden = 0

    def add(self, kind: str, text: str) -> None:
        """Add a problem of the whole file."""
        self._of_file.append(Problem(self.split, self.shard, kind, text))

    def add_damage(self, damage: Damage) -> None:
        """Add damaged bytes."""
        self.damaged += 1
        self.lost += damage.end > damage.offset
        size = count_of(damage.end - damage.offset, "byte")
        text = _EXPLAINED.get(damage.kind, "expected an intact record, got damage").format(
            size=size
        )
        place = (damage.record, damage.offset, damage.end)
        self._list(Problem(self.split, self.shard, damage.kind, text, *place))

    def add_record(
        self, kind: str, text: str, place: tuple[int, int | None], *, feature: str | None = None
    ) -> None:
        """Add an intact record that cannot be used; `place` is its number and offset."""
        record, offset = place
        self._list(Problem(self.split, self.shard, kind, text, record, offset, feature=feature))

    def _list(self, problem: Problem) -> None:
        if len(self._of_records) < MAX_LISTED:
            self._of_records.append(problem)
        else:
            self._hidden += 1

    @property
    def problems(self) -> list[Problem]:
        """All problems: those of the file, then those of records by number."""
        found = self._of_file + sorted(self._of_records, key=lambda one: one.record or 0)
        if self._hidden:
            text = f"{count_of(self._hidden, 'more problem')} of records"
            found.append(Problem(self.split, self.shard, "more", text))
        return found


LOOKED_AT = 16  # values of a feature of bytes that are tested for images

_Task = tuple[int, str, "memoryview[Any]", Feature | None]


class PictureChecks:
    """Decodes the images of one shard.

    Args:
        schema: Schema of the records.
        pool: Threads that decode; None for the caller's thread.
        guesses: Whether features of bytes are tested for images too, in files without a
            description.

    Attributes:
        decoded: Number of images that could be decoded.
    """

    def __init__(self, schema: Schema, *, pool: Executor | None, guesses: bool = False) -> None:
        self.decoded = 0
        self._pool = pool
        self._images = {n: f for n, f in schema.items() if f.encoding == "image"}
        self._guessed: dict[str, bool] = {}  # features of bytes, and whether they hold images
        self._is_open = {
            name
            for name, feature in schema.items()
            if guesses and feature.dtype == "bytes" and feature.shape == ()
        }

    def check(self, columns: dict[str, Any], records: Records, findings: Findings) -> int:
        """Decode all images of some records, and return the number of records with a bad one."""
        tasks = [*self._tasks(columns)]
        run: Callable[[Any, Iterable[_Task]], Iterator[str | None]]
        run = map if self._pool is None else self._pool.map
        faulty = set()
        for (row, name, _, _), fault in zip(tasks, run(_find_fault_of, tasks), strict=True):
            if fault is not None:
                _, number, offset = records.locate(row)
                findings.add_record("image", fault, (number, offset), feature=name)
                faulty.add(row)
            else:
                self.decoded += 1
        return len(faulty)

    def _tasks(self, columns: dict[str, Any]) -> Iterator[_Task]:
        for name, column in columns.items():
            feature = self._images.get(name)
            if feature is not None or self._holds_images(name, column):
                single = None if feature is None else feature.single_image
                for row, view in _views(column):
                    yield row, name, view, single

    def _holds_images(self, name: str, column: Any) -> bool:
        """Whether most of the first values of a feature of bytes start like images."""
        if name not in self._is_open:
            return False
        if name not in self._guessed:
            from datum.images import sniff_format  # imports Pillow, which not every dataset needs

            first = [view for _, view in _views(column, LOOKED_AT)]
            if not first:
                return False
            like_images = sum(sniff_format(bytes(view[:16])) is not None for view in first)
            self._guessed[name] = 2 * like_images > len(first)
        return self._guessed[name]


def _views(
    column: BytesColumn | Ragged | Masked, limit: int | None = None
) -> Iterator[tuple[int, memoryview[Any]]]:
    """Views of the bytes of each image, with the row of its record."""
    strings: Any = column.values if isinstance(column, Masked) else column
    rows = np.arange(len(strings))
    if isinstance(strings, Ragged):
        rows, strings = np.repeat(rows, strings.row_lengths), strings.values
    else:
        rows = np.repeat(rows, math.prod(strings.shape[1:]))
    memory = memoryview(strings.buffer).cast("B")
    present = column.present.tolist() if isinstance(column, Masked) else None
    places = strings.slices.reshape(-1, 2)[:limit].tolist()
    for row, (at, length) in zip(rows.tolist(), places, strict=False):
        if present is None or present[row]:
            yield row, memory[at : at + length]


def _find_fault_of(task: _Task) -> str | None:
    _, _, view, feature = task
    return find_fault(bytes(view), feature)


def find_fault(data: bytes, feature: Feature | None) -> str | None:
    """The reason why an image cannot be decoded to its feature; None if it can.

    >>> find_fault(b"text", None)
    "expected a JPEG, PNG, WebP, GIF, BMP or TIFF image, got bytes that start with b'text'"
    """
    from datum.images import ImageError, decode, decode_pixels
    from datum.images.check import check_sums
    from datum.images.header import parse_header

    try:
        header = parse_header(data)
        check_sums(data, header)
        if feature is None:
            decode_pixels(data, header.channels)
        else:
            decode(data, feature)
    except ImageError as error:
        return error.parts.line
    return None


_NO_EXAMPLE = "expected a tf.train.Example or SequenceExample, got other bytes"
SLICE_BYTES = 16 * 2**20  # payloads parsed at a time, which limits the memory in use


def make_parser(schema: Schema) -> Parser | None:
    """A parser of a schema; None without features.

    Defaults are removed, so that missing values can be distinguished from others.
    """
    if not schema:
        return None
    return Parser(Schema({name: replace(one, default=None) for name, one in schema.items()}))


class RecordChecks:
    """Checks the records of one shard.

    Args:
        parser: Parser of the schema; None to leave records unparsed.
        findings: Collects the problems.
        malformed: Numbers of records that are known to be no Examples.
        threads: Number of threads that parse.
        pictures: Checks images; None to leave them encoded.
        summarizes: Whether to compute statistics.

    Attributes:
        left_out: Number of records that are known to be no Examples.
        unusable: Number of records with problems.
        statistics: Statistics of the other records; None if they are not computed.
    """

    def __init__(
        self,
        parser: Parser | None,
        findings: Findings,
        *,
        malformed: Sequence[int] = (),
        threads: int = 1,
        pictures: PictureChecks | None = None,
        summarizes: bool = False,
    ) -> None:
        self._parser = parser
        self._findings = findings
        self._malformed = np.array(malformed, np.int64)
        self._threads = threads
        self._pictures = pictures
        self.left_out = len(malformed)
        self.unusable = 0
        self.statistics: Statistics | None = Statistics() if summarizes and parser else None

    def check(self, records: Records) -> None:
        """Check some records; the calls must be in the order of the records."""
        if self._parser is None:
            return
        if self.left_out:
            records = self._skip_malformed(records)
        for part in slices_of(records, SLICE_BYTES):
            for sound, columns in self._parse(self._parser, part):
                if self._pictures is not None:
                    self.unusable += self._pictures.check(columns, sound, self._findings)
                if self.statistics is not None:
                    found = summarize_columns(columns, sound, self._parser.schema)
                    self.statistics = None if found is None else self.statistics.merge(found)

    def _skip_malformed(self, records: Records) -> Records:
        is_one = np.isin(records.numbers, self._malformed)
        for row in np.flatnonzero(is_one).tolist():
            _, number, offset = records.locate(row)
            self._findings.add_record("malformed", _NO_EXAMPLE, (number, offset))
            self.unusable += 1
        return replace(
            records,
            starts=records.starts[~is_one],
            lengths=records.lengths[~is_one],
            numbers=records.numbers[~is_one],
        )

    def _parse(self, parser: Parser, records: Records) -> Iterator[tuple[Records, dict[str, Any]]]:
        """The columns of each stretch of records that parse, in order; others are findings."""
        pending = [(0, len(records))]
        while pending:
            start, stop = pending.pop()
            part = cut_records(records, start, stop)
            row, error = len(part), None
            try:
                found = parser.plan.parse(part.buffer, part.starts, part.lengths, self._threads)
                columns = parser.columns(found, part)
            except _core.Fault as fault:
                row, error = int(fault.args[1]), parser.error(part, fault)
            except SchemaError as found_error:  # keys that contradict each other
                if found_error.record is None:
                    raise
                row = int(np.searchsorted(part.numbers, found_error.record))
                error = found_error
            if error is None:
                yield part, columns
                continue
            self._add(part, row, error)
            # Records before the row may have problems of other features, so they are parsed again.
            pending += [(start + row + 1, stop)] if start + row + 1 < stop else []
            pending += [(start, start + row)] if row else []

    def _add(self, records: Records, row: int, error: Exception) -> None:
        _, number, offset = records.locate(row)
        feature = error.feature if isinstance(error, SchemaError) else None
        at = place_of(records, row)[0] + ("" if feature is None else f", feature {feature!r}")
        text = Message.of(error).beside(at)
        kind = "schema" if isinstance(error, SchemaError) else "malformed"
        self._findings.add_record(kind, text, (number, offset), feature=feature)
        self.unusable += 1


def slices_of(records: Records, max_bytes: int) -> Iterator[Records]:
    """Parts of some records with payloads of at most `max_bytes`, or of one record."""
    ends = np.cumsum(records.lengths)
    start = 0
    while start < len(records):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + max_bytes, "right")))
        yield cut_records(records, start, stop)
        start = stop


def cut_records(records: Records, start: int, stop: int) -> Records:
    """A part of some records."""
    if (start, stop) == (0, len(records)):
        return records
    return replace(
        records,
        starts=records.starts[start:stop],
        lengths=records.lengths[start:stop],
        numbers=records.numbers[start:stop],
    )
