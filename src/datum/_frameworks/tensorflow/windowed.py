"""Reader made of graph operations alone, which shuffles within windows.

It implements what an order by seed and epoch alone rules out: the paper's settings, the tf.data
service, caches in files, and damaged records that are skipped.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datum._frameworks.tensorflow.blocks import (
    BlockTable,
    Stretch,
    block_reader,
    cut_blocks,
    find_sound_stretches,
    find_stretches,
    refuse_marks,
)
from datum._frameworks.tensorflow.ops import random_numbers, shuffle
from datum._frameworks.tensorflow.options import TfOptions
from datum._frameworks.tensorflow.parse import GraphParser
from datum._frameworks.tensorflow.readers import (
    LARGE_RECORD_BYTES,
    PARSED_LARGE_RECORDS,
    PARSED_RECORDS,
    ReadRequest,
    RecordSteps,
)
from datum._frameworks.tensorflow.steps import apply, finish_batches, unbatch
from datum._optional import require
from datum._read.local import content_id
from datum._read.shards import ShardRange
from datum._read.split import Split
from datum.configs import TFRReadConfigs
from datum.schema import Schema
from datum.transforms.graph import leave_as_is

__all__ = [
    "CYCLE",
    "ORDERED_BLOCK_CHUNKS",
    "WINDOW_RECORDS",
    "Reading",
    "Shuffling",
    "WindowedPlan",
    "WindowedReader",
    "make_plan",
    "part_of",
    "permute",
    "read_chunks",
    "shuffle_chunks",
]

tf: Any = require("tensorflow", purpose="`to_tf`")

# Records that are shuffled among one another. Since blocks come in random order too, a larger
# window hardly mixes better; a smaller one would leave records near their neighbours.
WINDOW_RECORDS = 8192
WINDOW_BYTES = 128 * 2**20
# Opening a block takes some 0.2 ms, and the graph a tenth of that for each chunk.
CHUNK_RECORDS = 128
ORDERED_CHUNK_RECORDS = 512
CHUNK_BYTES = 16 * 2**20
LARGE_CHUNK_BYTES = 2**20  # so that records parsed together stay in the processor's cache
BLOCK_CHUNKS = 16
ORDERED_BLOCK_CHUNKS = 4  # fewer, since chunks of several blocks are held until their turn
CYCLE = 64  # blocks that are read in turn, so that a window has records from that many places
ORDERED_CYCLE = 4  # blocks that are read ahead
PIECES = 32  # pieces of a window that are mixed with those of other windows
DIGEST_HEX = 12  # digits of a digest, enough for more caches than anyone keeps


class WindowedReader:
    """Reads the part of a split that belongs to a host, shuffled within windows.

    Attributes:
        extra_columns: None.
        has_full_batches: Whether every batch has `batch_size` records.
        position: None, since no other reader has the same order.
    """

    extra_columns: tuple[str, ...] = ()
    position = None

    def __init__(self, request: ReadRequest) -> None:
        split, options = request.split, request.options
        if request.host[1] > 1:
            start, stop = part_of(len(split), request.host)
            split = split[start:stop]
        self._options = options
        self._plan = make_plan(split, options, is_cached=options.cache is not False)
        self._cache = _Cache(options.cache, split, request.schema, self._plan)
        parser = GraphParser(request.schema, is_trusted=request.is_trusted)
        self._parse = leave_as_is(lambda records: parser.parse(refuse_marks(records)))
        self.has_full_batches = options.remainder == "drop"

    @property
    def batches_per_epoch(self) -> int:
        """Number of batches of an epoch, or of records without batches."""
        records, size = self._plan.table.records, self._options.batch_size
        if size is None:
            return records
        return records // size if self.has_full_batches else -(-records // size)

    def batches(self) -> Any:
        """Batches of all epochs, parsed as such: no op runs for each record."""
        plan, options = self._plan, self._options
        chunks = read_chunks(plan.table, plan.reading, self._shuffling_at_reading())
        if plan.shuffling is not None:
            if options.cache is not False:
                chunks = self._shuffle_cached(self._cache.keep(chunks, plan.reading.chunk))
            chunks = shuffle_chunks(chunks, plan.shuffling, deterministic=options.is_deterministic)
        chunks = chunks.rebatch(options.batch_size, drop_remainder=self.has_full_batches)
        batches = finish_batches(apply(chunks, self._parse, options), options)
        if options.cache is not False and plan.shuffling is None:
            form = (options.batch_size, self.has_full_batches, options.pad)
            batches = self._cache.keep(batches, *form)
        return batches if options.epochs == 1 else batches.repeat(options.epochs)

    def records(self, steps: RecordSteps) -> Any:
        """A dataset of the results of `steps` for the records of all epochs."""
        made, epochs = steps.finish(self._read_epoch(steps)), self._options.epochs
        return made if epochs == 1 else made.repeat(epochs)

    def _read_epoch(self, steps: RecordSteps) -> Any:
        options, shuffling = self._options, self._plan.shuffling
        records = apply(self._read_parsed(), steps.decode, options)
        if options.cache is False:
            return records
        records = self._cache.keep(records, *steps.kept_form)
        if shuffling is None:
            return records
        window = self._plan.table.records if options.cache is True else shuffling.window
        return self._shuffle_records(records, max(window, shuffling.window))

    def _read_parsed(self) -> Any:
        """Parsed single records, shuffled unless a cache comes first."""
        plan, shuffling = self._plan, self._shuffling_at_reading()
        chunks = read_chunks(plan.table, plan.reading, shuffling)
        if plan.has_large_records:
            if shuffling is not None:
                records = self._shuffle_records(chunks.unbatch(), shuffling.window)
                chunks = records.batch(PARSED_LARGE_RECORDS)
        elif shuffling is not None:
            deterministic = self._options.is_deterministic
            chunks = shuffle_chunks(chunks, shuffling, deterministic=deterministic)
            chunks = chunks.rebatch(PARSED_RECORDS)
        return unbatch(apply(chunks, self._parse, self._options))

    def _shuffling_at_reading(self) -> Shuffling | None:
        return None if self._options.cache is not False else self._plan.shuffling

    def _shuffle_cached(self, chunks: Any) -> Any:
        """Shuffled chunks: all of them, if they are in memory anyway."""
        plan, shuffling = self._plan, self._plan.shuffling
        assert shuffling is not None
        count = plan.table.records if self._options.cache is True else shuffling.window
        buffered = -(-count // plan.reading.chunk) + len(plan.table.blocks)  # with short ones
        seed = shuffling.seed if shuffling.block_seed is None else shuffling.block_seed
        return shuffle(chunks, buffered, seed=seed, reshuffle=shuffling.reshuffle)

    def _shuffle_records(self, records: Any, window: int) -> Any:
        shuffling = self._plan.shuffling
        assert shuffling is not None
        return shuffle(records, window, seed=shuffling.seed, reshuffle=shuffling.reshuffle)


def part_of(records: int, host: tuple[int, int]) -> tuple[int, int]:
    """Return where the records of a host start and end.

    Parts differ by one record at most, and together are all records.

    >>> [part_of(10, (index, 4)) for index in range(4)]
    [(0, 2), (2, 5), (5, 7), (7, 10)]
    """
    index, count = host
    return records * index // count, records * (index + 1) // count


class _Cache:
    """The cache of one pipeline.

    tf.data uses any files of the given name as its own. So the names of ours end with a digest of
    everything that determines the content: the shards, their records, the features and the form.

    Args:
        where: True for memory, or the start of the names of the files.
        split: The records that are kept.
        schema: The features that are read.
        plan: How the records are read.
    """

    def __init__(
        self,
        where: bool | str | os.PathLike[str],
        split: Split,
        schema: Schema,
        plan: WindowedPlan,
    ) -> None:
        self._where = where
        folder = split.shards.folder
        self._kept = [
            [
                (run.shard.name, run.shard.bytes, self._content(folder, run), run.start, run.stop)
                for run in split.runs
            ],
            str(folder.absolute()),
            schema.to_json(),
            [(b.path, b.first, b.records) for b in plan.table.blocks],
        ]

    def _content(self, folder: Path, run: ShardRange) -> str | None:
        """The identity of the content of a shard, for caches in files, which outlast the shard."""
        return None if isinstance(self._where, bool) else content_id(folder, run.shard)

    def keep(self, dataset: Any, *form: Any) -> Any:
        """Cache a dataset; `form` has everything else that its elements depend on."""
        if isinstance(self._where, bool):
            return dataset.cache()
        path = Path(self._where).expanduser()
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = json.dumps([self._kept, form, str(dataset.element_spec)], default=str)
        digest = hashlib.sha256(kept.encode()).hexdigest()[:DIGEST_HEX]
        return dataset.cache(f"{path}-{digest}")


# The plan of a reader.


@dataclass(frozen=True, slots=True)
class WindowedPlan:
    """The plan to read and shuffle the records of a split.

    Attributes:
        table: The blocks to read.
        reading: How they are read.
        shuffling: How records are shuffled; None keeps their order.
        has_large_records: Whether records are moved one by one.
    """

    table: BlockTable
    reading: Reading
    shuffling: Shuffling | None
    has_large_records: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """Settings of how blocks are read.

    Attributes:
        chunk: Number of records that are passed on together.
        cycle: Number of blocks that are read in turn.
        run: Number of chunks of a block before the turn of the next block.
        parallel: Number of blocks that are read at once; None lets tf.data choose.
        is_deterministic: Whether the order must be the same each time.
        is_interleaved: Whether blocks take turns even if records are not shuffled.
    """

    chunk: int
    cycle: int
    run: int = 1
    parallel: int | None = None
    is_deterministic: bool = True
    is_interleaved: bool = False


@dataclass(frozen=True, slots=True)
class Shuffling:
    """Settings of how records are shuffled.

    Attributes:
        window: Number of records that each is shuffled among.
        seed: Seed of the shuffle within windows.
        block_seed: Seed of the order of blocks; None keeps their order.
        reshuffle: Whether the shuffle within windows differs from epoch to epoch.
        reshuffle_blocks: Whether the order of blocks differs from epoch to epoch.
    """

    window: int
    seed: int
    block_seed: int | None
    reshuffle: bool
    reshuffle_blocks: bool


def make_plan(split: Split, options: TfOptions, *, is_cached: bool = False) -> WindowedPlan:
    """Make the plan for a split; a cached one is read in order, and shuffled after the cache."""
    find = find_sound_stretches if options.on_error == "skip" else find_stretches
    read = options.read or TFRReadConfigs()
    stretches = _sorted(find(split), read)
    record_bytes = max(
        1, sum(s.bytes for s in stretches) // max(1, sum(s.records for s in stretches))
    )
    shuffling = _find_shuffling(options, read, record_bytes)
    mixes_blocks = shuffling is not None and not is_cached
    chunk = _chunk_records(options, record_bytes, shuffling if mixes_blocks else None)
    is_interleaved = read.interleave_cycle_length != -1 or read.interleave_block_length != 1
    cycle = CYCLE if read.interleave_cycle_length == -1 else read.interleave_cycle_length
    if is_interleaved and not mixes_blocks:  # files in turn, to the record as asked
        chunk = read.interleave_block_length
        block = sum(stretch.records for stretch in stretches)
    else:
        chunks = BLOCK_CHUNKS if mixes_blocks else ORDERED_BLOCK_CHUNKS
        block = chunk * max(1, min(chunks, CHUNK_BYTES // (chunk * record_bytes)))
    return WindowedPlan(
        cut_blocks(stretches, block_records=max(1, block)),
        Reading(
            chunk=chunk,
            cycle=cycle,
            run=-(-read.interleave_block_length // chunk),
            parallel=options.num_parallel_calls,
            is_deterministic=options.is_deterministic,
            is_interleaved=is_interleaved,
        ),
        shuffling,
        record_bytes >= LARGE_RECORD_BYTES,
    )


def _find_shuffling(
    options: TfOptions, read: TFRReadConfigs, record_bytes: int
) -> Shuffling | None:
    if not options.shuffle:
        return None
    if options.shuffle is True or isinstance(options.shuffle, str):
        window = max(2, min(WINDOW_RECORDS, WINDOW_BYTES // record_bytes))
    else:
        window = options.shuffle
    block_seed = read.seed if options.read is not None else options.seed
    block_seed = secrets.randbits(62) if block_seed is None else block_seed
    return Shuffling(
        window=window,
        seed=options.seed,
        block_seed=block_seed if options.shuffle_files else None,
        reshuffle=options.reshuffle,
        reshuffle_blocks=options.reshuffle and read.shuffle_reshuffle_each_iteration,
    )


def _chunk_records(options: TfOptions, record_bytes: int, shuffling: Shuffling | None) -> int:
    is_large = record_bytes >= LARGE_RECORD_BYTES
    limit = max(1, (LARGE_CHUNK_BYTES if is_large else CHUNK_BYTES) // record_bytes)
    if shuffling is not None:
        return max(1, min(CHUNK_RECORDS, shuffling.window // CYCLE, limit))
    batch = min(options.batch_size or 1, limit)
    return batch * max(1, min(ORDERED_CHUNK_RECORDS, limit) // batch)


def _sorted(stretches: list[Stretch], read: TFRReadConfigs) -> list[Stretch]:
    """The stretches in the order that `experimental_interleave_sort_fn` returns their files."""
    sort = read.experimental_interleave_sort_fn
    if sort is None:
        return stretches
    files: list[dict[str, Any]] = [
        {"filename": stretch.path, "skip": stretch.first, "take": stretch.records}
        for stretch in stretches
    ]
    known = {(s.path, s.first): s for s in stretches}
    try:
        return [known[str(file["filename"]), int(file["skip"])] for file in sort(files)]
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            "expected `experimental_interleave_sort_fn` to return the files it was given,"
            " in another order"
        ) from None


# Its chunks of serialized records.


def read_chunks(table: BlockTable, reading: Reading, shuffling: Shuffling | None) -> Any:
    """A dataset of 1-D string tensors: the records of each block, up to `chunk` at a time.

    Without shuffling, records come in the order of the split. Records that cannot be read are
    replaced by marks, which `refuse_marks` finds: functions within the datasets of blocks, or for
    each chunk, would take a good part of the time.
    """
    blocks = tf.data.Dataset.from_tensor_slices(table.columns())
    if shuffling is not None and shuffling.block_seed is not None and len(table.blocks) > 1:
        blocks = shuffle(
            blocks,
            len(table.blocks),
            seed=shuffling.block_seed,
            reshuffle=shuffling.reshuffle_blocks,
        )
    cycle, run = reading.cycle, reading.run
    if shuffling is None and not reading.is_interleaved:
        # The order is kept only if each block ends before the turn of the next one.
        block = table.block_records
        cycle, run = (1, 1) if block is None else (ORDERED_CYCLE, -(-block // reading.chunk))
    cycle = max(1, min(cycle, len(table.blocks)))
    parallel = tf.data.AUTOTUNE if reading.parallel is None else min(reading.parallel, cycle)
    return blocks.interleave(
        block_reader(reading.chunk, has_skips=any(block.skipped for block in table.blocks)),
        cycle_length=cycle,
        block_length=run,
        num_parallel_calls=parallel,
        deterministic=reading.is_deterministic,
    )


def shuffle_chunks(chunks: Any, shuffling: Shuffling, *, deterministic: bool) -> Any:
    """Chunks of shuffled records; no op runs for each record.

    Windows are permuted, and pieces of large ones are mixed once more with those of the next.
    """
    windows = chunks.rebatch(shuffling.window)
    seeds = random_numbers(shuffling.seed, rerandomize=shuffling.reshuffle)
    zipped = tf.data.Dataset.zip((windows, seeds))
    mixed = zipped.map(permute, num_parallel_calls=tf.data.AUTOTUNE, deterministic=deterministic)
    if shuffling.window < PIECES**2:  # the user chose such a small window: records stay within it
        return mixed
    pieces = shuffle(
        mixed.rebatch(shuffling.window // PIECES),
        PIECES,
        seed=shuffling.seed,
        reshuffle=shuffling.reshuffle,
    )
    return pieces.map(_copy, num_parallel_calls=tf.data.AUTOTUNE, deterministic=deterministic)


@leave_as_is
def _copy(records: Any) -> Any:
    """A tensor of its own: given parts of others, `rebatch` fills TensorFlow's log."""
    return tf.gather(records, tf.range(tf.size(records)))


@leave_as_is
def permute(records: Any, seed: Any) -> Any:
    """The records of one window, in the order of a seed."""
    return tf.random.experimental.stateless_shuffle(records, seed=tf.bitcast(seed, tf.int32))
