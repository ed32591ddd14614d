"""Reader made of graph operations alone, in the order of every other loader."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._frameworks.tensorflow.blocks import (
    Stretch,
    block_reader,
    check_file,
    end_of,
    find_stretches,
    refuse_marks,
)
from datum._frameworks.tensorflow.dataset import GraphPasses
from datum._frameworks.tensorflow.graph_order import GraphOrder, extend_key, seeds_at
from datum._frameworks.tensorflow.ops import flat_map, interleave, map_each
from datum._frameworks.tensorflow.parse import GraphParser
from datum._frameworks.tensorflow.readers import OrderedReader, ReadRequest, RecordSteps
from datum._frameworks.tensorflow.steps import KEPT, NUMBER, SEED, apply, finish_batches, unbatch
from datum._load.epoch_order import BLOCKS_PER_WINDOW, Order, key_of
from datum._load.options import MASK
from datum._optional import require
from datum._read.local import find_local
from datum._read.shards import bytes_of
from datum._read.split import Split
from datum.format import Index, RecordFile
from datum.transforms.graph import leave_as_is

__all__ = ["GraphReader"]

tf: Any = require("tensorflow", purpose="`to_tf`")

# A full shuffle takes records from anywhere: a split of at most this size is held in memory.
MAX_HELD_BYTES = 2**30
# A shuffle of blocks needs few blocks at a time: only a smaller split, quickly read, is held.
MAX_HELD_BLOCKS_BYTES = 2**27
# Records read in one step: enough to make the ops of a step cheap, few enough to stay in memory.
STEP_RECORDS = 4096
STEP_BYTES = 16 * 2**20
LARGE_STEP_RECORDS = 32
BLOCK_RECORDS = 4096  # for records in the order written: opening a block takes 0.2 ms
CHUNK_RECORDS = 512  # records of a block that are passed on together
# Records whose numbers are computed together: any loop in a function of tf.data is expensive.
PLANNED_RECORDS = 2**15
STEPS_AT_ONCE = 4  # steps read ahead
MAX_ROWS = 2**22  # rows of the table of blocks, 48 bytes each
RECORD = "\0record"


class GraphReader(OrderedReader[GraphPasses]):
    """Reads a split with graph operations alone.

    The graph computes the numbers of the next records, for any epoch, and reads these records:
    blocks of neighbours, single records of a full shuffle, or the whole of a split that fits into
    memory.
    """

    def __init__(self, request: ReadRequest) -> None:
        split, options = request.split, request.options
        super().__init__(request, request.schema, GraphPasses)
        assert isinstance(self._ordered.order, Order)
        self._order = self._ordered.order
        self._planned_columns = self.extra_columns  # with those for a cache, once it is known
        # Whether this host reads all positions, and whether these are the records as written.
        self._is_alone = request.host[1] == 1 and self.stream.remainder in ("keep", "drop")
        self._is_sequence = self._is_alone and self._order.mode == "none"
        self._is_held, self._table = self._find_records(split)
        self._has_skips = bool(self._table.rows[:, 1].any())
        self._parser = GraphParser(request.schema, is_trusted=request.is_trusted)
        self._at_once = options.num_parallel_calls or tf.data.AUTOTUNE

    def _find_records(self, split: Split) -> tuple[bool, _Table]:
        """Whether all records are held in memory, and the table of the blocks to read."""
        nbytes, mode = bytes_of(split.runs), self._order.mode
        is_compressed = any(run.shard.compression is not None for run in split.runs)
        is_held = nbytes <= MAX_HELD_BYTES and is_compressed
        if not self._is_large:
            is_held |= mode == "full" and nbytes <= MAX_HELD_BYTES
            is_held |= mode == "blocks" and nbytes <= MAX_HELD_BLOCKS_BYTES
        if self._options.cache or is_held:
            return True, _make_table(find_stretches(split), BLOCK_RECORDS)
        if mode == "none":
            # A single host reads all of a block, others only their parts of it.
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
                options.batch_size, drop_remainder=self.has_full_batches
            ),
        )
        return finish_batches(self._parse(chunks), options)

    def records(self, steps: RecordSteps) -> Any:
        """A dataset of the results of `steps` for the records of all epochs."""

        def example() -> Any:
            held = [tf.zeros([0], tf.string)][: self._is_held]
            return self._read_epoch(tf.zeros([2], tf.int64), *held)

        decode, cache = self._decode_kept(steps, example)
        if cache is not None:
            self._planned_columns = (*self.extra_columns, NUMBER, KEPT)

        def records_of(*place: Any) -> Any:
            return steps.finish(apply(self._read_epoch(*place), decode, self._options))

        return self._epochs().flat_map(leave_as_is(records_of))

    def _read_epoch(self, *place: Any) -> Any:
        return unbatch(self._parse(self._chunks(*place).rebatch(self._chunk)))

    def _parse(self, chunks: Any) -> Any:
        """Parsed chunks, with their extra columns."""

        def parse(chunk: Any) -> dict[str, Any]:
            if not isinstance(chunk, dict):  # no extra columns
                return self._parser.parse(refuse_marks(chunk))
            extra = {name: column for name, column in chunk.items() if name != RECORD}
            return {**self._parser.parse(refuse_marks(chunk[RECORD])), **extra}

        return map_each(chunks, parse, parallel=self._at_once)

    # Epochs, steps, serialized records.

    def _epochs(self) -> Any:
        """The start of each epoch of a pass, with all records where they are held in memory."""
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
        if not self._is_held:
            return places
        return tf.data.Dataset.zip((places, self._all_records().cache().repeat()))

    def _all_records(self) -> Any:
        """All records in one tensor."""
        table = self._table
        if not len(table.rows):
            return tf.data.Dataset.from_tensors(tf.zeros([0], tf.string))
        blocks = tf.data.Dataset.range(len(table.rows))
        return self._in_order(blocks).rebatch(int(table.rows[:, 3].sum()))

    def _chunks(self, place: Any, held: Any = None) -> Any:
        """The serialized records of this host from a place to the end of its epoch."""
        if held is None and self._is_sequence and not self._planned_columns:
            last = len(self._table.rows)
            first = tf.reduce_sum(tf.cast(self._table.firsts <= place[1], tf.int64)) - 1
            return self._in_order(tf.data.Dataset.range(first, last), place[1])
        epoch, total = place[0], self._total(place[1])
        order = GraphOrder(self._order, epoch)

        def plan(start: Any) -> dict[str, Any]:
            indices = tf.range(start, tf.minimum(start + PLANNED_RECORDS, total))
            positions, is_real = self._positions(place[1], indices)
            planned = {NUMBER: order.numbers_at(positions)}
            if SEED in self._planned_columns:
                drawn = epoch if self._options.reshuffle else tf.zeros_like(epoch)
                key = extend_key(extend_key(key_of(self._options.seed), drawn), "map")
                planned[SEED] = seeds_at(key, positions)
            if MASK in self._planned_columns:
                planned[MASK] = is_real
            if KEPT in self._planned_columns:
                planned[KEPT] = tf.zeros_like(is_real)
            return planned

        starts = tf.data.Dataset.range(0, total, PLANNED_RECORDS)
        plans = map_each(starts, plan).prefetch(1).rebatch(self._step_records())
        if held is not None:
            return map_each(plans, partial(self._take, held), parallel=self._at_once)
        at_once = min(self._at_once, STEPS_AT_ONCE)  # negative: tf.data chooses
        return interleave(plans, self._read, cycle=STEPS_AT_ONCE, run=1, parallel=at_once)

    def _in_order(self, blocks: Any, position: Any = None) -> Any:
        """Chunks of the records of some blocks in order, from a position on."""
        table = self._table
        read = block_reader(CHUNK_RECORDS, has_skips=self._has_skips or position is not None)

        def chunks_of(block: Any) -> Any:
            file, row = tf.gather(table.files, block), tf.gather(table.rows, block)
            path, compression, end = (
                tf.gather(of, file) for of in (table.paths, table.compressions, table.ends)
            )
            if position is not None:  # skip the records before it
                before = tf.maximum(position - tf.gather(table.firsts, block), 0)
                row += before * tf.constant([0, 1, 1, -1, 0], tf.int64)
            return read(path, compression, row, end)

        longest = int(table.rows[:, 3].max(initial=1))
        return interleave(
            blocks,
            chunks_of,
            cycle=STEPS_AT_ONCE,
            run=-(-longest // CHUNK_RECORDS),
            parallel=tf.data.AUTOTUNE,
        )

    def _step_records(self) -> int:
        """Number of records that are read together."""
        if self._is_large:
            return LARGE_STEP_RECORDS
        most = max(1, STEP_BYTES // self._record_bytes)
        if self._order.mode == "blocks" and not self._is_held:  # few windows are read twice
            return max(2 * min(self._order.window, self._order.records), STEP_RECORDS)
        whole = max(1, STEP_RECORDS // self.stream.batch_size) * self.stream.batch_size
        return max(1, min(whole, most))

    def _take(self, strings: Any, planned: dict[str, Any], rows: Any = None) -> dict[str, Any]:
        """The records of one step out of those that were read, with their extra columns."""
        found = tf.gather(strings, planned[NUMBER] if rows is None else rows)
        return {RECORD: found, **{name: planned[name] for name in self._planned_columns}}

    def _read(self, planned: dict[str, Any]) -> Any:
        """The records of one step, as the only element of a dataset."""
        table = self._table
        numbers = planned[NUMBER]
        found = tf.searchsorted(table.firsts, numbers, "right", tf.int64) - 1
        blocks, at = tf.unique(found)
        rows, files = tf.gather(table.rows, blocks), tf.gather(table.files, blocks)
        counts = rows[:, 3]
        starts = tf.cumsum(counts, exclusive=True) - tf.gather(table.firsts, blocks)
        read = block_reader(None, has_skips=self._has_skips)
        paths, compressions, ends = (
            tf.gather(of, files) for of in (table.paths, table.compressions, table.ends)
        )
        places = tf.data.Dataset.from_tensor_slices((paths, compressions, rows, ends))
        used, _ = tf.unique(files)
        facts = (tf.gather(table.paths, used), tf.gather(table.ends, used))
        check = flat_map(tf.data.Dataset.from_tensor_slices(facts), check_file)
        records = check.concatenate(flat_map(places, read)).concatenate(check)
        wanted = numbers + tf.gather(starts, at)
        return map_each(
            records.batch(tf.reduce_sum(counts) + 1),  # one more, so that the last check is run
            lambda strings: self._take(strings, planned, wanted),
        )

    # The positions of an epoch that belong to this host; see `Stream`.

    def _total(self, position: Any) -> Any:
        """Number of records of this host from a position of an epoch on."""
        left = tf.maximum(self._order.records - position, 0)
        if self._is_alone:
            return left
        full, rest = left // self.stream.global_batch, left % self.stream.global_batch
        return full * self.stream.batch_size + self._tail(rest)[1]

    def _tail(self, rest: Any) -> tuple[Any, Any, Any]:
        """Start of this host's part of the last batch, its length, and its number of real rows."""
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
        """The positions of this host's records with these indices, and which of them are real."""
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


# The table of blocks.


@dataclass(frozen=True, slots=True)
class _Table:
    """The blocks of a split by the numbers of their records.

    Attributes:
        paths: Paths of all files.
        compressions: Compression of each file, as TensorFlow names it.
        ends: End of each file.
        files: Index of the file of each block.
        firsts: Number of the first record of each block.
        rows: Offset, records to skip, number in the file, count and bytes of each block.
    """

    paths: list[str]
    compressions: list[str]
    ends: NDArray[np.int64]
    files: NDArray[np.int64]
    firsts: NDArray[np.int64]
    rows: NDArray[np.int64]


def _make_table(stretches: list[Stretch], size: int) -> _Table:
    """Blocks that end where the number of a record is a multiple of `size`, and with their file."""
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
        np.array([stretch.end for stretch in stretches], np.int64).reshape(-1, 2),
        np.concatenate([np.empty(0, np.int64), *files]).astype(np.int64),
        np.concatenate([np.empty(0, np.int64), *firsts]).astype(np.int64),
        np.concatenate([np.empty((0, 5), np.int64), *rows]).astype(np.int64),
    )


def _find_starts(split: Split) -> list[Stretch]:
    """Stretches with the start of each record, for which compressed files are decompressed."""
    found = find_stretches(split)
    for at, (stretch, run) in enumerate(zip(found, split.runs, strict=True)):
        if stretch.starts is None:
            local = find_local(split.shards, run.shard)
            assert local.index is not None
            index = Index.load(local.index)
            with RecordFile(local.path, use_index=False) as file:
                end = end_of(file)
            starts = np.append(index.offsets, index.stream_bytes)[run.start : run.stop + 1]
            nbytes = int(starts[-1] - starts[0])
            found[at] = Stretch(str(local.path), "", run.start, len(run), starts, nbytes, end)
    return found
