"""Blocks of shards into chunks of serialized records, in the graph: in order, or shuffled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from datum._optional import require
from datum.adapters.tensorflow.blocks import BlockTable
from datum.transforms.graph import leave_as_is

__all__ = ["Reading", "Shuffling", "permute", "read_chunks", "shuffle", "shuffle_chunks"]

tf: Any = require("tensorflow", purpose="`to_tf`")

READ_BYTES = 2 * 2**20  # asked of a file at once, at most
LEAST_READ_BYTES = 64 * 2**10
ORDERED_CYCLE = 4  # blocks that are read ahead of the one whose turn it is


@dataclass(frozen=True, slots=True)
class Shuffling:
    """How records are mixed.

    Attributes:
        window: among how many records each is shuffled.
        seed: of the windows.
        block_seed: of the order of blocks; None leaves them in their order.
        reshuffle: whether windows differ from epoch to epoch.
        reshuffle_blocks: whether the order of blocks does.
    """

    window: int
    seed: int
    block_seed: int | None
    reshuffle: bool
    reshuffle_blocks: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """How blocks are read.

    Attributes:
        chunk: how many records are handed on together.
        cycle: how many blocks are read in turn.
        run: how many chunks of a block come before the next one's turn.
        parallel: how many blocks are read at once; None lets tf.data find out.
        is_deterministic: whether the order must be the same each time.
        is_interleaved: whether blocks take turns even if records are not shuffled.
    """

    chunk: int
    cycle: int
    run: int = 1
    parallel: int | None = None
    is_deterministic: bool = True
    is_interleaved: bool = False


def read_chunks(table: BlockTable, reading: Reading, shuffling: Shuffling | None) -> Any:
    """A dataset of 1-D string tensors: the records of each block, up to `chunk` at a time.

    Without shuffling, records come in the order of the split.
    """
    paths, compressions, numbers = table.columns()
    blocks = tf.data.Dataset.from_tensor_slices((paths, compressions, numbers))
    if shuffling is not None and shuffling.block_seed is not None and len(table.blocks) > 1:
        blocks = shuffle(
            blocks,
            len(table.blocks),
            seed=shuffling.block_seed,
            reshuffle=shuffling.reshuffle_blocks,
        )
    cycle, run = reading.cycle, reading.run
    if shuffling is None and not reading.is_interleaved:
        # In order only if a block is through, with the empty chunk at its end, before the next
        # one's turn.
        block = table.block_records
        cycle, run = (1, 1) if block is None else (ORDERED_CYCLE, -(-block // reading.chunk) + 1)
    cycle = max(1, min(cycle, len(table.blocks)))
    return blocks.interleave(
        _block_reader(reading.chunk, has_skips=any(block.skipped for block in table.blocks)),
        cycle_length=cycle,
        block_length=run,
        num_parallel_calls=tf.data.AUTOTUNE if reading.parallel is None else reading.parallel,
        deterministic=reading.is_deterministic,
    )


def _block_reader(chunk: int, *, has_skips: bool) -> Callable[[Any, Any, Any], Any]:
    @leave_as_is
    def read(path: Any, compression: Any, numbers: Any) -> Any:
        offset, skipped, first, count, nbytes = (numbers[at] for at in range(5))
        variant = tf.raw_ops.TFRecordDatasetV2(
            filenames=tf.reshape(path, [1]),
            compression_type=compression,
            buffer_size=tf.clip_by_value(nbytes, LEAST_READ_BYTES, READ_BYTES),
            byte_offsets=tf.reshape(offset, [1]),
        )
        records = tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.string))
        # What stops a file early is told below, with the place: TensorFlow names no file.
        records = records.ignore_errors(log_warning=False)
        if has_skips:
            records = records.skip(skipped)
        chunks = records.take(count).batch(chunk)
        end = tf.data.Dataset.from_tensors(tf.zeros([0], tf.string))
        check = _end_check(path, first, count)
        checked = chunks.concatenate(end).scan((tf.constant(0, tf.int64), offset), check)
        return _opening(path).concatenate(checked)

    return read


def _opening(path: Any) -> Any:
    """An empty dataset that raises if a file cannot be opened.

    Errors of opening must not get to `ignore_errors`, which would try again without end.
    """
    variant = tf.raw_ops.FixedLengthRecordDatasetV2(
        filenames=tf.reshape(path, [1]),
        header_bytes=tf.constant(0, tf.int64),
        record_bytes=tf.constant(1, tf.int64),
        footer_bytes=tf.constant(0, tf.int64),
        buffer_size=tf.constant(1, tf.int64),
        compression_type="",
    )
    first_byte = tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.string)).take(1)
    return first_byte.batch(1).filter(lambda _: False)


def _end_check(path: Any, first: Any, count: Any) -> Callable[[Any, Any], Any]:
    """Counts what came of a block, and raises at its end if that is not all.

    The last chunk is an empty one: it carries the check, and the batches after it drop it.
    """

    @leave_as_is
    def check(state: Any, chunk: Any) -> Any:
        seen, place = state
        is_end = tf.equal(tf.size(chunk), 0)
        is_short = tf.logical_and(is_end, seen < count)
        message = tf.cond(is_short, lambda: _describe(path, first + seen, place), lambda: "")
        with tf.control_dependencies([tf.debugging.Assert(~is_short, [message])]):
            chunk = tf.identity(chunk)
        taken = tf.size(chunk, out_type=tf.int64)
        nbytes = tf.reduce_sum(tf.strings.length(chunk)) + 16 * tf.size(chunk)
        return (seen + taken, place + tf.cast(nbytes, tf.int64)), chunk

    return check


def _describe(path: Any, record: Any, place: Any) -> Any:
    number, byte = tf.strings.as_string(record), tf.strings.as_string(place)
    where = tf.strings.join([path, ": record ", number, " at byte ", byte])
    # No quotes and no lines, which the message of the error would show as escapes.
    return where + (
        ": expected a sound record, got damage or the end of the file."
        " hint: Dataset.verify lists what is damaged, on_error=skip leaves it out"
    )


# tf.data's own `shuffle` and `random` mix the seed of the program, `tf.random.set_seed`, into
# theirs: the order would not be that of the seed given alone. The operations below them do not.


def shuffle(dataset: Any, window: int, *, seed: int, reshuffle: bool) -> Any:
    """The elements of a dataset, mixed within a window, as the seed alone says."""
    spec = dataset.element_spec
    flat = tf.nest.flatten(spec, expand_composites=False)
    if not all(isinstance(part, tf.TensorSpec) for part in flat):
        return dataset.shuffle(window, seed=seed, reshuffle_each_iteration=reshuffle)
    variant = tf.raw_ops.ShuffleDatasetV3(
        input_dataset=tf.data.experimental.to_variant(dataset),
        buffer_size=tf.constant(max(1, window), tf.int64),
        seed=tf.constant(seed, tf.int64),
        seed2=tf.constant(seed, tf.int64),
        seed_generator=tf.raw_ops.DummySeedGenerator(),
        output_types=[part.dtype for part in flat],
        output_shapes=[part.shape for part in flat],
        reshuffle_each_iteration=reshuffle,
    )
    return tf.data.experimental.from_variant(variant, spec)


def _random_numbers(seed: int, *, rerandomize: bool) -> Any:
    variant = tf.raw_ops.RandomDatasetV2(
        seed=tf.constant(seed, tf.int64),
        seed2=tf.constant(seed, tf.int64),
        seed_generator=tf.raw_ops.DummySeedGenerator(),
        output_types=[tf.int64],
        output_shapes=[tf.TensorShape([])],
        rerandomize_each_iteration=rerandomize,
    )
    return tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.int64))


def shuffle_chunks(chunks: Any, shuffling: Shuffling, *, deterministic: bool) -> Any:
    """Chunks of `window` records, those of each in random order; no op runs for each record."""
    windows = chunks.rebatch(shuffling.window)
    seeds = _random_numbers(shuffling.seed, rerandomize=shuffling.reshuffle)
    zipped = tf.data.Dataset.zip((windows, seeds))
    return zipped.map(permute, num_parallel_calls=tf.data.AUTOTUNE, deterministic=deterministic)


@leave_as_is
def permute(records: Any, seed: Any) -> Any:
    """The records of one window, in the order of a seed."""
    return tf.random.experimental.stateless_shuffle(records, seed=tf.bitcast(seed, tf.int32))
