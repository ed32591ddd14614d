"""Which records have a key: the parsing ops do not tell an empty list from an absent one.

Both are told apart only in records whose list came out empty, so that others cost nothing.
"""

from __future__ import annotations

import functools
from typing import Any

from datum._optional import require
from datum.adapters.tensorflow.checks import checked
from datum.adapters.tensorflow.example_ops import (
    DenseKey,
    parse_examples,
    refuse_missing_steps,
)

__all__ = ["find_present", "refuse_empty", "refuse_missing"]

tf: Any = require("tensorflow", purpose="`to_tf`")


def refuse_missing(serialized: Any, key: str, dtype: Any, *, splits: Any, is_sequence: bool) -> Any:
    """The splits of a list, with an error that names the key if a record lacks it."""
    suspects = tf.gather(serialized, _rows_where(tf.equal(splits[1:], splits[:-1])))
    if is_sequence:
        count = refuse_missing_steps(suspects, key, dtype)
    else:  # a list without values has the shape (0,), and a missing one has no default
        ((empty,), _) = parse_examples(suspects, [DenseKey(key, (0,), dtype)])
        count = tf.shape(empty)[0]
    return _after(splits, count, suspects)


def refuse_empty(serialized: Any, keys: list[DenseKey], present: list[Any]) -> list[Any]:
    """`present`, which tells for each key which records have all its values.

    It is an error that names the key if one of the others has the key, and no values under it.
    """
    some_absent = tf.logical_not(functools.reduce(tf.logical_and, present))
    suspects = tf.gather(serialized, _rows_where(some_absent))
    values, _ = parse_examples(suspects, keys)
    return [_after(found, tf.shape(values[0])[0], suspects) for found in present]


def _after(value: Any, count: Any, suspects: Any) -> Any:
    """`value`, once `suspects` are parsed: a mere control dependency would be optimised away."""
    return checked(value, tf.equal(count, tf.shape(suspects)[0]), "expected to parse all suspects")


def find_present(serialized: Any, key: str, *, splits: Any, is_sequence: bool) -> Any:
    """For each record whether it has the key, given the splits of what was found under it."""
    has_values = tf.greater(splits[1:], splits[:-1])
    return _settle(
        has_values,
        _rows_where(tf.logical_not(has_values)),
        lambda rows: _find_named(tf.gather(serialized, rows), key, is_sequence=is_sequence),
    )


def _find_named(serialized: Any, key: str, *, is_sequence: bool) -> Any:
    """The same, without knowing anything of them: most do not even have the letters of the key."""
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
    """The same, by taking messages apart: maps, their entries, and the last one of this key."""
    rows = tf.range(tf.size(serialized, tf.int64))
    maps, rows = _take_field(serialized, rows, 2 if is_sequence else 1)
    entries, rows = _take_field(maps, rows, 1)
    (key_counts, _), (keys, values) = _decode(entries, 1, 2)
    keys = tf.pad(keys, [[0, 0], [1, 0]], constant_values="")  # an entry without a key has ""
    is_here = tf.equal(tf.gather(keys, key_counts, batch_dims=1), key)
    values, rows = tf.boolean_mask(values, is_here), tf.boolean_mask(rows, is_here)
    if is_sequence:
        counts = tf.ones_like(rows)
    else:  # a value without a kind is as good as absent
        kinds, _ = _decode(values, 1, 2, 3)
        counts = tf.cast(tf.reduce_sum(tf.add_n(kinds), axis=1), tf.int64)
    # The last entry of a record counts: those after others have the larger number.
    numbers = tf.range(1, tf.size(rows, tf.int64) + 1)
    last = tf.math.unsorted_segment_max(numbers, rows, tf.size(serialized, tf.int64))
    counts = tf.pad(counts, [[1, 0]])
    return tf.greater(tf.gather(counts, tf.maximum(last, 0)), 0)


def _take_field(messages: Any, rows: Any, number: int) -> tuple[Any, Any]:
    """The strings of one field of all messages, and for each the row of its message."""
    (counts,), (strings,) = _decode(messages, number)
    is_there = tf.sequence_mask(counts, tf.shape(strings)[1])
    return tf.boolean_mask(strings, is_there), tf.repeat(rows, counts)


def _decode(messages: Any, *numbers: int) -> tuple[list[Any], list[Any]]:
    """Of fields, how many strings messages have, and these, padded in a last dimension."""
    names = [f"field_{number}" for number in numbers]
    types = [tf.string] * len(names)
    blank = tf.zeros(tf.concat([[1], tf.shape(messages)[1:]], axis=0), tf.string)
    some = tf.concat([messages, blank], axis=0)  # the op refuses to decode nothing
    counts, strings = tf.io.decode_proto(
        some, "Fields", names, types, descriptor_source=_descriptors()
    )
    return tf.unstack(counts[:-1], axis=-1), [found[:-1] for found in strings]


@functools.cache
def _descriptors() -> bytes:
    """Of the one type that all messages here are read as, since maps are repeated entries.

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
