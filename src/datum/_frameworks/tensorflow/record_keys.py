"""Values of serialized records under the keys of a schema, read by few graph operations.

The parsing ops return the same for an empty list and a missing one. Only records whose list is
empty are searched for the difference, so that other records cost nothing.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from datum._core import Cell, Kind, Layout
from datum._frameworks.tensorflow.ops import checked
from datum._optional import require
from datum.format.layout import StoredColumn
from datum.schema import Feature, numpy_dtype
from datum.schema.feature import FLOATS_ON_WIRE

__all__ = [
    "DenseKey",
    "Key",
    "KeyReader",
    "KeyValues",
    "count_records",
    "find_present",
    "pad_rows",
    "parse_examples",
    "parse_steps",
    "refuse_empty",
    "refuse_missing",
    "refuse_missing_steps",
]

tf: Any = require("tensorflow", purpose="`to_tf`")


@dataclass(frozen=True, slots=True)
class KeyValues:
    """Values of records under one key.

    Attributes:
        values: One row for each record if all have the same number of values; otherwise flat.
        splits: Where the values, or the steps, of each record start; None if `values` has rows.
        inner_splits: Where the values of each step start; None without steps.
        present: Whether each record has the key; None if that does not matter.
    """

    values: Any
    splits: Any = None
    inner_splits: Any = None
    present: Any = None


@dataclass(frozen=True, slots=True)
class KeyReader:
    """Reads the keys of serialized records.

    Attributes:
        serialized: The records, a string tensor of one dimension.
        is_trusted: Whether the records are known to fit their schema. If not, those that lack a
            required list, or the value of a number, are searched for.
    """

    serialized: Any
    is_trusted: bool = False

    def read(self, keys: Sequence[Key]) -> dict[tuple[str, bool], KeyValues]:
        """The values under each key, by its name and whether it is a feature list."""
        context = [key for key in keys if not key.feature.sequence]
        lists = [key for key in keys if key.feature.sequence]
        found = [*self._read_context(context), *self._read_lists(lists)]
        return {(key.name, key.feature.sequence): stored for key, stored in found}

    def _read_context(self, keys: Sequence[Key]) -> Iterator[tuple[Key, KeyValues]]:
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
        found = [KeyValues(*pair) for pair in lists]
        yield from zip(dense, map(KeyValues, rows), strict=True)
        yield from self._fill(doubtful, found[: len(doubtful)])
        for key, stored in zip(ragged, found[len(doubtful) :], strict=True):
            yield key, self._settle(key, stored)

    def _read_lists(self, keys: Sequence[Key]) -> Iterator[tuple[Key, KeyValues]]:
        if not keys:
            return
        found = parse_steps(self.serialized, [(key.name, key.dtype) for key in keys])
        for key, parts in zip(keys, found, strict=True):
            yield key, self._settle(key, KeyValues(*parts))

    def _settle(self, key: Key, stored: KeyValues) -> KeyValues:
        """Raise for records that lack a required list; find those that have an optional one."""
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

    def _fill(
        self, keys: Sequence[Key], found: Sequence[KeyValues]
    ) -> Iterator[tuple[Key, KeyValues]]:
        """Make rows of lists that have either a fixed number of values or none."""
        if not keys:
            return
        present = [_is_whole(key, stored) for key, stored in zip(keys, found, strict=True)]
        if not self.is_trusted:
            blank = [DenseKey(key.name, key.shape, tf.zeros(key.shape, key.dtype)) for key in keys]
            present = refuse_empty(self.serialized, blank, present)
        records = count_records(self.serialized)
        for key, stored, is_there in zip(keys, found, present, strict=True):
            rows = pad_rows(stored, (records, math.prod(key.shape)), blank=key.blank())
            yield key, KeyValues(tf.reshape(rows, (records, *key.shape)), present=is_there)


def count_records(serialized: Any) -> Any:
    """Number of records: an int if it is known beforehand, otherwise a tensor."""
    known = serialized.shape[0]
    return tf.shape(serialized, tf.int64)[0] if known is None else known


def _is_whole(key: Key, stored: KeyValues) -> Any:
    """Whether each record has all values of the key; it must have all or none."""
    count = math.prod(key.shape)
    lengths = stored.splits[1:] - stored.splits[:-1]
    is_whole = tf.equal(lengths, count)
    problem = f"key `{key.name}`: expected {count} value(s), got another number"
    return checked(is_whole, tf.logical_or(is_whole, tf.equal(lengths, 0)), problem)


def pad_rows(stored: KeyValues, shape: tuple[Any, int], *, blank: Any) -> Any:
    """Lists as rows of one length, cut off or padded with `blank`."""
    return tf.raw_ops.RaggedTensorToTensor(
        shape=tf.stack([tf.cast(extent, tf.int64) for extent in shape]),
        values=stored.values,
        default_value=blank,
        row_partition_tensors=[stored.splits],
        row_partition_types=["ROW_SPLITS"],
    )


_TYPES = {Kind.BYTES: tf.string, Kind.FLOAT: tf.float32, Kind.INT64: tf.int64}


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a feature."""

    column: StoredColumn
    feature: Feature

    @property
    def name(self) -> str:
        """The name of the key in records."""
        return self.column.key

    @property
    def dtype(self) -> Any:
        """The type of the list under the key."""
        return _TYPES[self.column.kind]

    @property
    def is_raw(self) -> bool:
        """Whether the values are stored as bytes in one string."""
        return self.column.cell == Cell.RAW

    @property
    def is_fixed(self) -> bool:
        """Whether every record that has the key has the same number of values, at least one."""
        has_number = self.column.layout == Layout.FIXED and self.column.unit > 0
        return not self.feature.sequence and (self.is_raw or has_number)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the values of one record where it is fixed; raw values are one string."""
        return () if self.is_raw else self.feature.shape  # type: ignore[return-value]

    @property
    def is_required(self) -> bool:
        """Whether a record must have the key."""
        return not self.feature.optional and self.feature.encoding != "sparse"

    @property
    def is_doubtful(self) -> bool:
        """Whether a record has a fixed number of values or none, and there is no default."""
        return self.is_fixed and not self.is_required and self.feature.default is None

    @property
    def needs_presence(self) -> bool:
        """Whether it matters which records have the key: for a column, or for a default."""
        return self.feature.optional and self.column.role == "values" and self.feature.default != ()

    def default(self) -> bytes | NDArray[Any]:
        """The default as it would be stored: a string, or the values of a list."""
        default = self.feature.default
        if self.feature.is_string:
            return default.encode() if isinstance(default, str) else bytes(default)
        values = np.array(default, numpy_dtype(self.feature.dtype))
        if self.is_raw:
            return values.tobytes()
        is_float = self.feature.dtype in FLOATS_ON_WIRE
        return values.astype(np.float32 if is_float else np.int64)  # of uint64 the same bits

    def dense_key(self) -> DenseKey:
        """The fixed key for parsing; without a default, records that lack it raise an error."""
        if self.feature.default is None:
            return DenseKey(self.name, self.shape, self.dtype)
        return DenseKey(self.name, self.shape, tf.constant(self.default(), self.dtype, self.shape))

    def blank(self) -> Any:
        """The value that pads records without the key."""
        if self.is_raw and self.column.layout == Layout.FIXED:
            return tf.constant(bytes(self.column.unit))
        return tf.zeros([], self.dtype)


def refuse_missing(serialized: Any, key: str, dtype: Any, *, splits: Any, is_sequence: bool) -> Any:
    """Return the splits of a list; raise an error that names the key if a record lacks it."""
    suspects = tf.gather(serialized, _rows_where(tf.equal(splits[1:], splits[:-1])))
    if is_sequence:
        count = refuse_missing_steps(suspects, key, dtype)
    else:  # a list without values has the shape (0,), and a missing one has no default
        ((empty,), _) = parse_examples(suspects, [DenseKey(key, (0,), dtype)])
        count = tf.shape(empty)[0]
    return _after(splits, count, suspects)


def refuse_empty(serialized: Any, keys: list[DenseKey], present: list[Any]) -> list[Any]:
    """Return `present`; raise an error that names a key which some record has without values.

    Args:
        serialized: The records.
        keys: The keys, each with a default.
        present: Whether each record has all values, for each key.
    """
    some_absent = tf.logical_not(functools.reduce(tf.logical_and, present))
    suspects = tf.gather(serialized, _rows_where(some_absent))
    values, _ = parse_examples(suspects, keys)
    return [_after(found, tf.shape(values[0])[0], suspects) for found in present]


def _after(value: Any, count: Any, suspects: Any) -> Any:
    """Return `value` once `suspects` are parsed; TensorFlow removes a plain control dependency."""
    return checked(value, tf.equal(count, tf.shape(suspects)[0]), "expected to parse all suspects")


def find_present(serialized: Any, key: str, *, splits: Any, is_sequence: bool) -> Any:
    """Whether each record has the key, given the splits of the values found under it."""
    has_values = tf.greater(splits[1:], splits[:-1])
    return _settle(
        has_values,
        _rows_where(tf.logical_not(has_values)),
        lambda rows: _find_named(tf.gather(serialized, rows), key, is_sequence=is_sequence),
    )


def _find_named(serialized: Any, key: str, *, is_sequence: bool) -> Any:
    """Whether each record has the key; most do not even contain its letters."""
    letters = "".join(f"\\x{{{ord(letter):x}}}" for letter in key)
    has_letters = tf.strings.regex_full_match(serialized, rf"\C*{letters}\C*")

    def look_up_some() -> Any:
        return _settle(
            has_letters,
            _rows_where(has_letters),
            lambda rows: _look_up(tf.gather(serialized, rows), key, is_sequence=is_sequence),
        )

    return tf.cond(tf.reduce_any(has_letters), look_up_some, lambda: has_letters)


def _rows_where(condition: Any) -> Any:
    return tf.where(condition)[:, 0]


def _settle(answers: Any, rows: Any, find: Any) -> Any:
    return tf.tensor_scatter_nd_update(answers, rows[:, tf.newaxis], find(rows))


def _look_up(serialized: Any, key: str, *, is_sequence: bool) -> Any:
    """Whether each record has the key, by decoding maps, entries and the last one of this key."""
    rows = tf.range(tf.size(serialized, tf.int64))
    maps, rows = _take_field(serialized, rows, 2 if is_sequence else 1)
    entries, rows = _take_field(maps, rows, 1)
    (key_counts, _), (keys, values) = _decode(entries, 1, 2)
    keys = tf.pad(keys, [[0, 0], [1, 0]], constant_values="")  # an entry without a key has ""
    is_here = tf.equal(tf.gather(keys, key_counts, batch_dims=1), key)
    values, rows = tf.boolean_mask(values, is_here), tf.boolean_mask(rows, is_here)
    if is_sequence:
        counts = tf.ones_like(rows)
    else:  # a value without a kind counts as absent
        kinds, _ = _decode(values, 1, 2, 3)
        counts = tf.cast(tf.reduce_sum(tf.add_n(kinds), axis=1), tf.int64)
    # The last entry of a record counts: those after others have the larger number.
    numbers = tf.range(1, tf.size(rows, tf.int64) + 1)
    last = tf.math.unsorted_segment_max(numbers, rows, tf.size(serialized, tf.int64))
    counts = tf.pad(counts, [[1, 0]])
    return tf.greater(tf.gather(counts, tf.maximum(last, 0)), 0)


def _take_field(messages: Any, rows: Any, number: int) -> tuple[Any, Any]:
    """The strings of one field of all messages, and the row of the message of each."""
    (counts,), (strings,) = _decode(messages, number)
    is_there = tf.sequence_mask(counts, tf.shape(strings)[1])
    return tf.boolean_mask(strings, is_there), tf.repeat(rows, counts)


def _decode(messages: Any, *numbers: int) -> tuple[list[Any], list[Any]]:
    """The number of strings that messages have in each field, and the strings, padded."""
    names = [f"field_{number}" for number in numbers]
    types = [tf.string] * len(names)
    blank = tf.zeros(tf.concat([[1], tf.shape(messages)[1:]], axis=0), tf.string)
    some = tf.concat([messages, blank], axis=0)  # the op cannot decode an empty tensor
    counts, strings = tf.io.decode_proto(
        some, "Fields", names, types, descriptor_source=_descriptors()
    )
    return tf.unstack(counts[:-1], axis=-1), [found[:-1] for found in strings]


@functools.cache
def _descriptors() -> bytes:
    """Descriptor of one type that fits all messages here, since maps are repeated entries.

    A field that occurs twice is merged by protobuf; here both are seen.
    """
    descriptors = require("google.protobuf.descriptor_pb2", purpose="`to_tf`")
    field_type = descriptors.FieldDescriptorProto
    fields = [
        field_type(
            name=f"field_{number}",
            number=number,
            label=field_type.LABEL_REPEATED,
            type=field_type.TYPE_BYTES,
        )
        for number in (1, 2, 3)
    ]
    message = descriptors.DescriptorProto(name="Fields", field=fields)
    file = descriptors.FileDescriptorProto(name="fields.proto", message_type=[message])
    described: bytes = descriptors.FileDescriptorSet(file=[file]).SerializeToString()
    return b"bytes://" + described


class DenseKey(NamedTuple):
    """A key with a fixed shape.

    Attributes:
        key: The name in records.
        shape: Shape of the values of a record.
        default: Values of records without the key; or the type of the values, which makes such
            records an error.
    """

    key: str
    shape: tuple[int, ...]
    default: Any


def parse_examples(
    serialized: Any, dense: Sequence[DenseKey] = (), ragged: Sequence[tuple[str, Any]] = ()
) -> tuple[list[Any], list[tuple[Any, Any]]]:
    """The values of keys of Examples, or of the context of SequenceExamples.

    The raw ops are called because `tf.io` takes neither an empty key nor a shape without values.

    Args:
        serialized: The records.
        dense: Keys whose values become a tensor with a row for each record.
        ragged: Pairs of key and type, whose values become flat values and row splits. A missing
            key counts as empty.
    """
    types = {default for _, _, default in dense if isinstance(default, tf.DType)}
    none = {dtype: tf.zeros([0], dtype) for dtype in types}  # one for all: each is an operation
    found = tf.raw_ops.ParseExampleV2(
        serialized=serialized,
        names=[],
        sparse_keys=[],
        dense_keys=[key for key, _, _ in dense],
        ragged_keys=[key for key, _ in ragged],
        dense_defaults=[
            none[default] if isinstance(default, tf.DType) else default for _, _, default in dense
        ],
        num_sparse=0,
        sparse_types=[],
        ragged_value_types=[dtype for _, dtype in ragged],
        ragged_split_types=[tf.int64] * len(ragged),
        dense_shapes=[shape for _, shape, _ in dense],
    )
    pairs = zip(found.ragged_values, found.ragged_row_splits, strict=True)
    return list(found.dense_values), list(pairs)


def parse_steps(serialized: Any, keys: Sequence[tuple[str, Any]]) -> list[tuple[Any, Any, Any]]:
    """Flat values, splits of steps and splits of values of feature lists.

    Args:
        serialized: The records.
        keys: Pairs of key and type. A missing list counts as empty.
    """
    found = _parse_feature_lists(serialized, ragged=keys)
    return list(
        zip(
            found.feature_list_ragged_values,
            found.feature_list_ragged_outer_splits,
            found.feature_list_ragged_inner_splits,
            strict=True,
        )
    )


def refuse_missing_steps(serialized: Any, key: str, dtype: Any) -> Any:
    """Return the number of records; raise an error that names the key if one of them lacks it.

    No record may have a step under the key.
    """
    found = _parse_feature_lists(serialized, dense=[(key, dtype)])
    return tf.shape(found.feature_list_dense_lengths[0])[0]


def _parse_feature_lists(
    serialized: Any,
    *,
    dense: Sequence[tuple[str, Any]] = (),
    ragged: Sequence[tuple[str, Any]] = (),
) -> Any:
    return tf.raw_ops.ParseSequenceExampleV2(
        serialized=serialized,
        debug_name=[],
        context_sparse_keys=[],
        context_dense_keys=[],
        context_ragged_keys=[],
        feature_list_sparse_keys=[],
        feature_list_dense_keys=[key for key, _ in dense],
        feature_list_ragged_keys=[key for key, _ in ragged],
        feature_list_dense_missing_assumed_empty=[False] * len(dense),
        context_dense_defaults=[],
        Ncontext_sparse=0,
        context_sparse_types=[],
        context_ragged_value_types=[],
        context_ragged_split_types=[],
        context_dense_shapes=[],
        Nfeature_list_sparse=0,
        Nfeature_list_dense=len(dense),
        feature_list_dense_types=[dtype for _, dtype in dense],
        feature_list_sparse_types=[],
        feature_list_ragged_value_types=[dtype for _, dtype in ragged],
        feature_list_ragged_split_types=[tf.int64] * len(ragged),
        feature_list_dense_shapes=[()] * len(dense),
    )
