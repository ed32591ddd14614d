"""The stages of loading, each with all before it, done by one thread without anything ahead."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from datum import _core
from datum.errors import CorruptRecordError, Damage
from datum.format import Parser
from datum.format.index import FRAME_BYTES
from datum.loading import LoadOptions
from datum.loading.decoding import find_decoders
from datum.loading.ordered import order_split
from datum.loading.pipeline import Pipeline
from datum.loading.stream import Place, Stream
from datum.measuring.sample import Piece, Sample
from datum.measuring.timing import Contender
from datum.reading import Split
from datum.reading.numbered import NumberedRecords

__all__ = ["MEASURED", "STAGES", "batches_of", "clock_for", "go_through", "stage_contenders"]

STAGES = ("read", "crc", "parse", "shuffle", "decode", "callback", "batch")
# Each is measured together with all before it. Arrays are put together before images are decoded
# here, since they are decoded straight into them.
MEASURED = ("read", "crc", "parse", "batch", "shuffle", "decode", "callback")


def stage_contenders(sample: Sample, options: LoadOptions | None) -> list[Contender]:
    """The stages that there are, in the order of `MEASURED`; without options only the first two."""
    clock = clock_for(options)
    pieces = len(sample.pieces)
    found = [
        Contender("read", functools.partial(_read, sample), pieces, clock=clock),
        Contender("crc", functools.partial(_check, sample), pieces, clock=clock),
    ]
    if options is None:
        return found
    batches = batches_of(sample.records, options.plan_records)
    parse = functools.partial(_parse, sample, options)
    found.append(Contender("parse", parse, batches, clock=clock))
    for name, asked in _pipelines(sample.split, options):
        make = functools.partial(_make, sample.split, asked)
        found.append(Contender(name, make, batches, clock=clock))
    return found


def clock_for(options: LoadOptions | None) -> Callable[[], float]:
    """What one thread is timed by.

    What others do on the machine is no cost of a stage, and processor time does not count it. But
    a function of the user may wait for something.
    """
    has_map = options is not None and options.map is not None
    return time.perf_counter if has_map else time.thread_time


def _pipelines(split: Split, options: LoadOptions) -> Iterator[tuple[str, LoadOptions]]:
    """What the stages ask for in which batches are made, each one thing more."""
    asked = replace(options, shuffle=False, decode=False, map=None, epochs=1)
    yield "batch", asked
    if options.shuffle:
        asked = replace(asked, shuffle=options.shuffle)
        yield "shuffle", asked
    if find_decoders(options.selected(split.schema), options).images:
        asked = replace(asked, decode=options.decode)
        yield "decode", asked
    if options.map is not None:
        yield "callback", replace(asked, map=options.map)


def batches_of(records: int, batch_size: int) -> int:
    """How many batches an epoch has.

    >>> batches_of(65, 64)
    2
    """
    return -(-records // batch_size)


def _read(sample: Sample, passes: int) -> Iterator[None]:
    """Copy the bytes that the records lie in out of their files."""
    for _ in range(passes):
        for piece in sample.pieces:
            piece.read()
            yield


def _check(sample: Sample, passes: int) -> Iterator[None]:
    """Check the CRCs of every record."""
    copies = [(piece, piece.read()) for piece in sample.pieces]
    for _ in range(passes):
        for piece, content in copies:
            places = piece.offsets - piece.start
            damaged = _core.first_damage(content, places, piece.lengths)
            if damaged is not None:
                raise _corrupt(piece, *damaged)
            yield


def _corrupt(piece: Piece, row: int, kind: str) -> CorruptRecordError:
    offset, number = int(piece.offsets[row]), piece.first + row
    end = offset + int(piece.lengths[row]) + FRAME_BYTES
    return CorruptRecordError(
        f"record {number} at byte {offset}: expected a sound record, got damage: {kind}",
        where=piece.path,
        hint="`datum verify` lists all damage, `datum repair` saves what is whole",
        damage=Damage(str(piece.path), offset, end, number, kind),
    )


def _parse(sample: Sample, options: LoadOptions, passes: int) -> Iterator[Any]:
    """Make columns of the records, in order, a batch at a time."""
    split, size = sample.split, options.plan_records
    parser = Parser(options.selected(split.schema))
    records = NumberedRecords([(split.shards, run) for run in split.runs], parser, threads=0)
    numbers = np.arange(len(split))
    batches = [numbers[start : start + size] for start in range(0, len(split), size)]
    try:
        for _ in range(passes):
            for batch in batches:
                yield records.read(batch)
    finally:
        records.close()


def _make(split: Split, options: LoadOptions, passes: int) -> Iterator[Any]:
    return go_through(split, replace(options, epochs=passes))


def go_through(split: Split, options: LoadOptions) -> Iterator[Any]:
    """The batches of `to_numpy`, each made by the caller's own thread when it is asked for."""
    schema = options.selected(split.schema)
    ordered = order_split(split, options)
    source = NumberedRecords(ordered.parts, Parser(schema), threads=0)
    pipeline = Pipeline(source, schema, options, threads=0)
    stream = Stream(ordered.order, options.plan_records, epochs=options.epochs)
    try:
        for plan in stream.plans(Place()):
            pipeline.submit(plan)
            yield pipeline.take().batch
    finally:
        pipeline.close()
