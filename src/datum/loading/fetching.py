"""The columns of a batch: from the files, from the cache, or some of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from datum.errors import Damage
from datum.loading.caching import copy_column, join_columns
from datum.loading.decoding import BatchImageLists, BatchImages, kept_images, open_images
from datum.loading.finishing import Finisher, as_objects
from datum.schema import Feature

if TYPE_CHECKING:
    from datum.reading.numbered import Taken

__all__ = ["ColumnCache", "ColumnSource", "Fetched", "Fetcher", "Request"]

Numbers = NDArray[np.int64]


class ColumnSource(Protocol):
    """What reads records by their numbers, ahead of the one who asks."""

    def submit(self, numbers: NDArray[np.int64]) -> int:
        """Start reading some records; gives the ticket to take them with."""
        ...

    def take(self, ticket: int) -> Taken:
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
