"""Records kept in memory as they were read and decoded, so that later epochs only gather them."""

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
    """Records that were joined: their columns, the slot of the first one, and that after the last.

    It is never changed, so whoever has it can go on to use it while others join it.
    """

    first: int
    end: int
    columns: Columns


class RecordCache:
    """Finished columns of records by number; only those that were asked for are kept.

    It takes the memory of the batches: numbers of the schema's dtype, images decoded (height x
    width x channels bytes each), texts as Python objects; and eight bytes for each record of the
    split that was touched. When records are first asked for again they are joined, which takes the
    memory of all but the images once more while it lasts. Safe to use from threads, and sound after
    an interrupt. It stays with its process: one that was pickled, or that a forked child sees, is
    empty.

    Args:
        records: how many the split has.
    """

    def __init__(self, records: int) -> None:
        self._records = records
        self._reset()

    def __reduce__(self) -> tuple[type[RecordCache], tuple[int]]:
        return RecordCache, (self._records,)

    def _reset(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        # 0: unknown, n: in slot n - 1, -n: lost, with damage n - 1. Pages not touched are free.
        self._places = np.zeros(self._records, np.int64)
        self._damage: list[Damage] = []
        self.mapped: dict[int, Any] = {}  # what `map` returned, by number, where that is kept
        # Those that were joined, and those nobody asked for yet. Replaced in one step: an interrupt
        # may come between any two.
        self._tiers: tuple[list[_Tier], list[_Tier]] = [], []

    def __len__(self) -> int:
        """How many records are kept."""
        joined, fresh = self._tiers
        return max((tier.end for tier in (*joined[-1:], *fresh[-1:])), default=0)

    def find(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each record its place: above 0 if it is kept, below if it is lost, 0 if unknown."""
        if self._process != os.getpid():  # the lock may be held by a thread that is not here
            self._reset()
        with self._lock:
            return self._places[numbers]

    def damage_at(self, places: NDArray[np.int64]) -> list[Damage]:
        """What became of lost records."""
        return [self._damage[-place - 1] for place in places.tolist()]

    def add(self, numbers: NDArray[np.int64], columns: Columns) -> None:
        """Keep records; the columns must not be changed by anyone from now on."""
        with self._lock:
            _, firsts = np.unique(numbers, return_index=True)
            new = np.sort(firsts[self._places[numbers[firsts]] == 0])
            if not len(new):
                return
            if len(new) < len(numbers):
                columns = {name: column[new] for name, column in columns.items()}
            first = len(self)
            self._tiers[1].append(_Tier(first, first + len(new), columns))
            self._places[numbers[new]] = (
                first + 1 + np.arange(len(new))
            )  # last: it makes them known

    def add_lost(self, numbers: NDArray[np.int64], damage: Collection[Damage]) -> None:
        """Remember records that cannot be read."""
        with self._lock:
            for number, found in zip(numbers.tolist(), damage, strict=True):
                if not self._places[number]:
                    self._damage.append(found)
                    self._places[number] = -len(self._damage)

    def gather(self, places: NDArray[np.int64]) -> Columns:
        """The columns of kept records; what is in them is new, but for what object arrays hold."""
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
        """Join what is new, and then tiers as long as the last is not much smaller.

        So there are few, and each record is moved only so often as tiers double in size.
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
    """One column after the other, all of one kind: arrays, `Ragged`, `Sparse`, `BytesColumn`.

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
    """Only the strings themselves: the buffers hold whole records."""
    parts: list[bytes] = []
    for column in columns:
        flat = np.ascontiguousarray(column.slices).reshape(-1)
        parts += _core.take_strings(column.buffer, flat, False)
    joined = BytesColumn.from_values(parts)
    shape = (sum(map(len, columns)), *columns[0].shape[1:])
    return BytesColumn(joined.buffer, joined.slices, is_text=columns[0].is_text, shape=shape)


def copy_column(column: Any, rows: NDArray[np.int64]) -> Any:
    """Some rows of a column in memory of their own."""
    return _detach(_take(column, rows))


def _detach(column: Any) -> Any:
    """The same without what else lies in the memory of records."""
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
