"""Local files of a shard: its plain records and its index, in the dataset or in the cache."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum._identity import identify
from datum._read.shards import Shards, wrong_file
from datum._storage.pieces import MAP_FOLDER
from datum.errors import (
    Call,
    CorruptIndexError,
    CorruptRecordError,
    Option,
    Text,
    WriteError,
    shell_word,
)
from datum.format import Index, RecordFile, Records, ShardInfo
from datum.format.durable import find_abandoned, hold_folder, new_file, remove_folder
from datum.format.file import FileVersion, change_error, version_of
from datum.format.framing import HEADER_BYTES
from datum.format.index import FRAME_BYTES, most_records

if TYPE_CHECKING:
    from datum._storage.client import RemoteFolder

__all__ = [
    "LocalShard",
    "cache_folder",
    "check_counts",
    "check_header",
    "check_unchanged",
    "content_id",
    "damage_hints",
    "find_local",
    "keep",
    "keep_for_process",
    "name_for",
    "places",
    "process_folder",
    "repair_hint",
]

_FULL = (errno.ENOSPC, errno.EDQUOT)


def cache_folder() -> Path | None:
    """The cache directory: `$DATUM_CACHE`, `$XDG_CACHE_HOME/datum` or `~/.cache/datum`.

    It need not exist. None for a user without a home.
    """
    named = os.environ.get("DATUM_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        if named:
            return Path(named).expanduser()
        if not base.is_absolute():  # its specification ignores a relative path
            base = Path("~/.cache").expanduser()
    except RuntimeError:  # a user without a home
        return None
    return base / "datum"


def name_for(path: Path, shard: ShardInfo) -> str:
    """The name of a cache file for a shard, which changes with the shard."""
    identity: tuple[Any, ...] = (str(path.resolve()), identify(path), shard.crc32c)
    if (path.parent / MAP_FOLDER / path.name).is_file():  # a copy: its folder is of one version
        identity = (str(path), shard.bytes, shard.crc32c)
    return hashlib.sha256(repr(identity).encode()).hexdigest()[:32]


def content_id(folder: Path, shard: ShardInfo) -> str:
    """A text that changes with the content of a shard: its checksum, or the identity of its file.

    Only a manifest has checksums.
    """
    if shard.crc32c is not None:
        return f"{shard.crc32c:08x}"
    if (folder / MAP_FOLDER / shard.name).is_file():  # a copy: its folder is of one version
        return str(folder / shard.name)
    return identify(folder / shard.name)


def check_unchanged(path: Path, shard: ShardInfo, name: str) -> None:
    """Raise CorruptRecordError if a shard has changed since its cache name was computed."""
    if name_for(path, shard) != name:
        raise CorruptRecordError(
            "the file was changed while it was read", where=path, hint="load the dataset again"
        )


def places(name: str) -> list[Path]:
    """The paths where a cache file of this name may be, in the order to look."""
    folder = cache_folder()
    first = [] if folder is None else [folder]
    return [kept / name for kept in (*first, *_process_folders.values())]


def keep(name: str, write: Callable[[BinaryIO], None]) -> Path:
    """Write a file in the cache directory, or in that of the process if it is not writable.

    The file appears atomically, so several processes may write it.

    Args:
        name: Name of the file.
        write: Writes the content.
    """
    folder = cache_folder()
    if folder is not None:
        try:
            return _fill(folder, name, write)
        except WriteError:
            raise
        except OSError as error:
            if error.errno in _FULL:
                raise _no_room(folder, error) from error
    return keep_for_process(name, write)


def keep_for_process(name: str, write: Callable[[BinaryIO], None]) -> Path:
    """Write a file in a folder that is removed when the process ends."""
    folder = process_folder()
    try:
        return _fill(folder, name, write)
    except WriteError:
        raise
    except OSError as error:
        raise _no_room(folder, error) from error


def _fill(folder: Path, name: str, write: Callable[[BinaryIO], None]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with new_file(folder / name) as file:
        write(file)
    return folder / name


def _no_room(folder: Path, error: OSError) -> WriteError:
    return WriteError(
        f"expected room for the copies and indexes that random access needs, got {error}",
        where=folder,
        hint="set DATUM_CACHE to a folder on a disk with more room, or write the dataset without"
        " compression",
    )


# By process: the parent removes a folder that it made before a fork; the child can still read it.
_process_folders: dict[int, Path] = {}
_held: list[int] = []  # locks that show other processes that this one runs
_PROCESS_PREFIX = "datum-cache-"
_PROCESS_NAMES = re.compile(rf"{_PROCESS_PREFIX}[a-z0-9_]+")


def process_folder() -> Path:
    """A folder that is removed when the process ends, or by the next process if it is killed."""
    process = os.getpid()
    if process not in _process_folders:
        from multiprocessing.util import Finalize  # runs at the end of worker processes too

        for left in find_abandoned(Path(tempfile.gettempdir()), _PROCESS_NAMES):
            remove_folder(left)
        folder = Path(tempfile.mkdtemp(prefix=_PROCESS_PREFIX))
        _held.append(hold_folder(folder))
        Finalize(None, remove_folder, args=(folder,), exitpriority=0)
        _process_folders[process] = folder
    return _process_folders[process]


COPIED_RECORDS = 4096  # records copied at a time when a shard is decompressed
MAX_LOST_RECORDS = 2**24  # most that truncated files may lack; a higher count is a false claim


def damage_hints(folder: Path) -> list[str]:
    """The hints for a damaged dataset."""
    skip = Text("or load with ", Option("on_error", "skip"), " to leave out damaged records")
    return [Text("restore the file; ", repair_hint(folder)), skip]


def repair_hint(path: str | os.PathLike[str]) -> Text:
    """The hint that a damaged dataset can be repaired."""
    code = f"datum.repair({os.fspath(path)!r}, 'repaired')"
    call = Call(code, shell=f"datum repair {shell_word(os.fspath(path))} repaired")
    return Text(call, " writes the intact records")


_INDEX_HEADER_BYTES = 40
_CHECKED_RECORDS = 64  # records compared with an index that may belong to another file
_salvaged: dict[str, LocalShard] = {}  # copies made by this process, by name


@dataclass(frozen=True, slots=True, eq=False)
class LocalShard:
    """A shard with random access.

    Attributes:
        path: A plain TFRecord file: the shard itself, or a decompressed copy in the cache.
        version: Version of that file, which another file of the same name does not have.
        index: Index file of the records; None only if there are `offsets`.
        offsets: Start of each record in the file, -1 for a damaged one; records after the last
            offset are damaged too. Only for damaged shards whose damage is skipped.
    """

    path: Path
    version: FileVersion
    index: Path | None
    offsets: NDArray[np.int64] | None = None

    @property
    def bytes(self) -> int:
        """Size of the file."""
        return self.version[2]


def check_counts(shards: Shards, contents: Iterable[ShardInfo]) -> None:
    """Raise CorruptRecordError for numbers of records that the files cannot hold.

    Memory is allocated by these numbers. Truncated files may lack some records.
    """
    known = {shard.name: shard for shard in contents}
    if sum(shard.records for shard in known.values()) <= MAX_LOST_RECORDS:
        return
    lacking = 0
    for shard in known.values():
        path = shards.folder / shard.name
        size = path.stat().st_size if path.is_file() else 0
        size = shard.bytes if shards.remote is not None else size  # it is compared when opened
        room = most_records(size, shard.compression)
        lacking += max(0, shard.records - room)
        if lacking > MAX_LOST_RECORDS:
            raise CorruptRecordError(
                f"expected {shard.records:,} records, {shards.known_from},"
                f" got a file of {size:,} bytes, which holds {room:,} at most",
                where=path,
                hint=Text("restore the file; ", repair_hint(shards.folder)),
            )


def find_local(
    shards: Shards, shard: ShardInfo, *, skips_damage: bool = False, checks_header: bool = True
) -> LocalShard:
    """Find or make the files to read the records of a shard by number.

    A plain shard with an index is read in place. A missing index is built once and kept in the
    cache directory; a compressed shard is decompressed there. Raises the errors of `Shards.open`,
    and CorruptRecordError or CorruptIndexError if damage hides the start of records.

    Args:
        shards: Opens the files.
        shard: The shard.
        skips_damage: Whether to find the intact records of a damaged shard instead of raising.
        checks_header: Whether to check the header of an index. The core checks it too, when it
            opens the index.
    """
    is_known = shards.writer == "datum" and shard.compression is None
    if shards.remote is not None and is_known and not skips_damage:
        copy = _find_copy(shards.remote, shard)
        if copy is not None:
            return copy
    with shards.open(shard, accepts_damage=skips_damage) as file:
        is_plain = file.compression is None
        version = file.content.version
    if shard.name in shards.left_out:  # known to be damaged: only intact records have numbers
        return _find_sound(shards, shard) if is_plain else _salvage(shards, shard)
    try:
        if not is_plain:
            return _find_inflated(shards, shard, version)
        path = shards.folder / shard.name
        index = _find_index(
            shards, shard, path, version, checks_header=checks_header, checks_offsets=skips_damage
        )
        return LocalShard(path, version, index)
    except CorruptIndexError:
        if not skips_damage:
            raise
    except CorruptRecordError as error:
        if not skips_damage:
            # The hint of the error is for readers of single files.
            hints = damage_hints(shards.folder)
            raise CorruptRecordError(error, hint=hints, damage=error.damage) from None
    return _find_sound(shards, shard) if is_plain else _salvage(shards, shard)


def _find_copy(remote: RemoteFolder, shard: ShardInfo) -> LocalShard | None:
    """The copy of an object, of which nothing needs to be there; None if it has no index."""
    from datum._read.remote import fetch_index, filling_version

    index = fetch_index(remote, shard)
    if index is None:
        return None
    path = remote.open(shard.name, shard.bytes, shard.crc32c).map.path
    return LocalShard(path, filling_version(path), index)


# Plain shards.


def _find_index(
    shards: Shards,
    shard: ShardInfo,
    path: Path,
    version: FileVersion,
    *,
    checks_header: bool,
    checks_offsets: bool,
) -> Path:
    found = Index.find(path)
    if shards.writer == "datum" and found is not None:
        if checks_header or checks_offsets:
            check_header(found, path, shard, version[2])
        if checks_offsets:
            Index.load(found)
        return found
    if found is not None and _is_of_others(found, path, shard):
        return found
    name = name_for(path, shard)
    for kept in places(f"{name}.index"):
        if _is_sound(kept, shard, version[2]):
            return kept
    with _open_again(path, version) as file:
        index = file.index
    _check_count(shards, shard, len(index))
    check_unchanged(path, shard, name)
    data = index.to_bytes()
    return keep(f"{name}.index", lambda target: _write(target, data))


def _open_again(path: Path, version: FileVersion) -> RecordFile:
    """Open a file again; CorruptRecordError if it was replaced since."""
    file = RecordFile(path, use_index=False)
    if file.content.version != version:
        raise change_error(str(path), version[2], "rewritten", len(file.content))
    return file


def _is_of_others(index: Path, path: Path, shard: ShardInfo) -> bool:
    """Whether an index beside records of another writer is ours, and that of these records.

    There is no checksum to compare. An index that is older than the file is ignored. Since times
    can be restored or copied, some records must be where the index says.
    """
    try:
        file, made = path.stat(), index.stat()
        if made.st_mtime_ns < file.st_mtime_ns or not Index.is_index(index):
            return False
        return _is_sound(index, shard, file.st_size) and _fits(Index.load(index), path)
    except OSError:
        return False


def _fits(index: Index, path: Path) -> bool:
    """Whether records begin and end where an index says; of many records, some are checked."""
    bounds = np.append(index.offsets, index.stream_bytes)
    rows = np.unique(np.linspace(0, len(index) - 1, min(len(index), _CHECKED_RECORDS)).astype(int))
    with path.open("rb", buffering=0) as file:
        for row in rows.tolist():
            start, end = bounds[row : row + 2].tolist()
            file.seek(start)
            head = file.read(HEADER_BYTES)
            length = int.from_bytes(head[:8], "little")
            if not _core.has_valid_header(head) or start + length + FRAME_BYTES != end:
                return False
    return True


def _write(target: BinaryIO, data: bytes) -> None:
    target.write(data)


def check_header(index: Path, path: Path, shard: ShardInfo, shard_bytes: int) -> None:
    """Raise CorruptIndexError for the index of another file, without reading its offsets."""
    with index.open("rb") as file:
        head = file.read(_INDEX_HEADER_BYTES)
        size = os.fstat(file.fileno()).st_size
    records, stream_bytes = (int.from_bytes(head[at : at + 8], "little") for at in (16, 24))
    crc = int.from_bytes(head[36:], "little")
    if size != _INDEX_HEADER_BYTES + 8 * records or crc != _core.mask_crc(_core.crc32c(head[:36])):
        Index.load(index)  # raises an error that describes the damage
    if stream_bytes != shard_bytes:
        raise CorruptIndexError(
            f"expected an index of {shard_bytes} bytes, as {path} has, got one of {stream_bytes}",
            where=index,
            hint="delete it, or restore the shard",
        )
    if records != shard.records:
        raise CorruptIndexError(
            f"expected {shard.records} records, as the manifest says, got an index of {records}",
            where=path,
            hint="delete the index, or restore the shard",
        )
    shard_crc = int.from_bytes(head[12:16], "little")
    if shard_crc and shard.crc32c is not None and shard_crc != shard.crc32c:
        raise CorruptIndexError(
            f"expected the index of a file with checksum {shard.crc32c:08x}, as the"
            f" manifest says, got one of {shard_crc:08x}",
            where=index,
            hint="delete it; it can be rebuilt from the records",
        )


def _is_sound(index: Path, shard: ShardInfo, stream_bytes: int) -> bool:
    try:
        found = Index.load(index)
    except (OSError, CorruptIndexError):
        return False
    return len(found) == shard.records and found.stream_bytes == stream_bytes


def _check_count(shards: Shards, shard: ShardInfo, records: int) -> None:
    if records != shard.records:
        raise CorruptRecordError(
            f"expected {shard.records} records, {shards.known_from}, got {records}",
            where=shards.folder / shard.name,
            hint="restore the file, or load a list of the files",
        )


def _find_sound(shards: Shards, shard: ShardInfo) -> LocalShard:
    """Find the intact records of a plain shard by reading all of it."""
    path = shards.folder / shard.name
    numbers, starts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    with shards.open_around(shard) as file:
        for records in file.chunks(COPIED_RECORDS):
            numbers.append(records.numbers)
            starts.append(records.starts + (records.base or 0) - HEADER_BYTES)
        version = file.content.version
    offsets = _by_number(shard, np.concatenate(numbers), np.concatenate(starts))
    return LocalShard(path, version, None, offsets)


def _by_number(
    shard: ShardInfo, numbers: NDArray[np.int64], found: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The start of each record up to the last intact one, by number.

    Each damaged place counts as one record, so a shard may seem to have too many.
    """
    inside = numbers < shard.records
    numbers, found = numbers[inside], found[inside]
    offsets = np.full(int(numbers.max(initial=-1)) + 1, -1, np.int64)
    offsets[numbers] = found
    return offsets


# Compressed shards.


def _find_inflated(shards: Shards, shard: ShardInfo, version: FileVersion) -> LocalShard:
    source = shards.folder / shard.name
    name = name_for(source, shard)
    for path, index in zip(places(f"{name}.tfrecord"), places(f"{name}.index"), strict=True):
        if path.is_file() and _is_sound(index, shard, path.stat().st_size):
            return LocalShard(path, version_of(path), index)
    found: list[Index] = []

    def inflate(target: BinaryIO) -> None:
        with _open_again(source, version) as file:
            offsets, _ = _copy_records(file, target)
            _refuse_other(file, shard)
        _check_count(shards, shard, len(offsets))
        check_unchanged(source, shard, name)
        found.append(Index(offsets, target.tell()))

    path = keep(f"{name}.tfrecord", inflate)
    data = found[-1].to_bytes()
    # The index comes last: its presence shows that the records are complete.
    index = keep(f"{name}.index", lambda target: _write(target, data))
    return LocalShard(path, version_of(path), index)


def _copy_records(
    file: RecordFile, target: BinaryIO
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Copy the frames of the records of a file, and return their new offsets and numbers."""
    offsets, numbers = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    position = 0
    for records in file.chunks(COPIED_RECORDS):
        sizes = records.lengths + FRAME_BYTES
        offsets.append(position + np.cumsum(sizes) - sizes)
        numbers.append(records.numbers)
        position += int(sizes.sum())
        target.writelines(_frames(records))
    return np.concatenate(offsets), np.concatenate(numbers)


def _refuse_other(file: RecordFile, shard: ShardInfo) -> None:
    """Raise CorruptRecordError for an undamaged file with another checksum than its shard."""
    if file.damage or shard.crc32c in (None, file.content.crc32c(0, len(file.content))):
        return
    raise wrong_file(file.name, shard)


def _frames(records: Records) -> list[memoryview]:
    """The frames of some records, in as few pieces as possible."""
    begins = records.starts - HEADER_BYTES
    ends = begins + records.lengths + FRAME_BYTES
    breaks = np.flatnonzero(begins[1:] != ends[:-1])
    firsts = begins[np.concatenate([[0], breaks + 1])].tolist()
    lasts = ends[np.concatenate([breaks, [len(ends) - 1]])].tolist()
    buffer = memoryview(records.buffer)
    return [buffer[begin:end] for begin, end in zip(firsts, lasts, strict=True)]


def _salvage(shards: Shards, shard: ShardInfo) -> LocalShard:
    """Copy the intact records of a compressed shard, for the lifetime of the process."""
    source = shards.folder / shard.name
    name = name_for(source, shard)
    name += ".numbered" if shard.name in shards.left_out else ""
    made = _salvaged.get(name)
    if made is not None and made.path.is_file():
        return made
    found: list[NDArray[np.int64]] = []

    def copy(target: BinaryIO) -> None:
        with shards.open_around(shard) as file:
            starts, numbers = _copy_records(file, target)
            _refuse_other(file, shard)
        found.append(_by_number(shard, numbers, starts))

    path = keep_for_process(f"{name}.sound.tfrecord", copy)
    made = _salvaged[name] = LocalShard(path, version_of(path), None, found[-1])
    return made
