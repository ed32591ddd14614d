"""Stored values as elements of their dtype: numbers of lists, and raw bytes."""

from __future__ import annotations

from typing import Any

from datum._optional import require
from datum.adapters.tensorflow.checks import checked
from datum.schema import Feature
from datum.schema.dtypes import TIMES

__all__ = ["cast_listed", "decode_each", "decode_joined", "tensor_dtype"]

tf: Any = require("tensorflow", purpose="`to_tf`")

# Types that tf.io.decode_raw lacks, or lacked, as others of the same width.
_DECODED = {"bfloat16": "uint16", "bool": "uint8", "uint32": "int32", "uint64": "int64"}


def tensor_dtype(feature: Feature) -> Any:
    """The type of the elements in TensorFlow: times are counts of their unit."""
    if feature.is_string:
        return tf.string
    return tf.int64 if feature.dtype in TIMES else tf.as_dtype(feature.dtype)


def cast_listed(name: str, feature: Feature, stored: Any) -> Any:
    """The elements that a list holds: strings, float32 or int64."""
    dtype = tensor_dtype(feature)
    if stored.dtype == dtype:
        return stored
    if feature.dtype == "uint64":
        return tf.bitcast(stored, dtype)
    if feature.dtype == "float16":
        cast = _to_float16(stored)
    elif feature.dtype == "bfloat16":
        cast = _to_bfloat16(stored)
    else:
        cast = tf.cast(stored, dtype)
        return checked(cast, tf.equal(tf.cast(cast, stored.dtype), stored), _misfit(name, feature))
    is_kept = tf.logical_or(tf.math.is_finite(cast), tf.logical_not(tf.math.is_finite(stored)))
    return checked(cast, is_kept, _misfit(name, feature))


def _misfit(name: str, feature: Feature) -> str:
    return f"feature `{name}`: expected {feature.dtype}, got a number outside of its range"


def _to_float16(stored: Any) -> Any:
    """Rounded; of NaNs the bits that fit, which a cast would not keep."""
    bits = tf.bitcast(stored, tf.uint32)
    sign = tf.bitwise.bitwise_and(tf.bitwise.right_shift(bits, 16), 0x8000)
    payload = tf.bitwise.bitwise_and(tf.bitwise.right_shift(bits, 13), 0x3FF)
    payload = tf.maximum(payload, 1)  # without one it would be infinity
    nan = tf.bitwise.bitwise_or(tf.bitwise.bitwise_or(sign, payload), 0x7C00)
    nan = tf.bitcast(tf.cast(nan, tf.uint16), tf.float16)
    return tf.where(tf.math.is_nan(stored), nan, tf.cast(stored, tf.float16))


def _to_bfloat16(stored: Any) -> Any:
    """The upper half where the lower one is empty, NaNs or not; others rounded."""
    halves = tf.bitcast(stored, tf.uint16)
    upper = tf.bitcast(halves[..., 1], tf.bfloat16)
    return tf.where(tf.equal(halves[..., 0], 0), upper, tf.cast(stored, tf.bfloat16))


def decode_each(name: str, feature: Feature, raw: Any, unit: int) -> Any:
    """The elements of raw strings of `unit` bytes each, a row for each string."""
    problem = f"feature `{name}`: expected {unit} bytes of {feature.dtype}, got another number"
    raw = checked(raw, tf.equal(tf.strings.length(raw), unit), problem)
    return _decode(name, feature, raw)


def decode_joined(name: str, feature: Feature, raw: Any, unit: int) -> tuple[Any, Any]:
    """The elements of raw strings end to end, and how many units of bytes each string has."""
    lengths = tf.cast(tf.strings.length(raw), tf.int64)
    if unit > 1:
        problem = (
            f"feature `{name}`: expected a multiple of {unit} bytes of {feature.dtype},"
            " got another number"
        )
        lengths = checked(lengths // unit, tf.equal(lengths % unit, 0), problem)
        with tf.control_dependencies([lengths]):
            raw = tf.identity(raw)
    # One string is decoded, for tf.io.decode_raw wants all to be of one length.
    return _decode(name, feature, tf.strings.reduce_join(raw)), lengths


def _decode(name: str, feature: Feature, raw: Any) -> Any:
    dtype = tensor_dtype(feature)
    decoded = tf.io.decode_raw(raw, tf.as_dtype(_DECODED.get(feature.dtype, dtype.name)))
    if feature.dtype == "bool":
        problem = f"feature `{name}`: expected bytes 0 and 1 of bool, got others"
        return checked(tf.cast(decoded, dtype), tf.less_equal(decoded, 1), problem)
    return decoded if decoded.dtype == dtype else tf.bitcast(decoded, dtype)
