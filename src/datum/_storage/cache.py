"""Local copies of objects within a bound of bytes, as the fetcher keeps them.

A copy has its pieces fetched as they are asked for, each once whoever asks. Where room is needed,
pieces give way: first those that no program has announced to need, the longest unused first, then
those that will be needed last.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum._storage.pieces import MAP_FOLDER, PIECE_BYTES, PieceMap, free_pieces, now_s
from datum._storage.store import Store
from datum.errors import StorageError, format_bytes

__all__ = ["Cache", "Copy", "Mirror", "Wanted"]

_THREADS = 16  # for pieces that somebody waits for, and as many for those to come
_TRIES = 4  # to have pieces there that others take the room of
_PINNED_S = 0.2  # for those who waited for a piece to read it
_GRACE_S = 3  # a piece that was used within it does not give way to one that nobody waits for
_ROOM_S = 30.0  # to wait for room that others use
_CHECKSUM_BYTES = 4 * 2**20
_AHEAD_SHARE = 4  # pieces to come, and not there yet, take at most this part of the cache
_NEVER = 2**62  # the rank of what no program has announced


class Mirror:
    """A folder of objects, and the local folder of their copies.

    Attributes:
        folder: of the copies.
        store: reads the objects; replaced when a program brings other options.
    """

    def __init__(self, folder: Path, store: Store) -> None:
        self.folder = folder
        self.store = store
        self.copies: dict[str, Copy] = {}
        self.lock = threading.Lock()  # one of each name is opened at a time


class Copy:
    """The copy of one object, and what is under way for it."""

    def __init__(self, pieces: PieceMap) -> None:
        self.map = pieces
        self.name = ""
        self.crc32c: int | None = None
        self.mirror: Mirror | None = None  # None as long as no program has asked for it
        self.under_way: dict[int, Future[None]] = {}
        self.early: set[int] = set()  # those under way that nobody waits for yet
        self.holds = 0
        self.ranks: dict[object, int] = {}  # by who announced it: how soon it will be needed
        self.uses = np.zeros(len(pieces), np.int32)  # requests that wait for a piece
        self.pinned_until = np.zeros(len(pieces))
        self.is_verified = False
        self.failures = 0
        self.checking = threading.Lock()
        self._descriptor: int | None = None

    @property
    def descriptor(self) -> int:
        """The open file."""
        if self._descriptor is None:
            self._descriptor = os.open(self.map.path, os.O_RDWR | os.O_CLOEXEC)
        return self._descriptor

    @property
    def where(self) -> str:
        """The URL, for messages."""
        assert self.mirror is not None
        return str(self.mirror.store.location / self.name)

    @property
    def rank(self) -> int:
        """How soon it will be needed; the number of nobody's is larger than any other."""
        return min(self.ranks.values(), default=_NEVER)

    def is_there(self) -> bool:
        """Whether the file is still the one that was opened."""
        try:
            return os.path.samestat(self.map.path.stat(), os.fstat(self.descriptor))
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Some pieces of a copy."""

    copy: Copy
    pieces: NDArray[np.int64]


class Cache:
    """All copies below a folder.

    Args:
        folder: of the cache.

    Attributes:
        limit: most bytes that pieces may take.
        used: bytes that they take, or will once they are there.
        downloaded: bytes fetched from stores since the start.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._copies: dict[Path, Copy] = {}
        self._changed = threading.Condition(threading.RLock())
        self._urgent = ThreadPoolExecutor(_THREADS, "datum-fetch")
        self._ahead = ThreadPoolExecutor(_THREADS, "datum-ahead")
        self._ahead_bytes = 0
        self.used = 0
        self.downloaded = 0
        for path in folder.glob(f"*/**/{MAP_FOLDER}/*"):
            with suppress(OSError, ValueError):
                self._add(Copy(PieceMap(path.parent.parent / path.name)))
        self.limit = default_limit(folder, self.used)

    def _add(self, copy: Copy) -> Copy:
        self._copies[copy.map.path] = copy
        self.used += copy.map.present_bytes
        return copy

    # Opening.

    def open(self, mirror: Mirror, name: str, size: int, crc32c: int | None) -> Copy:
        """The copy of an object, empty at first; StorageError if the object has another size."""
        with mirror.lock:
            copy = mirror.copies.get(name)
            if copy is None or not copy.is_there():
                path = mirror.folder / name
                copy = self._find(path, size) or self._create(mirror, name, size)
            copy.name, copy.crc32c, copy.mirror = name, crc32c, mirror
            mirror.copies[name] = copy
            return copy

    def _find(self, path: Path, size: int) -> Copy | None:
        with self._changed:
            known = self._copies.get(path)
            if known is not None and known.map.size == size:
                with suppress(OSError):
                    if known.is_there():
                        return known
        return None

    def _create(self, mirror: Mirror, name: str, size: int) -> Copy:
        info = mirror.store.head(name)
        if info.size != size:
            raise StorageError(
                f"expected an object of {size:,} bytes, as it is described, got {info.size:,}",
                where=mirror.store.location / name,
                hint="the dataset was written to, or not whole; load it again, or upload it anew",
                kind="changed",
            )
        path = mirror.folder / name
        with self._changed:
            gone = self._copies.pop(path, None)
            if gone is not None:
                self.used -= gone.map.present_bytes
                gone.close()
            made = PieceMap.create(path, size=size, etag=info.etag, piece_bytes=PIECE_BYTES)
            return self._add(Copy(made))

    # Fetching.

    def need(self, wanted: Sequence[Wanted]) -> None:
        """Have pieces there; wait for them. Raises StorageError if they cannot be had."""
        for _ in range(_TRIES):
            with self._changed:
                # At once for all of them: who has some never waits for room for others.
                self._make_room(wanted)
                self._use(wanted, 1)
                running = [
                    self._start(one.copy, piece, self._urgent)
                    for one in wanted
                    for piece in one.copy.map.lacks(one.pieces).tolist()
                ]
            try:
                for future in running:
                    future.result()
            finally:
                with self._changed:
                    self._use(wanted, -1)
            if all(not len(one.copy.map.lacks(one.pieces)) for one in wanted):
                return
        raise StorageError(
            "expected pieces to stay until they are read, got others in their place each time",
            where=self._folder,
            hint="a larger cache_bytes, or fewer programs that share the cache",
            kind="cache",
        )

    def _use(self, wanted: Sequence[Wanted], change: int) -> None:
        """Keep pieces from giving way while they are fetched, and a moment longer."""
        for one in wanted:
            one.copy.uses[one.pieces] += change
            one.copy.pinned_until[one.pieces] = time.monotonic() + _PINNED_S
        self._changed.notify_all()

    def announce(self, wanted: Sequence[Wanted]) -> None:
        """Start to fetch pieces that will be needed soon, as far as there is room; never waits."""
        with self._changed:
            for one in wanted:
                for piece in one.copy.map.lacks(one.pieces).tolist():
                    size = one.copy.map.span(piece)[1]
                    if piece in one.copy.under_way:
                        continue
                    if self._ahead_bytes + size > self.limit // _AHEAD_SHARE:
                        return
                    if not self._evict(self.used + size - self.limit, wanted, for_copy=one.copy):
                        return
                    self.used += size
                    self._ahead_bytes += size
                    future = self._start(one.copy, piece, self._ahead)
                    future.add_done_callback(partial(self._note_ahead, size))

    def _note_ahead(self, size: int, _: Future[None]) -> None:
        with self._changed:
            self._ahead_bytes -= size

    def _start(self, copy: Copy, piece: int, pool: ThreadPoolExecutor) -> Future[None]:
        """Fetch a piece, whose room is reserved; what is under way is joined."""
        running = copy.under_way.get(piece)
        if running is not None:
            # One that waits in the queue of pieces to come moves to that of urgent ones. An urgent
            # one stays as it is, since others wait for it.
            is_early = piece in copy.early and pool is self._urgent
            if not (is_early and running.cancel()):
                return running
        future = pool.submit(self._fetch, copy, piece)
        copy.under_way[piece] = future
        (copy.early.add if pool is self._ahead else copy.early.discard)(piece)
        return future

    def _fetch(self, copy: Copy, piece: int) -> None:
        start, length = copy.map.span(piece)
        is_there = False
        try:
            assert copy.mirror is not None
            data = copy.mirror.store.get_range(copy.name, start, length, etag=copy.map.etag)
            if len(data) != length:
                raise StorageError(
                    f"expected {length:,} bytes at {start:,}, got {len(data):,}",
                    where=copy.where,
                    hint="the object was replaced while it was read; load the dataset again",
                    kind="changed",
                )
            self._write(copy, data, start)
            copy.map.stamps[piece] = now_s()
            copy.pinned_until[piece] = time.monotonic() + _PINNED_S
            copy.map.present[piece] = 1
            is_there = True
        finally:
            with self._changed:
                copy.under_way.pop(piece, None)
                copy.early.discard(piece)
                self.downloaded += length if is_there else 0
                self.used -= 0 if is_there else length
                self._changed.notify_all()
        if copy.crc32c is not None and not copy.is_verified and copy.map.is_complete:
            self.check(copy)

    def _write(self, copy: Copy, data: bytes, start: int) -> None:
        try:
            _write_all(copy.descriptor, data, start)
        except OSError as error:
            raise StorageError(
                f"expected room for {format_bytes(len(data))}, got: {error.strerror}",
                where=self._folder,
                hint="set DATUM_CACHE to a folder on a disk with more room, or a smaller"
                " cache_bytes",
                kind="cache",
            ) from error

    # Checking.

    def check(self, copy: Copy) -> None:
        """Compare a copy that is complete with its checksum; once it is wrong, drop it.

        StorageError if it is wrong the second time, when all of it was fetched again.
        """
        with copy.checking, self.held(copy):
            if copy.crc32c is None or copy.is_verified or not copy.map.is_complete:
                return
            found = _checksum(copy.map)
            if found == copy.crc32c:
                copy.is_verified, copy.failures = True, 0
                return
            copy.failures += 1
            self._drop(copy, np.flatnonzero(copy.map.present))
            if copy.failures > 1:
                copy.failures = 0
                raise StorageError(
                    f"expected an object with checksum {copy.crc32c:08x}, as the manifest says,"
                    f" got {found:08x} twice",
                    where=copy.where,
                    hint="it is damaged in the store, or was replaced; upload it anew",
                    kind="changed",
                )

    def refetch(self, wanted: Sequence[Wanted]) -> None:
        """Fetch pieces again that turned out to be damaged."""
        with self._changed:
            for one in wanted:
                is_there = one.copy.map.present[one.pieces] != 0
                self._drop(one.copy, one.pieces[is_there])
        self.need(wanted)

    def hold(self, copy: Copy) -> None:
        """Have all of a copy there, checked, until `release`."""
        self._count_hold(copy, 1)
        try:
            every = [Wanted(copy, np.arange(len(copy.map)))]
            for _ in range(_TRIES):
                self.need(every)
                self.check(copy)
                if copy.map.is_complete:
                    return
            self.need(every)
        except BaseException:
            self.release(copy)
            raise

    def release(self, copy: Copy) -> None:
        """Let a copy give way again."""
        self._count_hold(copy, -1)

    @contextmanager
    def held(self, copy: Copy) -> Iterator[None]:
        """Keep what there is of a copy."""
        self._count_hold(copy, 1)
        try:
            yield
        finally:
            self._count_hold(copy, -1)

    def _count_hold(self, copy: Copy, change: int) -> None:
        with self._changed:
            copy.holds += change
            self._changed.notify_all()

    # Room.

    def plan(self, owner: object, ranks: Mapping[Path, int]) -> None:
        """Note how soon an owner will need copies, the lowest number first; none withdraws it."""
        with self._changed:
            for path, copy in self._copies.items():
                copy.ranks.pop(owner, None)
                if path in ranks:
                    copy.ranks[owner] = ranks[path]

    def _make_room(self, wanted: Sequence[Wanted]) -> None:
        """Reserve room for what is not there yet; wait for that which others use."""
        all_bytes = sum(one.copy.map.span(p)[1] for one in wanted for p in one.pieces.tolist())
        end = time.monotonic() + _ROOM_S
        while all_bytes <= self.limit and time.monotonic() < end:
            size = _bytes_to_come(wanted)  # others may have fetched some meanwhile
            if self._evict(self.used + size - self.limit, wanted):
                self.used += size
                return
            self._changed.wait(_PINNED_S / 4)
        raise StorageError(
            f"expected room for {format_bytes(all_bytes)} at once, got a cache of"
            f" {format_bytes(self.limit)}, {format_bytes(self.used)} of it in use",
            where=self._folder,
            hint="a larger cache_bytes, shuffle='shards', or a smaller batch",
            kind="cache",
        )

    def _evict(self, excess: int, kept: Sequence[Wanted], *, for_copy: Copy | None = None) -> bool:
        """Free so many bytes, if there are that many to be freed.

        For a copy that nobody waits for yet, only what is needed later, or was not used lately.
        """
        if excess <= 0:
            return True
        now = np.uint32(now_s())
        own: dict[int, list[NDArray[np.int64]]] = {}
        for one in kept:
            own.setdefault(id(one.copy), []).append(one.pieces)
        found: list[tuple[int, int, int, Copy]] = []  # the first to go are the largest
        for copy in self._copies.values():
            if copy.holds:
                continue
            pieces = np.flatnonzero(copy.map.present)
            ages = (now - copy.map.stamps[pieces]).view(np.int32)  # below 0 if just stamped
            is_idle = (copy.uses[pieces] == 0) & (copy.pinned_until[pieces] < time.monotonic())
            if for_copy is not None and not for_copy.rank < copy.rank < _NEVER:
                is_idle &= ages >= _GRACE_S
            is_idle &= ~np.isin(pieces, np.concatenate(own.get(id(copy), [pieces[:0]])))
            pairs = zip(ages[is_idle].tolist(), pieces[is_idle].tolist(), strict=True)
            found += [(copy.rank, age, piece, copy) for age, piece in pairs]
        found.sort(key=lambda one: one[:3], reverse=True)
        chosen: dict[int, tuple[Copy, list[int]]] = {}
        for _, _, piece, copy in found:
            if excess <= 0:
                break
            excess -= copy.map.span(piece)[1]
            chosen.setdefault(id(copy), (copy, []))[1].append(piece)
        if excess > 0:
            return False
        for copy, pieces_gone in chosen.values():
            self._drop(copy, np.array(pieces_gone, np.int64))
        return True

    def _drop(self, copy: Copy, pieces: NDArray[np.int64]) -> None:
        with self._changed:
            copy.is_verified = False
            copy.map.present[pieces] = 0
            for piece in pieces.tolist():
                start, length = copy.map.span(piece)
                self.used -= length
                with suppress(OSError):  # then it is written over when it is needed again
                    free_pieces(copy.descriptor, start, length)
            self._changed.notify_all()


def default_limit(folder: Path, used: int) -> int:
    """Half of what the disk has left for the cache."""
    return (shutil.disk_usage(folder).free + used) // 2


def _bytes_to_come(wanted: Iterable[Wanted]) -> int:
    return sum(
        one.copy.map.span(piece)[1]
        for one in wanted
        for piece in one.copy.map.lacks(one.pieces).tolist()
        if piece not in one.copy.under_way
    )


def _write_all(descriptor: int, data: bytes, start: int) -> None:
    view = memoryview(data)
    while view:
        done = os.pwrite(descriptor, view, start)
        start += done
        view = view[done:]


def _checksum(pieces: PieceMap) -> int:
    content, crc = _core.MappedFile(str(pieces.path)), 0
    for start in range(0, pieces.size, _CHECKSUM_BYTES):
        crc = content.crc32c(start, min(_CHECKSUM_BYTES, pieces.size - start), crc)
    return crc
