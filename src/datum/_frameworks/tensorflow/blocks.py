"""Blocks of records: where they are in the shards, and how the graph reads them."""

from __future__ import annotations

import inspect
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._frameworks.tensorflow.ops import trace
from datum._optional import require
from datum._options import thread_count
from datum._read.local import process_folder
from datum._read.shards import ShardRange, Shards, bytes_of
from datum._read.split import Split
from datum.errors import Damage, Message, count_of
from datum.format import Compression, Index, RecordFile, RecordWriter, frame
from datum.format.file import refuse_changes
from datum.format.framing import HEADER_BYTES
from datum.format.index import FRAME_BYTES
from datum.format.manifest import TAIL_BYTES
from datum.transforms.graph import leave_as_is

__all__ = [
    "Block",
    "BlockTable",
    "Stretch",
    "block_reader",
    "check_file",
    "cut_blocks",
    "end_of",
    "find_lost",
    "find_sound_stretches",
    "find_stretches",
    "refuse_marks",
    "stretches_between",
    "unindexed_stretch",
]

tf: Any = require("tensorflow", purpose="`to_tf`")

MAX_BLOCKS = 2**16  # a constant of the graph, with some 50 bytes for each block
# In shards without an index, finding the start of records reads a page for each of them.
MAX_SCANNED_BYTES = 4 * 2**30
SCANNED_RECORDS = 4096  # read together in a search for damage
SHOWN_DAMAGES = 5
INFLATION = 4  # estimated ratio of records to their compressed file, for numbers and text
READ_BYTES = 256 * 2**10  # most that is read from a file at once: more leaves the processor's cache
LEAST_READ_BYTES = 64 * 2**10
_TF_COMPRESSION: dict[Compression | None, str] = {None: "", "gzip": "GZIP", "zlib": "ZLIB"}

_Places = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
FileEnd = tuple[int, int]  # the size of a file, and a digest of its last `TAIL_BYTES` bytes


@dataclass(frozen=True, slots=True)
class Stretch:
    """Records of one file that follow one another.

    Attributes:
        path: Path of the file.
        compression: Compression of the file, as TensorFlow names it.
        first: Number of the first record in its shard, for messages.
        records: Number of records.
        starts: Start of each record and end of the last one. None where they are not known, or of
            no use since the file is compressed: such a file is read from its start.
        bytes: Number of bytes of the records; an estimate if the file is compressed.
        end: The end of the file, by which the graph tells it from another one that takes its name.
    """

    path: str
    compression: str
    first: int
    records: int
    starts: NDArray[np.int64] | None
    bytes: int
    end: FileEnd


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a stretch: `records` records from byte `offset`, after `skipped` records."""

    path: str
    compression: str
    offset: int
    skipped: int
    first: int
    records: int
    bytes: int
    end: FileEnd


@dataclass(frozen=True, slots=True)
class BlockTable:
    """The blocks of a split, in the order of its records.

    Attributes:
        blocks: The blocks.
        block_records: The most records that a block has; None if that is not known.
    """

    blocks: Sequence[Block]
    block_records: int | None

    @property
    def records(self) -> int:
        """Number of records of all blocks."""
        return sum(block.records for block in self.blocks)

    def columns(
        self,
    ) -> tuple[NDArray[np.str_], NDArray[np.str_], NDArray[np.int64], NDArray[np.int64]]:
        """Arguments of `block_reader` for each block, as arrays for the graph."""
        paths = np.array([block.path for block in self.blocks], np.str_)
        compressions = np.array([block.compression for block in self.blocks], np.str_)
        numbers = [(b.offset, b.skipped, b.first, b.records, b.bytes) for b in self.blocks]
        ends = np.array([block.end for block in self.blocks], np.int64).reshape(-1, 2)
        return paths, compressions, np.array(numbers, np.int64).reshape(-1, 5), ends


def find_stretches(split: Split) -> list[Stretch]:
    """The stretches of the records of a split, if all of them are intact."""
    shards = split.shards
    plain = [run for run in split.runs if run.shard.compression is None]
    unindexed = sum(run.shard.bytes for run in plain if not _has_index(shards, run))
    may_scan = unindexed <= MAX_SCANNED_BYTES
    return [_find_stretch(shards, run, may_scan=may_scan) for run in split.runs]


def _path(shards: Shards, run: ShardRange) -> Path:
    return shards.folder / run.shard.name


def _has_index(shards: Shards, run: ShardRange) -> bool:
    is_ours = shards.writer == "datum"  # of other writers, such a file is something else
    return is_ours and Index.find(_path(shards, run)) is not None


def _find_stretch(shards: Shards, run: ShardRange, *, may_scan: bool) -> Stretch:
    path = _path(shards, run)
    if run.shard.compression is None and (may_scan or _has_index(shards, run)):
        file = shards.open_indexed(run.shard)
        ends = np.append(file.index.offsets, file.index.stream_bytes)
        starts = ends[run.start : run.stop + 1]
        nbytes = int(starts[-1] - starts[0])
        return Stretch(str(path), "", run.start, len(run), starts, nbytes, end_of(file))
    with shards.open(run.shard) as file:  # raises if the file does not match its description
        return unindexed_stretch(path, run, len(run), end_of(file))


def unindexed_stretch(path: Path, run: ShardRange, records: int, end: FileEnd) -> Stretch:
    """The records of a run whose file must be read from its start."""
    nbytes = bytes_of([run])
    nbytes *= 1 if run.shard.compression is None else INFLATION
    compression = _TF_COMPRESSION[run.shard.compression]
    return Stretch(str(path), compression, run.start, records, None, nbytes, end)


def end_of(file: RecordFile) -> FileEnd:
    """The end of an open file."""
    size = len(file.content)
    with refuse_changes(file.name, file.content):
        tail = file.content.read(max(0, size - TAIL_BYTES), min(size, TAIL_BYTES))
    with tf.init_scope():
        return size, int(_digest(tf.constant(tail.tobytes())))


def _digest(tail: Any) -> Any:
    return tf.strings.to_hash_bucket_fast(tail, 2**62)


def cut_blocks(stretches: Iterable[Stretch], *, block_records: int) -> BlockTable:
    """Blocks of at most `block_records` records, where the start of records is known."""
    stretches = [stretch for stretch in stretches if stretch.records]
    total = sum(stretch.records for stretch in stretches)
    size = max(block_records, -(-total // MAX_BLOCKS))
    blocks = [block for stretch in stretches for block in _cut(stretch, size)]
    is_cut = all(stretch.starts is not None for stretch in stretches)
    return BlockTable(blocks, size if is_cut else None)


def _cut(stretch: Stretch, size: int) -> Iterator[Block]:
    path, compression, first = stretch.path, stretch.compression, stretch.first
    if stretch.starts is None:
        yield Block(path, compression, 0, first, first, stretch.records, stretch.bytes, stretch.end)
        return
    for begin in range(0, stretch.records, size):
        end = min(begin + size, stretch.records)
        offset, stop = int(stretch.starts[begin]), int(stretch.starts[end])
        nbytes = stop - offset
        yield Block(path, compression, offset, 0, first + begin, end - begin, nbytes, stretch.end)


def stretches_between(
    path: str,
    numbers: NDArray[np.int64],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    *,
    file_end: FileEnd,
) -> Iterator[Stretch]:
    """The stretches of the intact records of a file, which end where records are damaged."""
    if not len(starts):
        return
    ends = starts + lengths + FRAME_BYTES
    breaks = np.flatnonzero(starts[1:] != ends[:-1]) + 1
    for part in np.split(np.arange(len(starts)), breaks):
        places = np.append(starts[part], ends[part[-1]])
        nbytes = int(places[-1] - places[0])
        yield Stretch(path, "", int(numbers[part[0]]), len(part), places, nbytes, file_end)


# Damage is found before the graph reads: TensorFlow stops at the first damaged record of a file.


@dataclass(frozen=True, slots=True)
class _Scan:
    """The intact records and the damage of one run.

    Attributes:
        places: Number, start and length of each intact record.
        damage: The damage.
        is_sound: Whether the whole shard is sound.
        is_plain: Whether the shard is not compressed.
        end: The end of its file.
    """

    places: _Places
    damage: list[Damage]
    is_sound: bool
    is_plain: bool
    end: FileEnd


def find_sound_stretches(split: Split) -> list[Stretch]:
    """The stretches of intact records of a split, with a warning about those that are lost.

    The native core reads and checks every byte of the split once, on all cores.
    """
    found = _scan_all(split)
    return [
        stretch
        for run, one in zip(split.runs, found, strict=True)
        for stretch in _stretches_of(split.shards, run, one)
    ]


def find_lost(split: Split, *, warns: bool = True) -> NDArray[np.int64]:
    """The numbers in the split of the damaged records, with a warning about them.

    The native core reads and checks every byte of the split once, on all cores.
    """
    lost, first = [np.empty(0, np.int64)], 0
    for run, found in zip(split.runs, _scan_all(split, warns=warns), strict=True):
        missing = np.setdiff1d(np.arange(run.start, run.stop), found.places[0])
        lost.append(missing - run.start + first)
        first += len(run)
    return np.concatenate(lost)


def _scan_all(split: Split, *, warns: bool = True) -> list[_Scan]:
    with ThreadPoolExecutor(thread_count(None), "datum-damage") as pool:
        found = list(pool.map(lambda run: _scan(split.shards, run), split.runs))
    damage = [damage for one in found for damage in one.damage]
    counts = zip(split.runs, found, strict=True)
    if warns:
        _warn(split, damage, sum(max(0, len(run) - len(one.places[0])) for run, one in counts))
    return found


def _warn(split: Split, damage: Sequence[Damage], lost: int) -> None:
    if not damage and not lost:
        return
    shown = [f"  {one}" for one in damage[:SHOWN_DAMAGES]]
    if len(damage) > SHOWN_DAMAGES:
        shown.append(f"  and {count_of(len(damage) - SHOWN_DAMAGES, 'place')} more")
    text = Message(
        f"{count_of(lost, 'record')} of {len(split):,} lost to damage, left out",
        where=f"{split.shards.folder}: split {split.name!r}",
        details=shown,
    )
    warnings.warn(text, UserWarning, stacklevel=_level_of_caller())


def _level_of_caller() -> int:
    """The `stacklevel` of the program that called Datum, for a warning by our caller."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("datum."):
        frame, level = frame.f_back, level + 1
    return level


def _scan(shards: Shards, run: ShardRange) -> _Scan:
    with shards.open_around(run.shard) as file:
        places = _sound_places(file, run)
        if run.shard.name in shards.left_out:  # `load` has warned of it
            return _Scan(places, [], False, file.compression is None, end_of(file))
        # Damage after the last record of a shard has numbers beyond those of its records.
        is_last = run.stop == run.shard.records
        damage = [
            one
            for one in file.damage
            if run.start <= one.record and (is_last or one.record < run.stop)
        ]
        return _Scan(places, damage, not file.damage, file.compression is None, end_of(file))


def _stretches_of(shards: Shards, run: ShardRange, found: _Scan) -> Iterator[Stretch]:
    path = shards.folder / run.shard.name
    if found.is_plain:
        yield from stretches_between(str(path), *found.places, file_end=found.end)
    elif found.is_sound:
        yield unindexed_stretch(path, run, len(found.places[0]), found.end)
    else:
        yield from _salvage(shards, run)


def _sound_places(file: RecordFile, run: ShardRange) -> _Places:
    """Number, start and length of each intact record of a run."""
    parts = [
        np.stack([c.numbers, c.starts + ((c.base or 0) - HEADER_BYTES), c.lengths])
        for c in file.chunks(SCANNED_RECORDS)
    ]
    found = np.concatenate([np.empty((3, 0), np.int64), *parts], axis=1)
    inside = (found[0] >= run.start) & (found[0] < run.stop)
    numbers, starts, lengths = found[:, inside]
    return numbers, starts, lengths


def _salvage(shards: Shards, run: ShardRange) -> Iterator[Stretch]:
    """The intact records of a damaged compressed run, copied to a file that can be read.

    The copy is kept until the program ends, since a graph may read it until then.
    """
    copy = Path(tempfile.mkdtemp(dir=process_folder())) / Path(run.shard.name).name
    with shards.open_around(run.shard) as file, RecordWriter(copy) as writer:
        for records in file.chunks(SCANNED_RECORDS):
            inside = (records.numbers >= run.start) & (records.numbers < run.stop)
            kept = [payload for payload, is_in in zip(records, inside, strict=True) if is_in]
            writer.write_framed(frame(kept))
    with RecordFile(copy) as file:
        index, end = file.index, end_of(file)
    numbers = np.arange(len(index))
    yield from stretches_between(str(copy), numbers, index.offsets, index.lengths, file_end=end)


# Blocks read by the graph.


def block_reader(chunk: int | None, *, has_skips: bool) -> Callable[[Any, Any, Any, Any], Any]:
    """Make a function that reads the records of a block, with marks for those that are missing.

    It takes the path and the compression of a file, a row of numbers about the block, and the end
    that the file must have before and after the block is read: another one may have taken its name,
    or it may have been written to.

    Args:
        chunk: Number of records that are returned together; None for single records, whose files
            are not checked: `check_file` does that once for many blocks.
        has_skips: Whether some blocks start with records to skip.
    """

    @leave_as_is
    def read(path: Any, compression: Any, numbers: Any, end: Any) -> Any:
        skipped, count = numbers[1], numbers[3]  # unstacking crashes TensorFlow's optimiser
        records = _records_from(path, compression, numbers)
        if has_skips:
            records = records.skip(skipped)
        mark = _make_mark(path, compression, numbers)
        missing = tf.data.Dataset.from_tensors(mark).repeat()
        if chunk is None:
            return records.concatenate(missing).take(count)
        check = check_file(path, end)
        records = check.concatenate(records).concatenate(missing).take(count)
        return records.batch(chunk).concatenate(check.batch(1))

    return read


def check_file(path: Any, end: Any) -> Any:
    """An empty dataset that fails if a file cannot be read, or has another size or end."""
    tail = tf.clip_by_value(end[0], 1, TAIL_BYTES)
    variant = tf.raw_ops.FixedLengthRecordDatasetV2(
        filenames=tf.reshape(path, [1]),
        header_bytes=tf.maximum(end[0] - tail, 0),
        record_bytes=tail,
        footer_bytes=tf.constant(0, tf.int64),
        buffer_size=tail,
        compression_type="",
    )
    variant = tf.raw_ops.FilterDataset(
        input_dataset=variant,
        other_arguments=[path, end],
        predicate=_end_check(),
        output_types=[tf.string],
        output_shapes=[[]],
    )
    return tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.string))


@cache
def _end_check() -> Any:
    """A function that fails for a tail of another file, and else is False."""

    def check(tail: Any, path: Any, end: Any) -> Any:
        checked = tf.raw_ops.Assert(condition=_digest(tail) == end[1], data=[path + _REPLACED])
        with tf.control_dependencies([checked]):
            return tf.constant(False)

    specs = [tf.TensorSpec([], tf.string), tf.TensorSpec([], tf.string)]
    with tf.init_scope():
        return trace(check, *specs, tf.TensorSpec([2], tf.int64))


@leave_as_is
def _records_from(path: Any, compression: Any, numbers: Any) -> Any:
    """The records of a file from a block on, up to the first that TensorFlow cannot read."""
    offset, *_, nbytes = tf.unstack(numbers, num=5)
    variant = tf.raw_ops.TFRecordDatasetV2(
        filenames=tf.reshape(path, [1]),
        compression_type=compression,
        buffer_size=tf.clip_by_value(nbytes, LEAST_READ_BYTES, READ_BYTES),
        byte_offsets=tf.reshape(offset, [1]),
    )
    records = tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.string))
    return records.ignore_errors(log_warning=False)


# Without quotes and line breaks, which the error would show escaped.
_REPLACED = (
    ": expected the file that was opened, got another one of its name, or other bytes."
    " hint: load the dataset again"
)

# A mark starts with a zero, which no message does since no field has that number. The columns of
# its block follow, separated by zeros, which no path contains.
_ZERO = b"\0"


def _make_mark(path: Any, compression: Any, numbers: Any) -> Any:
    parts = tf.concat([tf.stack([_ZERO, path, compression]), tf.strings.as_string(numbers)], 0)
    return tf.strings.reduce_join(parts, separator=_ZERO)


def refuse_marks(records: Any) -> Any:
    """Return the records; raise an error that names the damaged record if one is a mark."""
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
    """Functions for no message, and for that of the first mark; traced once for all datasets."""
    specs = [tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.bool)]
    with tf.init_scope():
        found = trace(lambda records, marks: _describe(records[tf.argmax(marks)]), *specs)
        return trace(lambda *_: tf.constant(""), *specs), found


def _describe(mark: Any) -> Any:
    """The message about the first record of a marked block that cannot be read."""
    parts = tf.unstack(tf.strings.split(tf.strings.substr(mark, 2, -1), _ZERO), num=7)
    path, compression = parts[:2]
    numbers = tf.strings.to_number(tf.stack(parts[2:]), tf.int64)
    # Through `flat_map`, since TensorFlow loses the offset of a dataset that it serializes.
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
    # Without quotes and line breaks, which the error would show escaped.
    return where + (
        ": expected an intact record, got damage or the end of the file."
        " hint: Dataset.verify lists all damage, on_error=skip leaves it out"
    )
