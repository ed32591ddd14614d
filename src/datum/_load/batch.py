"""One batch: its columns fetched, images decoded, functions mapped."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from datum._load.cache import copy_column, join_columns
from datum._load.collate import Finisher, Stack, as_objects, collate, empty_like, join_strings
from datum._load.decode import BatchImageLists, BatchImages, kept_images, open_images
from datum._load.functions import UserFunction, row_taker
from datum._load.options import MASK, Supervised, select_parts
from datum._load.padding import Padder
from datum._load.stream import BatchPlan
from datum.columns import BytesColumn, Ragged
from datum.errors import CorruptRecordError, Damage, Message, SourceError
from datum.schema import Feature

if TYPE_CHECKING:
    from datum._read.numbered import ReadResult

__all__ = [
    "BatchBuilder",
    "ColumnCache",
    "ColumnSource",
    "Fetched",
    "Fetcher",
    "Finished",
    "Request",
    "Work",
]

Numbers = NDArray[np.int64]


class ColumnSource(Protocol):
    """What reads records by their numbers, ahead of the one who asks."""

    def submit(self, numbers: NDArray[np.int64]) -> int:
        """Start reading some records; gives the ticket to take them with."""
        ...

    def take(self, ticket: int) -> ReadResult:
        """The columns of what was submitted, once they are there; raises what went wrong."""
        ...

    def locate(self, number: int) -> tuple[str, int, int | None]:
        """File, number in that file and offset, if it is known, of one record, for messages."""
        ...

    def close(self) -> None:
        """Stop reading, and end the threads."""
        ...


class ColumnCache(Protocol):
    """Columns of records that need not be read again; see `RecordCache`."""

    def find(self, numbers: Numbers) -> Numbers:
        """The place of each record: above 0 if it is kept, below if it is lost, 0 if unknown."""
        ...

    def gather(self, places: Numbers) -> dict[str, Any]:
        """The columns of kept records."""
        ...

    def add(self, numbers: Numbers, columns: dict[str, Any]) -> None:
        """Keep records."""
        ...

    def add_lost(self, numbers: Numbers, damage: Collection[Damage]) -> None:
        """Remember records that cannot be read."""
        ...

    def damage_at(self, places: Numbers) -> list[Damage]:
        """The damage of lost records."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """Records that were asked for: those read under a ticket, and those that are kept."""

    numbers: Numbers
    ticket: int | None
    read: Numbers | None = None  # the rows of `numbers` that are read; None: all of them
    places: Numbers | None = None  # in the cache


@dataclass(slots=True)
class Fetched:
    """The columns of a batch, images not yet decoded.

    Attributes:
        columns: finished ones by name.
        images: the images of each feature that is decoded.
        rows: which of the records asked for these are; None for all of them.
        lost: those of them that are not here, and why.
        fresh: what to keep once images are decoded: the rows here that were read.
        kept: the columns to keep of these.
    """

    columns: dict[str, Any]
    images: dict[str, BatchImages | BatchImageLists]
    count: int
    rows: Numbers | None
    lost: list[tuple[int, Damage]] = field(default_factory=list)
    fresh: Numbers | None = None
    kept: dict[str, Any] = field(default_factory=dict)


class Fetcher:
    """Gets the columns of batches.

    Args:
        source: reads the records.
        finisher: makes columns of what it gives.
        images: the features to decode.
        cache: where to keep what was read, if anywhere.
        is_stacked: whether images are to be decoded into one array where that can be.
    """

    def __init__(
        self,
        source: ColumnSource,
        finisher: Finisher,
        images: Mapping[str, Feature],
        *,
        cache: ColumnCache | None = None,
        is_stacked: bool = True,
    ) -> None:
        self._source = source
        self._finisher = finisher
        self._images = images
        self._cache = cache
        self._is_stacked = is_stacked

    def submit(self, numbers: Numbers) -> Request:
        """Start reading what is not kept."""
        if self._cache is None:
            return Request(numbers, self._source.submit(numbers))
        places = self._cache.find(numbers)
        read = np.flatnonzero(places == 0)
        is_read = len(read) or not (places > 0).any()  # the columns of no records, too
        ticket = self._source.submit(numbers[read]) if is_read else None
        return Request(numbers, ticket, read, places)

    def take(self, request: Request) -> Fetched:
        """The columns of what was asked for."""
        if self._cache is None:
            assert request.ticket is not None
            return self._read(request.ticket, len(request.numbers))
        return self._combine(self._cache, request)

    def _read(self, ticket: int, asked: int) -> Fetched:
        taken = self._source.take(ticket)
        rows, count = taken.rows, asked
        lost: list[tuple[int, Damage]] = []
        if rows is not None:
            missing = np.setdiff1d(np.arange(asked), rows)
            lost = list(zip(missing.tolist(), taken.damage, strict=True))
            count = len(rows)
        columns = self._finisher.finish(taken.columns)
        is_kept = self._cache is not None
        how = {"is_stacked": self._is_stacked and not is_kept, "is_kept": is_kept}
        images = {
            name: open_images(feature, taken.columns[name], **how)
            for name, feature in self._images.items()
        }
        return Fetched(columns, images, count, rows, lost)

    def _combine(self, cache: ColumnCache, request: Request) -> Fetched:
        """What was read, what is kept, or both in the order they were asked for."""
        assert request.places is not None
        assert request.read is not None
        places = request.places
        gone = np.flatnonzero(places < 0)
        lost = list(zip(gone.tolist(), cache.damage_at(places[gone]), strict=True))
        held = np.flatnonzero(places > 0)
        if request.ticket is None:
            found = self._kept(cache, places, held)
        else:
            found = self._read(request.ticket, len(request.read))
            found.lost = [(int(request.read[row]), damage) for row, damage in found.lost]
            read = request.read if found.rows is None else request.read[found.rows]
            self._note(cache, request, found)
            if len(held):
                found = _merge(self._kept(cache, places, held), held, found, read)
            else:
                found.rows = read
        found.lost = sorted([*found.lost, *lost], key=lambda item: item[0])
        is_whole = found.count == len(request.numbers)
        found.rows = None if is_whole else found.rows
        return found

    def _kept(self, cache: ColumnCache, places: Numbers, held: Numbers) -> Fetched:
        columns = cache.gather(places[held])
        images = {
            name: kept_images(feature, list(columns.pop(name)))
            for name, feature in self._images.items()
        }
        for name in self._finisher.loose.keys() & columns.keys():  # what they hold may be changed
            columns[name] = copy_column(columns[name], np.arange(len(held)))
        return Fetched(columns, images, len(held), held)

    def _note(self, cache: ColumnCache, request: Request, found: Fetched) -> None:
        """Copy what is to be kept before anybody can change it."""
        rows = np.arange(found.count)
        found.kept = {name: copy_column(column, rows) for name, column in found.columns.items()}
        found.fresh = np.arange(found.count)
        numbers = request.numbers[[row for row, _ in found.lost]]
        cache.add_lost(numbers, [damage for _, damage in found.lost])

    def keep(self, request: Request, found: Fetched, lost: dict[int, Damage]) -> None:
        """Keep what was read, now that images are decoded; but not rows that were lost in that."""
        if self._cache is None or found.fresh is None:
            return
        numbers = request.numbers if found.rows is None else request.numbers[found.rows]
        fresh, columns = found.fresh, found.kept
        if lost:
            is_sound = np.array([row not in lost for row in fresh.tolist()], np.bool_)
            gone, fresh = fresh[~is_sound], fresh[is_sound]
            self._cache.add_lost(numbers[gone], [lost[row] for row in gone.tolist()])
            columns = {name: column[is_sound] for name, column in columns.items()}
        for name, images in found.images.items():
            columns[name] = as_objects([images.rows[row] for row in fresh.tolist()])
        self._cache.add(numbers[fresh], columns)


def _merge_images(kept: Any, read: Any, order: list[int]) -> BatchImages | BatchImageLists:
    merged: BatchImages | BatchImageLists = type(read).merged(kept, read, order)
    return merged


def _merge(kept: Fetched, held: Numbers, found: Fetched, read: Numbers) -> Fetched:
    """Two parts of a batch as one, in the order of its rows."""
    order = np.concatenate([held, read])
    back = np.argsort(order, kind="stable")
    columns = {
        name: join_columns([kept.columns[name], column])[back]
        for name, column in found.columns.items()
    }
    images = {
        name: _merge_images(kept.images[name], images, back.tolist())
        for name, images in found.images.items()
    }
    fresh = np.empty(len(read), np.int64)
    fresh[back[back >= len(held)] - len(held)] = np.flatnonzero(back >= len(held))
    return Fetched(columns, images, len(order), order[back], found.lost, fresh, found.kept)


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
