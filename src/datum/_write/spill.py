"""Records sorted into their order on disk, in bounded memory."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum._write.order import Hashes
from datum.format import ExactRecords, Framed, reencode, stores_alike
from datum.format.framing import HEADER_BYTES, Records
from datum.format.index import FRAME_BYTES
from datum.schema import Schema

__all__ = [
    "Run",
    "Spill",
]

HELD_BYTES = 128 * 2**20  # of records in memory, before they go to disk; as much again to sort them
MAX_RUN_BYTES = 256 * 2**20  # of records that are put in order at once
_NOTHING = np.empty(0, np.uint8)
_BUCKET_BITS = 8  # 256 files: each gets half a megabyte or so whenever memory is emptied

# What is kept of a record beside its bytes. `exact` is the size of what it holds of values that
# were rounded; `form` counts the forms of the spill.
_ENTRY = np.dtype(
    [("place", "u8"), ("number", "u8"), ("size", "u8"), ("exact", "u8"), ("form", "u4")]
)


@dataclass(frozen=True, slots=True)
class Form:
    """How records lie: their schema, and that of their values before those were rounded."""

    schema: Schema
    exact: Schema | None

    def needs_exact(self, schema: Schema) -> bool:
        """Whether records take another type under `schema` than they were rounded to."""
        return self.exact is not None and any(
            self.schema[name].dtype != schema[name].dtype for name in self.exact
        )


@dataclass(eq=False)
class Run:
    """Records whose places lie together; they are put in order when first asked for."""

    entries: NDArray[Any] | Path
    frames: NDArray[np.uint8] | Path
    exact: NDArray[np.uint8] | Path
    records: int
    nbytes: int
    forms: list[Form]
    dropped: Collection[int] = ()
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _sorted: tuple[Any, NDArray[np.int64], NDArray[np.int64]] | None = None
    _left: int = -1  # records that nobody has taken yet

    def take(self, first: int, last: int, schema: Schema, *, threads: int) -> Framed:
        """The records from `first` to before `last` in order, encoded as `schema` says.

        Each record is taken once; then the run gives its memory back.
        """
        with self._lock:
            if self._sorted is None:
                self._sorted = self._sort(schema)
                self._left = self.records
            data, starts, sizes = self._sorted
            self._left -= last - first
            if self._left == 0:
                self._sorted = None
        starts, sizes = starts[first:last], sizes[first:last]
        offsets = np.cumsum(sizes) - sizes
        return Framed(_core.gather(data, starts, sizes, threads), offsets)

    def _sort(self, schema: Schema) -> tuple[Any, NDArray[np.int64], NDArray[np.int64]]:
        entries = _load(self.entries, _ENTRY)
        data = _load(self.frames, np.dtype(np.uint8))
        starts, sizes = _places(entries["size"])
        old = [i for i, form in enumerate(self.forms) if not stores_alike(form.schema, schema)]
        if old:
            data, starts, sizes = self._reencode(data, starts, sizes, entries, old, schema)
        order = np.argsort(entries["place"], kind="stable")
        if self.dropped:
            gone = np.fromiter(self.dropped, np.uint64, len(self.dropped))
            order = order[~np.isin(entries["number"][order], gone)]
        return data, starts[order], sizes[order]

    def _reencode(
        self,
        data: Any,
        starts: NDArray[np.int64],
        sizes: NDArray[np.int64],
        entries: NDArray[Any],
        old: list[int],
        schema: Schema,
    ) -> tuple[Any, NDArray[np.int64], NDArray[np.int64]]:
        """Write those records anew whose schema was widened after they came."""
        parts = [data]
        total = len(data)
        exact_data: Any = None
        for number in old:
            form = self.forms[number]
            rows = np.flatnonzero(entries["form"] == number)
            if not len(rows):
                continue
            numbers = entries["number"][rows].astype(np.int64)
            records = _records(data, starts[rows], sizes[rows], numbers)
            exact = None
            if form.exact is not None and form.needs_exact(schema):
                if exact_data is None:
                    exact_data = _load(self.exact, np.dtype(np.uint8))
                exact_starts, exact_sizes = _places(entries["exact"])
                exact = (
                    _records(exact_data, exact_starts[rows], exact_sizes[rows], numbers),
                    form.exact,
                )
            framed = reencode(records, form.schema, schema, exact=exact)
            starts[rows] = framed.offsets + total
            sizes[rows] = np.diff(framed.offsets, append=framed.nbytes)
            parts.append(framed.data)
            total += framed.nbytes
        return np.concatenate(parts), starts, sizes


def _places(sizes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where frames of these sizes start, one after the other, and the sizes."""
    found = sizes.astype(np.int64)
    return np.cumsum(found) - found, found


def _records(
    data: Any, starts: NDArray[np.int64], sizes: NDArray[np.int64], numbers: NDArray[np.int64]
) -> Records:
    return Records(data, starts + HEADER_BYTES, sizes - FRAME_BYTES, numbers, base=None)


def _load(source: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    return np.fromfile(source, dtype) if isinstance(source, Path) else source


class Spill:
    """Takes records with their places, and gives them back as runs in the order of places.

    Args:
        folder: where files go when memory does not suffice; made when needed.
        is_shuffled: whether places are spread over all 64 bits; if not, they only rise.
        shift: where the bits are by which records are parted.
        sharers: how many spills share the memory.
    """

    def __init__(
        self,
        folder: Path,
        *,
        is_shuffled: bool,
        shift: int = 64 - _BUCKET_BITS,
        sharers: int = 1,
    ) -> None:
        self.records = 0
        self.nbytes = 0
        self._folder = folder
        self._is_shuffled = is_shuffled
        self._shift = np.uint64(shift)
        self._forms: list[Form] = []
        self._frames: list[NDArray[np.uint8]] = []
        self._exact: list[NDArray[np.uint8]] = []
        self._entries: list[NDArray[Any]] = []
        self._held_bytes = 0
        self._max_held_bytes = HELD_BYTES // sharers
        self._buckets: dict[int, tuple[int, int]] = {}  # records and bytes of each file

    def add(
        self,
        framed: Framed,
        places: Hashes,
        numbers: NDArray[np.int64],
        schema: Schema,
        exact: ExactRecords | None = None,
    ) -> None:
        """Take some records, encoded as `schema` says; `exact` is what was rounded in them."""
        form = Form(schema, None if exact is None else exact.schema)
        if form not in self._forms:
            self._forms.append(form)
        entries = np.zeros(len(framed), _ENTRY)
        entries["place"] = places
        entries["number"] = numbers
        entries["size"] = np.diff(framed.offsets, append=framed.nbytes)
        entries["form"] = self._forms.index(form)
        if exact is not None:
            entries["exact"] = np.diff(exact.framed.offsets, append=exact.framed.nbytes)
        self._hold(framed.data, _NOTHING if exact is None else exact.framed.data, entries)

    def changes_floats(self, schema: Schema) -> bool:
        """Whether floats take another type under `schema` than they came in."""
        floats = ("float32", "float64")
        return any(
            {feature.dtype, schema[name].dtype} == set(floats)
            for form in self._forms
            for name, feature in form.schema.items()
        )

    def settle(self, schema: Schema) -> None:
        """Let go of what records were before they were rounded, unless `schema` asks for it."""
        if not any(form.needs_exact(schema) for form in self._forms):
            self._exact = []
            for entries in self._entries:
                entries["exact"] = 0

    def _hold(
        self, frames: NDArray[np.uint8], exact: NDArray[np.uint8], entries: NDArray[Any]
    ) -> None:
        self._frames.append(frames)
        self._exact.append(exact)
        self._entries.append(entries)
        self.records += len(entries)
        self.nbytes += len(frames)
        self._held_bytes += len(frames) + len(exact) + entries.nbytes
        if self._held_bytes >= self._max_held_bytes:
            self._flush()

    def _flush(self) -> None:
        """Put what is held in memory on disk."""
        if not self._held_bytes:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        entries, frames = np.concatenate(self._entries), np.concatenate(self._frames)
        exact = np.concatenate([_NOTHING, *self._exact])
        self._frames, self._exact, self._entries, self._held_bytes = [], [], [], 0
        if not self._is_shuffled:
            self._append(len(self._buckets), frames, exact, entries)
            return
        buckets = (entries["place"] >> self._shift).astype(np.int64) % 2**_BUCKET_BITS
        order = np.argsort(buckets, kind="stable")
        frame_places = [part[order] for part in _places(entries["size"])]
        exact_places = [part[order] for part in _places(entries["exact"])]
        bounds = np.searchsorted(buckets[order], np.arange(2**_BUCKET_BITS + 1))
        entries = entries[order]
        for bucket, (first, last) in enumerate(pairwise(bounds.tolist())):
            if first < last:
                taken, taken_exact = (
                    _core.gather(data, starts[first:last], sizes[first:last], 1)
                    for data, (starts, sizes) in ((frames, frame_places), (exact, exact_places))
                )
                self._append(bucket, taken, taken_exact, entries[first:last])

    def _append(
        self,
        bucket: int,
        frames: NDArray[np.uint8],
        exact: NDArray[np.uint8],
        entries: NDArray[Any],
    ) -> None:
        for data, path in zip((frames, exact, entries), self._paths(bucket), strict=True):
            with path.open("ab") as file:
                file.write(memoryview(data).cast("B"))
        records, nbytes = self._buckets.get(bucket, (0, 0))
        self._buckets[bucket] = records + len(entries), nbytes + len(frames)

    def _paths(self, bucket: int) -> tuple[Path, Path, Path]:
        stems = (f"{bucket:05d}.{what}" for what in ("frames", "exact", "entries"))
        frames, exact, entries = (self._folder / stem for stem in stems)
        return frames, exact, entries

    def runs(self, *, dropped: Collection[int] = ()) -> list[Run]:
        """All records but those whose numbers are `dropped`; nothing can be added after."""
        if not self._buckets:
            if not self.records:
                return []
            exact = np.concatenate([_NOTHING, *self._exact])
            parts = np.concatenate(self._frames), exact, np.concatenate(self._entries)
            run = self._run(parts, self.records, self.nbytes, dropped)
            self._entries, self._frames, self._exact = [], [], []
            return [run]
        self._flush()
        found: list[Run] = []
        for bucket, (records, nbytes) in sorted(self._buckets.items()):
            if nbytes > MAX_RUN_BYTES and self._is_shuffled and self._shift >= _BUCKET_BITS:
                found += self._divide(bucket, dropped)
            else:
                found.append(self._run(self._paths(bucket), records, nbytes, dropped))
        return found

    def _run(
        self, parts: tuple[Any, Any, Any], records: int, nbytes: int, dropped: Collection[int]
    ) -> Run:
        frames, exact, entries = parts
        if dropped:
            numbers = _load(entries, _ENTRY)["number"]
            gone = np.fromiter(dropped, np.uint64, len(dropped))
            records -= int(np.isin(numbers, gone).sum())
        return Run(entries, frames, exact, records, nbytes, self._forms, dropped)

    def _divide(self, bucket: int, dropped: Collection[int]) -> list[Run]:
        """The runs of a file that is too large to be put in order at once."""
        frames_path, exact_path, entries_path = self._paths(bucket)
        folder = self._folder / f"{bucket:05d}"
        shift = int(self._shift) - _BUCKET_BITS
        below = Spill(folder, is_shuffled=True, shift=shift)
        below._forms = self._forms
        entries = np.fromfile(entries_path, _ENTRY)
        ends = np.cumsum(entries["size"].astype(np.int64))
        exact_ends = np.cumsum(entries["exact"].astype(np.int64))
        first = 0
        with frames_path.open("rb") as frames, exact_path.open("rb") as exact:
            while first < len(entries):
                start = int(ends[first - 1]) if first else 0
                exact_start = int(exact_ends[first - 1]) if first else 0
                last = max(int(np.searchsorted(ends, start + HELD_BYTES // 2)), first + 1)
                below._hold(
                    np.fromfile(frames, np.uint8, int(ends[last - 1]) - start),
                    np.fromfile(exact, np.uint8, int(exact_ends[last - 1]) - exact_start),
                    entries[first:last],
                )
                first = last
        for path in (frames_path, exact_path, entries_path):
            path.unlink()
        return below.runs(dropped=dropped)
