"""Records read by the graph alone, in the order of all other readers."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._optional import require
from datum.adapters.tensorflow.batching import densify_single, pad_batches, unbatch
from datum.adapters.tensorflow.blocks import Stretch, bytes_of, find_stretches
from datum.adapters.tensorflow.element_cache import KEPT, NUMBER
from datum.adapters.tensorflow.graph_order import GraphOrder, extend_key, seeds_at
from datum.adapters.tensorflow.mapping import SEED, apply, with_asides
from datum.adapters.tensorflow.options import TfOptions
from datum.adapters.tensorflow.parsing import GraphParser
from datum.adapters.tensorflow.readers import InOrder
from datum.adapters.tensorflow.records import block_reader, refuse_marks
from datum.adapters.tensorflow.steps import flat_map, interleave, map_each
from datum.format import Index
from datum.loading.options import MASK
from datum.loading.ordered import order_split
from datum.loading.stream import Place
from datum.reading import Split
from datum.reading.local import find_local
from datum.reading.order import BLOCKS_PER_WINDOW, Order, key_of
from datum.schema import Schema
from datum.transforms.graph import leave_as_is

__all__ = ["OrderedGraphReader"]

tf: Any = require("tensorflow", purpose="`to_tf`")

# A full shuffle takes records from anywhere: those of a split up to this size are held in memory.
MAX_HELD_BYTES = 2**30
# A shuffle of blocks needs some at a time: only of a smaller split, quickly read, all are held.
MAX_HELD_BLOCKS_BYTES = 2**27
# Read together: large enough for the ops of a step to cost little, small enough to stay in memory.
STEP_RECORDS = 4096
STEP_BYTES = 16 * 2**20
LARGE_STEP_RECORDS = 32
BLOCK_RECORDS = 4096  # in the order they were written: a reader costs 0.2 ms for each block
CHUNK_RECORDS = 512  # of a block, that are handed on together
# Whose numbers are computed together: loops cost much in functions of tf.data, whatever they do.
PLANNED_RECORDS = 2**15
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

    def begin(self) -> Any:
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


class OrderedGraphReader(InOrder):
    """Reads a split with operations of TensorFlow alone.

    The graph computes which records come next, for any epoch, and reads those: blocks of
    neighbours, of a full shuffle single records, or all of a split that fits into memory.

    Args:
        split: the records of all hosts.
        schema: the features to read.
        options: what is asked for.
        host: the index of this host, and how many there are.
        needs_seeds: whether records are to come with a column `SEED`.
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
        ordered = order_split(split, options.load_options(schema))
        assert isinstance(ordered.order, Order)
        self._order = ordered.order
        self._passes = GraphPasses(options.epochs)
        super().__init__(
            split,
            schema,
            options,
            host=host,
            needs_seeds=needs_seeds,
            order=ordered.order,
            identity=ordered.identity,
            passes=lambda _: self._passes,
        )
        self._beside = self.asides  # with what a cache needs
        # Whether this host gets all positions; and whether these are the records as written.
        self._is_alone = host[1] == 1 and self.stream.remainder in ("keep", "drop")
        self._is_sequence = self._is_alone and self._order.mode == "none"
        self._held, self._table = self._find_records(split)
        self._has_skips = bool(self._table.rows[:, 1].any())
        self._parser = GraphParser(schema, is_trusted=split.shards.writer == "datum")
        self._at_once = options.num_parallel_calls or tf.data.AUTOTUNE

    def _find_records(self, split: Split) -> tuple[bool, _Table]:
        """Whether all records are held in memory; and where they lie, in blocks to be read."""
        nbytes, mode = bytes_of(split), self._order.mode
        is_compressed = any(run.shard.compression is not None for run in split.runs)
        is_held = nbytes <= MAX_HELD_BYTES and is_compressed
        if not self._is_large:
            is_held |= mode == "full" and nbytes <= MAX_HELD_BYTES
            is_held |= mode == "blocks" and nbytes <= MAX_HELD_BLOCKS_BYTES
        if self._options.cache or is_held:
            return True, _make_table(find_stretches(split), BLOCK_RECORDS)
        if mode == "none":
            # Single hosts read all of a block, others their parts of it.
            size = BLOCK_RECORDS if self._is_sequence else CHUNK_RECORDS
        elif mode == "full" or self._is_large:
            size = 1
        else:
            size = max(1, min(self._order.window, self._order.records) // BLOCKS_PER_WINDOW)
        size = max(size, -(-len(split) // MAX_ROWS))
        return False, _make_table(_find_starts(split), size)

    # Batches, or records.

    def batches(self) -> Any:
        """Batches of all epochs, parsed as such: no op runs for each record."""
        options = self._options
        chunks = flat_map(
            self._epochs(),
            lambda *place: self._chunks(*place).rebatch(
                options.batch_size, drop_remainder=self.is_full
            ),
        )
        return pad_batches(densify_single(self._parsed(chunks), options), options)

    def read(
        self,
        finish: Callable[[Any], Any],
        decode: Callable[..., Any] | None,
        *_form: Any,
        is_last: bool = False,
    ) -> Any:
        """The records of all epochs, decoded one by one; see `Reader`."""
        options, cache = self._options, None
        if decode is not None and options.cache:
            nothing = (tf.zeros([2], tf.int64), *[tf.zeros([0], tf.string)][: self._held])
            cache = self._cache_for(self._records(*nothing), decode)
            self._beside = (*self.asides, NUMBER, KEPT)
        if decode is not None and self._beside:
            decode = with_asides(decode, self._beside, keeps=not is_last, cache=cache)

        def records_of(*place: Any) -> Any:
            return finish(apply(self._records(*place), decode, options))

        return self._epochs().flat_map(leave_as_is(records_of))

    def _records(self, *place: Any) -> Any:
        return unbatch(self._parsed(self._chunks(*place).rebatch(self._chunk)))

    def _parsed(self, chunks: Any) -> Any:
        """Parsed chunks, with what comes beside the records."""

        def parse(chunk: Any) -> dict[str, Any]:
            if not isinstance(chunk, dict):  # nothing beside them
                return self._parser.parse(refuse_marks(chunk))
            beside = {name: column for name, column in chunk.items() if name != RECORD}
            return {**self._parser.parse(refuse_marks(chunk[RECORD])), **beside}

        return map_each(chunks, parse, parallel=self._at_once)

    # Epochs, steps, records.

    def _epochs(self) -> Any:
        """Where each epoch of a pass starts; with all records, where these are held."""
        epochs = self._options.epochs

        def epochs_of(_: Any) -> Any:
            place = self._passes.begin()
            if epochs == 1:
                return tf.data.Dataset.from_tensors(place)
            left = 2**62 if epochs is None else epochs - place[0] % epochs
            later = tf.constant([1, 0], tf.int64)
            return map_each(
                tf.data.Dataset.range(left),
                lambda number: tf.where(number > 0, (place + number) * later, place),
            )

        places = flat_map(tf.data.Dataset.from_tensors(0), epochs_of)
        if not self._held:
            return places
        return tf.data.Dataset.zip((places, self._all_records().cache().repeat()))

    def _all_records(self) -> Any:
        """All records in one tensor."""
        table = self._table
        if not len(table.rows):
            return tf.data.Dataset.from_tensors(tf.zeros([0], tf.string))
        blocks = tf.data.Dataset.range(len(table.rows))
        return self._in_order(blocks).rebatch(int(table.rows[:, 3].sum()))

    def _in_order(self, blocks: Any, position: Any = None) -> Any:
        """Chunks of the records of some blocks, one after the other, from a position on."""
        table = self._table
        read = block_reader(CHUNK_RECORDS, has_skips=self._has_skips or position is not None)

        def chunks_of(block: Any) -> Any:
            file, row = tf.gather(table.files, block), tf.gather(table.rows, block)
            if position is not None:  # what comes before is skipped
                before = tf.maximum(position - tf.gather(table.firsts, block), 0)
                row += before * tf.constant([0, 1, 1, -1, 0], tf.int64)
            return read(tf.gather(table.paths, file), tf.gather(table.compressions, file), row)

        longest = int(table.rows[:, 3].max(initial=1))
        return interleave(
            blocks,
            chunks_of,
            cycle=STEPS_AT_ONCE,
            run=-(-longest // CHUNK_RECORDS),
            parallel=tf.data.AUTOTUNE,
        )

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
        if held is None and self._is_sequence and not self._beside:
            last = len(self._table.rows)
            first = tf.reduce_sum(tf.cast(self._table.firsts <= place[1], tf.int64)) - 1
            return self._in_order(tf.data.Dataset.range(first, last), place[1])
        epoch, total = place[0], self._total(place[1])
        order = GraphOrder(self._order, epoch)

        def plan(start: Any) -> dict[str, Any]:
            indices = tf.range(start, tf.minimum(start + PLANNED_RECORDS, total))
            positions, is_real = self._positions(place[1], indices)
            planned = {NUMBER: order.numbers_at(positions)}
            if SEED in self._beside:
                drawn = epoch if self._options.reshuffle else tf.zeros_like(epoch)
                key = extend_key(extend_key(key_of(self._options.seed), drawn), "map")
                planned[SEED] = seeds_at(key, positions)
            if MASK in self._beside:
                planned[MASK] = is_real
            if KEPT in self._beside:
                planned[KEPT] = tf.zeros_like(is_real)
            return planned

        starts = tf.data.Dataset.range(0, total, PLANNED_RECORDS)
        plans = map_each(starts, plan).prefetch(1).rebatch(self._step())
        if held is not None:
            return map_each(plans, partial(self._take, held), parallel=self._at_once)
        at_once = min(self._at_once, STEPS_AT_ONCE)  # below 0: as many as suit
        return interleave(plans, self._read, cycle=STEPS_AT_ONCE, run=1, parallel=at_once)

    def _take(self, strings: Any, planned: dict[str, Any], rows: Any = None) -> dict[str, Any]:
        """The records of one step, out of some that were read, and what comes beside them."""
        found = tf.gather(strings, planned[NUMBER] if rows is None else rows)
        return {RECORD: found, **{name: planned[name] for name in self._beside}}

    def _read(self, planned: dict[str, Any]) -> Any:
        """The records of one step, as the only element of a dataset."""
        table = self._table
        numbers = planned[NUMBER]
        found = tf.searchsorted(table.firsts, numbers, "right", tf.int64) - 1
        blocks, at = tf.unique(found)
        rows, files = tf.gather(table.rows, blocks), tf.gather(table.files, blocks)
        counts = rows[:, 3]
        starts = tf.cumsum(counts, exclusive=True) - tf.gather(table.firsts, blocks)
        places = (tf.gather(table.paths, files), tf.gather(table.compressions, files), rows)
        read = block_reader(None, has_skips=self._has_skips)
        records = flat_map(tf.data.Dataset.from_tensor_slices(places), read)
        wanted = numbers + tf.gather(starts, at)
        return map_each(
            records.batch(tf.reduce_sum(counts)),
            lambda strings: self._take(strings, planned, wanted),
        )

    # Which positions of an epoch fall to this host; see `Stream`.

    def _total(self, position: Any) -> Any:
        """How many records this host gets from a position of an epoch on."""
        left = tf.maximum(self._order.records - position, 0)
        if self._is_alone:
            return left
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
        if self._is_alone:
            return position + indices, tf.ones_like(indices, tf.bool)
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
