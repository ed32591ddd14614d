"""Whether records that are whole are what the schema says: kinds, shapes, presence, UTF-8."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from datum import _core
from datum.errors import Message, SchemaError
from datum.format import Parser, Records, Statistics
from datum.format.parse import place_of
from datum.reading.verifying.findings import Findings
from datum.reading.verifying.pictures import PictureChecks
from datum.reading.verifying.statistics import summarize_columns
from datum.schema import Schema

__all__ = ["RecordChecks", "cut_records", "make_parser", "slices_of"]

_NO_EXAMPLE = "expected a tf.train.Example or SequenceExample, got bytes that are no such message"
SLICE_BYTES = 16 * 2**20  # of payloads that are parsed at a time: it bounds the memory in use


def make_parser(schema: Schema) -> Parser | None:
    """What parses records by a schema; None where nothing is known of them.

    Defaults are left out, so that what a record lacks is told from what it has.
    """
    if not schema:
        return None
    return Parser(Schema({name: replace(one, default=None) for name, one in schema.items()}))


class RecordChecks:
    """Checks the records of one shard.

    Args:
        parser: of the schema; with None records are not looked into.
        findings: where problems go.
        malformed: the numbers of records that are known to be no messages.
        threads: how many may parse.
        pictures: checks images; None if they are not to be decoded.
        summarizes: whether to count what the values are like.

    Attributes:
        left_out: how many records nobody counted, for they are no messages.
        unusable: how many records were not as they should be.
        statistics: what the values of the others are like; None if that was not asked for.
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
        """Look at some records; the order of calls is that of the records."""
        if self._parser is None:
            return
        if self.left_out:
            records = self._pass_malformed(records)
        for part in slices_of(records, SLICE_BYTES):
            for sound, columns in self._parse(self._parser, part):
                if self._pictures is not None:
                    self.unusable += self._pictures.check(columns, sound, self._findings)
                if self.statistics is not None:
                    found = summarize_columns(columns, sound, self._parser.schema)
                    self.statistics = None if found is None else self.statistics.merge(found)

    def _pass_malformed(self, records: Records) -> Records:
        is_one = np.isin(records.numbers, self._malformed)
        for row in np.flatnonzero(is_one).tolist():
            _, number, offset = records.locate(row)
            self._findings.tell_record("malformed", _NO_EXAMPLE, (number, offset))
            self.unusable += 1
        return replace(
            records,
            starts=records.starts[~is_one],
            lengths=records.lengths[~is_one],
            numbers=records.numbers[~is_one],
        )

    def _parse(self, parser: Parser, records: Records) -> Iterator[tuple[Records, dict[str, Any]]]:
        """The columns of each stretch of records that parse, in order; the others are told."""
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
            except SchemaError as found_error:  # of keys that do not fit each other
                if found_error.record is None:
                    raise
                row = int(np.searchsorted(part.numbers, found_error.record))
                error = found_error
            if error is None:
                yield part, columns
                continue
            self._tell(part, row, error)
            # What comes before the row may have faults of other features, so it is parsed again.
            pending += [(start + row + 1, stop)] if start + row + 1 < stop else []
            pending += [(start, start + row)] if row else []

    def _tell(self, records: Records, row: int, error: Exception) -> None:
        _, number, offset = records.locate(row)
        feature = getattr(error, "feature", None)
        at = place_of(records, row)[0] + ("" if feature is None else f", feature {feature!r}")
        text = Message.of(error).beside(at)
        kind = "schema" if isinstance(error, SchemaError) else "malformed"
        self._findings.tell_record(kind, text, (number, offset), feature=feature)
        self.unusable += 1


def slices_of(records: Records, max_bytes: int) -> Iterator[Records]:
    """Parts of a run whose payloads have at most so many bytes, or that are of one record."""
    ends = np.cumsum(records.lengths)
    start = 0
    while start < len(records):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + max_bytes, "right")))
        yield cut_records(records, start, stop)
        start = stop


def cut_records(records: Records, start: int, stop: int) -> Records:
    """A part of a run that was read from one file."""
    if (start, stop) == (0, len(records)):
        return records
    return replace(
        records,
        starts=records.starts[start:stop],
        lengths=records.lengths[start:stop],
        numbers=records.numbers[start:stop],
    )
