"""Damage found before the graph reads: TensorFlow gives up a file at its first broken record."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from datum.adapters.tensorflow.blocks import Stretch, stretches_between, unindexed_stretch
from datum.errors import Damage
from datum.format import RecordFile, RecordWriter, frame
from datum.format.records import HEADER_BYTES
from datum.format.threads import thread_count
from datum.format.wording import count_of
from datum.reading import Split
from datum.reading.batches import Run
from datum.reading.shards import Shards

__all__ = ["find_lost", "find_sound_stretches"]

CHUNK_RECORDS = 4096
SHOWN_DAMAGES = 5


_Places = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class _Found:
    """What was found of one run: number, start and length of the sound records, and the damage.

    `is_sound` tells whether all of the shard is, and `is_plain` whether it is not compressed.
    """

    places: _Places
    damage: list[Damage]
    is_sound: bool
    is_plain: bool


def find_sound_stretches(split: Split) -> list[Stretch]:
    """The stretches of records between those that are damaged; what is lost is told by a warning.

    Every byte of the split is read and checked once, by the native core, on all cores.
    """
    found = _scan_all(split)
    return [
        stretch
        for run, one in zip(split.runs, found, strict=True)
        for stretch in _stretches_of(split.shards, run, one)
    ]


def find_lost(split: Split, *, warns: bool = True) -> NDArray[np.int64]:
    """The numbers in the split of records that are damaged, likewise; a warning tells of them."""
    lost, first = [np.empty(0, np.int64)], 0
    for run, found in zip(split.runs, _scan_all(split, warns=warns), strict=True):
        missing = np.setdiff1d(np.arange(run.start, run.stop), found.places[0])
        lost.append(missing - run.start + first)
        first += len(run)
    return np.concatenate(lost)


def _scan_all(split: Split, *, warns: bool = True) -> list[_Found]:
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
    text = f"{split.shards.folder}: split {split.name!r}: {count_of(lost, 'record')} of"
    text += f" {len(split):,} lost to damage, left out"
    warnings.warn("\n".join([text, *shown]), UserWarning, stacklevel=8)  # of `to_tf`


def _scan(shards: Shards, run: Run) -> _Found:
    with shards.open_around(run.shard) as file:
        places = _sound_places(file, run)
        if run.shard.name in shards.left_out:  # told when it was loaded
            return _Found(places, [], False, file.compression is None)
        # Damage that follows the last record of a shard has numbers past those it should have.
        is_last = run.stop == run.shard.records
        damage = [
            one
            for one in file.damage
            if run.start <= one.record and (is_last or one.record < run.stop)
        ]
        return _Found(places, damage, not file.damage, file.compression is None)


def _stretches_of(shards: Shards, run: Run, found: _Found) -> Iterator[Stretch]:
    path = shards.folder / run.shard.name
    if found.is_plain:
        yield from stretches_between(str(path), *found.places)
    elif found.is_sound:
        yield unindexed_stretch(path, run, len(found.places[0]))
    else:
        yield from _salvage(shards, run)


def _sound_places(file: RecordFile, run: Run) -> _Places:
    """Number, start and length of each sound record of a run."""
    parts = [
        np.stack([c.numbers, c.starts + ((c.base or 0) - HEADER_BYTES), c.lengths])
        for c in file.chunks(CHUNK_RECORDS)
    ]
    found = np.concatenate([np.empty((3, 0), np.int64), *parts], axis=1)
    inside = (found[0] >= run.start) & (found[0] < run.stop)
    numbers, starts, lengths = found[:, inside]
    return numbers, starts, lengths


def _salvage(shards: Shards, run: Run) -> Iterator[Stretch]:
    """The sound records of a damaged compressed run, copied to a file that can be read."""
    copy = Path(tempfile.mkdtemp(dir=_salvage_folder().name)) / Path(run.shard.name).name
    with shards.open_around(run.shard) as file, RecordWriter(copy) as writer:
        for records in file.chunks(CHUNK_RECORDS):
            inside = (records.numbers >= run.start) & (records.numbers < run.stop)
            kept = [payload for payload, is_in in zip(records, inside, strict=True) if is_in]
            writer.write_framed(frame(kept))
    with RecordFile(copy) as file:
        index = file.index
    yield from stretches_between(str(copy), np.arange(len(index)), index.offsets, index.lengths)


@cache
def _salvage_folder() -> tempfile.TemporaryDirectory[str]:
    """Where copies lie until the program ends: a graph may read them for as long as that."""
    return tempfile.TemporaryDirectory(prefix="datum-salvage-")
