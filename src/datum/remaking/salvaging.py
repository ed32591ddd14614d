"""One file that may be damaged: which of its records are whole, and what became of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.errors import CorruptIndexError, Damage, Message, SchemaError
from datum.format import Compression, Index, Parser, RecordFile, Records
from datum.format.index import FRAME_BYTES
from datum.format.parse import place_of
from datum.format.records import HEADER_BYTES
from datum.reading.stored_records import Places
from datum.reading.verifying.pictures import find_fault
from datum.remaking.repair_report import Loss
from datum.remaking.surveying import ExpectedFile
from datum.schema import Schema

__all__ = ["Salvaged", "salvage_file"]

CHUNK_RECORDS = 1024

Advance = Callable[[int, int], None]  # records and bytes that were looked at


@dataclass(frozen=True, slots=True, eq=False)
class Salvaged:
    """What is whole of a file, and what is not.

    Attributes:
        places: where the records that are kept lie; in the decompressed stream, if it is one.
        losses: in the order of the file.
        extra: how many more records there are than a description says.
    """

    file: ExpectedFile
    compression: Compression | None
    places: Places
    losses: tuple[Loss, ...]
    extra: int = 0

    def __len__(self) -> int:
        return len(self.places.offsets)

    def runs(self) -> Iterator[Records]:
        """The records that are kept, in order."""
        wanted = self.places.offsets
        with RecordFile(self.file.path, recovery="skip", use_index=False) as file:
            for records in file.chunks(CHUNK_RECORDS):
                offsets = records.starts + ((records.base or 0) - HEADER_BYTES)
                first, last = np.searchsorted(wanted, [offsets[0], offsets[-1] + 1])
                kept = np.isin(offsets, wanted[first:last], assume_unique=True)
                if kept.any():
                    yield _take(records, kept)


def salvage_file(
    expected: ExpectedFile, schema: Schema | None, *, deep: bool, advance: Advance
) -> Salvaged:
    """Read all of a file, around what is damaged.

    Without a schema records may be anything; with one they have to be what it says, and if it is
    to go `deep`, all images have to be such that they can be decoded.
    """
    path = expected.path
    try:
        with RecordFile(path, recovery="skip", use_index=False) as file:
            return _salvage(expected, file, schema, deep=deep, advance=advance)
    except FileNotFoundError:
        kind = "missing file"
    except OSError as error:
        kind = f"unreadable file: {error.strerror or error}"
    nowhere = Places(path, np.empty(0, np.int64), np.empty(0, np.int64))
    kind, _, reason = kind.partition(": ")
    damage = Damage(str(path), 0, expected.bytes or 0, 0, kind)
    return Salvaged(
        expected, None, nowhere, (Loss(expected.split, damage, expected.records, reason),)
    )


def _salvage(
    expected: ExpectedFile,
    file: RecordFile,
    schema: Schema | None,
    *,
    deep: bool,
    advance: Advance,
) -> Salvaged:
    starts, ends = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    losses: list[Loss] = []
    judge = None if schema is None else _Judge(expected.split, schema, deep=deep)
    for records in file.chunks(CHUNK_RECORDS):
        offsets = records.starts + ((records.base or 0) - HEADER_BYTES)
        stops = offsets + records.lengths + FRAME_BYTES
        advance(len(records), int(records.lengths.sum()))
        if judge is not None:
            refused = judge.refuse(records)
            losses += refused.values()
            kept = np.delete(np.arange(len(records)), list(refused))
            offsets, stops = offsets[kept], stops[kept]
        starts.append(offsets)
        ends.append(stops)
    version = file.content.version
    found = Places(expected.path, np.concatenate(starts), np.concatenate(ends), version)
    torn = [Loss(expected.split, damage, _least(damage)) for damage in file.damage]
    sound = len(found.offsets) + len(losses)
    extra = 0 if expected.records is None else max(0, sound - expected.records)
    torn = _count(torn, expected, sound, found)
    all_losses = sorted([*torn, *losses], key=lambda loss: loss.damage.offset)
    return Salvaged(expected, file.compression, found, tuple(all_losses), extra)


# How many records were lost where the file itself is damaged.


def _count(torn: list[Loss], expected: ExpectedFile, sound: int, found: Places) -> list[Loss]:
    """The places of damage with the number of records that each took, where it can be told."""
    if expected.records is None:
        return torn
    lost = max(0, expected.records - sound)
    if not torn and lost:
        end = int(found.ends[-1]) if len(found.ends) else 0
        damage = Damage(
            str(expected.path), end, max(end, expected.bytes or 0), sound, "missing end"
        )
        return [Loss(expected.split, damage, lost)]
    if len(torn) == 1:
        return [replace(torn[0], records=lost)]
    if len(torn) == lost:
        return [replace(loss, records=1) for loss in torn]
    index = _index_of(expected)
    if index is None:
        return torn
    counted = []
    for loss in torn:
        first, last = np.searchsorted(index.offsets, [loss.damage.offset, loss.damage.end])
        counted.append(replace(loss, records=int(last - first)))
    is_right = sum(loss.records or 0 for loss in counted) == lost
    return counted if is_right else torn


def _least(damage: Damage) -> int | None:
    """How many records a place of damage took, by itself: one whose length is sound is one."""
    return 1 if damage.kind == "payload checksum" else None


def _index_of(expected: ExpectedFile) -> Index | None:
    """The index beside a file, if it is whole and of as many records as there should be."""
    try:
        index = Index.load(Index.path_for(expected.path))
    except (OSError, CorruptIndexError):
        return None
    return index if len(index) == expected.records else None


# Whether records that are whole are what they should be.


class _Judge:
    """Tells records that are not what the schema says."""

    def __init__(self, split: str, schema: Schema, *, deep: bool) -> None:
        self._split = split
        self._schema = schema
        self._parser = Parser(schema)
        images = [name for name, feature in schema.items() if feature.encoding == "image"]
        self._images = images if deep else []

    def refuse(self, records: Records) -> dict[int, Loss]:
        """The rows of a run that cannot be kept, and why."""
        refused: dict[int, Loss] = {}
        first = 0
        while first < len(records):
            rest = _take(records, slice(first, None))
            try:
                columns = self._parse(rest)
                self._check_images(columns, records, first, refused)
                break
            except _Unfit as unfit:
                row = first + unfit.row
                if unfit.row:
                    sound = _take(records, slice(first, row))
                    self._check_images(self._parse(sound), records, first, refused)
                refused[row] = self._lose(records, row, unfit.kind, unfit.reason)
                first = row + 1
        return refused

    def _parse(self, records: Records) -> dict[str, Any]:
        starts = np.ascontiguousarray(records.starts)
        lengths = np.ascontiguousarray(records.lengths)
        try:
            found = self._parser.plan.parse(records.buffer, starts, lengths, 1)
            return self._parser.columns(found, records)
        except _core.Fault as fault:
            error = self._parser.error(records, fault)
            kind = "schema" if isinstance(error, SchemaError) else "malformed"
            row = int(fault.args[1])
            raise _Unfit(row, kind, _reason(error, records, row)) from error
        except SchemaError as error:
            if error.record is None:
                raise
            row = int(np.searchsorted(records.numbers, error.record))
            raise _Unfit(row, "schema", _reason(error, records, row)) from error

    def _check_images(
        self, columns: dict[str, Any], records: Records, first: int, refused: dict[int, Loss]
    ) -> None:
        for name in self._images:
            for at in range(len(columns[name])):
                data = columns[name][at]
                if data is None or first + at in refused:
                    continue
                feature = self._schema[name]
                files = data if feature.holds_images else [data]
                faults = (find_fault(one, feature.single_image) for one in files)
                fault = next((found for found in faults if found is not None), None)
                if fault is not None:
                    reason = f"feature {name!r}: {fault}"
                    refused[first + at] = self._lose(records, first + at, "image", reason)

    def _lose(self, records: Records, row: int, kind: str, reason: str) -> Loss:
        file, number, offset = records.locate(row)
        start = offset or 0
        end = start + int(records.lengths[row]) + FRAME_BYTES
        return Loss(self._split, Damage(file, start, end, number, kind), 1, reason)


class _Unfit(Exception):  # noqa: N818 - it does not leave this module
    """A row that is not what the schema says."""

    def __init__(self, row: int, kind: str, reason: str) -> None:
        super().__init__(row, kind, reason)
        self.row = row
        self.kind = kind
        self.reason = reason


def _reason(error: Exception, records: Records, row: int) -> str:
    """What is wrong, without where that is."""
    return Message.of(error).beside(place_of(records, row)[0])


def _take(records: Records, at: slice | NDArray[np.bool_]) -> Records:
    return replace(
        records, starts=records.starts[at], lengths=records.lengths[at], numbers=records.numbers[at]
    )
