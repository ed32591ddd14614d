"""Verification of a dataset: every record checked against manifest and schema."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from datum._options import thread_count
from datum._read.contents import Contents
from datum._read.foreign.detect import Paths, open_dataset
from datum._read.foreign.older import MAPPING_FILE, SHARD_FILE
from datum._read.foreign.record_files import list_folder, select_record_files
from datum._read.foreign.tfds import FEATURES_FILE, INFO_FILE
from datum._read.record_checks import (
    Findings,
    PictureChecks,
    Problem,
    RecordChecks,
    VerifyReport,
    compare_statistics,
    make_parser,
)
from datum._read.shards import ByteCounter, Checksum, Progress, end_of
from datum.errors import DatumError, ManifestError, Message, SchemaError, count_of
from datum.format import Index, Parser, RecordFile, Records, ShardInfo, Statistics
from datum.format.durable import NEW_SUFFIX, find_unfinished
from datum.format.framing import HEADER_BYTES
from datum.format.index import INDEX_FOLDER
from datum.format.manifest import MANIFEST_NAME, parse_shard_name

__all__ = [
    "Problem",
    "ShardFound",
    "VerifyReport",
    "find_notes",
    "verify_path",
    "verify_shard",
    "verify_shards",
]

SHOWN = 3  # names of files, where there may be many

_QUARANTINE = "quarantine.jsonl"


def find_notes(contents: Contents) -> tuple[str, ...]:
    """Return notes about the folder of a dataset that are no faults."""
    if not contents.folder.is_dir() or contents.is_part:
        return ()
    return tuple(_of_dataset(contents) if contents.is_published else _of_files(contents))


def _of_dataset(contents: Contents) -> Iterator[str]:
    folder = contents.folder
    owned = [shard.name for split in contents.splits.values() for shard in split.shards]
    names = sorted(entry.name for entry in folder.iterdir())
    strays = [n for n in names if n.endswith(".tfrecord") and n not in set(owned)]
    if strays:
        yield (
            f"{count_of(len(strays), 'TFRecord file')} that {MANIFEST_NAME} does not name:"
            f" {_shown(strays)}"
        )
    bare = [name for name in owned if Index.find(folder / name) is None]
    bare = [name for name in bare if (folder / name).is_file()]
    if bare:
        yield (
            f"{count_of(len(bare), 'shard')} without an index, which is made when needed;"
            f" `datum index` makes it for good: {_shown(bare)}"
        )
    if _QUARANTINE in names:
        yield f"{_QUARANTINE}: {_count_lines(folder / _QUARANTINE)} left out when it was written"
    unfinished = [n for n in names if n.startswith(".") and n.endswith(NEW_SUFFIX)]
    unfinished += sorted(
        f"{INDEX_FOLDER}/{path.name}" for path in folder.glob(f"{INDEX_FOLDER}/.*{NEW_SUFFIX}")
    )
    if unfinished:
        yield f"{count_of(len(unfinished), 'file')} of an interrupted write: {_shown(unfinished)}"
    yield from _staging(folder)


def _of_files(contents: Contents) -> Iterator[str]:
    """Files that nobody describes may be a dataset of Datum that lost its manifest."""
    shards = [shard for split in contents.splits.values() for shard in split.shards]
    is_bare = contents.writer == "tfrecord files"
    has_manifest = os.path.lexists(contents.folder / MANIFEST_NAME)
    if (
        is_bare
        and not has_manifest
        and all(
            parse_shard_name(shard.name) and _has_own_index(contents.folder / shard.name)
            for shard in shards
        )
    ):
        yield (
            f"no {MANIFEST_NAME}: read as plain TFRecord files; if Datum wrote them it is lost,"
            " and `Dataset.save_manifest` writes a new one"
        )
    yield from _staging(contents.folder)


def _has_own_index(shard: Path) -> bool:
    path = Index.find(shard)
    return path is not None and Index.is_index(path)


def _staging(folder: Path) -> Iterator[str]:
    for place in find_unfinished(folder):
        yield (
            f"{place}: left by a write that did not finish, or is under way;"
            " the same write again continues it"
        )


def _count_lines(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return count_of(sum(1 for _ in file), "record")
    except OSError:
        return "records"


def _shown(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")


RUN_BYTES = 2 * 2**20  # looked at between two calls of `on_bytes`, about: caches hold it
MAX_RUN_RECORDS = 4096
FIRST_RUN_RECORDS = 64


@dataclass(frozen=True, slots=True)
class ShardFound:
    """What a shard turned out to be.

    Attributes:
        records: how many of its records are whole and as the schema says.
        bytes: its size; 0 if it could not be read.
        crc: of the file; None if it could not be read.
    """

    records: int
    bytes: int
    crc: int | None


def verify_shard(
    path: Path,
    shard: ShardInfo,
    findings: Findings,
    checks: RecordChecks,
    *,
    is_published: bool = True,
    on_bytes: Callable[[int], None],
) -> ShardFound:
    """Compare a shard with what is known of it, with its index, and with its CRCs.

    What is wrong goes to `findings`; records that are whole go to `checks`. `on_bytes` is called
    with how many bytes of the file are done.
    """
    try:
        with RecordFile(path, recovery="skip", use_index=False) as file:
            checksum = Checksum(file.name, file.content)
            index = _IndexCheck.open(path, findings, is_published=is_published)
            found = _read_through(file, checksum, index, findings, checks, on_bytes)
            _compare(shard, file, checksum, findings)
            if found != shard.records + checks.left_out:
                expected = f"expected {count_of(shard.records, 'record')}"
                findings.tell("record count", f"{expected}, got {found:,} that are whole")
            if index is not None and not findings.damaged:
                index.finish(findings)
    except FileNotFoundError:
        findings.tell("missing file", "expected a file, got none")
        return ShardFound(0, 0, None)
    except (OSError, DatumError) as error:
        findings.tell("unreadable file", f"expected a file to read: {Message.of(error).line}")
        return ShardFound(0, 0, None)
    return ShardFound(found - checks.unusable, checksum.nbytes, checksum.crc)


def _read_through(
    file: RecordFile,
    checksum: Checksum,
    index: _IndexCheck | None,
    findings: Findings,
    checks: RecordChecks,
    on_bytes: Callable[[int], None],
) -> int:
    """Read all of a file; how many records are whole."""
    sizes = _RunSizes()
    found, size = 0, len(file.content)
    for records in file.runs(sizes.next):
        sizes.note(records)
        found += len(records)
        end = end_of(records)
        if file.compression is None:  # while these bytes are still in memory
            checksum.advance(end)
            on_bytes(end)
        elif index is not None:
            on_bytes(int(index.share_of(end) * size))
        if index is not None:
            index.compare(records, end)
        checks.check(records)
        _tell_damage(file, findings)
    _tell_damage(file, findings)
    checksum.advance()
    on_bytes(checksum.nbytes)
    return found


def _tell_damage(file: RecordFile, findings: Findings) -> None:
    for damage in file.damage:
        findings.tell_damage(damage)
    file.damage.clear()  # there may be much of it


def _compare(shard: ShardInfo, file: RecordFile, checksum: Checksum, findings: Findings) -> None:
    if checksum.nbytes != shard.bytes:
        findings.tell("size", f"expected {shard.bytes:,} bytes, got {checksum.nbytes:,}")
    elif shard.crc32c not in (None, checksum.crc):
        crcs = f"expected {shard.crc32c:08x}, as the manifest says, got {checksum.crc:08x}"
        findings.tell("file checksum", crcs)
    if checksum.nbytes and file.compression != shard.compression:
        got = f"expected {shard.compression or 'none'}, got {file.compression or 'none'}"
        findings.tell("compression", got)


class _RunSizes:
    """How many records to look at next, so that runs of large ones are short."""

    def __init__(self) -> None:
        self._records = 0
        self._bytes = 0

    def next(self) -> int:
        if not self._records:
            return FIRST_RUN_RECORDS
        average = max(1, self._bytes // self._records)
        return max(1, min(MAX_RUN_RECORDS, RUN_BYTES // average))

    def note(self, records: Records) -> None:
        self._records += len(records)
        self._bytes += int(records.lengths.sum())


class _IndexCheck:
    """An index file, compared with the records as they come."""

    def __init__(self, name: str, index: Index) -> None:
        self._name = name
        self._index = index
        self._seen = 0
        self._end = 0
        self._is_same = True

    @classmethod
    def open(cls, shard: Path, findings: Findings, *, is_published: bool) -> _IndexCheck | None:
        """The index of a shard, if there is one; to have none is no fault."""
        path = Index.find(shard)
        if path is None:
            return None
        name = path.relative_to(shard.parent).as_posix()
        try:
            # Beside records that others wrote, a file of that name may be something else.
            if not is_published and not Index.is_index(path):
                return None
            return cls(name, Index.load(path))
        except (OSError, DatumError) as error:
            findings.tell("index", f"{name}: {Message.of(error).beside(path)}")
            return None

    def share_of(self, end: int) -> float:
        """How much of the stream is done at byte `end`."""
        return min(1.0, end / max(1, self._index.stream_bytes))

    def compare(self, records: Records, end: int) -> None:
        offsets = records.starts + ((records.base or 0) - HEADER_BYTES)
        told = self._index.offsets[self._seen : self._seen + len(records)]
        self._is_same = self._is_same and np.array_equal(told, offsets)
        self._seen += len(records)
        self._end = end

    def finish(self, findings: Findings) -> None:
        is_whole = self._seen == len(self._index) and self._end == self._index.stream_bytes
        if not (self._is_same and is_whole):
            text = f"{self._name}: expected the places of these records, got others"
            findings.tell("index", text)


def verify_shards(
    contents: Contents,
    *,
    deep: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> VerifyReport:
    """Compare every shard with what is known of it, with its index, its CRCs, and the schema.

    `deep` also decodes every image, and compares what the manifest tells of the values.
    `progress` is called with the bytes that are done and all there are, from any thread, one call
    at a time.
    """
    started = time.monotonic()
    shards = [(name, shard) for name, info in contents.splits.items() for shard in info.shards]
    counted = ByteCounter(sum(shard.bytes for _, shard in shards), progress)
    parser, problems = _make_parser(contents)
    with _pools(thread_count(threads), deep=deep) as (pool, decoders):
        verifier = _Verifier(
            contents,
            contents.left_out,
            parser,
            deep,
            max(1, thread_count(threads) // max(1, len(shards))),
            decoders,
            counted,
        )
        try:
            found = list(pool.map(verifier.verify, shards))
        except BaseException:  # an interrupt, most likely: nobody waits for the rest
            counted.is_stopped = True
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    problems += _name_swapped(shards, found)
    problems += _missing(contents)
    if deep and not problems:
        problems += _compare_splits(contents, shards, found)
    return VerifyReport(
        contents.folder,
        sum(one.shard.records for one in found),
        sum(one.shard.bytes for one in found),
        len(shards),
        tuple(problems),
        find_notes(contents),
        sum(one.lost for one in found),
        deep,
        sum(one.images for one in found),
        time.monotonic() - started,
    )


def _make_parser(contents: Contents) -> tuple[Parser | None, list[Problem]]:
    try:
        return make_parser(contents.schema), []
    except SchemaError as error:  # nothing can be read by it
        return None, [Problem("", MANIFEST_NAME, "schema", error.parts.line)]


@contextmanager
def _pools(threads: int, *, deep: bool) -> Iterator[tuple[ThreadPoolExecutor, Executor | None]]:
    """Threads for shards, and others for images, which the first ones wait for."""
    with ThreadPoolExecutor(threads, "datum-verify") as pool:
        if not deep or threads == 1:
            yield pool, None
            return
        with ThreadPoolExecutor(threads, "datum-decode") as decoders:
            yield pool, decoders


@dataclass(frozen=True, slots=True)
class _VerifiedShard:
    shard: ShardFound
    problems: list[Problem]
    lost: int
    images: int
    statistics: Statistics | None


@dataclass(frozen=True, slots=True)
class _Verifier:
    contents: Contents
    left_out: Mapping[str, Sequence[int]]
    parser: Parser | None
    is_deep: bool
    threads: int  # for each shard
    decoders: Executor | None
    counted: ByteCounter

    def verify(self, item: tuple[str, ShardInfo]) -> _VerifiedShard:
        split, shard = item
        contents = self.contents
        findings = Findings(split, shard.name)
        is_bare = contents.writer == "tfrecord files"
        schema = contents.schema if self.parser is None else self.parser.schema
        pictures = PictureChecks(schema, pool=self.decoders, guesses=is_bare)
        checks = RecordChecks(
            self.parser,
            findings,
            malformed=self.left_out.get(shard.name, ()),
            threads=self.threads,
            pictures=pictures if self.is_deep else None,
            summarizes=self.is_deep and split in contents.statistics,
        )
        note = self.counted.of_file(shard.bytes)
        found = verify_shard(
            contents.folder / shard.name,
            shard,
            findings,
            checks,
            is_published=contents.is_published,
            on_bytes=note,
        )
        note(shard.bytes)
        lost = max(0, shard.records - found.records)
        if is_bare:  # nobody says how many there were
            lost = max(lost, findings.lost + checks.unusable)
        return _VerifiedShard(found, findings.problems, lost, pictures.decoded, checks.statistics)


def _name_swapped(
    shards: Sequence[tuple[str, ShardInfo]], found: Sequence[_VerifiedShard]
) -> Iterator[Problem]:
    """The problems of all shards; where one has the content of another, that is said."""
    owners = {(one.bytes, one.crc32c): one.name for _, one in shards if one.records}
    for one in found:
        owner = owners.get((one.shard.bytes, one.shard.crc))
        for problem in one.problems:
            if owner is not None and problem.kind in ("size", "file checksum"):
                yield replace(problem, text=f"{problem.text}: the content of {owner}")
            else:
                yield problem


def _missing(contents: Contents) -> Iterator[Problem]:
    """Files that the names of others tell of, and that were not there when they were loaded."""
    for damage in contents.damage:
        if damage.kind == "missing file":
            text = "expected a file, because the names of other shards count it, got none"
            yield Problem("", damage.file, damage.kind, text)


def _compare_splits(
    contents: Contents, shards: Sequence[tuple[str, ShardInfo]], found: Sequence[_VerifiedShard]
) -> Iterator[Problem]:
    """What the manifest tells of the values of each split, held against those that were read."""
    for split, told in contents.statistics.items():
        merged: Statistics | None = Statistics()
        for (name, _), one in zip(shards, found, strict=True):
            if name == split:
                merged = merged and one.statistics and merged.merge(one.statistics)
        if merged is not None:
            for feature, text in compare_statistics(told, merged):
                yield Problem(split, MANIFEST_NAME, "statistics", text, feature=feature)


_DESCRIPTIONS = (MANIFEST_NAME, SHARD_FILE, MAPPING_FILE, INFO_FILE, FEATURES_FILE)


@dataclass(frozen=True, slots=True)
class _Opened:
    contents: Contents
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


def verify_path(
    path: Paths,
    *,
    deep: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> VerifyReport:
    """Verify what lies at a path, as `Dataset.verify` does, also where `datum.load` gives up.

    Of files that are damaged, what is sound is looked at. Where the description of a dataset is
    damaged its files are verified as plain ones, and where records are no Examples their CRCs are.
    Raises what `datum.load` does if there are no records at all.
    """
    started = time.monotonic()
    if not isinstance(path, (str, os.PathLike)) and isinstance(path, Iterable):
        path = list(path)  # it may be gone through twice
    halves = _Halves(progress)
    opened = _open(path, halves.opening)
    report = verify_shards(opened.contents, deep=deep, threads=threads, progress=halves.verifying)
    return replace(
        report,
        problems=(*opened.problems, *report.problems),
        notes=(*opened.notes, *report.notes),
        seconds=time.monotonic() - started,
    )


class _Halves:
    """The progress of two passes as one: files that nobody described are read to be opened, too."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._opened = 0
        self._done = 0

    def opening(self, done: int, total: int) -> None:
        self._opened = total
        self._done = max(self._done, done)  # records of no known kind are gone through twice
        if self._progress is not None:
            self._progress(self._done, 2 * total)

    def verifying(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(self._opened + done, self._opened + total)


def _open(path: Paths, progress: Progress) -> _Opened:
    try:
        return _open_records(path, progress)
    except DatumError as error:
        folder = _folder_at(path)
        if folder is None:
            raise
        return _open_undescribed(folder, error, progress)


def _open_records(path: Paths, progress: Progress) -> _Opened:
    """A dataset; of records whose features cannot be told, as records without features."""
    try:
        return _Opened(open_dataset(path, skips_damage=True, progress=progress))
    except DatumError as error:
        try:
            contents = open_dataset(path, schema={}, skips_damage=True, progress=progress)
        except DatumError:
            raise error from None
        note = f"features not looked at: {error.parts.line}"
        return _Opened(contents, notes=(note,))


def _open_undescribed(folder: Path, error: DatumError, progress: Progress) -> _Opened:
    """The record files of a folder whose description cannot be used."""
    described = [name for name in _DESCRIPTIONS if os.path.lexists(folder / name)]
    files = select_record_files(list_folder(folder)[0], skips_damage=True) if described else []
    if not files:
        raise error
    opened = _open_records(files, progress)
    if not isinstance(error, ManifestError):  # the description is sound, records are not
        return opened
    text = error.parts.beside(folder / described[0])
    problem = Problem("", described[0], "manifest", text)
    notes = (*opened.notes, "the files were read as plain TFRecord files")
    return replace(opened, problems=(problem,), notes=notes)


def _folder_at(path: Paths) -> Path | None:
    """The folder that was asked for, or that of the description that was."""
    if not isinstance(path, (str, os.PathLike)):
        return None
    found = Path(path).expanduser()
    if found.name in _DESCRIPTIONS:
        found = found.parent
    return found if found.is_dir() else None
