"""A sample of a source, read to plan a write."""

from __future__ import annotations

import glob
import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum._write.blocks import blocks_of
from datum._write.parts import SourceOptions
from datum.errors import SourceError
from datum.schema import Schema
from datum.sources import Reject, Source
from datum.sources.arrow import ArrowTable
from datum.sources.csv import CsvTable
from datum.sources.files import find_files, unpacked_suffix
from datum.sources.json_files import JsonLines
from datum.sources.open import find_table_roots
from datum.sources.options import splits_of_files
from datum.sources.protocol import (
    Block,
    IndexedPart,
    Part,
    PartInfo,
    list_reported,
    part_info,
    source_info,
)

__all__ = [
    "SAMPLE_BYTES",
    "SAMPLE_RECORDS",
    "SAMPLE_SECONDS",
    "Beginning",
    "Files",
    "Glimpse",
    "KnownSource",
    "PartSample",
    "describe_layout",
    "describe_origins",
    "find_table_files",
    "find_unread",
    "look_at",
    "name_files",
    "sample_part",
]

SAMPLE_RECORDS = 1000
SAMPLE_BYTES = 10 * 2**20
SAMPLE_SECONDS = 2.0  # for records that are slow to read
COUNT_SECONDS = 1.0  # to count the rest of a stream
_FIRST_RECORDS = 32  # timed, to decide how many more to read


@dataclass(eq=False)
class PartSample:
    """Records sampled from a part: a `StreamedPart` that can be read again.

    Attributes:
        schema, metadata, fingerprint: Those of the part.
        held: Sampled records.
        total: Number of all records, if known.
    """

    schema: Schema | None
    metadata: Mapping[str, Mapping[str, Any]]
    held: list[Block]
    total: int | None
    fingerprint: str | None = None

    def blocks(self) -> Iterator[Block]:
        """The records."""
        return iter(self.held)

    @property
    def seen(self) -> int:
        """Number of records read, including rejected ones."""
        return sum(len(block) + len(block.rejects) for block in self.held)

    @property
    def is_whole(self) -> bool:
        """Whether the sample holds all records."""
        return self.seen == self.total


def sample_part(part: Part) -> PartSample:
    """Read up to 1,000 records, 10 MiB or 2 seconds of a part.

    They are spread over a part that can be read in any order, else they are its first records.
    Raises SourceError for a part that can be read only once, because the write would miss them.
    """
    if not part_info(part).is_repeatable:
        raise SourceError(
            "expected a source that can be read again, because a plan reads its first records,"
            " got an iterator",
            hint="pass a function that returns the iterator, or a list",
        )
    read = _read_spread if isinstance(part, IndexedPart) else _read_first
    held, total = read(part)
    return PartSample(part.schema, part.metadata, held, total)


def _read_spread(part: Any) -> tuple[list[Block], int]:
    """Sample records from all over the part, because neighbours are often alike."""
    total = len(part)
    first = _spread(total, min(total, _FIRST_RECORDS))
    started = time.monotonic()
    held = [part.read(first)] if total else []
    seconds = (time.monotonic() - started) / max(len(first), 1)
    each = part.stored_bytes // total if part.stored_bytes and total else _bytes_of(held)
    wanted = min(
        total,
        SAMPLE_RECORDS,
        int(SAMPLE_BYTES / max(each, 1)),
        int(SAMPLE_SECONDS / max(seconds, 1e-9)),
    )
    more = np.setdiff1d(_spread(total, wanted), first)
    if len(more):
        held.append(part.read(more))
    return held, total


def _spread(total: int, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.linspace(0, max(total - 1, 0), max(count, 0)).astype(np.int64)


def _read_first(part: Any) -> tuple[list[Block], int | None]:
    """Sample the first records, and count the rest if that is quick."""
    held: list[Block] = []
    seen = nbytes = 0
    is_enough = False
    started = time.monotonic()
    for block in part.blocks():
        seen += len(block) + len(block.rejects)
        if not is_enough:
            held.append(block)
            nbytes += _bytes_of([block]) * len(block)
            is_enough = seen >= SAMPLE_RECORDS or nbytes >= SAMPLE_BYTES
        if time.monotonic() - started > (COUNT_SECONDS if is_enough else SAMPLE_SECONDS):
            return held, None
    return held, seen


def _bytes_of(blocks: list[Block]) -> int:
    """Estimated size of a record."""
    nbytes = records = 0
    for block in blocks:
        records += len(block)
        if isinstance(block.data, list):
            nbytes += _core.size_of(block.data)
        elif isinstance(block.data, dict):
            sizes = [getattr(column, "nbytes", 0) for column in block.data.values()]
            nbytes += int(sum(sizes))
    return nbytes // max(records, 1)


_PARQUET = (".parquet", ".pq")
Files = Mapping[str, Sequence[Path]]


def find_table_files(given: Any, source: Source) -> dict[str, list[Path]]:
    """Files by split of a table given as a path; empty for other sources."""
    if isinstance(source, ArrowTable) and source is not given:
        return {split: list(files) for split, files in source.files.items()}
    suffixes = source_info(source).suffixes
    if not suffixes or not isinstance(given, (str, os.PathLike)):
        return {}
    text = os.path.expanduser(os.fspath(given))  # noqa: PTH111 - it may be a pattern
    place = Path(text)
    if place.is_dir():
        files = sorted(file for file in place.iterdir() if not file.name.startswith("."))
        files = [file for file in files if unpacked_suffix(file) in suffixes]
    elif glob.has_magic(text) and not place.exists():
        files = find_files(text)
    else:
        return {"train": [place]}  # one file has no splits
    splits: dict[str, list[Path]] = {}
    for file, split in zip(files, splits_of_files(files), strict=True):
        splits.setdefault(split or "", []).append(file)
    return {"train": files} if "" in splits else splits


def find_unread(given: Any, files: Files) -> list[str]:
    """Names of other files and folders beside the tables in a folder."""
    if not files or not Path(given).expanduser().is_dir():
        return []
    used = {file.name for some in files.values() for file in some}
    folder = Path(given).expanduser()
    if any(file.parent != folder for some in files.values() for file in some):
        return []  # a layout of folders, which knows its other files
    entries = sorted(folder.iterdir())
    return [
        f"{entry.name}/" if entry.is_dir() else entry.name
        for entry in entries
        if entry.name not in used and not entry.name.startswith(".")
    ]


def describe_layout(source: Source, parts: Mapping[str, Part], files: Files) -> str:
    """Describe a source in a few words: "class folders: 10 classes", "CSV table, 3 files"."""
    listed = [file for some in files.values() for file in some]
    kind = source_info(source).describe(parts)
    if not kind:
        is_dataset = all(part_info(part).is_serialized for part in parts.values())
        kind = "dataset" if is_dataset else f"records of {type(source).__name__}"
    if isinstance(source, ArrowTable) and listed and unpacked_suffix(listed[0]) in _PARQUET:
        kind = "Parquet table"
    return f"{kind}, {len(listed)} files" if len(listed) > 1 else kind


def describe_origins(
    given: Any, source: Source, splits: Sequence[str], files: Files
) -> dict[str, str]:
    """Describe where each split comes from; empty if unknown."""
    if files:
        whole = [file for some in files.values() for file in some]
        return {split: name_files(files.get(split, whole)) for split in splits}
    path = os.fspath(given) if isinstance(given, (str, os.PathLike)) else ""
    known = source_info(source)
    return {split: known.origin_of(split) or path for split in splits}


def name_files(files: Sequence[Path]) -> str:
    """Describe one file by its path, several by their number and the first.

    >>> name_files([Path("a.csv")]), name_files([Path("a.csv"), Path("b.csv")])
    ('a.csv', '2 files, a.csv ...')
    """
    if len(files) == 1:
        return str(files[0])
    return f"{len(files):,} files, {files[0]} ..." if files else ""


LARGE_BYTES = 32 * 2**20  # of a table; smaller ones are read in a second or two
_HEAD_BYTES = 2**20  # read of a large CSV file: some thousands of rows
_PROBES = 16  # places in a file where lines are counted
_PROBE_BYTES = 64 * 2**10
_GOLDEN = 0.6180339887498949


class KnownSource:
    """A source whose parts are created once, for the plan and then for the write."""

    def __init__(self, make: Callable[[], Mapping[str, Part]]) -> None:
        self._make = make
        self._parts: Mapping[str, Part] | None = None

    def parts(self) -> Mapping[str, Part]:
        """Return the parts by split."""
        if self._parts is None:
            self._parts = self._make()
        return self._parts


@dataclass(eq=False)
class Beginning(PartInfo):
    """The first records of a split that is too large to read for a plan.

    Attributes:
        schema, metadata, fingerprint: As in a `StreamedPart`, for these records.
        held: Sampled records.
        total: Number of all records, if the files store it.
        share: Share of the files that was read, 0 to 1, if known.
        notes, rejects, remarks, warnings, image_columns, nested: As in a `PartInfo`.
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
    warnings: Sequence[str] = ()
    image_columns: Sequence[str] = ()
    nested: tuple[str, ...] = ()

    def blocks(self) -> Iterator[Block]:
        """Yield the first records."""
        return iter(self.held)


@dataclass(frozen=True)
class Glimpse:
    """A source as a plan sees it.

    Attributes:
        source: Source for the write.
        parts: Parts for the plan; some are a `Beginning`.
        layout: Description of the source.
        origins: Description of where each split comes from.
        unread: Other names in the folder of a table.
    """

    source: KnownSource
    parts: Mapping[str, Part]
    layout: str
    origins: Mapping[str, str]
    unread: Sequence[str] = ()


def look_at(given: Any, problem: str | None, wanted: SourceOptions | None = None) -> Glimpse:
    """Open a source without reading more of it than a plan needs."""
    wanted = SourceOptions() if wanted is None else wanted
    source = wanted.source_of(given, problem)
    files = find_table_files(given, source)
    raw = KnownSource(source.parts)
    known = KnownSource(lambda: _with_images(given, source, raw.parts(), problem, wanted))
    nbytes = sum(file.stat().st_size for some in files.values() for file in some)
    parts: Mapping[str, Part]
    if files and isinstance(source, JsonLines):  # which has no schema before it is read
        parts = _begin_lines(source, files)
    elif isinstance(source, CsvTable) and nbytes > LARGE_BYTES:
        parts = _begin_csv(source, files)
    elif isinstance(source, ArrowTable) and nbytes > LARGE_BYTES:
        parts = _begin_arrow(source, files)
    else:
        parts = {split: _shorten(part, given) for split, part in raw.parts().items()}
    if any(isinstance(part, Beginning) for part in parts.values()):
        parts = _with_images(given, source, parts, problem, wanted)
    elif all(part_info(part).is_repeatable for part in parts.values()):
        parts = known.parts()
    has_images = any(part_info(part).image_columns for part in parts.values())
    return Glimpse(
        known,
        parts,
        describe_layout(source, parts, files) + " of image files" * has_images,
        describe_origins(given, source, list(parts), files),
        find_unread(given, files),
    )


def _with_images(
    given: Any,
    source: Source,
    parts: Mapping[str, Part],
    problem: str | None,
    wanted: SourceOptions,
) -> dict[str, Part]:
    roots = find_table_roots(given, source, parts, problem)
    found = wanted.find_images(parts, roots, problem)
    return {
        split: replace(
            part,
            schema=found[split].schema,
            metadata=found[split].metadata,
            held=list(blocks_of(found[split])),
            remarks=list_reported([part, found[split]], "remarks"),
            warnings=list_reported([found[split]], "warnings"),
            image_columns=part_info(found[split]).image_columns,
        )
        if isinstance(part, Beginning)
        else found[split]
        for split, part in parts.items()
    }


# Rows come one by one: a block of thousands may take long.


def _shorten(part: Part, given: Any) -> Part:
    is_stream = not isinstance(part, IndexedPart) and not isinstance(given, Source)
    is_rows = callable(given) or hasattr(given, "__iter__")
    if not is_stream or not is_rows or isinstance(given, str):
        return part
    if not part_info(part).is_repeatable:
        return part  # sampling it raises the error
    from datum.sources.python import PythonRows

    rows = _FirstRows(given)
    first = PythonRows(rows).parts()["train"]
    assert not isinstance(first, IndexedPart)
    held = list(first.blocks())
    seen = sum(len(block) for block in held)
    total = seen if rows.is_whole else None
    remarks, nested = list_reported([first], "remarks"), list_reported([first], "nested")
    return Beginning(None, part.metadata, held, total, None, remarks=remarks, nested=nested)


class _FirstRows:
    """Iterator over the first rows; `is_whole` is True if there are no more."""

    def __init__(self, given: Any) -> None:
        self._given = given
        self.is_whole = False

    def __call__(self) -> Any:
        rows = self._given if hasattr(self._given, "__iter__") else self._given()
        is_odd = isinstance(rows, (str, bytes, Mapping)) or not hasattr(rows, "__iter__")
        return rows if is_odd else self._limited(iter(rows))  # reading it raises the error

    def _limited(self, rows: Iterator[Any]) -> Iterator[Any]:
        started = time.monotonic()
        for row in itertools.islice(rows, SAMPLE_RECORDS):
            yield row
            if time.monotonic() - started > SAMPLE_SECONDS:
                return
        self.is_whole = next(rows, self) is self


# Tables in files.


def _begin_csv(source: CsvTable, files: Files) -> dict[str, Part]:
    """Read the first rows of a CSV table; the headers of all files are read."""
    parts: dict[str, Part] = {}
    for split, (part, lines) in source.begin(_HEAD_BYTES).items():
        numbers = _first_numbers(len(part))
        metadata = {
            name: {**found, "left_out": "no sampled record has a value"}
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


def _begin_arrow(source: ArrowTable, files: Files) -> dict[str, Part]:
    """Read the first rows of an Arrow table; Parquet files store their number of rows."""
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
    """Read the first lines."""
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
            remarks=list_reported([part], "remarks"),
            nested=list_reported([part], "nested"),
        )
    return parts


def _share_of_lines(lines: float, files: Sequence[Path]) -> float | None:
    """Share of the files that these lines make up; None for compressed files."""
    if any(unpacked_suffix(file) != file.suffix.lower() for file in files):
        return None
    total = sum(map(_guess_lines, files))
    return min(1.0, lines / total) if total else None


def _guess_lines(path: Path) -> float:
    """Estimate the number of lines of a file from places all over it."""
    size = path.stat().st_size
    found = read = 0
    with path.open("rb") as file:
        # Not at even distances, which may match a period of the file.
        places = np.arange(_PROBES) * _GOLDEN % 1 * max(size - _PROBE_BYTES, 0)
        for start in places.astype(int).tolist():
            file.seek(start)
            text = file.read(_PROBE_BYTES)
            found += text.count(b"\n")
            read += len(text)
    return found / max(read, 1) * size


def _first_numbers(total: int) -> NDArray[np.int64]:
    return np.arange(min(total, SAMPLE_RECORDS))
