"""One batch from its columns to its final form: images decoded, records mapped, put together."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.columns import BytesColumn, Ragged
from datum.errors import CorruptRecordError, Damage, Message, SourceError
from datum.loading.collating import Stack, collate, empty_like, join_strings
from datum.loading.fetching import ColumnSource, Fetched, Fetcher, Request
from datum.loading.finishing import Finisher, as_objects
from datum.loading.mapping import UserFunction, row_taker
from datum.loading.options import MASK
from datum.loading.padding import Padder
from datum.loading.stream import BatchPlan
from datum.loading.supervised import Supervised, select_parts

__all__ = ["BatchBuilder", "Finished", "Work"]

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Finished:
    """A batch that is ready.

    Attributes:
        plan: which records it was to have.
        batch: a dict of columns, or whatever `batch_map` returned. Without any sound record the
            columns have no rows.
        records: how many records in it count.
        damage: what was lost of those that were to count.
        rows: which of the records of the plan each row is.
    """

    plan: BatchPlan
    batch: Any
    records: int
    damage: tuple[Damage, ...]
    rows: Rows


@dataclass(slots=True)
class Work:
    """What is done to every batch; one for a whole pipeline.

    Attributes:
        functions: what decodes features in ways of the user's own.
        stack: makes one tensor of a framework's own, if it is that.
        is_padded: whether lost records are replaced, and a mask tells which count.
        mapped: what `map` returned for records, by number, if that is kept.
        empty: the columns of a batch of no records after `map`, once there was a batch.
    """

    source: ColumnSource
    fetcher: Fetcher
    finisher: Finisher
    functions: Mapping[str, Callable[[bytes], Any]]
    map: UserFunction | None
    batch_map: UserFunction | None
    padder: Padder
    skips_damage: bool
    is_padded: bool
    supervised: Supervised | None = None
    mapped: dict[int, Any] | None = None
    stack: Stack = lambda _: None
    empty: Any = None

    def describe(self, number: int) -> str:
        """Where a record lies, for messages."""
        file, record, offset = self.source.locate(number)
        return f"{file}: record {record}" + ("" if offset is None else f" at byte {offset}")

    def image_damage(self, number: int) -> Damage:
        """What stands for an image that cannot be decoded."""
        file, record, offset = self.source.locate(number)
        at = 0 if offset is None else offset
        return Damage(file, at, at, record, "image")

    def complete(self, batch: Any, plan: BatchPlan, describe: Callable[[int], str]) -> Any:
        """Fill up what differs in length, call `batch_map`, and choose what is `supervised`."""
        batch = self._mapped(self.padder.pad(batch, length=plan.length, describe=describe), plan)
        return batch if self.supervised is None else select_parts(batch, self.supervised)

    def _mapped(self, batch: Any, plan: BatchPlan) -> Any:
        if self.batch_map is None:
            return batch
        position = int(plan.positions[0]) if len(plan.positions) else plan.start
        try:
            return self.batch_map(batch, epoch=plan.epoch, position=position)
        except Exception as error:
            error.add_note(f"in `batch_map`, epoch {plan.epoch}, batch at {plan.start}")
            raise


class BatchBuilder:
    """One batch whose columns are here. Rows may be worked on by several threads."""

    def __init__(self, work: Work, plan: BatchPlan, request: Request, fetched: Fetched) -> None:
        self._work = work
        self._plan = plan
        self._request = request
        self._fetched = fetched
        self._lost: dict[int, Damage] = {}  # rows whose images cannot be decoded
        self._called = {name: [None] * fetched.count for name in work.functions}
        self._takers: list[tuple[str, Callable[[int], Any]]] = []
        if work.map is not None:
            self._made: list[Any] = [None] * fetched.count
            self._changed: set[str] = set()  # names whose values `map` replaced in some record
            self._takers = [(name, self._taker(name)) for name in work.finisher.names]

    @functools.cached_property
    def _rows(self) -> Rows:
        """Which of the records of the plan each row is."""
        rows = self._fetched.rows
        return np.arange(len(self._plan.numbers)) if rows is None else rows

    def __len__(self) -> int:
        """How many rows there are to be worked on."""
        return self._fetched.count

    def _taker(self, name: str) -> Callable[[int], Any]:
        """What gives the value of a row to `map`."""
        blank = self._work.finisher.loose.get(name)
        if name in self._called:
            return self._called[name].__getitem__
        if name in self._fetched.images:
            assert blank is not None
            images, cast = self._fetched.images[name], self._work.finisher.cast
            return lambda row: cast(name, images.value(row, blank))
        take = row_taker(self._fetched.columns[name])
        if blank is None:
            return take
        return lambda row: blank.copy() if (found := take(row)) is None else found

    # One record.

    def run(self, row: int) -> None:
        """Decode the images of a record, and give it to the functions of the user."""
        for name, images in self._fetched.images.items():
            try:
                images.decode(row)
            except SourceError as error:
                self._lose(row, name, error)
                return
        try:
            for name, function in self._work.functions.items():
                self._called[name][row] = function(self._fetched.columns[name][row])
            if self._work.map is not None:
                self._map(self._work.map, row)
        except Exception as error:
            error.add_note(f"in a function given to the loader, {self._describe(row)}")
            raise

    def _map(self, function: UserFunction, row: int) -> None:
        mapped, at = self._work.mapped, self._rows[row]
        number = int(self._plan.numbers[at])
        if mapped is not None and number in mapped:
            self._made[row] = mapped[number]
            self._changed.update(name for name, _ in self._takers)
            return
        given = {name: take(row) for name, take in self._takers}
        position = int(self._plan.positions[at])
        made = function(dict(given), epoch=self._plan.epoch, position=position)
        self._made[row] = made
        if mapped is not None:
            mapped[number] = copy.deepcopy(made)
        if isinstance(made, dict):
            self._changed.update(n for n, value in given.items() if made.get(n) is not value)

    def _lose(self, row: int, name: str, error: SourceError) -> None:
        number = int(self._plan.numbers[self._rows[row]])
        if self._work.skips_damage:
            self._lost[row] = self._work.image_damage(number)
            return
        where = f"{self._work.describe(number)}, feature {name!r}"
        hint = error.hint or "on_error='skip' leaves such records out"
        raise SourceError(error, where=where, hint=hint) from error

    def _describe(self, row: int) -> str:
        return self._work.describe(int(self._plan.numbers[self._rows[row]]))

    # All of them.

    def finish(self) -> Finished:
        """The batch, once every row was run; None for one that has no sound record."""
        work, plan, fetched = self._work, self._plan, self._fetched
        work.fetcher.keep(self._request, fetched, self._lost)
        if len(self) and not fetched.lost and not self._lost:  # as it nearly always is
            return Finished(plan, self._make(None), min(plan.real, len(self)), (), self._rows)
        kept = np.setdiff1d(np.arange(len(self)), list(self._lost))
        gone = [*fetched.lost, *((int(self._rows[row]), d) for row, d in self._lost.items())]
        gone.sort(key=lambda item: item[0])
        damage = tuple(found for row, found in gone if row < plan.real)
        records = int(np.count_nonzero(self._rows[kept] < plan.real))
        if not len(kept):
            if work.is_padded and gone:
                raise _nothing_sound(gone[0][1], len(gone))
            return Finished(plan, None, records, damage, self._rows[kept])
        index = None if len(kept) == len(self) else kept
        if work.is_padded and gone:
            index = np.full(len(plan.numbers), kept[0])
            index[self._rows[kept]] = kept
        return Finished(plan, self._make(index, kept), records, damage, self._rows[kept])

    def _make(self, index: Rows | None, kept: Rows | None = None) -> Any:
        """The batch of the rows that `index` chooses, of which `kept` are sound; None for all."""
        work = self._work
        batch = self._assemble(index)
        if work.map is not None and work.empty is None:
            work.empty = empty_like(batch)
        if work.is_padded:
            batch = self._with_mask(batch, self._rows if kept is None else self._rows[kept])
        rows = range(len(self)) if index is None else index.tolist()
        return work.complete(batch, self._plan, lambda row: self._describe(rows[row]))

    def empty(self) -> Any:
        """The batch that has no sound record: columns of no rows, as others of it are."""
        if self._work.empty is not None:
            batch = empty_like(self._work.empty)
        else:
            batch = self._columns(np.arange(0))
            batch |= {name: np.empty(0) for name in self._called}
            batch = self._work.finisher.settle(batch)
        if self._work.is_padded:
            batch = self._with_mask(batch, np.arange(0))
        return self._work.complete(batch, self._plan, self._describe)

    def _columns(self, index: Rows | None) -> dict[str, Any]:
        """The columns of the rows that `index` chooses, None for all; before `map`."""
        columns = dict(self._fetched.columns)
        for name, images in self._fetched.images.items():
            columns[name] = self._work.finisher.cast(name, images.column())
        for name, values in self._called.items():
            columns[name] = as_objects(values)
        if index is not None:
            columns = {name: column[index] for name, column in columns.items()}
        return columns

    def _assemble(self, index: Rows | None) -> Any:
        columns = self._columns(index)
        rows = range(len(self)) if index is None else index.tolist()
        if self._work.map is not None:
            return self._collate(columns, rows)
        for name in self._called:
            columns[name] = collate(
                columns[name],
                describe=lambda row: self._describe(rows[row]),
                stack=self._work.stack,
            )
        return self._work.finisher.settle(columns)

    def _collate(self, columns: dict[str, Any], rows: Sequence[int]) -> Any:
        """What `map` made; columns that it left alone stay what they are."""
        made = [self._made[row] for row in rows]

        def describe(row: int) -> str:
            return self._describe(rows[row])

        alone: set[str] = set()  # looked into for every value of every record
        if all(isinstance(value, dict) for value in made):
            alone = columns.keys() - self._changed - self._called.keys()
        if not alone:
            return collate(made, describe=describe, stack=self._work.stack)
        changed = [{n: v for n, v in value.items() if n not in alone} for value in made]
        batch = collate(changed, describe=describe, stack=self._work.stack)
        for name in alone:
            batch[name] = self._left_alone(columns[name], [value[name] for value in made], name)
        return {name: batch[name] for name in made[0]}

    def _left_alone(self, column: Any, rows: list[Any], name: str) -> Any:
        """A column whose rows were given and came back, though maybe changed where they are."""
        finisher = self._work.finisher
        if name in finisher.loose:
            return finisher.settle_rows(name, as_objects(rows))
        if isinstance(column, Ragged) and isinstance(column.values, BytesColumn):
            return join_strings(rows, is_text=column.values.is_text)
        return column  # the rows are views of it

    def _with_mask(self, batch: Any, rows: Rows) -> Any:
        if not isinstance(batch, dict):
            raise ValueError(
                Message(
                    f"expected dicts from `map` with remainder='pad', to which {MASK!r} is added,"
                    f" got {type(batch).__name__}",
                    hint="another `remainder`, or tuples from `batch_map`",
                )
            )
        mask = np.zeros(len(self._plan.numbers), np.bool_)
        mask[rows[rows < self._plan.real]] = True
        return {**batch, MASK: mask}


def _nothing_sound(first: Damage, count: int) -> CorruptRecordError:
    return CorruptRecordError(
        f"expected a sound record to fill up a batch with, got none among {count}",
        where=first,
        hint="a larger `batch_size`, or another `remainder`",
        damage=first,
    )
