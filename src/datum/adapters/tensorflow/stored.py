"""What a batch of serialized records holds under the keys of a schema, read by few ops."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from datum._optional import require
from datum.adapters.tensorflow.checks import checked
from datum.adapters.tensorflow.example_ops import DenseKey, parse_examples, parse_steps
from datum.adapters.tensorflow.keys import Key
from datum.adapters.tensorflow.presence import find_present, refuse_empty, refuse_missing

__all__ = ["Stored", "StoredReader", "count_records", "pad_rows"]

tf: Any = require("tensorflow", purpose="`to_tf`")


@dataclass(frozen=True, slots=True)
class Stored:
    """What records hold under one key.

    Attributes:
        values: one row for each record where all hold the same number of values; else flat.
        splits: where the values of each record start, or its steps; None for the former.
        inner_splits: where the values of each step start; None unless there are steps.
        present: which records have the key; None where that is of no interest.
    """

    values: Any
    splits: Any = None
    inner_splits: Any = None
    present: Any = None


@dataclass(frozen=True, slots=True)
class StoredReader:
    """Serialized records, and whether they are known to fit their schema.

    If not, such that lack a required list, or the values of a number, are looked for.
    """

    serialized: Any
    is_trusted: bool = False

    def read(self, keys: Sequence[Key]) -> dict[tuple[str, bool], Stored]:
        """What is stored under each key, by name and whether it is that of a feature list."""
        context = [key for key in keys if not key.feature.sequence]
        lists = [key for key in keys if key.feature.sequence]
        found = [*self._read_context(context), *self._read_lists(lists)]
        return {(key.name, key.feature.sequence): stored for key, stored in found}

    def _read_context(self, keys: Sequence[Key]) -> Iterator[tuple[Key, Stored]]:
        if not keys:
            return
        dense = [key for key in keys if key.is_fixed and not key.is_doubtful]
        doubtful = [key for key in keys if key.is_doubtful]
        ragged = [key for key in keys if not key.is_fixed]
        rows, lists = parse_examples(
            self.serialized,
            [key.dense_key() for key in dense],
            [(key.name, key.dtype) for key in doubtful + ragged],
        )
        found = [Stored(*pair) for pair in lists]
        yield from zip(dense, map(Stored, rows), strict=True)
        yield from self._fill(doubtful, found[: len(doubtful)])
        for key, stored in zip(ragged, found[len(doubtful) :], strict=True):
            yield key, self._settle(key, stored)

    def _read_lists(self, keys: Sequence[Key]) -> Iterator[tuple[Key, Stored]]:
        if not keys:
            return
        found = parse_steps(self.serialized, [(key.name, key.dtype) for key in keys])
        for key, parts in zip(keys, found, strict=True):
            yield key, self._settle(key, Stored(*parts))

    def _settle(self, key: Key, stored: Stored) -> Stored:
        """Refuse records that lack a required list; of optional ones, find which have it."""
        if key.is_required and not self.is_trusted:
            splits = refuse_missing(
                self.serialized,
                key.name,
                key.dtype,
                splits=stored.splits,
                is_sequence=key.feature.sequence,
            )
            return replace(stored, splits=splits)
        if not key.needs_presence:
            return stored
        present = find_present(
            self.serialized, key.name, splits=stored.splits, is_sequence=key.feature.sequence
        )
        return replace(stored, present=present)

    def _fill(self, keys: Sequence[Key], found: Sequence[Stored]) -> Iterator[tuple[Key, Stored]]:
        """Make rows of lists that have a certain number of values or none."""
        if not keys:
            return
        present = [_is_whole(key, stored) for key, stored in zip(keys, found, strict=True)]
        if not self.is_trusted:
            blank = [DenseKey(key.name, key.shape, tf.zeros(key.shape, key.dtype)) for key in keys]
            present = refuse_empty(self.serialized, blank, present)
        records = count_records(self.serialized)
        for key, stored, is_there in zip(keys, found, present, strict=True):
            rows = pad_rows(stored, (records, math.prod(key.shape)), blank=key.blank())
            yield key, Stored(tf.reshape(rows, (records, *key.shape)), present=is_there)


def count_records(serialized: Any) -> Any:
    """How many records there are: a number if it is known beforehand, else a tensor."""
    known = serialized.shape[0]
    return tf.shape(serialized, tf.int64)[0] if known is None else known


def _is_whole(key: Key, stored: Stored) -> Any:
    """For each record whether it has all values of the key; it must have all or none."""
    count = math.prod(key.shape)
    lengths = stored.splits[1:] - stored.splits[:-1]
    is_whole = tf.equal(lengths, count)
    problem = f"key `{key.name}`: expected {count} value(s), got another number"
    return checked(is_whole, tf.logical_or(is_whole, tf.equal(lengths, 0)), problem)


def pad_rows(stored: Stored, shape: tuple[Any, int], *, blank: Any) -> Any:
    """Lists as rows of one length, cut off or filled up with `blank`."""
    return tf.raw_ops.RaggedTensorToTensor(
        shape=tf.stack([tf.cast(extent, tf.int64) for extent in shape]),
        values=stored.values,
        default_value=blank,
        row_partition_tensors=[stored.splits],
        row_partition_types=["ROW_SPLITS"],
    )
