from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from datum import Feature, Schema
from datum.format import Parser, encode
from datum.format.payloads import as_records
from datum.frameworks.tensorflow.transfer import Buffers, Packer, Unpacker, as_stored
from tests.contract.strategies import examples
from tests.unit.frameworks.tensorflow.agreement import (
    assert_agrees,
    parse_in_dataset,
    storable,
    tables,
)


def hand_over(
    schema: Schema, payloads: list[bytes], *, is_static: bool = True
) -> tuple[Any, dict[str, Any]]:
    """The spec of a batch of records, parsed natively and handed over; and the batch."""
    stored = as_stored(schema)
    packer = Packer(stored)
    columns = packer.unmask(Parser(stored).parse(as_records(payloads)))
    unpacker = Unpacker(packer, len(payloads), drop_remainder=is_static)
    packed = packer.pack(columns, len(payloads), Buffers())
    given_arrays = tf.data.Dataset.from_generator(
        lambda: iter([packed]), output_signature=unpacker.spec
    )
    made = given_arrays.map(unpacker.unpack)
    (batch,) = made
    return made.element_spec, batch


@examples(15)
@given(tables(rows=st.integers(1, 4)), st.booleans())
def test_any_columns_come_as_the_graph_parses_them(table, is_static):
    schema, rows = table
    payloads = list(encode(rows, storable(schema)))
    spec, batch = hand_over(schema, payloads, is_static=is_static)
    assert_agrees(schema, payloads, batch)
    expected, _ = parse_in_dataset(schema, payloads, drop_remainder=is_static)
    assert spec == expected


@examples(15)
@given(tables(rows=st.integers(1, 7)), st.integers(1, 3), st.booleans())
def test_batches_that_were_packed_together_come_one_by_one(table, size, drop_remainder):
    schema, rows = table
    payloads = list(encode(rows, storable(schema)))
    stored = as_stored(schema)
    packer = Packer(stored)
    columns = packer.unmask(Parser(stored).parse(as_records(payloads)))
    packed = [tf.constant(part) for part in packer.pack(columns, len(rows), Buffers())]
    unpacker = Unpacker(packer, size, drop_remainder=drop_remainder)
    short = 0 if drop_remainder else size - 1
    assert int(unpacker.count(packed[0])) == (len(rows) + short) // size
    for at in range((len(rows) + short) // size):
        batch = unpacker.unpack(*packed, tf.constant(at, tf.int64))
        assert_agrees(schema, payloads[at * size : (at + 1) * size], batch)


DTYPES = ["bool", "int8", "uint16", "uint32", "uint64", "float16", "bfloat16", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 3])
def test_columns_that_are_alike_keep_their_own_values(dtype, count):
    schema = Schema({f"c{i}": Feature(dtype, (2,)) for i in range(count)})
    rows = [{name: np.arange(2) + at for at, name in enumerate(schema)} for _ in range(5)]
    cast = [{n: v.astype(tf.as_dtype(dtype).as_numpy_dtype) for n, v in r.items()} for r in rows]
    _, batch = hand_over(schema, list(encode(cast, schema)))
    assert list(batch) == list(schema)
    for name in schema:
        assert batch[name].dtype == tf.as_dtype(dtype)
        assert np.array_equal(batch[name].numpy(), [row[name] for row in cast])


def test_what_has_no_values_at_all_is_empty():
    schema = Schema({"none": Feature("int64", (0,)), "words": Feature("str", (None,))})
    rows = [{"none": np.zeros(0, np.int64), "words": []} for _ in range(3)]
    _, batch = hand_over(schema, list(encode(rows, schema)))
    assert batch["none"].shape == (3, 0)
    assert batch["words"].to_list() == [[], [], []]
