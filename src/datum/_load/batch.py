"""One batch: columns fetched, images decoded, functions called, rows put together."""

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
from datum.errors import CorruptRecordError, Damage, Message, Option, SourceError, Text
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
    """A reader of records by number, which reads ahead."""

    def submit(self, numbers: NDArray[np.int64]) -> int:
        """Start to read records, and return the ticket for `take`."""
        ...

    def take(self, ticket: int) -> ReadResult:
        """Wait for the columns of a ticket and return them, or raise their error."""
        ...

    def locate(self, number: int) -> tuple[str, int, int | None]:
        """File, number in the file and, if known, offset of a record, for messages."""
        ...

    def close(self) -> None:
        """Stop reading and end the threads."""
        ...


class ColumnCache(Protocol):
    """A cache of the columns of records; see `RecordCache`."""

    def find(self, numbers: Numbers) -> Numbers:
        """The place of each record: above 0 if cached, below 0 if damaged, 0 if unknown."""
        ...

    def gather(self, places: Numbers) -> dict[str, Any]:
        """The columns of cached records."""
        ...

    def add(self, numbers: Numbers, columns: dict[str, Any]) -> None:
        """Add records to the cache."""
        ...

    def add_lost(self, numbers: Numbers, damage: Collection[Damage]) -> None:
        """Add damaged records, which need not be read again either."""
        ...

    def damage_at(self, places: Numbers) -> list[Damage]:
        """The damage of these records."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """Requested records: those that are read under a ticket, and those in the cache."""

    numbers: Numbers
    ticket: int | None
    read: Numbers | None = None  # rows of `numbers` that are read; None for all
    places: Numbers | None = None  # place of each record in the cache


@dataclass(slots=True)
class Fetched:
    """The columns of a batch, images not yet decoded.

    Attributes:
        columns: Finished columns by name.
        images: Images of each feature that is decoded.
        count: Number of rows.
        rows: Requested record of each row, by its place in the request; None for all.
        lost: Place and damage of each requested record that has no row.
        fresh: Rows that were read, and go into the cache once their images are decoded.
        kept: Columns of the fresh rows, for the cache.
    """

    columns: dict[str, Any]
    images: dict[str, BatchImages | BatchImageLists]
    count: int
    rows: Numbers | None
    lost: list[tuple[int, Damage]] = field(default_factory=list)
    fresh: Numbers | None = None
    kept: dict[str, Any] = field(default_factory=dict)


class Fetcher:
    """Gets the columns of batches from files and from the cache.

    Args:
        source: Reads the records.
        finisher: Makes batch columns of parsed columns.
        images: Features to decode as images.
        cache: Cache of the records; None without one.
        is_stacked: Whether images are decoded into one array if they have one shape.
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
        """Start to read the records that are not in the cache."""
        if self._cache is None:
            return Request(numbers, self._source.submit(numbers))
        places = self._cache.find(numbers)
        read = np.flatnonzero(places == 0)
        is_read = len(read) or not (places > 0).any()  # the columns of no records, too
        ticket = self._source.submit(numbers[read]) if is_read else None
        return Request(numbers, ticket, read, places)

    def take(self, request: Request) -> Fetched:
        """Wait for the columns of a request."""
        if self._cache is None:
            assert request.ticket is not None
            return self._read(request.ticket, len(request.numbers))
        return self._combine(self._cache, request)

    def _read(self, ticket: int, asked: int) -> Fetched:
        result = self._source.take(ticket)
        rows, count = result.rows, asked
        lost: list[tuple[int, Damage]] = []
        if rows is not None:
            missing = np.setdiff1d(np.arange(asked), rows)
            lost = list(zip(missing.tolist(), result.damage, strict=True))
            count = len(rows)
        columns = self._finisher.finish(result.columns)
        is_kept = self._cache is not None
        how = {"is_stacked": self._is_stacked and not is_kept, "is_kept": is_kept}
        images = {
            name: open_images(feature, result.columns[name], **how)
            for name, feature in self._images.items()
        }
        return Fetched(columns, images, count, rows, lost)

    def _combine(self, cache: ColumnCache, request: Request) -> Fetched:
        """Records that were read, cached records, or both, in the order of the request."""
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
        for name in self._finisher.loose.keys() & columns.keys():  # their arrays may be changed
            columns[name] = copy_column(columns[name], np.arange(len(held)))
        return Fetched(columns, images, len(held), held)

    def _note(self, cache: ColumnCache, request: Request, found: Fetched) -> None:
        """Copy columns for the cache before anything can change them."""
        rows = np.arange(found.count)
        found.kept = {name: copy_column(column, rows) for name, column in found.columns.items()}
        found.fresh = np.arange(found.count)
        numbers = request.numbers[[row for row, _ in found.lost]]
        cache.add_lost(numbers, [damage for _, damage in found.lost])

    def keep(self, request: Request, found: Fetched, lost: dict[int, Damage]) -> None:
        """Cache the rows that were read and whose images could be decoded.

        Args:
            request: The request of the batch.
            found: The columns that were fetched.
            lost: Damage of each row whose images could not be decoded.
        """
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
    """Merge cached rows and rows that were read, in the order of the batch."""
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
        plan: The plan of the batch.
        batch: A dict of columns, or the result of `batch_map`. If all records are damaged, the
            columns have no rows.
        records: Number of records in it, without those that only fill it up.
        damage: Damage of the other records of the plan, without those that only fill it up.
        rows: Index of each row in the plan.
    """

    plan: BatchPlan
    batch: Any
    records: int
    damage: tuple[Damage, ...]
    rows: Rows


@dataclass(slots=True)
class Work:
    """The steps of every batch of a pipeline.

    Attributes:
        source: Reads the records.
        fetcher: Gets the columns of a batch.
        finisher: Makes batch columns of parsed columns.
        functions: Functions of the user that decode features, by feature.
        map: Function of each record; None without one.
        batch_map: Function of each batch; None without one.
        padder: Pads the columns; None without `pad`.
        skips_damage: Whether damaged records are skipped.
        is_padded: Whether damaged records are replaced, and a mask marks them.
        supervised: Names of inputs and targets; None for dicts.
        mapped: Cached results of `map` by number; None if they are not kept.
        stack: Makes one tensor of the tensors of a framework; None for other values.
        empty: Columns without rows after `map`, known once there was a batch.
    """

    source: ColumnSource
    fetcher: Fetcher
    finisher: Finisher
    functions: Mapping[str, Callable[[bytes], Any]]
    map: UserFunction | None
    batch_map: UserFunction | None
    padder: Padder | None
    skips_damage: bool
    is_padded: bool
    supervised: Supervised | None = None
    mapped: dict[int, Any] | None = None
    stack: Stack = lambda _: None
    empty: Any = None

    def describe(self, number: int) -> str:
        """File, number and offset of a record, for messages."""
        file, record, offset = self.source.locate(number)
        return f"{file}: record {record}" + ("" if offset is None else f" at byte {offset}")

    def image_damage(self, number: int) -> Damage:
        """The damage of a record whose image cannot be decoded."""
        file, record, offset = self.source.locate(number)
        at = 0 if offset is None else offset
        return Damage(file, at, at, record, "image")

    def complete(self, batch: Any, plan: BatchPlan, describe: Callable[[int], str]) -> Any:
        """Pad the columns, call `batch_map`, and select the parts of `supervised`."""
        if self.padder is not None:
            batch = self.padder.pad(batch, length=plan.length, describe=describe)
        batch = self._mapped(batch, plan)
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
    """Builds one batch from its columns; several threads may work on its rows."""

    def __init__(self, work: Work, plan: BatchPlan, request: Request, fetched: Fetched) -> None:
        self._work = work
        self._plan = plan
        self._request = request
        self._fetched = fetched
        self._lost: dict[int, Damage] = {}  # by row, for images that cannot be decoded
        self._called = {name: [None] * fetched.count for name in work.functions}
        self._takers: list[tuple[str, Callable[[int], Any]]] = []
        if work.map is not None:
            self._made: list[Any] = [None] * fetched.count
            self._changed: set[str] = set()  # columns that `map` replaced in some record
            self._takers = [(name, self._taker(name)) for name in work.finisher.names]

    @functools.cached_property
    def _rows(self) -> Rows:
        """Index of each row in the plan."""
        rows = self._fetched.rows
        return np.arange(len(self._plan.numbers)) if rows is None else rows

    def __len__(self) -> int:
        """Number of rows."""
        return self._fetched.count

    def _taker(self, name: str) -> Callable[[int], Any]:
        """Make a function that returns the value of a row for `map`."""
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
        """Decode the images of a record, and call the functions of the user."""
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
            error.add_note(f"in a function of the loader, {self._describe(row)}")
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
        hint = error.hint or Text(Option("on_error", "skip"), " leaves out such records")
        raise SourceError(error, where=where, hint=hint) from error

    def _describe(self, row: int) -> str:
        return self._work.describe(int(self._plan.numbers[self._rows[row]]))

    # All of them.

    def finish(self) -> Finished:
        """Put the batch together after `run` of every row.

        `Finished.batch` is None if all records are damaged; see `empty`.
        """
        work, plan, fetched = self._work, self._plan, self._fetched
        work.fetcher.keep(self._request, fetched, self._lost)
        if len(self) and not fetched.lost and not self._lost:  # nearly always
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
        """The batch of the rows in `index`, whose sound rows are `kept`; None for all rows."""
        work = self._work
        batch = self._assemble(index)
        if work.map is not None and work.empty is None:
            work.empty = empty_like(batch)
        if work.is_padded:
            batch = self._with_mask(batch, self._rows if kept is None else self._rows[kept])
        rows = range(len(self)) if index is None else index.tolist()
        return work.complete(batch, self._plan, lambda row: self._describe(rows[row]))

    def empty(self) -> Any:
        """The batch whose records are all damaged: the columns of other batches without rows."""
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
        """The columns of the rows in `index`, None for all, before `map`."""
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
        """Collate the results of `map`; columns that it did not replace stay as they are."""
        made = [self._made[row] for row in rows]

        def describe(row: int) -> str:
            return self._describe(rows[row])

        alone: set[str] = set()  # columns whose every value came back from `map`
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
        """A column whose rows came back from `map`, though they may be changed in place."""
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
                    f"expected dicts from `map`, since remainder='pad' adds a column {MASK!r}, got"
                    f" {type(batch).__name__}",
                    hint="choose another `remainder`, or return tuples from `batch_map`",
                )
            )
        mask = np.zeros(len(self._plan.numbers), np.bool_)
        mask[rows[rows < self._plan.real]] = True
        return {**batch, MASK: mask}


def _nothing_sound(first: Damage, count: int) -> CorruptRecordError:
    return CorruptRecordError(
        f"expected an intact record to fill up a batch, got {count} damaged ones",
        where=first,
        hint="choose a larger `batch_size`, or another `remainder`",
        damage=first,
    )
