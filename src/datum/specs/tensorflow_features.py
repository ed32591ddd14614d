"""How TensorFlow is asked for one feature, and what makes tensors of its dtype and shape of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from datum.schema import Feature, numpy_dtype
from datum.schema.dtypes import TIMES
from datum.specs.code import Call, Code, literal, quote
from datum.specs.tensorflow_asked import Asked, Read

__all__ = ["needs_single_records", "read_feature"]

# Types that tf.io.decode_raw lacks, or lacked, as others of the same width.
_DECODED = {"bfloat16": "uint16", "bool": "uint8", "uint32": "int32", "uint64": "int64"}
_BLANKS = {"tf.string": 'b""', "tf.float32": "0.0", "tf.int64": "0"}
_UNITS = {
    "D": "days",
    "h": "hours",
    "m": "minutes",
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
}


def needs_single_records(feature: Feature) -> bool:
    """Whether a feature is made of one record at a time: images, tensors of any shape."""
    has_shape = feature.encoding == "raw" and None in feature.shape[1:]
    return feature.encoding == "image" or has_shape


def read_feature(asked: Asked) -> Read:
    """The code that reads a feature."""
    feature = asked.feature
    read = Read(note=_note(asked))
    if feature.encoding == "sparse":
        _read_sparse(asked, read)
    elif 0 in feature.shape:
        _read_nothing(asked, read)
    elif feature.sequence:
        _read_steps(asked, read)
    elif feature.encoding == "image":
        _read_image(asked, read)
    elif feature.is_raw:
        _read_raw(asked, read)
    elif feature.ragged_rank:
        _read_ragged(asked, read)
    else:
        _read_dense(asked, read)
    return read


def _note(asked: Asked) -> str:
    feature = asked.feature
    if feature.dtype in TIMES:
        unit = _UNITS[feature.dtype.partition("[")[2][:-1]]
        since = " since 1970-01-01, in UTC" if feature.dtype.startswith("date") else ""
        return f"{unit}{since}"
    if feature.encoding == "image" and feature.shape[-1] == 1 and "png" in (asked.formats or "png"):
        return "of a palette, which Datum writes as grey, TensorFlow gives no ids"
    if "tiff" in asked.formats:
        return "TensorFlow decodes no TIFF: `datum.write` stores it as PNG"
    if feature.default and feature.ragged_rank and not feature.is_raw:
        return f"absent comes out empty; Datum gives {literal(feature.default)}"
    is_list = feature.ragged_rank and feature.encoding == "values" and not feature.is_raw
    return "absent comes out empty" if asked.is_doubtful and (feature.sequence or is_list) else ""


# Lists of their type.


def _read_dense(asked: Asked, read: Read) -> None:
    shape = asked.feature.shape
    if asked.is_doubtful:
        found = _fill(asked, read, shape)
    else:
        given = [f"default_value={_listed(asked)}"] if asked.feature.default is not None else []
        read.specs[asked.keys[0]] = _fixed(shape, asked.kind, *given)
        found = asked.found()
    read.values[asked.name] = _cast(asked, found)
    if asked.is_doubtful:
        read.values[f"{asked.name}_present"] = _present(asked)


def _listed(asked: Asked) -> str:
    """The default as its list holds it."""
    default = asked.feature.default
    if isinstance(default, str):
        return repr(default.encode()) if not default.isascii() else quote(default)
    if isinstance(default, bytes):
        return repr(default)
    values = np.array(default, numpy_dtype(asked.feature.dtype))
    wide = values.astype(np.float32 if asked.kind == "tf.float32" else np.int64)
    is_one = wide.size and (wide == wide.flat[0]).all()
    if wide.ndim and is_one and wide.size > 8:
        return f"tf.fill({list(wide.shape)}, {literal(wide.flat[0].item())}).numpy()"
    return literal(wide.tolist())


def _fill(asked: Asked, read: Read, shape: Sequence[int | None]) -> Code:
    """A key that a record has all values of or none, with blanks in place of what is lacking."""
    read.specs[asked.keys[0]] = f"tf.io.RaggedFeature({asked.kind})"
    read.helpers.add("fill")
    return Call("fill(", (asked.found(), str(list(shape)), _BLANKS[asked.kind]))


def _present(asked: Asked) -> str:
    found = asked.found()
    return f"{found}.row_lengths() > 0" if asked.is_batched else f"tf.size({found}) > 0"


def _fixed(shape: Sequence[Any], kind: str, *more: str) -> Code:
    return Call("tf.io.FixedLenFeature(", (str(list(shape)), kind, *more))


def _read_ragged(asked: Asked, read: Read) -> None:
    key, *lengths = asked.keys
    read.specs[key] = _ragged(asked, key, lengths)
    read.values[asked.name] = _cast(asked, asked.found())


def _ragged(asked: Asked, key: str, lengths: Sequence[str]) -> Code:
    parts = [f"tf.io.RaggedFeature.RowLengths({quote(name)})" for name in lengths]
    parts += [f"tf.io.RaggedFeature.UniformRowLength({n})" for n in asked.inner]
    if not parts:
        return f"tf.io.RaggedFeature({asked.kind})"
    partitions = Call("partitions=[", tuple(parts), "]")
    return Call("tf.io.RaggedFeature(", (asked.kind, f"value_key={quote(key)}", partitions))


def _cast(asked: Asked, code: Code) -> Code:
    """Elements of a list as those of the dtype."""
    if asked.kind == asked.dtype:
        return code
    change = "tf.bitcast(" if asked.feature.dtype == "uint64" else "tf.cast("
    return Call(change, (code, asked.dtype))


# Raw bytes.


def _read_raw(asked: Asked, read: Read) -> None:
    data = _read_bytes(asked, read)
    feature = asked.feature
    if feature.encoding == "values":
        levels = _read_lengths(asked, read)
        read.helpers.add("nest")
        inner = str([-1, *asked.inner])
        joined = f"tf.strings.reduce_join({data})" if asked.is_batched else data
        items = Call("tf.reshape(", (_decode(asked, joined), inner))
        value: Code = Call("nest(", (items, Call("[", tuple(levels), "]")))
    elif None in feature.shape[1:]:
        shape = [n or 0 for n in feature.shape]
        default = [f"default_value={shape}"] if feature.optional else []
        read.specs[asked.keys[1]] = _fixed([len(shape)], "tf.int64", *default)
        reshaped = Call("tf.reshape(", (_decode(asked, data), asked.found(1)))
        value = Call("tf.ensure_shape(", (reshaped, str(list(feature.shape))))
    elif feature.ragged_rank and asked.is_batched:
        read.helpers.add("cut")
        items = Call(
            "tf.reshape(",
            (_decode(asked, f"tf.strings.reduce_join({data})"), str([-1, *asked.inner])),
        )
        value = Call("cut(", (items, data, str(_item_bytes(feature) * _prod(asked.inner))))
    else:
        value = Call("tf.reshape(", (_decode(asked, data), asked.shape(*feature.shape)))
    read.values[asked.name] = value
    if asked.is_doubtful:
        read.values[f"{asked.name}_present"] = _present(asked)


def _read_bytes(asked: Asked, read: Read) -> str:
    """The one string of raw bytes."""
    feature = asked.feature
    if not asked.is_doubtful:
        given = [f"default_value={_raw_default(feature)}"] if feature.default is not None else []
        read.specs[asked.keys[0]] = _fixed([], "tf.string", *given)
        return asked.found()
    filled = _fill(asked, read, [])
    if feature.ragged_rank or feature.encoding == "values":
        return str(filled)
    blank = rf'b"\0" * {_item_bytes(feature) * _prod(feature.shape)}'
    return str(Call("fill(", (asked.found(), "[]", blank)))


def _read_lengths(asked: Asked, read: Read) -> list[str]:
    """The lists of integers that lie beside the values."""
    for key in asked.keys[1:]:
        read.specs[key] = "tf.io.RaggedFeature(tf.int64)"
    return [asked.found(at) for at in range(1, len(asked.keys))]


def _raw_default(feature: Feature) -> str:
    values = np.array(feature.default, numpy_dtype(feature.dtype))
    item = values.dtype.itemsize
    data = values.tobytes()
    if len(data) > item and data == data[:item] * (len(data) // item):
        return f"{data[:item]!r} * {len(data) // item}"
    return repr(data)


def _item_bytes(feature: Feature) -> int:
    return numpy_dtype(feature.dtype).itemsize


def _prod(shape: Sequence[int | None]) -> int:
    return math.prod(n for n in shape if n is not None)


def _decode(asked: Asked, data: str) -> Code:
    """The items of strings of raw bytes."""
    dtype = asked.dtype.removeprefix("tf.")
    decoded = Call("tf.io.decode_raw(", (data, f"tf.{_DECODED.get(dtype, dtype)}"))
    if dtype not in _DECODED:
        return decoded
    return Call("tf.cast(" if dtype == "bool" else "tf.bitcast(", (decoded, asked.dtype))


# The others.


def _read_nothing(asked: Asked, read: Read) -> None:
    shape = ", ".join(map(str, asked.feature.shape))
    lead = "tf.size(serialized), " if asked.is_batched else ""
    read.values[asked.name] = f"tf.zeros([{lead}{shape}], {asked.dtype})"


def _read_image(asked: Asked, read: Read) -> None:
    shape, dtype = str(list(asked.feature.shape)), asked.dtype
    decode = "decode_image" if _is_decoded_alike(asked) else "decode_any_image"
    read.helpers.add(decode)
    if asked.feature.optional:
        read.helpers.add(f"{decode}_or_blank")
        read.values[asked.name] = Call(
            f"{decode}_or_blank(", (_fill(asked, read, []), shape, dtype)
        )
        read.values[f"{asked.name}_present"] = _present(asked)
        return
    read.specs[asked.keys[0]] = _fixed([], "tf.string")
    read.values[asked.name] = Call(f"{decode}(", (asked.found(), shape, dtype))


def _is_decoded_alike(asked: Asked) -> bool:
    """Whether TensorFlow's own `decode_image` gives the pixels of an image as Datum does.

    Of many formats it has no alpha, and in 16 bits other values.
    """
    channels = asked.feature.shape[-1]
    is_plain = channels in (1, 3) and asked.dtype == "tf.uint8"
    return channels is None or (is_plain and "webp" not in asked.formats)


def _read_sparse(asked: Asked, read: Read) -> None:
    feature = asked.feature
    values_key, *index_keys = asked.keys
    size = str(list(feature.shape))
    if not feature.is_raw and not asked.in_sequences:
        index: Code = Call("[", tuple(map(quote, index_keys)), "]")
        size = str(feature.shape[0]) if len(index_keys) == 1 else size
        index = quote(index_keys[0]) if len(index_keys) == 1 else index
        place = values_key if asked.name in asked.others else asked.name
        read.specs[place] = Call(
            "tf.io.SparseFeature(", (index, quote(values_key), asked.kind, size)
        )
        found = f"parsed[{quote(place)}]"
        if feature.dtype == "uint64":
            value: Code = f"{found}.with_values(tf.bitcast({found}.values, tf.uint64))"
        else:
            value = _cast(asked, found)
        read.values[asked.name] = value
        return
    indices = _read_lengths(asked, read)
    if feature.is_raw:
        read.specs[values_key] = _fixed([], "tf.string", 'default_value=b""')
        joined = f"tf.strings.reduce_join({asked.found()})" if asked.is_batched else asked.found()
        items = _decode(asked, joined)
    else:
        read.specs[values_key] = f"tf.io.RaggedFeature({asked.kind})"
        items = _cast(asked, f"{asked.found()}.values" if asked.is_batched else asked.found())
    read.helpers.add("make_sparse")
    read.values[asked.name] = Call("make_sparse(", (Call("[", tuple(indices), "]"), items, size))


def _read_steps(asked: Asked, read: Read) -> None:
    feature, key = asked.feature, asked.keys[0]
    make: Callable[[Asked, Code], Code] = _decode_code if feature.is_raw else _cast
    if feature.ragged_rank == 2:
        read.specs[key] = _ragged(asked, key, [])
        read.values[asked.name] = _cast(asked, asked.found())
    elif asked.is_batched:
        read.specs[key] = f"tf.io.RaggedFeature({asked.kind})"
        read.helpers.add("as_steps")
        items = make(asked, f"{asked.found()}.flat_values")
        read.values[asked.name] = Call(
            "as_steps(", (items, f"{asked.found()}.row_splits", str(list(asked.inner)))
        )
    else:
        shape = [] if feature.is_raw else list(asked.inner)
        read.specs[key] = Call(
            "tf.io.FixedLenSequenceFeature(", (str(shape), asked.kind, "allow_missing=True")
        )
        items = make(asked, asked.found())
        is_whole = not feature.is_raw
        value = items if is_whole else Call("tf.reshape(", (items, str([-1, *asked.inner])))
        read.values[asked.name] = value


def _decode_code(asked: Asked, data: Code) -> Code:
    return _decode(asked, str(data))
