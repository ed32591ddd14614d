"""The records of a split counted: piece by piece on several threads, merged in their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from datum.errors import DatumError
from datum.format import Parser
from datum.profiling.duplicates import HashedRecords, hash_payloads
from datum.profiling.payloads import PayloadTally, tally_payloads
from datum.profiling.reading import Failure, Piece, read_pieces
from datum.profiling.tally import FeatureTally, tally_column
from datum.reading import Split
from datum.schema import Schema

__all__ = ["SplitTally", "count_split"]


@dataclass(frozen=True, slots=True)
class SplitTally:
    """What was counted of the records of a split.

    Attributes:
        seen: how many records that was.
        features: what was counted of each feature.
        payloads: what the records look like; only where there are no features.
        hashed: the hashes of their payloads.
        failures: what could not be read, one of each shard.
    """

    seen: int
    features: Mapping[str, FeatureTally]
    payloads: PayloadTally | None
    hashed: HashedRecords
    failures: tuple[Failure, ...]


@dataclass(frozen=True, slots=True)
class _Counted:
    """What was counted of one piece, or why it could not be."""

    piece: Piece
    hashes: Any
    features: Mapping[str, FeatureTally] = field(default_factory=dict)
    payloads: PayloadTally | None = None
    failures: list[Failure] = field(default_factory=list)


def count_split(
    split: Split,
    schema: Schema,
    *,
    sample: int | None,
    classes: Container[str],
    threads: int,
    progress: Callable[[int], None],
) -> SplitTally:
    """Look at all records of a split, or at a `sample`; `classes` are features that have names.

    `progress` is called with how many records are done.
    """
    # Without defaults, so that what is missing shows.
    parser = Parser(Schema({name: replace(one, default=None) for name, one in schema.items()}))
    failures: list[Failure] = []
    features: dict[str, FeatureTally] = {name: FeatureTally() for name in schema}
    payloads: PayloadTally | None = None
    hashes, numbers = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    seen = 0

    def pieces() -> Iterator[Piece]:
        for piece in read_pieces(split, sample):
            if isinstance(piece, Failure):
                failures.append(piece)
            else:
                yield piece

    def count(piece: Piece) -> _Counted:
        return _count_piece(parser, piece, classes)

    for counted in _in_order(count, pieces(), threads):
        failures += counted.failures
        if counted.hashes is None:
            continue
        seen += len(counted.piece.records)
        hashes.append(counted.hashes)
        numbers.append(counted.piece.numbers)
        for name, tally in counted.features.items():
            features[name] = features[name].merge(tally)
        if counted.payloads is not None:
            payloads = payloads.merge(counted.payloads) if payloads else counted.payloads
        progress(seen)
    is_all = seen == len(split)
    hashed = HashedRecords(np.concatenate(hashes), np.concatenate(numbers), is_all)
    by_shard = {failure.shard: failure for failure in reversed(failures)}  # the first of each
    return SplitTally(seen, features, payloads, hashed, tuple(by_shard.values())[::-1])


def _count_piece(parser: Parser, piece: Piece, classes: Container[str]) -> _Counted:
    records = piece.records
    try:
        columns = parser.parse(records, threads=1) if parser.schema else {}
    except DatumError:  # a record that is not as the schema says
        sound, failures = _divide(parser, piece)
        if sound is None:
            return _Counted(piece, None, failures=failures)
        return replace(_count_piece(parser, sound, classes), failures=failures)
    features = {
        name: tally_column(parser.schema[name], column, has_classes=name in classes)
        for name, column in columns.items()
    }
    payloads = None if parser.schema else tally_payloads(records)
    return _Counted(piece, hash_payloads(records), features, payloads)


def _divide(parser: Parser, piece: Piece) -> tuple[Piece | None, list[Failure]]:
    """The parts of a piece that can be parsed, and what is wrong with the others."""
    kept: list[Piece] = []
    failures: list[Failure] = []
    start = 0
    for part in piece.records.parts or (piece.records,):
        numbers = piece.numbers[start : start + len(part)]
        start += len(part)
        try:
            parser.parse(part, threads=1)
        except DatumError as error:
            failures.append(Failure.of(error, part.file))
        else:
            kept.append(Piece(part, numbers))
    return (Piece.join(kept) if kept else None), failures


def _in_order(
    count: Callable[[Piece], _Counted], pieces: Iterator[Piece], threads: int
) -> Iterator[_Counted]:
    """What `count` makes of each piece, in their order; the caller's thread reads meanwhile."""
    if threads == 1:
        yield from map(count, pieces)
        return
    with ThreadPoolExecutor(threads, "datum-profile") as pool:
        pending: deque[Future[_Counted]] = deque()
        try:
            for piece in pieces:
                pending.append(pool.submit(count, piece))
                if len(pending) > threads + 1:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
