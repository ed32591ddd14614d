"""Records read by the graph alone, in the order of all other readers."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._optional import require
from datum.adapters.tensorflow.batching import densify_single, pad_batches, unbatch
from datum.adapters.tensorflow.blocks import Stretch, bytes_of, find_stretches
from datum.adapters.tensorflow.element_cache import KEPT, NUMBER, ElementCache
from datum.adapters.tensorflow.graph_order import (
    extend_key,
    numbers_at,
    seeds_at,
)
from datum.adapters.tensorflow.mapping import SEED, apply, with_asides
from datum.adapters.tensorflow.options import TfOptions, refuse_mask
from datum.adapters.tensorflow.parsing import GraphParser
from datum.adapters.tensorflow.plan import (
    LARGE_RECORD_BYTES,
    PARSED_LARGE_RECORDS,
    PARSED_RECORDS,
)
from datum.adapters.tensorflow.position import Position, batches_of_epoch
from datum.adapters.tensorflow.records import block_reader, refuse_marks
from datum.format import Index
from datum.loading.options import MASK
from datum.loading.ordered import order_split
from datum.loading.stream import Place, Stream
from datum.reading import Split
from datum.reading.local import find_local
from datum.reading.order import BLOCKS_PER_WINDOW, Order, key_of
from datum.schema import Schema
from datum.transforms.graph import leave_as_is

__all__ = ["OrderedGraphReader"]

tf: Any = require("tensorflow", purpose="`to_tf`")

# A full shuffle takes records from anywhere: those of a split up to this size are held in memory.
MAX_HELD_BYTES = 2**30
# Read together: large enough for the ops of a step to cost little, small enough to stay in memory.
STEP_RECORDS = 4096
STEP_BYTES = 16 * 2**20
LARGE_STEP_RECORDS = 32
BLOCK_RECORDS = 512  # of records in the order they were written
# Whose numbers are computed together: loops cost much in functions of tf.data, whatever they do.
PLANNED_RECORDS = 2**16
STEPS_AT_ONCE = 4  # read ahead of the one whose turn it is
MAX_ROWS = 2**22  # of the table of blocks, 48 bytes each
RECORD = "\0record"


class GraphPasses:
    """The passes of a dataset that begin within the graph, whatever iterates over it.

    A variable of TensorFlow that is known by its name alone: a graph that is sent elsewhere finds
    none there, and makes its own, which starts with the first epoch.

    Args:
        epochs: how many a pass has; None without end.
    """

    def __init__(self, epochs: int | None) -> None:
        self._epochs = epochs
        self._name = f"datum-passes-{secrets.token_hex(8)}"

    def _handle(self) -> Any:
        return tf.raw_ops.VarHandleOp(
            dtype=tf.int64, shape=[5], shared_name=self._name, container=""
        )

    def _read(self, handle: Any) -> Any:
        return tf.cond(
            tf.raw_ops.VarIsInitializedOp(resource=handle),
            lambda: tf.ensure_shape(tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.int64), 5),
            lambda: tf.zeros([5], tf.int64),
        )

    @leave_as_is
    def begin(self, _: Any) -> Any:
        """Start the next pass: its epoch, and the position in it."""
        handle = self._handle()
        place = self._read(handle)[3:]
        epoch = place[0]
        more = 1 if self._epochs is None else self._epochs - epoch % self._epochs
        following = tf.stack([epoch + more, tf.zeros([], tf.int64)])
        state = tf.concat([tf.ones([1], tf.int64), place, following], 0)
        assigned = tf.raw_ops.AssignVariableOp(resource=handle, value=state)
        with tf.control_dependencies([assigned] if assigned is not None else []):
            return tf.identity(place)

    def get(self) -> tuple[Place | None, Place]:
        """Where the pass under way began, None without one; and where the next one begins."""
        with tf.device("CPU:0"):
            has_begun, *places = self._read(self._handle()).numpy().tolist()
        return Place(*places[:2]) if has_begun else None, Place(*places[2:])

    def set(self, begun: Place | None, following: Place) -> None:
        """Change both."""
        held = begun or Place()
        state = [int(begun is not None), held.epoch, held.position]
        state += [following.epoch, following.position]
        with tf.device("CPU:0"):
            value = tf.constant(state, tf.int64)
            tf.raw_ops.AssignVariableOp(resource=self._handle(), value=value)


@dataclass(frozen=True, slots=True)
class _Table:
    """Where the records of a split lie, in blocks by their numbers.

    Attributes:
        paths: of all files.
        compressions: of these.
        files: which of them each block is in.
        firsts: the number of the first record of each block.
        rows: offset, records to skip, number in the file, count and bytes of each block.
    """

    paths: list[str]
    compressions: list[str]
    files: NDArray[np.int64]
    firsts: NDArray[np.int64]
    rows: NDArray[np.int64]


def _make_table(stretches: list[Stretch], size: int) -> _Table:
    """Blocks that end wherever a number is a multiple of `size`, and with their file."""
    files, firsts, rows, first = [], [], [], 0
    for at, stretch in enumerate(stretches):
        cuts = np.arange(-first % size, stretch.records, size)
        if stretch.starts is None:
            cuts = np.arange(0)
        if stretch.records and (not len(cuts) or cuts[0]):
            cuts = np.concatenate([[0], cuts])
        counts = np.diff(np.append(cuts, stretch.records))
        zeros = np.zeros_like(cuts)
        if stretch.starts is None:
            places = [zeros, zeros + stretch.first, zeros + stretch.bytes]
        else:
            ends = stretch.starts[cuts + counts]
            places = [stretch.starts[cuts], zeros, ends - stretch.starts[cuts]]
        rows.append(
            np.stack([places[0], places[1], stretch.first + cuts, counts, places[2]], axis=1)
        )
        files.append(zeros + at)
        firsts.append(first + cuts)
        first += stretch.records
    return _Table(
        [stretch.path for stretch in stretches],
        [stretch.compression for stretch in stretches],
        np.concatenate([np.empty(0, np.int64), *files]).astype(np.int64),
        np.concatenate([np.empty(0, np.int64), *firsts]).astype(np.int64),
        np.concatenate([np.empty((0, 5), np.int64), *rows]).astype(np.int64),
    )


def _find_starts(split: Split) -> list[Stretch]:
    """Where records lie, and where each starts: compressed files are inflated for that."""
    found = find_stretches(split)
    for at, (stretch, run) in enumerate(zip(found, split.runs, strict=True)):
        if stretch.starts is None:
            local = find_local(split.shards, run.shard)
            assert local.index is not None
            index = Index.load(local.index)
            starts = np.append(index.offsets, index.stream_bytes)[run.start : run.stop + 1]
            nbytes = int(starts[-1] - starts[0])
            found[at] = Stretch(str(local.path), "", run.start, len(run), starts, nbytes)
    return found


class OrderedGraphReader:
    """Reads a split in the order of `to_numpy`, with operations of TensorFlow alone.

    The graph computes which records come next, for any epoch, and reads those: blocks of
    neighbours, of a full shuffle single records, or all of a split that fits into memory.

    Args:
        split: the records of all hosts.
        schema: the features to read.
        options: what is asked for.
        host: the index of this host, and how many there are.
        needs_seeds: whether records are to come with a column `SEED`.

    Attributes:
        stream: which records each batch has.
        position: where the dataset has come to.
        asides: columns that are no features: `MASK` where batches are filled up, and `SEED`.
    """

    def __init__(
        self,
        split: Split,
        schema: Schema,
        options: TfOptions,
        *,
        host: tuple[int, int],
        needs_seeds: bool = False,
    ) -> None:
        self._options = options
        self._seed = secrets.randbits(62) if options.seed is None else options.seed
        ordered = order_split(split, options.load_options(self._seed, schema))
        assert isinstance(ordered.order, Order)
        self._order = ordered.order
        remainder = options.remainder_on(host[1])
        if remainder == "pad":
            refuse_mask(schema)
        wanted = {SEED: needs_seeds, MASK: remainder == "pad"}
        self.asides = tuple(name for name, is_wanted in wanted.items() if is_wanted)
        self._beside = self.asides  # with what a cache needs
        size = options.batch_size or 1
        self.stream = Stream(ordered.order, size, host, remainder, options.epochs)
        self._passes = GraphPasses(options.epochs)
        self.position = Position(
            self.stream, self._passes, ordered.identity, name=split.name, echo=options.echo
        )
        self._record_bytes = max(1, bytes_of(split) // max(1, len(split)))
        self._is_large = self._record_bytes >= LARGE_RECORD_BYTES
        self._held, self._table = self._find_records(split)
        self._has_skips = bool(self._table.rows[:, 1].any())
        parser = GraphParser(schema, is_trusted=split.shards.writer == "datum")
        self._parse = leave_as_is(self._parser_of(parser))

    @property
    def is_full(self) -> bool:
        """Whether there is no short batch."""
        return self.stream.remainder != "keep"

    @property
    def batches_per_epoch(self) -> int:
        """How many batches an epoch has, or records if there are none."""
        return batches_of_epoch(self.stream)

    def _find_records(self, split: Split) -> tuple[bool, _Table]:
        """Whether all records are held in memory; and where they lie, in blocks to be read."""
        is_small = bytes_of(split) <= MAX_HELD_BYTES
        is_full = self._order.mode == "full" and not self._is_large
        is_compressed = any(run.shard.compression is not None for run in split.runs)
        if self._options.cache or (is_small and (is_full or is_compressed)):
            return True, _make_table(find_stretches(split), BLOCK_RECORDS)
        if self._order.mode == "none":
            size = BLOCK_RECORDS
        elif self._order.mode == "full" or self._is_large:
            size = 1
        else:
            size = max(1, min(self._order.window, self._order.records) // BLOCKS_PER_WINDOW)
        size = max(size, -(-len(split) // MAX_ROWS))
        return False, _make_table(_find_starts(split), size)

    # Batches, or records.

    def batches(self) -> Any:
        """Batches of all epochs, parsed as such: no op runs for each record."""
        options = self._options
        chunks = self._epochs().flat_map(
            leave_as_is(
                lambda *place: self._chunks(*place).rebatch(
                    options.batch_size, drop_remainder=self.is_full
                )
            )
        )
        batches = densify_single(apply(chunks, self._parse, options), options)
        return pad_batches(batches, options)

    def read(
        self,
        finish: Callable[[Any], Any],
        decode: Callable[..., Any] | None,
        *_form: Any,
        is_last: bool = False,
    ) -> Any:
        """The records of all epochs, decoded one by one; `finish` is given those of an epoch.

        What `decode` made is what a cache keeps. `is_last` if no function that takes a record
        follows.
        """
        options, cache = self._options, None
        if decode is not None and options.cache:
            cache = self._keep_elements(decode)
            self._beside = (*self.asides, NUMBER, KEPT)
        if decode is not None and self._beside:
            decode = with_asides(decode, self._beside, keeps=not is_last, cache=cache)

        def records_of(*place: Any) -> Any:
            return finish(apply(self._records(*place), decode, options))

        return self._epochs().flat_map(leave_as_is(records_of))

    def _records(self, *place: Any) -> Any:
        size = PARSED_LARGE_RECORDS if self._is_large else PARSED_RECORDS
        return unbatch(apply(self._chunks(*place).rebatch(size), self._parse, self._options))

    def _keep_elements(self, decode: Callable[..., Any]) -> ElementCache:
        """Keep what `decode` makes of records."""
        nothing = tf.zeros([0], tf.string)
        place = (tf.zeros([2], tf.int64), nothing) if self._held else (tf.zeros([2], tf.int64),)
        only = with_asides(decode, self.asides, keeps=False)
        spec = apply(self._records(*place), only, self._options).element_spec
        has_more = isinstance(spec, tuple) and MASK in self.asides
        return ElementCache(spec[0] if has_more else spec)

    def _parser_of(self, parser: GraphParser) -> Callable[[dict[str, Any]], dict[str, Any]]:
        def parse(chunk: dict[str, Any]) -> dict[str, Any]:
            found = dict(parser.parse(refuse_marks(chunk[RECORD])))
            return {**found, **{name: chunk[name] for name in self._beside if name in chunk}}

        return parse

    # Epochs, steps, records.

    def _epochs(self) -> Any:
        """Where each epoch of a pass starts; with all records, where these are held."""
        epochs = self._options.epochs

        @leave_as_is
        def epochs_of(place: Any) -> Any:
            left = 2**62 if epochs is None else epochs - place[0] % epochs
            numbers = tf.data.Dataset.range(left)
            return numbers.map(
                leave_as_is(
                    lambda number: tf.stack(
                        [place[0] + number, tf.where(number > 0, tf.zeros_like(number), place[1])]
                    )
                )
            )

        places = tf.data.Dataset.from_tensors(0).map(self._passes.begin).flat_map(epochs_of)
        if not self._held:
            return places
        return tf.data.Dataset.zip((places, self._all_records().cache().repeat()))

    def _all_records(self) -> Any:
        """All records in one tensor."""
        table = self._table
        files = (np.array(table.paths)[table.files], np.array(table.compressions)[table.files])
        blocks = tf.data.Dataset.from_tensor_slices((*files, table.rows))
        read = block_reader(BLOCK_RECORDS, has_skips=self._has_skips)
        if not len(table.rows):
            return tf.data.Dataset.from_tensors(tf.zeros([0], tf.string))
        longest = int(table.rows[:, 3].max())
        chunks = blocks.interleave(
            read,
            cycle_length=STEPS_AT_ONCE,
            block_length=-(-longest // BLOCK_RECORDS),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        return chunks.rebatch(int(table.rows[:, 3].sum()))

    def _step(self) -> int:
        """How many records are read together."""
        if self._is_large:
            return LARGE_STEP_RECORDS
        most = max(1, STEP_BYTES // self._record_bytes)
        if self._order.mode == "blocks" and not self._held:  # few windows are read twice
            return max(2 * min(self._order.window, self._order.records), STEP_RECORDS)
        whole = max(1, STEP_RECORDS // self.stream.batch_size) * self.stream.batch_size
        return max(1, min(whole, most))

    def _chunks(self, place: Any, held: Any = None) -> Any:
        """The serialized records of this host from a place to the end of its epoch."""
        step = self._step()
        epoch, total = place[0], self._total(place[1])
        starts = tf.data.Dataset.range(0, total, PLANNED_RECORDS)
        key = extend_key(extend_key(key_of(self._seed), epoch), "map")
        if not self._options.reshuffle:
            key = extend_key(extend_key(key_of(self._seed), tf.zeros_like(epoch)), "map")

        @leave_as_is
        def plan(start: Any) -> dict[str, Any]:
            indices = tf.range(start, tf.minimum(start + PLANNED_RECORDS, total))
            positions, is_real = self._positions(place[1], indices)
            planned = {NUMBER: numbers_at(self._order, epoch, positions)}
            if SEED in self._beside:
                planned[SEED] = seeds_at(key, positions)
            if MASK in self._beside:
                planned[MASK] = is_real
            if KEPT in self._beside:
                planned[KEPT] = tf.zeros_like(is_real)
            return planned

        at_once = self._options.num_parallel_calls or tf.data.AUTOTUNE
        plans = starts.map(plan).prefetch(1).rebatch(step)
        if held is not None:

            @leave_as_is
            def take(planned: dict[str, Any]) -> dict[str, Any]:
                return {RECORD: tf.gather(held, planned[NUMBER]), **planned}

            chunks = plans.map(take, num_parallel_calls=at_once, deterministic=True)
        else:
            chunks = plans.interleave(
                leave_as_is(self._read),
                cycle_length=STEPS_AT_ONCE,
                block_length=1,
                num_parallel_calls=min(at_once, STEPS_AT_ONCE),  # below 0: as many as suit
                deterministic=True,
            )
        kept = {RECORD, *self._beside}
        return chunks.map(leave_as_is(lambda chunk: {n: c for n, c in chunk.items() if n in kept}))

    def _read(self, planned: dict[str, Any]) -> Any:
        """The records of one step, as the only element of a dataset."""
        table = self._table
        numbers = planned[NUMBER]
        found = tf.searchsorted(tf.constant(table.firsts), numbers, "right", tf.int64) - 1
        blocks, at = tf.unique(found)
        rows, files = tf.gather(table.rows, blocks), tf.gather(table.files, blocks)
        counts = rows[:, 3]
        starts = tf.cumsum(counts, exclusive=True) - tf.gather(table.firsts, blocks)
        places = (tf.gather(table.paths, files), tf.gather(table.compressions, files), rows)
        read = block_reader(None, has_skips=self._has_skips)
        records = tf.data.Dataset.from_tensor_slices(places).flat_map(read)
        together = records.batch(tf.reduce_sum(counts))
        wanted = numbers + tf.gather(starts, at)
        return together.map(
            leave_as_is(lambda strings: {RECORD: tf.gather(strings, wanted), **planned})
        )

    # Which positions of an epoch fall to this host; see `Stream`.

    def _total(self, position: Any) -> Any:
        """How many records this host gets from a position of an epoch on."""
        left = tf.maximum(self._order.records - position, 0)
        full, rest = left // self.stream.global_batch, left % self.stream.global_batch
        return full * self.stream.batch_size + self._tail(rest)[1]

    def _tail(self, rest: Any) -> tuple[Any, Any, Any]:
        """Of the last batch: where the part of this host begins, how long it is, how much real."""
        (host, hosts), size = self.stream.host, self.stream.batch_size
        begin, end = rest * host // hosts, rest * (host + 1) // hosts
        real = end - begin
        filled = tf.where(rest > 0, tf.constant(size, tf.int64), 0)
        if self.stream.remainder == "keep":
            return begin, real, real
        if self.stream.remainder == "drop":
            return begin, tf.zeros_like(real), real
        if self.stream.remainder == "wrap":
            return tf.zeros_like(begin) + host * size, filled, filled
        return begin, filled, real

    def _positions(self, position: Any, indices: Any) -> tuple[Any, Any]:
        """The positions of the records of this host with these indices; and which count."""
        size, together = self.stream.batch_size, self.stream.global_batch
        left = tf.maximum(self._order.records - position, 0)
        full, rest = left // together, left % together
        batch, row = indices // size, indices % size
        plain = position + batch * together + self.stream.host[0] * size + row
        begin, _, real = self._tail(rest)
        last = position + full * together + begin + row
        if self.stream.remainder == "wrap":
            last %= self._order.records
        elif self.stream.remainder == "pad":
            last = tf.where(row < real, last, (row - real) % self._order.records)
        is_full = batch < full
        return tf.where(is_full, plain, last), is_full | (row < real)
