"""Blocks of shards into chunks of serialized records, in the graph: in order, or shuffled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from datum._optional import require
from datum.adapters.tensorflow.blocks import BlockTable
from datum.adapters.tensorflow.steps import trace
from datum.transforms.graph import leave_as_is

__all__ = [
    "Reading",
    "Shuffling",
    "block_reader",
    "permute",
    "random_numbers",
    "read_chunks",
    "refuse_marks",
    "shuffle",
    "shuffle_chunks",
]

tf: Any = require("tensorflow", purpose="`to_tf`")

READ_BYTES = 256 * 2**10  # asked of a file at once, at most: more leaves the processor's cache
LEAST_READ_BYTES = 64 * 2**10
_SEED_MASK = 0x5EED  # of the second half of a seed: both zero would be no seed to TensorFlow
PIECES = 32  # of a window, that are mixed with others
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

    Without shuffling, records come in the order of the split. In the place of those that cannot be
    read there are marks, which `refuse_marks` finds: functions within the datasets of blocks, or
    for each chunk, would take a good part of the time.
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
        # In order only if a block is through before the next one's turn.
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


def block_reader(chunk: int | None, *, has_skips: bool) -> Callable[[Any, Any, Any], Any]:
    """What gives the chunks of a block, with marks for the records that are missing.

    With a `chunk` of None it gives the single records.
    """

    @leave_as_is
    def read(path: Any, compression: Any, numbers: Any) -> Any:
        skipped, count = (
            numbers[1],
            numbers[3],
        )  # not unstacked: that crashes TensorFlow's optimizer
        records = _records_from(path, compression, numbers)
        if has_skips:
            records = records.skip(skipped)
        mark = _make_mark(path, compression, numbers)
        missing = tf.data.Dataset.from_tensors(mark).repeat()
        records = _opening(path).concatenate(records).concatenate(missing)
        records = records.take(count)
        return records if chunk is None else records.batch(chunk)

    return read


def _opening(path: Any) -> Any:
    """No records, but an error if a file cannot be opened: `ignore_errors` would try for ever."""
    variant = tf.raw_ops.FixedLengthRecordDatasetV2(
        filenames=tf.reshape(path, [1]),
        header_bytes=tf.constant(0, tf.int64),
        record_bytes=tf.constant(1, tf.int64),
        footer_bytes=tf.constant(0, tf.int64),
        buffer_size=tf.constant(1, tf.int64),
        compression_type="",
    )
    first_byte = tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.string)).take(1)
    return first_byte.skip(1)


@leave_as_is
def _records_from(path: Any, compression: Any, numbers: Any) -> Any:
    """The records of a file from a block on, up to what is broken: TensorFlow gives up there."""
    offset, *_, nbytes = tf.unstack(numbers, num=5)
    variant = tf.raw_ops.TFRecordDatasetV2(
        filenames=tf.reshape(path, [1]),
        compression_type=compression,
        buffer_size=tf.clip_by_value(nbytes, LEAST_READ_BYTES, READ_BYTES),
        byte_offsets=tf.reshape(offset, [1]),
    )
    records = tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.string))
    return records.ignore_errors(log_warning=False)


# A mark begins with a zero, as no message does (there is no field of that number), and has the
# columns of its block behind it, with zeros between them, which no path can have.
_ZERO = b"\0"


def _make_mark(path: Any, compression: Any, numbers: Any) -> Any:
    parts = tf.concat([tf.stack([_ZERO, path, compression]), tf.strings.as_string(numbers)], 0)
    return tf.strings.reduce_join(parts, separator=_ZERO)


def refuse_marks(records: Any) -> Any:
    """The records, if none of them is a mark; else an error that tells which is broken."""
    is_mark = tf.strings.substr(records, 0, 1) == _ZERO
    is_sound = ~tf.reduce_any(is_mark)
    nothing, found = _messages()
    message = tf.raw_ops.StatelessIf(
        cond=is_sound,
        input=[records, is_mark],
        Tout=[tf.string],
        then_branch=nothing,
        else_branch=found,
        output_shapes=[[]],
    )
    checked = tf.raw_ops.Assert(condition=is_sound, data=message)
    with tf.control_dependencies([] if checked is None else [checked]):
        return tf.identity(records)


@cache
def _messages() -> tuple[Any, Any]:
    """No message, and what tells of the first mark: traced once for all datasets."""
    specs = [tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.bool)]
    with tf.init_scope():
        found = trace(lambda records, marks: _describe(records[tf.argmax(marks)]), *specs)
        return trace(lambda *_: tf.constant(""), *specs), found


def _describe(mark: Any) -> Any:
    """Where the first record that cannot be read of a marked block lies."""
    parts = tf.unstack(tf.strings.split(tf.strings.substr(mark, 2, -1), _ZERO), num=7)
    path, compression = parts[:2]
    numbers = tf.strings.to_number(tf.stack(parts[2:]), tf.int64)
    # Not by itself: TensorFlow forgets the offset of a dataset that it has to write down.
    block = tf.data.Dataset.from_tensors((path, compression, numbers))
    sound = block.flat_map(_records_from).take(numbers[1] + numbers[3])
    count, byte = sound.reduce(
        (-numbers[1], numbers[0]),
        lambda found, record: (
            found[0] + 1,
            found[1] + 16 + tf.cast(tf.strings.length(record), tf.int64),
        ),
    )
    record, byte = tf.strings.as_string(numbers[2] + count), tf.strings.as_string(byte)
    where = tf.strings.join([path, ": record ", record, " at byte ", byte])
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
        seed2=tf.constant(seed ^ _SEED_MASK, tf.int64),
        seed_generator=tf.raw_ops.DummySeedGenerator(),
        output_types=[part.dtype for part in flat],
        output_shapes=[part.shape for part in flat],
        reshuffle_each_iteration=reshuffle,
    )
    return tf.data.experimental.from_variant(variant, spec)


def random_numbers(seed: int, *, rerandomize: bool) -> Any:
    """Numbers without end, as the seed alone says; others in each epoch, if wanted."""
    variant = tf.raw_ops.RandomDatasetV2(
        seed=tf.constant(seed, tf.int64),
        seed2=tf.constant(seed ^ _SEED_MASK, tf.int64),
        seed_generator=tf.raw_ops.DummySeedGenerator(),
        output_types=[tf.int64],
        output_shapes=[tf.TensorShape([])],
        rerandomize_each_iteration=rerandomize,
    )
    return tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.int64))


def shuffle_chunks(chunks: Any, shuffling: Shuffling, *, deterministic: bool) -> Any:
    """Chunks of mixed records; no op runs for each record.

    Windows are permuted, and pieces of large ones mixed once more with those of the next.
    """
    windows = chunks.rebatch(shuffling.window)
    seeds = random_numbers(shuffling.seed, rerandomize=shuffling.reshuffle)
    zipped = tf.data.Dataset.zip((windows, seeds))
    mixed = zipped.map(permute, num_parallel_calls=tf.data.AUTOTUNE, deterministic=deterministic)
    if shuffling.window < PIECES**2:  # a small one was asked for, and to reach no further
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
    """A tensor of its own: fed with parts of others, `rebatch` fills TensorFlow's log."""
    return tf.gather(records, tf.range(tf.size(records)))


@leave_as_is
def permute(records: Any, seed: Any) -> Any:
    """The records of one window, in the order of a seed."""
    return tf.random.experimental.stateless_shuffle(records, seed=tf.bitcast(seed, tf.int32))
