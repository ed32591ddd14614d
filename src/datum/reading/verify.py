"""Whether a dataset on disk is what its manifest, or its other metadata, says: every record."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.errors import DatumError
from datum.format import Index, RecordFile, ShardInfo
from datum.format.records import HEADER_BYTES
from datum.format.threads import thread_count
from datum.format.wording import count_of, format_bytes
from datum.reading.contents import Contents

__all__ = ["Problem", "VerifyReport", "checksum_file", "verify_shards"]

READ_BYTES = 4 * 2**20
MAX_DAMAGES = 100  # told of one shard; what comes after is counted
CHUNK_RECORDS = 4096
FOOTER_BYTES = 4  # after each payload: its CRC


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one shard."""

    split: str
    shard: str
    text: str

    def __str__(self) -> str:
        return f"{self.split}: {self.shard}: {self.text}"


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was found; `str()` of it is a summary.

    Attributes:
        path: the folder of the dataset.
        records: how many sound records were read.
        bytes: how many bytes of shards were read.
        shards: how many shards there should be.
        problems: what is wrong, in the order of the shards.
    """

    path: Path
    records: int
    bytes: int
    shards: int
    problems: tuple[Problem, ...]

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __str__(self) -> str:
        found = count_of(len(self.problems), "problem") if self.problems else "sound"
        records, shards = count_of(self.records, "record"), count_of(self.shards, "shard")
        lines = [f"{self.path}: {found}: {records}, {shards}, {format_bytes(self.bytes)} read"]
        return "\n".join([*lines, *(f"  {problem}" for problem in self.problems)])


@dataclass(frozen=True, slots=True)
class _Found:
    records: int
    bytes: int
    problems: list[str]


def verify_shards(contents: Contents, *, threads: int | None = None) -> VerifyReport:
    """Compare every shard with what is known of it, with its index, and with its CRCs."""
    folder = contents.folder
    shards = [(name, shard) for name, info in contents.splits.items() for shard in info.shards]

    def verify(item: tuple[str, ShardInfo]) -> _Found:
        return _verify_shard(folder / item[1].name, item[1])

    with ThreadPoolExecutor(thread_count(threads), "datum-verify") as pool:
        found = list(pool.map(verify, shards))
    problems = [
        Problem(split, shard.name, text)
        for (split, shard), result in zip(shards, found, strict=True)
        for text in result.problems
    ]
    records, nbytes = (sum(getattr(f, name) for f in found) for name in ("records", "bytes"))
    return VerifyReport(folder, records, nbytes, len(shards), tuple(problems))


def _verify_shard(path: Path, shard: ShardInfo) -> _Found:
    problems: list[str] = []
    try:
        with RecordFile(path, recovery="skip") as file:  # refuses what is no regular file
            nbytes, crc = checksum_file(path)
            if nbytes != shard.bytes:
                problems.append(f"expected {shard.bytes} bytes, got {nbytes}")
            elif shard.crc32c not in (None, crc):
                problems.append(f"expected CRC {shard.crc32c:08x} of the file, got {crc:08x}")
            if nbytes and file.compression != shard.compression:
                got = file.compression
                problems.append(f"expected compression {shard.compression}, got {got}")
            index = _scan(file)
            problems += _describe_damage(file)
            if len(index) != shard.records:
                problems.append(f"expected {shard.records} records, got {len(index)} sound ones")
            if shard.crc32c is not None:  # others call other things .index
                problems += _verify_index(path, index, is_sound=not file.damage)
    except FileNotFoundError:
        return _Found(0, 0, ["expected a file, got none"])
    except (OSError, DatumError) as error:
        return _Found(0, 0, [*problems, f"expected a file to read: {error}"])
    return _Found(len(index), nbytes, problems)


def checksum_file(path: Path) -> tuple[int, int]:
    """Size and CRC of a file, read in pieces."""
    nbytes = crc = 0
    with path.open("rb", buffering=0) as file:
        while piece := file.read(READ_BYTES):
            crc = _core.crc32c(piece, crc)
            nbytes += len(piece)
    return nbytes, crc


def _scan(file: RecordFile) -> Index:
    """Where the sound records are, each checked; damage is left in the file."""
    starts: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    end = 0
    for records in file.chunks(CHUNK_RECORDS):
        base = records.base or 0
        starts.append(records.starts + (base - HEADER_BYTES))
        end = base + int(records.starts[-1] + records.lengths[-1]) + FOOTER_BYTES
    return Index(np.concatenate(starts), end)


def _describe_damage(file: RecordFile) -> Iterator[str]:
    for damage in file.damage[:MAX_DAMAGES]:
        yield f"record {damage.record}, bytes {damage.offset}-{damage.end}: {damage.kind}"
    if len(file.damage) > MAX_DAMAGES:
        yield f"{len(file.damage) - MAX_DAMAGES:,} more places of damage"


def _verify_index(path: Path, found: Index, *, is_sound: bool) -> Iterator[str]:
    """What is wrong with the index of a shard; to have none is no fault."""
    index_path = Index.path_for(path)
    if not index_path.is_file():
        return
    try:
        index = Index.load(index_path)
    except (OSError, DatumError) as error:
        yield str(error).partition("\n")[0]
        return
    is_same = index.stream_bytes == found.stream_bytes
    if is_sound and not (is_same and np.array_equal(index.offsets, found.offsets)):
        yield f"{index_path.name}: expected the places of these records, got others"
