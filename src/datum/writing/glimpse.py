"""A source looked at before it is written: of large files and of streams, the beginning alone."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.schema import Schema
from datum.sources import Reject, Source
from datum.sources.adopt import find_table_roots
from datum.sources.files import unpacked_suffix
from datum.sources.source import Block, IndexedPart, Part
from datum.writing.describing import (
    Files,
    describe_layout,
    describe_origins,
    find_table_files,
    find_unread,
)
from datum.writing.parts import Wanted, blocks_of, told_of
from datum.writing.sampling import SAMPLE_RECORDS, SAMPLE_SECONDS, sample_part

__all__ = ["Beginning", "Glimpse", "KnownSource", "look_at"]

LARGE_BYTES = 32 * 2**20  # of a table: what a second or two reads
_HEAD_BYTES = 2**20  # of a large CSV file: some thousands of rows
_PROBES = 16  # places where lines are counted
_PROBE_BYTES = 64 * 2**10
_GOLDEN = 0.6180339887498949


class KnownSource:
    """A source whose parts are made once: a plan looks at them, then a write reads them."""

    def __init__(self, make: Callable[[], Mapping[str, Part]]) -> None:
        self._make = make
        self._parts: Mapping[str, Part] | None = None

    def parts(self) -> Mapping[str, Part]:
        """The records of each split."""
        if self._parts is None:
            self._parts = self._make()
        return self._parts


@dataclass(eq=False)
class Beginning:
    """The first records of a split that is too large to be read for a plan.

    Attributes:
        schema, metadata, fingerprint: as of a `StreamedPart`; what they say is of these records.
        held: the records.
        total: how many there are in all, if the files tell.
        share: how much of the files was read, 0 to 1, if that can be told.
        notes, rejects: as of a `ScannedPart`.
        remarks, warnings: what to say of its columns.
        nested: the features made of lists of dicts.
    """

    schema: Schema | None
    metadata: Mapping[str, Mapping[str, Any]]
    held: Sequence[Block]
    total: int | None
    share: float | None
    fingerprint: str | None = None
    notes: Sequence[str] = ()
    rejects: Sequence[Reject] = ()
    remarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()

    def blocks(self) -> Iterator[Block]:
        """The first records."""
        return iter(self.held)


@dataclass(frozen=True)
class Glimpse:
    """What was found.

    Attributes:
        source: what a write would read.
        parts: what a plan may read: some are a `Beginning`.
        layout: what it is, in words.
        origins: where each split comes from, in words.
        unread: what else lies in the folder of a table.
    """

    source: KnownSource
    parts: Mapping[str, Part]
    layout: str
    origins: Mapping[str, str]
    unread: Sequence[str] = ()


def look_at(given: Any, problem: str | None, wanted: Wanted | None = None) -> Glimpse:
    """Find out what `given` is, without reading more of it than a plan needs."""
    wanted = Wanted() if wanted is None else wanted
    source = wanted.source_of(given, problem)
    files = find_table_files(given, source)
    raw = KnownSource(source.parts)
    known = KnownSource(lambda: _with_images(given, source, raw.parts(), problem, wanted))
    begin, least = _BEGINNERS.get(type(source).__name__, (None, 0))
    nbytes = sum(file.stat().st_size for some in files.values() for file in some)
    parts: Mapping[str, Part]
    if begin is not None and files and nbytes > least:
        parts = begin(source, files)
    else:
        parts = {split: _shorten(part, given) for split, part in raw.parts().items()}
    if any(isinstance(part, Beginning) for part in parts.values()):
        parts = _with_images(given, source, parts, problem, wanted)
    elif all(getattr(part, "is_repeatable", True) for part in parts.values()):
        parts = known.parts()
    has_images = any("names image files" in note for note in told_of(parts.values(), "remarks"))
    return Glimpse(
        known,
        parts,
        describe_layout(source, parts, files) + " of image files" * has_images,
        describe_origins(given, source, list(parts), files),
        find_unread(given, files),
    )


def _with_images(
    given: Any, source: Source, parts: Mapping[str, Part], problem: str | None, wanted: Wanted
) -> dict[str, Part]:
    roots = find_table_roots(given, source, parts, problem)
    found = wanted.find_images(parts, roots, problem)
    return {
        split: replace(
            part,
            schema=found[split].schema,
            metadata=found[split].metadata,
            held=list(blocks_of(found[split])),
            remarks=told_of([part, found[split]], "remarks"),
            warnings=told_of([found[split]], "warnings"),
        )
        if isinstance(part, Beginning)
        else found[split]
        for split, part in parts.items()
    }


# Rows that come one after the other: a block of thousands may take its time.


def _shorten(part: Part, given: Any) -> Part:
    is_stream = not isinstance(part, IndexedPart) and not isinstance(given, Source)
    is_rows = callable(given) or hasattr(given, "__iter__")
    if not is_stream or not is_rows or isinstance(given, str):
        return part
    if not getattr(part, "is_repeatable", True):
        return part  # whoever samples it says what is wrong
    from datum.sources.python import PythonRows

    rows = _FirstRows(given)
    first = PythonRows(rows).parts()["train"]
    assert not isinstance(first, IndexedPart)
    held = list(first.blocks())
    seen = sum(len(block) for block in held)
    total = seen if rows.is_whole else None
    remarks, nested = told_of([first], "remarks"), told_of([first], "nested")
    return Beginning(None, part.metadata, held, total, None, remarks=remarks, nested=nested)


class _FirstRows:
    """Goes through the first rows; `is_whole` tells whether there were no more."""

    def __init__(self, given: Any) -> None:
        self._given = given
        self.is_whole = False

    def __call__(self) -> Any:
        rows = self._given if hasattr(self._given, "__iter__") else self._given()
        is_odd = isinstance(rows, (str, bytes, Mapping)) or not hasattr(rows, "__iter__")
        return rows if is_odd else self._limited(iter(rows))  # whoever reads it says so

    def _limited(self, rows: Iterator[Any]) -> Iterator[Any]:
        started = time.monotonic()
        for row in itertools.islice(rows, SAMPLE_RECORDS):
            yield row
            if time.monotonic() - started > SAMPLE_SECONDS:
                return
        self.is_whole = next(rows, self) is self


# Tables in files.


def _begin_csv(source: Any, files: Files) -> dict[str, Part]:
    """Its first rows, of files with other columns too; the headers of all are looked at."""
    parts: dict[str, Part] = {}
    for split, (part, lines) in source.begin(_HEAD_BYTES).items():
        numbers = _first_numbers(len(part))
        metadata = {
            name: {**found, "left_out": "no record looked at has a value"}
            if "left_out" in found
            else found
            for name, found in part.metadata.items()
        }
        share = _share_of_lines(lines * len(numbers) / max(len(part), 1), files[split])
        parts[split] = Beginning(
            part.schema,
            metadata,
            [part.read(numbers)],
            None,
            share,
            notes=part.notes,
            rejects=part.rejects,
        )
    return parts


def _begin_arrow(source: Any, files: Files) -> dict[str, Part]:
    """Its first rows, in the types that the files have; Parquet knows how many there are."""
    from datum.sources.table import ColumnTable

    parts: dict[str, Part] = {}
    for split, some in files.items():
        batch = source.begin(split)
        part: Any = ColumnTable(batch.slice(0, SAMPLE_RECORDS)).parts()["train"]
        totals = [_count_rows(file) for file in some]
        total = None if None in totals else sum(filter(None, totals))
        nbytes = sum(file.stat().st_size for file in some)
        is_known = total is not None
        share = None if is_known else batch.nbytes * len(part) / max(batch.num_rows * nbytes, 1)
        held = [part.read(_first_numbers(len(part)))]
        parts[split] = Beginning(part.schema, part.metadata, held, total, share)
    return parts


def _count_rows(path: Path) -> int | None:
    if unpacked_suffix(path) not in (".parquet", ".pq"):
        return None
    import pyarrow.parquet as pq

    return int(pq.read_metadata(path).num_rows)


def _begin_lines(source: Source, files: Files) -> dict[str, Part]:
    """Its first lines."""
    parts: dict[str, Part] = {}
    for split, part in source.parts().items():
        sample = sample_part(part)
        is_whole = sample.total is not None
        share = None if is_whole else _share_of_lines(sample.seen, files[split])
        parts[split] = Beginning(
            None,
            {},
            sample.held,
            sample.total,
            share,
            remarks=told_of([part], "remarks"),
            nested=told_of([part], "nested"),
        )
    return parts


def _share_of_lines(lines: float, files: Sequence[Path]) -> float | None:
    """How much of the files so many lines are; None where packed files keep that to themselves."""
    if any(unpacked_suffix(file) != file.suffix.lower() for file in files):
        return None
    total = sum(map(_guess_lines, files))
    return min(1.0, lines / total) if total else None


def _guess_lines(path: Path) -> float:
    """About how many lines a file has: they are counted in some places all over it."""
    size = path.stat().st_size
    found = read = 0
    with path.open("rb") as file:
        # Not at even distances, which what repeats itself in the file may have as well.
        places = np.arange(_PROBES) * _GOLDEN % 1 * max(size - _PROBE_BYTES, 0)
        for start in places.astype(int).tolist():
            file.seek(start)
            text = file.read(_PROBE_BYTES)
            found += text.count(b"\n")
            read += len(text)
    return found / max(read, 1) * size


def _first_numbers(total: int) -> NDArray[np.int64]:
    return np.arange(min(total, SAMPLE_RECORDS))


# By the kind of source: what reads its beginning, and from how many bytes on.
_BEGINNERS: Mapping[str, tuple[Callable[[Any, Files], dict[str, Part]], int]] = {
    "ArrowTable": (_begin_arrow, LARGE_BYTES),
    "CsvTable": (_begin_csv, LARGE_BYTES),
    "HuggingFaceFolder": (_begin_arrow, LARGE_BYTES),
    "JsonLines": (_begin_lines, 0),  # which have no schema but that of their records
}
