"""Records by number, read and parsed on threads of the core."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum._options import thread_count
from datum._read.local import LocalShard, check_header, damage_hints, find_local
from datum._read.shards import ShardRange, Shards
from datum.errors import CorruptIndexError, CorruptRecordError, Damage, DatumError, Message
from datum.format import Index, Parser, RecordFile
from datum.format.file import change_error, version_of
from datum.format.parse import Stored

if TYPE_CHECKING:
    from concurrent.futures import Future

    from datum._read.remote import Preparer, RemoteRun
    from datum._storage.client import Hold, RemoteFolder

__all__ = [
    "NumberedRecords",
    "ReadResult",
]

MAX_TRIES = 3  # attempts to read files that are replaced at the same time
MAX_READS = 8  # attempts to read copies that may be evicted before they are read
PLANNED_POSITIONS = 1 << 16  # looked at in an epoch to find when shards are needed
AHEAD_BYTES = 128 * 2**20  # of objects, fetched before they are read
AHEAD_SHARE = 4  # and at most this part of the cache
REMOTE_OPENS = 16  # at once: each waits for an answer or two
OPEN_TRIES = 5  # of a copy that readers which start at the same time each make

# A batch of the core: stored columns, the buffer of strings, rows if not all, damaged rows.
_Batch = tuple[list[Stored], NDArray[np.uint8], NDArray[np.int64] | None, list[tuple[int, str]]]


@dataclass(frozen=True, slots=True, eq=False)
class ReadResult:
    """The records of one request.

    Attributes:
        columns: Columns of the intact records, as `datum.format.parse` returns them.
        rows: Places of these records in the request; None for all.
        damage: Damage of each of the other records.
    """

    columns: dict[str, Any]
    rows: NDArray[np.int64] | None
    damage: tuple[Damage, ...]


class NumberedRecords:
    """The records of many shard ranges, numbered from 0 through all of them.

    A file is opened when one of its records is first requested. Threads may share it; a forked
    child must make its own.

    Args:
        parts: Shard ranges, each with the object that opens its shard.
        parser: Parses the records into columns.
        threads: Number of threads of the core that read ahead; with 0 `take` reads.
        on_error: Whether a damaged record raises, or is skipped.
    """

    def __init__(
        self,
        parts: Sequence[tuple[Shards, ShardRange]],
        parser: Parser,
        *,
        threads: int,
        on_error: Literal["raise", "skip"] = "raise",
    ) -> None:
        self._parts = parts
        self._parser = parser
        self._skips = on_error == "skip"
        self._ends = np.cumsum([0, *(len(run) for _, run in parts)], dtype=np.int64)
        self._shards = _core.ShardSet(self._ends)
        self._loader = _core.BatchLoader(parser.plan, self._shards, threads, self._skips)
        self._submitted: dict[int, NDArray[np.int64]] = {}  # by ticket
        self._failed: dict[int, Exception] = {}  # tickets whose shards cannot be opened
        self._failures = count(-1, -1)
        self._locals: dict[int, LocalShard] = {}  # by run
        self._damage: dict[str, list[Damage]] = {}  # by file, for records without an offset
        # Of objects in a store, whose bytes have to be there before the core reads them.
        self._is_remote = any(shards.remote is not None for shards, _ in parts)
        self._remotes: dict[int, RemoteRun] = {}  # by run
        self._prepared: dict[int, Future[int]] = {}  # tickets of the core, by ours
        self._preparer: Preparer | None = None
        self._announcer: Preparer | None = None
        self._plans: list[Hold] = []  # how soon shards are needed, as long as they are kept
        self._threads = threads

    def __len__(self) -> int:
        return int(self._ends[-1])

    def submit(self, numbers: Sequence[int] | NDArray[Any]) -> int:
        """Start to read the records of these numbers, and return a ticket for `take`."""
        wanted = self._checked(numbers)
        is_there = not self._is_remote or self._is_there(wanted)
        if not is_there and self._threads:
            return self._submit_later(wanted)
        try:
            self._open_for(wanted) if is_there else self._fetch(wanted)
        except IndexError:
            raise
        except Exception as error:  # belongs to this batch, so `take` of it raises it
            ticket = next(self._failures)
            self._failed[ticket] = error
            return ticket
        try:
            ticket = self._loader.submit(wanted)
        except _core.Fault as fault:
            raise self._error(fault, wanted) from None
        self._submitted[ticket] = wanted
        return ticket

    def _submit_later(self, numbers: NDArray[np.int64]) -> int:
        """Submit records to the core once their bytes are there; who takes them waits for it."""
        from datum._read.remote import PREPARERS, Preparer

        def prepare() -> int:
            self._fetch(numbers)
            try:
                ticket = self._loader.submit(numbers)
            except _core.Fault as fault:
                raise self._error(fault, numbers) from None
            self._submitted[ticket] = numbers
            return ticket

        if self._preparer is None:
            self._preparer = Preparer(PREPARERS)
        ticket = next(self._failures)
        self._prepared[ticket] = self._preparer.submit(prepare)
        return ticket

    def take(self, ticket: int) -> ReadResult:
        """Wait for the records of a ticket and return them, or raise the error of the first row.

        Each ticket can be taken once, in any order and from any thread.
        """
        if ticket in self._failed:
            raise self._failed.pop(ticket)
        if ticket in self._prepared:
            ticket = self._prepared.pop(ticket).result()
        try:
            found = self._loader.take(ticket)
        except _core.Fault as fault:
            wanted = self._submitted.pop(ticket, None)
            is_read_again = fault.args[0] == "not open" or self._may_heal(fault)
            if wanted is None or not is_read_again:
                raise self._error(fault, wanted) from None
            numbers, found = wanted, self._read(wanted)
        else:
            numbers = self._submitted.pop(ticket)
            if self._is_remote and found[3]:
                found = self._read(numbers)
        rows, damaged = found[2:]
        columns = self._columns(found, numbers)
        damage = tuple(self._find_damage(int(numbers[row]), kind) for row, kind in damaged)
        return ReadResult(columns, rows, damage)

    def read(self, numbers: Sequence[int] | NDArray[Any]) -> dict[str, Any]:
        """Read the columns of these records on the caller's thread.

        With `on_error="skip"` damaged records are left out.
        """
        wanted = self._checked(numbers)
        return self._columns(self._read(wanted), wanted)

    def _read(self, numbers: NDArray[np.int64]) -> _Batch:
        """Read records on this thread.

        Files that were closed and replaced since are opened again: they may have the same content.
        """
        if self._is_remote:
            return self._read_remote(numbers)
        for _ in range(MAX_TRIES):
            self._open_for(numbers)
            try:
                return self._loader.read(numbers)
            except _core.Fault as fault:
                if fault.args[0] != "not open":
                    raise self._error(fault, numbers) from None
        raise self._unsettled(numbers)

    def _unsettled(self, numbers: NDArray[np.int64]) -> CorruptRecordError:
        return CorruptRecordError(
            "expected files that stay the same, got files that were replaced each time",
            where=f"{self.locate(int(numbers[0]))[0]}",
            hint="wait until the dataset is copied completely, and load it again",
        )

    # Objects in a store.

    @property
    def is_remote(self) -> bool:
        """Whether some records lie in an object store."""
        return self._is_remote

    @cached_property
    def ahead_records(self) -> int:
        """How many records are worth announcing before they are read."""
        stored = sum(
            run.shard.bytes * len(run) / max(1, run.shard.records) for _, run in self._parts
        )
        folders = {id(shards.remote): shards.remote for shards, _ in self._parts if shards.remote}
        limits = [folder.status()["cache_bytes"] for folder in folders.values()]
        ahead = min(AHEAD_BYTES, min(limits, default=0) // AHEAD_SHARE)
        return int(ahead * len(self) / max(1.0, stored))

    def plan(
        self,
        numbers: Callable[[int, NDArray[np.int64]], NDArray[np.int64]],
        records: int,
        epoch: int,
        position: int,
    ) -> None:
        """Tell the cache how soon each shard is needed from a position of an epoch on.

        Args:
            numbers: the records at some positions of an epoch.
            records: how many positions an epoch has.
            epoch: the epoch under way.
            position: the next position.
        """
        from datum._read.remote import Preparer

        if self._announcer is None:
            self._announcer = Preparer(1)
        self._announcer.submit(lambda: self._plan(numbers, records, epoch, position))

    def _plan(
        self,
        numbers: Callable[[int, NDArray[np.int64]], NDArray[np.int64]],
        records: int,
        epoch: int,
        position: int,
    ) -> None:
        at = np.unique(
            np.linspace(0, records - 1, min(records, PLANNED_POSITIONS)).astype(np.int64)
        )
        uses = np.full(len(self._parts), 2 * records)  # those of the next epoch come after it
        for later in (1, 0):
            runs = np.searchsorted(self._ends, numbers(epoch + later, at), "right") - 1
            is_left = at >= position if not later else np.ones(len(at), np.bool_)
            first = np.full(len(self._parts), 2 * records)
            np.minimum.at(first, runs[is_left], at[is_left] + later * records)
            uses = np.minimum(uses, first)
        names: dict[int, tuple[RemoteFolder, list[str]]] = {}
        for run in np.argsort(uses, kind="stable").tolist():
            shards, part = self._parts[run]
            if shards.remote is not None:
                names.setdefault(id(shards.remote), (shards.remote, []))[1].append(part.shard.name)
        with suppress(DatumError):  # it is only to be quicker
            self._plans = [folder.plan(order) for folder, order in names.values()]

    def announce(self, numbers: NDArray[np.int64]) -> None:
        """Have the bytes of records fetched that will be read soon; does not wait."""
        from datum._read.remote import Preparer

        if self._announcer is None:
            self._announcer = Preparer(1)  # in their order
        self._announcer.submit(lambda: self._announce(numbers))

    def _announce(self, numbers: NDArray[np.int64]) -> None:
        with suppress(Exception):  # whoever reads them meets it again
            self._open_for(numbers)
            asked = [
                (run.cached, run.lacks(places)) for run, places in self._remote_places(numbers)
            ]
            folders = {id(cached.folder): cached.folder for cached, pieces in asked if len(pieces)}
            for key, folder in folders.items():
                folder.announce([one for one in asked if id(one[0].folder) == key and len(one[1])])

    def _read_remote(self, numbers: NDArray[np.int64]) -> _Batch:
        """Read records at once, whose bytes are fetched.

        The cache may need their room for others before they are read: what is read then is
        damaged. If it is though all of its bytes are there, they are fetched again, once.
        """
        is_fetched_again = False
        for _ in range(MAX_READS):
            self._fetch(numbers)
            try:
                found = self._loader.read(numbers)
                damaged = [row for row, _ in found[3]]
            except _core.Fault as fault:
                if fault.args[0] == "not open":
                    continue
                if not self._may_heal(fault):
                    raise self._error(fault, numbers) from None
                found, damaged, kept = None, [fault.args[1]], fault
            if found is not None and not damaged:
                return found
            bad = numbers[damaged]
            if not self._is_there(bad):
                continue
            if is_fetched_again:
                if found is None:
                    raise self._error(kept, numbers) from None
                return found
            is_fetched_again = True
            self._fetch(bad, again=True)
        raise self._unsettled(numbers)

    def _may_heal(self, fault: _core.Fault) -> bool:
        """Whether what went wrong may be the fault of a copy."""
        return self._is_remote and fault.args[0] == "damage"

    def _remote_places(
        self, numbers: NDArray[np.int64], *, is_any: bool = False
    ) -> Iterator[tuple[RemoteRun, NDArray[np.int64]]]:
        """The runs of objects that hold some records, and where in them.

        Those that are whole here come only with `is_any`.
        """
        runs = np.searchsorted(self._ends, numbers, "right") - 1
        for run in set(runs.tolist()):
            remote = self._remotes.get(run)
            if remote is not None and (is_any or not remote.is_whole()):
                yield remote, numbers[runs == run] - self._ends[run]

    def _is_there(self, numbers: NDArray[np.int64]) -> bool:
        """Whether records can be read at once, as far as is known."""
        if self._missing(numbers):
            return False
        return not any(len(run.lacks(places)) for run, places in self._remote_places(numbers))

    def _fetch(self, numbers: NDArray[np.int64], *, again: bool = False) -> None:
        """Wait until all bytes of some records are there."""
        from datum._read.remote import need

        self._open_for(numbers)
        requests = [
            (run.cached, run.pieces_of(places))
            for run, places in self._remote_places(numbers, is_any=True)
        ]
        if again or any(len(cached.map.lacks(pieces)) for cached, pieces in requests):
            need(requests, again=again)

    def _columns(self, found: _Batch, numbers: NDArray[np.int64]) -> dict[str, Any]:
        stored, buffer, rows, _ = found
        kept = numbers if rows is None else numbers[rows]
        return self._parser.columns(stored, _Gathered(self, kept, buffer))

    def locate(self, number: int) -> tuple[str, int, int | None]:
        """File, number in the file and, once the file is open, offset of a record, for messages."""
        run, place, offset, _ = self._shards.find(number)
        shards, records = self._parts[run]
        return shards.where(records.shard), records.start + place, offset

    def close(self) -> None:
        """Stop and join the threads; a thread that waits in `take` gets an error."""
        for threads in (self._preparer, self._announcer):
            if threads is not None:
                threads.close()
        self._loader.close()

    def _checked(self, numbers: Sequence[int] | NDArray[Any]) -> NDArray[np.int64]:
        wanted = np.asarray(numbers)
        if wanted.size == 0:
            wanted = np.empty(0, np.int64)
        if wanted.ndim != 1 or wanted.dtype.kind not in "iu":
            raise TypeError(Message(f"expected numbers of records, got {numbers!r}"))
        return np.ascontiguousarray(wanted, np.int64)

    # Opening.

    def _open_for(self, numbers: NDArray[np.int64]) -> None:
        missing = self._missing(numbers)
        if missing:
            self._open(missing)

    def _missing(self, numbers: NDArray[np.int64]) -> list[int]:
        """The runs of some records that are not open yet; IndexError if there are none such."""
        try:
            return self._shards.missing(numbers)
        except IndexError:
            outside = numbers[(numbers < 0) | (numbers >= len(self))]
            raise IndexError(
                Message(f"expected numbers within {len(self)} records, got {outside[0]}")
            ) from None

    def _open(self, runs: list[int]) -> None:
        """Map the files of some ranges; copies and indexes that they need are made in parallel."""
        parts = [self._parts[run] for run in runs]
        is_slow = self._is_remote or any(
            shards.writer != "datum" or run.shard.compression is not None for shards, run in parts
        )
        if is_slow and len(runs) > 1:
            most = REMOTE_OPENS if self._is_remote else thread_count(None)
            with ThreadPoolExecutor(min(most, len(runs))) as pool:
                for _ in pool.map(self._open_run, runs):
                    pass
        else:
            for run in runs:
                self._open_run(run)

    def _open_run(self, place: int) -> None:
        shards, run = self._parts[place]
        for tries_left in range(OPEN_TRIES - 1, -1, -1):
            local = find_local(shards, run.shard, skips_damage=self._skips, checks_header=False)
            is_own = local.path == shards.folder / run.shard.name
            if shards.remote is not None and is_own:
                local = self._open_copy(place, local)
            try:
                self._open_files(place, local)
                break
            except _core.Fault as fault:
                shards.check_current(run.shard)
                if not is_own and tries_left:
                    continue  # another reader has just put its own copy in the place of this one
                if local.index is not None and fault.args[0].startswith("index"):
                    check_header(local.index, local.path, run.shard, local.bytes)  # in more detail
                raise _open_error(local, *fault.args) from None
            except FileNotFoundError:
                shards.open(run.shard, accepts_damage=self._skips).close()  # names the missing file
                raise
        shards.check_current(run.shard)  # afterwards, since a dataset is replaced in one step
        self._locals[place] = local

    def _open_files(self, place: int, local: LocalShard) -> None:
        _, run = self._parts[place]
        # As text: the core would call Python for a Path, and mistake an interrupt for a TypeError.
        path = str(local.path)
        crc = run.shard.crc32c if run.shard.compression is None else None  # not of a copy
        if local.offsets is not None:
            self._shards.open_at(place, path, local.version, local.offsets, run.start)
        elif local.index is not None:
            index, records = str(local.index), run.shard.records
            self._shards.open(place, path, local.version, index, run.start, records, crc)

    def _open_copy(self, place: int, local: LocalShard) -> LocalShard:
        """Read the copy of an object, whatever is fetched of it or gives way."""
        from datum._read.remote import RemoteRun, filling_version

        shards, run = self._parts[place]
        assert shards.remote is not None
        cached = shards.remote.open(run.shard.name, run.shard.bytes, run.shard.crc32c)
        self._remotes[place] = RemoteRun(cached, run.start, local.index)
        return replace(local, version=filling_version(local.path))

    # Errors.

    def _error(self, fault: _core.Fault, numbers: NDArray[np.int64] | None) -> Exception:
        code = str(fault.args[0])
        if numbers is None or code in ("closed", "forked", "ticket", "not open"):
            return self._unusable(code)
        if code == "changed":
            return self._changed(*fault.args[1:])
        if code == "damage":
            _, row, kind = fault.args
            return self._corrupt(int(numbers[row]), kind)
        return self._parser.error(_Gathered(self, numbers, b""), fault)

    def _unusable(self, code: str) -> Exception:
        if code == "forked":
            return RuntimeError(
                Message(
                    "expected records in the process that opened them, got a fork of that process",
                    hint="open them after the fork, or start processes with the method 'spawn'",
                )
            )
        if code == "closed":
            return ValueError("expected open records, got closed ones")
        return KeyError("expected a ticket that was not taken yet, got another one")

    def _changed(self, place: int, state: str, nbytes: int) -> Exception:
        """The error for a file that was changed since it was opened."""
        local = self._locals[place]
        try:
            is_index = local.index is not None and version_of(local.path) == local.version
        except OSError:
            is_index = False
        if is_index:
            return CorruptIndexError(
                f"the index was {state} while it was read",
                where=local.index,
                hint="delete it; it can be rebuilt from the records",
            )
        file = self.locate(int(self._ends[place]))[0]
        return change_error(file, local.bytes, state, nbytes)

    def _corrupt(self, number: int, kind: str) -> Exception:
        index = self._locals[self._shards.find(number)[0]].index
        if index is not None:
            try:
                Index.load(index)
            except CorruptIndexError as error:  # the index is damaged, not the record
                return error
            except OSError:
                pass  # deleted since, but the record was not where it said
        damage = self._find_damage(number, kind)
        return CorruptRecordError(
            f"record {damage.record} at byte {damage.offset}: expected an intact"
            f" record, got damage: {damage.kind}",
            where=damage.file,
            hint=damage_hints(Path(damage.file).parent),
            damage=damage,
        )

    def _find_damage(self, number: int, kind: str) -> Damage:
        file, record, offset = self.locate(number)
        end = self._shards.find(number)[3]
        if offset is not None:
            return Damage(file, offset, offset if end is None else end, record, kind)
        if file not in self._damage:
            with RecordFile(file, recovery="skip", use_index=False) as records:
                for _ in records.chunks():
                    pass
                self._damage[file] = records.damage
        # Each damaged place counts as one record, though it may span several.
        before = [damage for damage in self._damage[file] if damage.record <= record]
        return before[-1] if before else Damage(file, 0, 0, record, "torn payload")


class _Gathered:
    """The records of some numbers in a buffer of the core."""

    __slots__ = ("_numbers", "_records", "buffer")

    def __init__(
        self,
        records: NumberedRecords,
        numbers: NDArray[np.int64],
        buffer: bytes | NDArray[np.uint8],
    ) -> None:
        self.buffer = buffer
        self._records = records
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def locate(self, at: int) -> tuple[str, int, int | None]:
        return self._records.locate(int(self._numbers[at]))


def _open_error(local: LocalShard, code: str, *values: Any) -> Exception:
    """The error for files that changed between their check and their opening."""
    if code == "version":
        return change_error(str(local.path), local.bytes, "rewritten", local.bytes)
    if code == "bytes":
        return CorruptRecordError(
            f"expected {values[0]} bytes, got {values[1]}",
            where=local.path,
            hint="the file was truncated or changed; restore it",
        )
    problem = {
        "index": f"expected an index of records: {values[0]}",
        "index bytes": f"expected an index of {values[0]} bytes, got one of {values[-1]}",
        "index records": f"expected an index of {values[0]} records, got one of {values[-1]}",
        "index shard": "expected the index of this shard, got that of another version",
    }[code]
    return CorruptIndexError(
        problem,
        where=local.index,
        hint="delete it; it can be rebuilt from the records",
    )
