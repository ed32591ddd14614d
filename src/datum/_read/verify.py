"""Verification of a dataset: every record checked against manifest and schema."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from datum._read.shards import ByteCounter, Checksum, ProgressCallback, end_of
from datum._storage.location import is_url, local_path
from datum.errors import (
    DatumError,
    ManifestError,
    Message,
    SchemaError,
    StorageError,
    count_of,
)
from datum.format import Index, Parser, RecordFile, Records, ShardInfo, Statistics
from datum.format.durable import NEW_SUFFIX, find_unfinished
from datum.format.framing import HEADER_BYTES
from datum.format.index import INDEX_FOLDER
from datum.format.manifest import MANIFEST_NAME, parse_shard_name

if TYPE_CHECKING:
    from datum._storage.client import RemoteFolder

__all__ = [
    "Problem",
    "ShardFound",
    "VerifyReport",
    "find_notes",
    "verify_path",
    "verify_shard",
    "verify_shards",
]

SHOWN = 3  # names of files that are listed

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
            f"{count_of(len(strays), 'TFRecord file')} that {MANIFEST_NAME} does not list:"
            f" {_shown(strays)}"
        )
    bare = [name for name in owned if Index.find(folder / name) is None]
    bare = [name for name in bare if (folder / name).is_file()]
    if bare:
        yield (
            f"{count_of(len(bare), 'shard')} without an index, which is built when needed;"
            f" `datum index` writes it: {_shown(bare)}"
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
    """Notes about files without a description, which may have lost their manifest."""
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
            f"no {MANIFEST_NAME}: read as plain TFRecord files; if Datum wrote them, the manifest"
            " is lost, and `Dataset.save_manifest` writes a new one"
        )
    yield from _staging(contents.folder)


def _has_own_index(shard: Path) -> bool:
    path = Index.find(shard)
    return path is not None and Index.is_index(path)


def _staging(folder: Path) -> Iterator[str]:
    for place in find_unfinished(folder):
        yield (
            f"{place}: left by a write that did not finish or is still running;"
            " repeat the same write to resume it"
        )


def _count_lines(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return count_of(sum(1 for _ in file), "record")
    except OSError:
        return "records"


def _shown(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")


RUN_BYTES = 2 * 2**20  # approximate bytes between calls of `on_bytes`: they fit into caches
MAX_RUN_RECORDS = 4096
FIRST_RUN_RECORDS = 64


@dataclass(frozen=True, slots=True)
class ShardFound:
    """Facts about a shard that was read.

    Attributes:
        records: Number of records that are intact and fit the schema.
        bytes: Size of the file; 0 if it could not be read.
        crc: Checksum of the file; None if it could not be read.
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
    remote: RemoteFolder | None = None,
    on_bytes: Callable[[int], None],
) -> ShardFound:
    """Compare a shard with its description, its index and its CRCs.

    Args:
        path: Path of the file.
        shard: Description of the shard.
        findings: Collects the problems.
        checks: Checks the intact records.
        is_published: Whether Datum wrote the shard, so that a file with the name of its index is
            its index.
        remote: Folder of the object that the file is a copy of, which is fetched first.
        on_bytes: Called with the number of bytes of the file that are read.
    """
    hold = None
    try:
        if remote is not None:
            from datum._read.remote import hold_shard

            hold = hold_shard(remote, shard, has_index=is_published, accepts_damage=True)
        with RecordFile(path, recovery="skip", use_index=False) as file:
            checksum = Checksum(file.name, file.content)
            index = _IndexCheck.open(path, findings, is_published=is_published)
            found = _read_through(file, checksum, index, findings, checks, on_bytes)
            _compare(shard, file, checksum, findings)
            if found != shard.records + checks.left_out:
                expected = f"expected {count_of(shard.records, 'record')}"
                findings.add("record count", f"{expected}, got {found:,} intact ones")
            if index is not None and not findings.damaged:
                index.finish(findings)
    except FileNotFoundError:
        findings.add("missing file", "expected a file, got none")
        return ShardFound(0, 0, None)
    except (OSError, DatumError) as error:
        if isinstance(error, StorageError) and error.kind == "missing":
            findings.add("missing file", "expected an object, got none")
        else:
            findings.add("unreadable file", f"expected a readable file: {Message.of(error).line}")
        return ShardFound(0, 0, None)
    finally:
        if hold is not None:
            hold.close()
    return ShardFound(found - checks.unusable, checksum.nbytes, checksum.crc)


def _read_through(
    file: RecordFile,
    checksum: Checksum,
    index: _IndexCheck | None,
    findings: Findings,
    checks: RecordChecks,
    on_bytes: Callable[[int], None],
) -> int:
    """Read a whole file, and return its number of intact records."""
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
        _move_damage(file, findings)
    _move_damage(file, findings)
    checksum.advance()
    on_bytes(checksum.nbytes)
    return found


def _move_damage(file: RecordFile, findings: Findings) -> None:
    for damage in file.damage:
        findings.add_damage(damage)
    file.damage.clear()  # it may grow large


def _compare(shard: ShardInfo, file: RecordFile, checksum: Checksum, findings: Findings) -> None:
    if checksum.nbytes != shard.bytes:
        findings.add("size", f"expected {shard.bytes:,} bytes, got {checksum.nbytes:,}")
    elif shard.crc32c not in (None, checksum.crc):
        crcs = f"expected {shard.crc32c:08x}, as the manifest says, got {checksum.crc:08x}"
        findings.add("file checksum", crcs)
    if checksum.nbytes and file.compression != shard.compression:
        got = f"expected {shard.compression or 'none'}, got {file.compression or 'none'}"
        findings.add("compression", got)


class _RunSizes:
    """Number of records to read next, fewer if they are large."""

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
        """The index of a shard; None if it has none, which is no problem."""
        path = Index.find(shard)
        if path is None:
            return None
        name = path.relative_to(shard.parent).as_posix()
        try:
            # Beside records of another writer, a file of that name may be something else.
            if not is_published and not Index.is_index(path):
                return None
            return cls(name, Index.load(path))
        except (OSError, DatumError) as error:
            findings.add("index", f"{name}: {Message.of(error).beside(path)}")
            return None

    def share_of(self, end: int) -> float:
        """The fraction of the stream before byte `end`."""
        return min(1.0, end / max(1, self._index.stream_bytes))

    def compare(self, records: Records, end: int) -> None:
        offsets = records.starts + ((records.base or 0) - HEADER_BYTES)
        expected = self._index.offsets[self._seen : self._seen + len(records)]
        self._is_same = self._is_same and np.array_equal(expected, offsets)
        self._seen += len(records)
        self._end = end

    def finish(self, findings: Findings) -> None:
        is_whole = self._seen == len(self._index) and self._end == self._index.stream_bytes
        if not (self._is_same and is_whole):
            text = f"{self._name}: expected the places of these records, got others"
            findings.add("index", text)


def verify_shards(
    contents: Contents,
    *,
    deep: bool = False,
    threads: int | None = None,
    progress: ProgressCallback | None = None,
) -> VerifyReport:
    """Compare every shard with its description, its index, its CRCs and the schema.

    Args:
        contents: The dataset.
        deep: Whether to decode every image, and to compare the statistics of the manifest with the
            values.
        threads: Number of threads; None is one for each core.
        progress: Called with the number of bytes read and the total, from any thread, one call at a
            time.
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
        except BaseException:  # an interrupt, most likely: the rest is not needed
            counted.is_stopped = True
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    problems += _name_swapped(shards, found)
    problems += _missing(contents)
    if deep and not problems:
        problems += _compare_splits(contents, shards, found)
    return VerifyReport(
        contents.folder if contents.remote is None else contents.place,
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
    except SchemaError as error:  # no record can be parsed
        return None, [Problem("", MANIFEST_NAME, "schema", error.parts.line)]


@contextmanager
def _pools(threads: int, *, deep: bool) -> Iterator[tuple[ThreadPoolExecutor, Executor | None]]:
    """Threads for shards, and threads for images, on which the first ones wait."""
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
            remote=contents.remote,
            on_bytes=note,
        )
        note(shard.bytes)
        lost = max(0, shard.records - found.records)
        if is_bare:  # no description has their number
            lost = max(lost, findings.lost + checks.unusable)
        return _VerifiedShard(found, findings.problems, lost, pictures.decoded, checks.statistics)


def _name_swapped(
    shards: Sequence[tuple[str, ShardInfo]], found: Sequence[_VerifiedShard]
) -> Iterator[Problem]:
    """The problems of all shards; a shard with the content of another one names it."""
    owners = {(one.bytes, one.crc32c): one.name for _, one in shards if one.records}
    for one in found:
        owner = owners.get((one.shard.bytes, one.shard.crc))
        for problem in one.problems:
            if owner is not None and problem.kind in ("size", "file checksum"):
                yield replace(problem, text=f"{problem.text}: the content of {owner}")
            else:
                yield problem


def _missing(contents: Contents) -> Iterator[Problem]:
    """Files that the names of other shards imply, and that were missing when these were loaded."""
    for damage in contents.damage:
        if damage.kind == "missing file":
            text = "expected a file, because the names of other shards count it, got none"
            yield Problem("", damage.file, damage.kind, text)


def _compare_splits(
    contents: Contents, shards: Sequence[tuple[str, ShardInfo]], found: Sequence[_VerifiedShard]
) -> Iterator[Problem]:
    """Compare the statistics of each split in the manifest with its records."""
    for split, stored in contents.statistics.items():
        merged: Statistics | None = Statistics()
        for (name, _), one in zip(shards, found, strict=True):
            if name == split:
                merged = merged and one.statistics and merged.merge(one.statistics)
        if merged is not None:
            for feature, text in compare_statistics(stored, merged):
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
    follow_links: bool = False,
    progress: ProgressCallback | None = None,
    storage: Mapping[str, Any] | None = None,
) -> VerifyReport:
    """Verify the dataset or files at a path, even if `datum.load` fails.

    The intact records of damaged files are checked. If the description of a dataset is damaged, its
    files are verified as plain ones. If records are no Examples, their CRCs are checked. Raises the
    errors of `datum.load` if there are no records.

    Args:
        path: As in `datum.load`.
        deep: As in `verify_shards`.
        threads: As in `verify_shards`.
        follow_links: As in `datum.load`.
        progress: As in `verify_shards`.
        storage: As in `datum.load`.
    """
    started = time.monotonic()
    if not isinstance(path, (str, os.PathLike)) and isinstance(path, Iterable):
        path = list(path)  # it may be read twice
    halves = _Halves(progress)
    if isinstance(path, str) and is_url(path):
        if (local := local_path(path)) is None:
            opened = _Opened(open_dataset(path, progress=halves.opening, storage=storage))
        else:
            opened = _open(local, halves.opening, follow_links)
    else:
        opened = _open(path, halves.opening, follow_links)
    report = verify_shards(opened.contents, deep=deep, threads=threads, progress=halves.verifying)
    return replace(
        report,
        problems=(*opened.problems, *report.problems),
        notes=(*opened.notes, *report.notes),
        seconds=time.monotonic() - started,
    )


class _Halves:
    """The progress of two passes as one: files without a description are also read to open them."""

    def __init__(self, progress: ProgressCallback | None) -> None:
        self._progress = progress
        self._opened = 0
        self._done = 0

    def opening(self, done: int, total: int) -> None:
        self._opened = total
        self._done = max(self._done, done)  # records of no known kind are read twice
        if self._progress is not None:
            self._progress(self._done, 2 * total)

    def verifying(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(self._opened + done, self._opened + total)


def _open(path: Paths, progress: ProgressCallback, follow_links: bool) -> _Opened:
    try:
        return _open_records(path, progress, follow_links)
    except DatumError as error:
        folder = _folder_at(path)
        if folder is None:
            raise
        return _open_undescribed(folder, error, progress, follow_links)


def _open_records(path: Paths, progress: ProgressCallback, follow_links: bool) -> _Opened:
    """Open a dataset; records whose features cannot be inferred are opened without features."""
    try:
        return _Opened(
            open_dataset(path, skips_damage=True, follow_links=follow_links, progress=progress)
        )
    except DatumError as error:
        try:
            contents = open_dataset(
                path, schema={}, skips_damage=True, follow_links=follow_links, progress=progress
            )
        except DatumError:
            raise error from None
        note = f"features not checked: {error.parts.line}"
        return _Opened(contents, notes=(note,))


def _open_undescribed(
    folder: Path, error: DatumError, progress: ProgressCallback, follow_links: bool
) -> _Opened:
    """Open the record files of a folder whose description cannot be used."""
    described = [name for name in _DESCRIPTIONS if os.path.lexists(folder / name)]
    files = select_record_files(list_folder(folder)[0], skips_damage=True) if described else []
    if not files:
        raise error
    opened = _open_records(files, progress, follow_links)
    if not isinstance(error, ManifestError):  # the records are damaged, not the description
        return opened
    text = error.parts.beside(folder / described[0])
    problem = Problem("", described[0], "manifest", text)
    notes = (*opened.notes, "the files were read as plain TFRecord files")
    return replace(opened, problems=(problem,), notes=notes)


def _folder_at(path: Paths) -> Path | None:
    """The folder at a path, or the folder of the description at that path."""
    if not isinstance(path, (str, os.PathLike)):
        return None
    found = Path(path).expanduser()
    if found.name in _DESCRIPTIONS:
        found = found.parent
    return found if found.is_dir() else None
