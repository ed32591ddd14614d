"""Which arrangement of the pipeline suits a split: how records are read, mixed and grouped."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from datum.adapters.tensorflow.blocks import BlockTable, Stretch, cut_blocks, find_stretches
from datum.adapters.tensorflow.damage import find_sound_stretches
from datum.adapters.tensorflow.options import TfOptions
from datum.adapters.tensorflow.records import Reading, Shuffling
from datum.configs import TFRReadConfigs
from datum.reading import Split

__all__ = [
    "LARGE_RECORD_BYTES",
    "PARSED_LARGE_RECORDS",
    "PARSED_RECORDS",
    "Plan",
    "make_plan",
]

# Records that are shuffled among one another. With blocks in random order as well, more of them
# hardly mix better; fewer would leave records near their neighbours.
WINDOW_RECORDS = 8192
WINDOW_BYTES = 128 * 2**20
# A reader costs some 0.2 ms for each block, and the graph a tenth of that for each chunk.
CHUNK_RECORDS = 128
ORDERED_CHUNK_RECORDS = 512
CHUNK_BYTES = 16 * 2**20
BLOCK_CHUNKS = 16
ORDERED_BLOCK_CHUNKS = 4  # fewer, as so many of some blocks are held until their turn
# Blocks read in turn, so that a window is made of records from so many places.
CYCLE = 64
# Larger records are moved one by one: to copy them in windows costs more than an op for each.
LARGE_RECORD_BYTES = 8 * 2**10
PARSED_RECORDS = 64  # together, where records are then worked on one by one
PARSED_LARGE_RECORDS = 8
LARGE_CHUNK_BYTES = 2**20  # so that what is parsed together stays in the processor's cache


@dataclass(frozen=True, slots=True)
class Plan:
    """How the records of a split are read and mixed.

    Attributes:
        table: the blocks to read.
        reading: how they are read.
        shuffling: how records are mixed; None keeps their order.
        has_large_records: whether records are moved one by one.
    """

    table: BlockTable
    reading: Reading
    shuffling: Shuffling | None
    has_large_records: bool


def make_plan(split: Split, options: TfOptions, *, is_cached: bool = False) -> Plan:
    """The plan for a split; one that is cached is read in order, and mixed after the cache."""
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
    if is_interleaved and not mixes_blocks:  # files in turn, as asked for to the record
        chunk = read.interleave_block_length
        block = sum(stretch.records for stretch in stretches)
    else:
        chunks = BLOCK_CHUNKS if mixes_blocks else ORDERED_BLOCK_CHUNKS
        block = chunk * max(1, min(chunks, CHUNK_BYTES // (chunk * record_bytes)))
    return Plan(
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
    if options.shuffle is False or options.shuffle == 0:
        return None
    window = int(options.shuffle)
    if options.shuffle is True:
        window = max(2, min(WINDOW_RECORDS, WINDOW_BYTES // record_bytes))
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
    """How many records are read together: whole batches, if they come in order."""
    is_large = record_bytes >= LARGE_RECORD_BYTES
    limit = max(1, (LARGE_CHUNK_BYTES if is_large else CHUNK_BYTES) // record_bytes)
    if shuffling is not None:
        return max(1, min(CHUNK_RECORDS, shuffling.window // CYCLE, limit))
    batch = min(options.batch_size or 1, limit)
    return batch * max(1, min(ORDERED_CHUNK_RECORDS, limit) // batch)


def _sorted(stretches: list[Stretch], read: TFRReadConfigs) -> list[Stretch]:
    """The stretches in the order that the function of the settings gives their files."""
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
