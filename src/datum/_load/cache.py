"""Cache of decoded records in memory, from which later epochs gather their batches."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.columns import BytesColumn, Ragged, Sparse
from datum.errors import Damage

__all__ = [
    "RecordCache",
    "copy_column",
    "join_columns",
]

Columns = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Tier:
    """Columns of records in consecutive slots, from `first` up to `end`.

    It never changes, so one thread can use it while another joins it with others.
    """

    first: int
    end: int
    columns: Columns


class RecordCache:
    """Finished columns of records by number.

    It takes the memory of the batches that were added: numbers of the schema's dtype, decoded
    images (height x width x channels bytes each), texts as Python objects; and eight bytes for each
    record of the split. Records are joined when they are first read from the cache, which for a
    moment takes the memory of everything but the images once more.

    Threads may share it, and an interrupt leaves it intact. It belongs to its process: pickled, or
    in a forked child, it is empty.

    Args:
        records: Number of records of the split.
    """

    def __init__(self, records: int) -> None:
        self._records = records
        self._reset()

    def __reduce__(self) -> tuple[type[RecordCache], tuple[int]]:
        return RecordCache, (self._records,)

    def _reset(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        # 0: unknown, n: in slot n - 1, -n: damaged, see damage n - 1. Untouched pages are free.
        self._places = np.zeros(self._records, np.int64)
        self._damage: list[Damage] = []
        self.mapped: dict[int, Any] = {}  # results of `map` by number, if these are kept
        # Joined tiers, and new ones. Both are replaced in one step, since an interrupt may come
        # between two.
        self._tiers: tuple[list[_Tier], list[_Tier]] = [], []

    def __len__(self) -> int:
        """Number of records in the cache."""
        joined, fresh = self._tiers
        return max((tier.end for tier in (*joined[-1:], *fresh[-1:])), default=0)

    def find(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The place of each record: above 0 if cached, below 0 if damaged, 0 if unknown."""
        if self._process != os.getpid():  # a thread of the parent may hold the lock
            self._reset()
        with self._lock:
            return self._places[numbers]

    def damage_at(self, places: NDArray[np.int64]) -> list[Damage]:
        """The damage of these records."""
        return [self._damage[-place - 1] for place in places.tolist()]

    def add(self, numbers: NDArray[np.int64], columns: Columns) -> None:
        """Add records; nothing may change these columns afterwards."""
        with self._lock:
            _, firsts = np.unique(numbers, return_index=True)
            new = np.sort(firsts[self._places[numbers[firsts]] == 0])
            if not len(new):
                return
            if len(new) < len(numbers):
                columns = {name: column[new] for name, column in columns.items()}
            first = len(self)
            self._tiers[1].append(_Tier(first, first + len(new), columns))
            # Last, since it makes the records known.
            self._places[numbers[new]] = first + 1 + np.arange(len(new))

    def add_lost(self, numbers: NDArray[np.int64], damage: Collection[Damage]) -> None:
        """Add damaged records, which need not be read again either."""
        with self._lock:
            for number, found in zip(numbers.tolist(), damage, strict=True):
                if not self._places[number]:
                    self._damage.append(found)
                    self._places[number] = -len(self._damage)

    def gather(self, places: NDArray[np.int64]) -> Columns:
        """Copies of the columns of cached records; items of object arrays are shared."""
        slots = places - 1
        with self._lock:
            tiers = self._join_fresh()
        if len(tiers) == 1:
            return _choose(tiers[0], slots)
        owners = np.searchsorted([tier.first for tier in tiers], slots, "right") - 1
        used = np.unique(owners).tolist()
        parts = [_choose(tiers[at], slots[owners == at]) for at in used]
        back = np.argsort(np.argsort(owners, kind="stable"), kind="stable")
        return {name: join_columns([part[name] for part in parts])[back] for name in parts[0]}

    def _join_fresh(self) -> list[_Tier]:
        """Join the new tiers, and then earlier ones while these are not much larger.

        So there are few tiers, and a record is moved only when its tier doubles in size.
        """
        joined, fresh = self._tiers
        if fresh:
            tiers, made = list(joined), _join_tiers(fresh)
            while tiers and (made.end - made.first) * 2 > tiers[-1].end - tiers[-1].first:
                made = _join_tiers([tiers.pop(), made])
            joined = [*tiers, made]
            self._tiers = joined, []
        return joined


def _choose(tier: _Tier, slots: NDArray[np.int64]) -> Columns:
    rows = slots - tier.first
    return {name: _take(column, rows) for name, column in tier.columns.items()}


def _take(column: Any, rows: NDArray[np.int64]) -> Any:
    if isinstance(column, np.ndarray):
        return column.take(rows, axis=0)  # faster than with brackets
    return column[rows]


def _join_tiers(tiers: list[_Tier]) -> _Tier:
    if len(tiers) == 1:
        return tiers[0]
    names = tiers[0].columns
    columns = {name: join_columns([tier.columns[name] for tier in tiers]) for name in names}
    return _Tier(tiers[0].first, tiers[-1].end, columns)


def join_columns(columns: list[Any]) -> Any:
    """Concatenate columns of one kind: arrays, `Ragged`, `Sparse` or `BytesColumn`.

    >>> join_columns([np.array([1]), np.array([2, 3])])
    array([1, 2, 3])
    """
    first = columns[0]
    if isinstance(first, Ragged):
        lengths = np.concatenate([column.row_lengths for column in columns])
        splits = np.concatenate([[0], np.cumsum(lengths)])
        return Ragged(join_columns([column.values for column in columns]), splits)
    if isinstance(first, Sparse):
        return _join_sparse(columns)
    if isinstance(first, BytesColumn):
        return _join_strings(columns)
    return np.concatenate(columns)


def _join_sparse(columns: list[Sparse]) -> Sparse:
    ends = np.cumsum([0, *map(len, columns)])
    parts = []
    for column, end in zip(columns, ends[:-1], strict=True):
        parts.append(column.indices.copy())
        parts[-1][:, 0] += end
    values = join_columns([column.values for column in columns])
    shape = (int(ends[-1]), *columns[0].dense_shape[1:])
    return Sparse(np.concatenate(parts), values, shape)


def _join_strings(columns: list[BytesColumn]) -> BytesColumn:
    """Copy only the strings: the buffers hold whole records."""
    parts: list[bytes] = []
    for column in columns:
        flat = np.ascontiguousarray(column.slices).reshape(-1)
        parts += _core.take_strings(column.buffer, flat, False)
    joined = BytesColumn.from_values(parts)
    shape = (sum(map(len, columns)), *columns[0].shape[1:])
    return BytesColumn(joined.buffer, joined.slices, is_text=columns[0].is_text, shape=shape)


def copy_column(column: Any, rows: NDArray[np.int64]) -> Any:
    """Copy some rows of a column."""
    return _detach(_take(column, rows))


def _detach(column: Any) -> Any:
    """The same column without references to the memory of whole records."""
    if isinstance(column, Ragged):
        return Ragged(_detach(column.values), column.row_splits)
    if isinstance(column, Sparse):
        return Sparse(column.indices, _detach(column.values), column.dense_shape)
    if isinstance(column, BytesColumn):
        return _join_strings([column])
    if column.dtype == object:
        for at, value in enumerate(column.flat):
            if isinstance(value, np.ndarray):
                column.flat[at] = value.copy()
    return column
