from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from datum import Feature
from datum.frameworks.tensorflow.parse import cast_listed, decode_each, decode_joined, tensor_dtype
from datum.schema import DTYPES
from datum.schema.dtypes import STRINGS, TIMES
from tests.contract.strategies import numpy_type

REFUSED = tf.errors.InvalidArgumentError


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name not in (*STRINGS, *TIMES)])
def test_numbers_have_the_same_type_in_tensorflow(dtype: str) -> None:
    assert tensor_dtype(Feature(dtype)).name == dtype


@pytest.mark.parametrize("dtype", ["datetime64[D]", "timedelta64[ns]"])
def test_times_are_counts_of_their_unit(dtype: str) -> None:
    stored = tf.constant([-(2**63), 3], tf.int64)
    assert cast_listed("x", Feature(dtype), stored) is stored


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64", "bool"]
)
def test_integers_at_the_ends_of_their_range_are_kept(dtype: str) -> None:
    ends = [0, 1] if dtype == "bool" else [np.iinfo(dtype).min, np.iinfo(dtype).max]
    stored = tf.constant(np.array(ends, dtype).astype(np.int64))
    found = cast_listed("x", Feature(dtype), stored)
    assert found.numpy().tolist() == ends
    assert found.dtype.name == dtype


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        ("int8", -129),
        ("int16", 2**15),
        ("int32", 2**40),
        ("uint8", 256),
        ("uint32", -1),
        ("bool", 2),
        ("bool", -1),
    ],
)
def test_integers_outside_of_their_range_are_refused(dtype: str, number: int) -> None:
    with pytest.raises(REFUSED, match=f"feature `x`: expected {dtype}"):
        cast_listed("x", Feature(dtype), tf.constant([0, number], tf.int64))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_float_of_two_bytes_comes_back_from_its_list(dtype: str) -> None:
    every = np.arange(2**16).astype(np.uint16).view(numpy_type(dtype))
    found = cast_listed("x", Feature(dtype), tf.constant(_widened(every)))
    assert found.numpy().tobytes() == every.tobytes()


def _widened(narrow: Any) -> Any:
    """As float32, with the bits of NaNs where they are."""
    if narrow.dtype == ml_dtypes.bfloat16:
        return (narrow.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return narrow.astype(np.float32)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_floats_are_rounded_but_not_to_infinity(dtype: str) -> None:
    rounded = cast_listed("x", Feature(dtype), tf.constant([0.1, np.inf]))
    assert rounded.numpy().tolist() == np.array([0.1, np.inf], numpy_type(dtype)).tolist()
    with pytest.raises(REFUSED, match=f"expected {dtype}, got a number outside"):
        cast_listed("x", Feature(dtype), tf.constant([3.4028234663852886e38]))


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name not in STRINGS])
def test_raw_bytes_are_little_endian_items(dtype: str) -> None:
    kind = numpy_type(dtype)
    raw = bytes(i % 2 for i in range(6 * kind.itemsize))
    items = np.frombuffer(raw, kind)
    feature = Feature(dtype, encoding="raw")
    half = len(raw) // 2
    rows = decode_each("x", feature, tf.constant([raw[:half], raw[half:]]), half)
    assert rows.shape == (2, 3)
    assert rows.numpy().tobytes() == raw
    assert rows.dtype == tensor_dtype(feature)
    cut = 2 * kind.itemsize
    joined, lengths = decode_joined(
        "x", feature, tf.constant([raw[:cut], b"", raw[cut:]]), kind.itemsize
    )
    assert joined.numpy().tobytes() == items.tobytes()
    assert lengths.numpy().tolist() == [2, 0, 4]


def test_raw_bytes_of_no_records_are_no_items() -> None:
    none = tf.constant([], tf.string)
    assert decode_each("x", Feature("float64"), none, 8).shape[0] == 0
    items, lengths = decode_joined("x", Feature("float64"), none, 8)
    assert items.shape == lengths.shape == (0,)


@pytest.mark.parametrize("raw", [[bytes(8), bytes(4)], [bytes(4), bytes(4)], [bytes(16)], [b""]])
def test_raw_bytes_of_another_length_are_refused(raw: list[bytes]) -> None:
    with pytest.raises(REFUSED, match="feature `x`: expected 8 bytes of float64"):
        decode_each("x", Feature("float64"), tf.constant(raw), 8)


def test_raw_bytes_that_end_within_an_item_are_refused_even_if_they_add_up() -> None:
    with pytest.raises(REFUSED, match="feature `x`: expected a multiple of 8 bytes of float64"):
        decode_joined("x", Feature("float64"), tf.constant([bytes(12), bytes(4)]), 8)


def test_raw_bytes_other_than_0_and_1_are_no_bool() -> None:
    feature = Feature("bool", encoding="raw")
    with pytest.raises(REFUSED, match="feature `x`: expected bytes 0 and 1"):
        decode_each("x", feature, tf.constant([b"\2"]), 1)
