"""Code that reads records with TensorFlow alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from datum.errors import Message
from datum.format.layout import lower
from datum.schema import Feature, Schema, numpy_dtype
from datum.schema.feature import FLOATS_ON_WIRE, TIMES
from datum.specs.code import (
    Call,
    Code,
    join_parts,
    literal,
    quote,
    quote_files,
    render_dict,
    render_list,
    with_listed_bytes,
)

__all__ = [
    "FeatureCode",
    "FeatureRequest",
    "needs_single_records",
    "read_feature",
    "tensorflow",
]


@dataclass(frozen=True, slots=True)
class FeatureRequest:
    """A feature, and how the code reads it.

    Attributes:
        name: Its name.
        feature: Its type.
        is_batched: Whether many records are parsed at once.
        in_sequences: Whether the records are SequenceExamples.
        formats: For images, the formats that are known to occur.
        others: The keys of all features.
    """

    name: str
    feature: Feature
    is_batched: bool
    in_sequences: bool
    formats: tuple[str, ...] = ()
    others: frozenset[str] = frozenset()

    @property
    def keys(self) -> list[str]:
        """Its keys in records: values first, then lengths, shape or indices."""
        return [column.key for column in lower(self.name, self.feature)]

    @property
    def is_doubtful(self) -> bool:
        """Whether records may lack it, which only a further column indicates."""
        return self.feature.optional and self.feature.default is None

    @property
    def inner(self) -> tuple[int | None, ...]:
        """The dimensions after those that differ in length."""
        return self.feature.shape[self.feature.ragged_rank :]

    @property
    def kind(self) -> str:
        """The TensorFlow type of the list that it is stored in."""
        feature = self.feature
        if feature.is_string or feature.is_raw or feature.encoding == "image":
            return "tf.string"
        return "tf.float32" if feature.dtype in FLOATS_ON_WIRE else "tf.int64"

    @property
    def dtype(self) -> str:
        """The TensorFlow type of its elements: times are counts of their unit."""
        feature = self.feature
        if feature.is_string:
            return "tf.string"
        return "tf.int64" if feature.dtype in TIMES else f"tf.{feature.dtype}"

    def found(self, at: int = 0) -> str:
        """Return the expression of what was parsed under one of its keys."""
        holder = (
            ("lists" if self.feature.sequence else "context") if self.in_sequences else "parsed"
        )
        return f"{holder}[{quote(self.keys[at])}]"

    def shape(self, *dims: int | None) -> Code:
        """Return a shape for tensors, with the dimension of records in front if there is one."""
        lead: tuple[int, ...] = (-1,) if self.is_batched else ()
        return str([*lead, *(-1 if n is None else n for n in dims)])


@dataclass(slots=True)
class FeatureCode:
    """The code for one feature.

    Attributes:
        specs: The spec of each key; of sequences, among the feature lists.
        values: The expression of each column.
        helpers: The functions that the expressions call.
        note: A comment about the feature.
    """

    specs: dict[str, Code] = field(default_factory=dict)
    values: dict[str, Code] = field(default_factory=dict)
    helpers: set[str] = field(default_factory=set)
    note: str = ""


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
    """Return whether a feature is read one record at a time: images, tensors of any shape."""
    has_shape = feature.encoding == "raw" and None in feature.shape[1:]
    return feature.encoding == "image" or has_shape


def read_feature(request: FeatureRequest) -> FeatureCode:
    """Return the code that reads a feature."""
    feature = request.feature
    result = FeatureCode(note=_note(request))
    if feature.encoding == "sparse":
        _read_sparse(request, result)
    elif 0 in feature.shape:
        _read_nothing(request, result)
    elif feature.sequence:
        _read_steps(request, result)
    elif feature.encoding == "image":
        _read_image(request, result)
    elif feature.is_raw:
        _read_raw(request, result)
    elif feature.ragged_rank:
        _read_ragged(request, result)
    else:
        _read_dense(request, result)
    return result


def _note(request: FeatureRequest) -> str:
    feature = request.feature
    if feature.dtype in TIMES:
        unit = _UNITS[feature.dtype.partition("[")[2][:-1]]
        since = " since 1970-01-01, in UTC" if feature.dtype.startswith("date") else ""
        return f"{unit}{since}"
    if (
        feature.encoding == "image"
        and feature.shape[-1] == 1
        and "png" in (request.formats or "png")
    ):
        return "for a palette, which Datum writes as grey, TensorFlow returns no ids"
    if "tiff" in request.formats:
        return "TensorFlow cannot decode TIFF: `datum.write` stores it as PNG"
    if feature.default and feature.ragged_rank and not feature.is_raw:
        return f"absent values are empty; Datum returns {literal(feature.default)}"
    is_list = feature.ragged_rank and feature.encoding == "values" and not feature.is_raw
    return (
        "absent values are empty" if request.is_doubtful and (feature.sequence or is_list) else ""
    )


# Lists of their type.


def _read_dense(request: FeatureRequest, result: FeatureCode) -> None:
    shape = request.feature.shape
    if request.is_doubtful:
        found = _fill(request, result, shape)
    else:
        given = [f"default_value={_listed(request)}"] if request.feature.default is not None else []
        result.specs[request.keys[0]] = _fixed(shape, request.kind, *given)
        found = request.found()
    result.values[request.name] = _cast(request, found)
    if request.is_doubtful:
        result.values[f"{request.name}_present"] = _present(request)


def _listed(request: FeatureRequest) -> str:
    """Return the default in the form of its list."""
    default = request.feature.default
    if isinstance(default, str):
        return repr(default.encode()) if not default.isascii() else quote(default)
    if isinstance(default, bytes):
        return repr(default)
    values = np.array(default, numpy_dtype(request.feature.dtype))
    wide = values.astype(np.float32 if request.kind == "tf.float32" else np.int64)
    is_one = wide.size and (wide == wide.flat[0]).all()
    if wide.ndim and is_one and wide.size > 8:
        return f"tf.fill({list(wide.shape)}, {literal(wide.flat[0].item())}).numpy()"
    return literal(wide.tolist())


def _fill(request: FeatureRequest, result: FeatureCode, shape: Sequence[int | None]) -> Code:
    """Return the expression of a key that records have completely or not, with blanks if not."""
    result.specs[request.keys[0]] = f"tf.io.RaggedFeature({request.kind})"
    result.helpers.add("fill")
    return Call("fill(", (request.found(), str(list(shape)), _BLANKS[request.kind]))


def _present(request: FeatureRequest) -> str:
    found = request.found()
    return f"{found}.row_lengths() > 0" if request.is_batched else f"tf.size({found}) > 0"


def _fixed(shape: Sequence[Any], kind: str, *more: str) -> Code:
    return Call("tf.io.FixedLenFeature(", (str(list(shape)), kind, *more))


def _read_ragged(request: FeatureRequest, result: FeatureCode) -> None:
    key, *lengths = request.keys
    result.specs[key] = _ragged(request, key, lengths)
    result.values[request.name] = _cast(request, request.found())


def _ragged(request: FeatureRequest, key: str, lengths: Sequence[str]) -> Code:
    parts = [f"tf.io.RaggedFeature.RowLengths({quote(name)})" for name in lengths]
    parts += [f"tf.io.RaggedFeature.UniformRowLength({n})" for n in request.inner]
    if not parts:
        return f"tf.io.RaggedFeature({request.kind})"
    partitions = Call("partitions=[", tuple(parts), "]")
    return Call("tf.io.RaggedFeature(", (request.kind, f"value_key={quote(key)}", partitions))


def _cast(request: FeatureRequest, code: Code) -> Code:
    """Convert elements of a list to the dtype."""
    if request.kind == request.dtype:
        return code
    change = "tf.bitcast(" if request.feature.dtype == "uint64" else "tf.cast("
    return Call(change, (code, request.dtype))


# Raw bytes.


def _read_raw(request: FeatureRequest, result: FeatureCode) -> None:
    data = _read_bytes(request, result)
    feature = request.feature
    if feature.encoding == "values":
        levels = _read_lengths(request, result)
        result.helpers.add("nest")
        inner = str([-1, *request.inner])
        joined = f"tf.strings.reduce_join({data})" if request.is_batched else data
        items = Call("tf.reshape(", (_decode(request, joined), inner))
        value: Code = Call("nest(", (items, Call("[", tuple(levels), "]")))
    elif None in feature.shape[1:]:
        shape = [n or 0 for n in feature.shape]
        default = [f"default_value={shape}"] if feature.optional else []
        result.specs[request.keys[1]] = _fixed([len(shape)], "tf.int64", *default)
        reshaped = Call("tf.reshape(", (_decode(request, data), request.found(1)))
        value = Call("tf.ensure_shape(", (reshaped, str(list(feature.shape))))
    elif feature.ragged_rank and request.is_batched:
        result.helpers.add("cut")
        items = Call(
            "tf.reshape(",
            (_decode(request, f"tf.strings.reduce_join({data})"), str([-1, *request.inner])),
        )
        value = Call("cut(", (items, data, str(_item_bytes(feature) * _prod(request.inner))))
    else:
        value = Call("tf.reshape(", (_decode(request, data), request.shape(*feature.shape)))
    result.values[request.name] = value
    if request.is_doubtful:
        result.values[f"{request.name}_present"] = _present(request)


def _read_bytes(request: FeatureRequest, result: FeatureCode) -> str:
    """Return the expression of the one string of raw bytes."""
    feature = request.feature
    if not request.is_doubtful:
        given = [f"default_value={_raw_default(feature)}"] if feature.default is not None else []
        result.specs[request.keys[0]] = _fixed([], "tf.string", *given)
        return request.found()
    filled = _fill(request, result, [])
    if feature.ragged_rank or feature.encoding == "values":
        return str(filled)
    blank = rf'b"\0" * {_item_bytes(feature) * _prod(feature.shape)}'
    return str(Call("fill(", (request.found(), "[]", blank)))


def _read_lengths(request: FeatureRequest, result: FeatureCode) -> list[str]:
    """Return the expressions of the lists of integers beside the values."""
    for key in request.keys[1:]:
        result.specs[key] = "tf.io.RaggedFeature(tf.int64)"
    return [request.found(at) for at in range(1, len(request.keys))]


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


def _decode(request: FeatureRequest, data: str) -> Code:
    """Return the expression of the items of strings of raw bytes."""
    dtype = request.dtype.removeprefix("tf.")
    decoded = Call("tf.io.decode_raw(", (data, f"tf.{_DECODED.get(dtype, dtype)}"))
    if dtype not in _DECODED:
        return decoded
    return Call("tf.cast(" if dtype == "bool" else "tf.bitcast(", (decoded, request.dtype))


# The others.


def _read_nothing(request: FeatureRequest, result: FeatureCode) -> None:
    shape = ", ".join(map(str, request.feature.shape))
    lead = "tf.size(serialized), " if request.is_batched else ""
    result.values[request.name] = f"tf.zeros([{lead}{shape}], {request.dtype})"


def _read_image(request: FeatureRequest, result: FeatureCode) -> None:
    shape, dtype = str(list(request.feature.shape)), request.dtype
    decode = "decode_image" if _is_decoded_alike(request) else "decode_any_image"
    result.helpers.add(decode)
    if request.feature.optional:
        result.helpers.add(f"{decode}_or_blank")
        result.values[request.name] = Call(
            f"{decode}_or_blank(", (_fill(request, result, []), shape, dtype)
        )
        result.values[f"{request.name}_present"] = _present(request)
        return
    result.specs[request.keys[0]] = _fixed([], "tf.string")
    result.values[request.name] = Call(f"{decode}(", (request.found(), shape, dtype))


def _is_decoded_alike(request: FeatureRequest) -> bool:
    """Return whether TensorFlow's own `decode_image` decodes an image to the same pixels as Datum.

    For many formats it has no alpha, and in 16 bits other values.
    """
    channels = request.feature.shape[-1]
    is_plain = channels in (1, 3) and request.dtype == "tf.uint8"
    return channels is None or (is_plain and "webp" not in request.formats)


def _read_sparse(request: FeatureRequest, result: FeatureCode) -> None:
    feature = request.feature
    values_key, *index_keys = request.keys
    size = str(list(feature.shape))
    if not feature.is_raw and not request.in_sequences:
        index: Code = Call("[", tuple(map(quote, index_keys)), "]")
        size = str(feature.shape[0]) if len(index_keys) == 1 else size
        index = quote(index_keys[0]) if len(index_keys) == 1 else index
        place = values_key if request.name in request.others else request.name
        result.specs[place] = Call(
            "tf.io.SparseFeature(", (index, quote(values_key), request.kind, size)
        )
        found = f"parsed[{quote(place)}]"
        if feature.dtype == "uint64":
            value: Code = f"{found}.with_values(tf.bitcast({found}.values, tf.uint64))"
        else:
            value = _cast(request, found)
        result.values[request.name] = value
        return
    indices = _read_lengths(request, result)
    if feature.is_raw:
        result.specs[values_key] = _fixed([], "tf.string", 'default_value=b""')
        joined = (
            f"tf.strings.reduce_join({request.found()})" if request.is_batched else request.found()
        )
        items = _decode(request, joined)
    else:
        result.specs[values_key] = f"tf.io.RaggedFeature({request.kind})"
        items = _cast(
            request, f"{request.found()}.values" if request.is_batched else request.found()
        )
    result.helpers.add("make_sparse")
    result.values[request.name] = Call(
        "make_sparse(", (Call("[", tuple(indices), "]"), items, size)
    )


def _read_steps(request: FeatureRequest, result: FeatureCode) -> None:
    feature, key = request.feature, request.keys[0]
    make: Callable[[FeatureRequest, Code], Code] = _decode_code if feature.is_raw else _cast
    if feature.ragged_rank == 2:
        result.specs[key] = _ragged(request, key, [])
        result.values[request.name] = _cast(request, request.found())
    elif request.is_batched:
        result.specs[key] = f"tf.io.RaggedFeature({request.kind})"
        result.helpers.add("as_steps")
        items = make(request, f"{request.found()}.flat_values")
        result.values[request.name] = Call(
            "as_steps(", (items, f"{request.found()}.row_splits", str(list(request.inner)))
        )
    else:
        shape = [] if feature.is_raw else list(request.inner)
        result.specs[key] = Call(
            "tf.io.FixedLenSequenceFeature(", (str(shape), request.kind, "allow_missing=True")
        )
        items = make(request, request.found())
        is_whole = not feature.is_raw
        value = items if is_whole else Call("tf.reshape(", (items, str([-1, *request.inner])))
        result.values[request.name] = value


def _decode_code(request: FeatureRequest, data: Code) -> Code:
    return _decode(request, str(data))


_COMPRESSION = {None: "", "gzip": "GZIP", "zlib": "ZLIB"}

# Functions of the generated code, for what takes more than a line: for batches, for records.
_HELPERS: dict[str, tuple[str, str]] = {
    "fill": (
        '''def fill(values, shape, blank):
    """Convert lists that contain a tensor of this shape or nothing to tensors."""
    count = tf.TensorShape(shape).num_elements()
    return tf.reshape(values.to_tensor(blank, shape=[None, count]), [-1, *shape])''',
        '''def fill(values, shape, blank):
    """Convert a list that contains a tensor of this shape or nothing to a tensor."""
    blanks = tf.fill(shape, tf.constant(blank, values.dtype))
    return tf.cond(tf.size(values) > 0, lambda: tf.reshape(values, shape), lambda: blanks)''',
    ),
    "cut": (
        '''def cut(rows, data, row_bytes):
    """Split the rows of all records into those of each."""
    lengths = tf.strings.length(data) // row_bytes
    return tf.RaggedTensor.from_row_lengths(rows, lengths)''',
        "",
    ),
    "nest": (
        '''def nest(items, levels):
    """Group items into rows of the lengths of each level, outermost first."""
    for lengths in reversed(levels):
        items = tf.RaggedTensor.from_row_lengths(items, lengths.values)
    return tf.RaggedTensor.from_row_splits(items, tf.cast(levels[0].row_splits, tf.int64))''',
        '''def nest(items, levels):
    """Group items into rows of the lengths of each level, outermost first."""
    for lengths in reversed(levels):
        items = tf.RaggedTensor.from_row_lengths(items, lengths)
    return items''',
    ),
    "as_steps": (
        '''def as_steps(items, row_splits, shape):
    """Split the steps of all records into those of each."""
    return tf.RaggedTensor.from_row_splits(tf.reshape(items, [-1, *shape]), row_splits)''',
        "",
    ),
    "make_sparse": (
        '''def make_sparse(indices, values, shape):
    """Place values at these indices of each dimension, for all records."""
    rows = tf.cast(indices[0].value_rowids(), tf.int64)
    places = tf.stack([rows, *(each.values for each in indices)], axis=1)
    size = [tf.cast(indices[0].nrows(), tf.int64), *shape]
    return tf.sparse.reorder(tf.SparseTensor(places, values, size))''',
        '''def make_sparse(indices, values, shape):
    """Place values at these indices of each dimension."""
    return tf.sparse.reorder(tf.SparseTensor(tf.stack(indices, axis=1), values, shape))''',
    ),
    "decode_image": (
        "",
        '''def decode_image(data, shape, dtype):
    """Decode the pixels of an image file."""
    image = tf.io.decode_image(data, shape[-1] or 0, dtype, expand_animations=False)
    return tf.ensure_shape(image, shape)''',
    ),
    "decode_any_image": (
        "",
        '''def decode_any_image(data, shape, dtype):
    """Decode an image file like all formats: opaque pixels have the highest alpha."""
    start, channels = tf.strings.substr(data, 0, 4), shape[-1]

    def fit(image):
        """Add missing channels to pixels of 8 bits; in 16, colours look the same, ids stay."""
        image = tf.cast(image[..., :channels], tf.int32)
        missing = channels - tf.shape(image)[-1]
        image = tf.pad(image, [[0, 0], [0, 0], [0, missing]], constant_values=255)
        return tf.cast(image * 257 if dtype == tf.uint16 and channels > 1 else image, dtype)

    def decode_png():
        bits = tf.cast(tf.io.decode_raw(data, tf.uint8, fixed_length=32)[24], tf.int32)
        image = tf.io.decode_png(data, channels, dtype)
        if channels == 4:  # TensorFlow makes opaque pixels of 1, 2 or 4 bits transparent
            alpha = tf.cast(tf.io.decode_png(data, 4)[..., 3], tf.int32)
            is_opaque = tf.reduce_all(alpha == tf.bitwise.left_shift(1, bits) - 1)
            return tf.cond(is_opaque, lambda: fit(tf.io.decode_png(data, 3)), lambda: image)
        if channels == 1:  # TensorFlow would scale ids of 8 bits in 16
            return tf.cond(bits == 16, lambda: image, lambda: fit(tf.io.decode_png(data, 1)))
        return image

    def decode_other():
        if channels == 1:
            return fit(tf.io.decode_image(data, 1, expand_animations=False))
        is_webp = start == b"RIFF"  # needs the number of channels of the file
        decode = lambda channels: fit(tf.io.decode_image(data, channels, expand_animations=False))
        return tf.cond(is_webp, lambda: decode(0), lambda: decode(3))

    image = tf.cond(start == b"\\x89PNG", decode_png, decode_other)
    return tf.ensure_shape(image, shape)''',
    ),
    "decode_image_or_blank": (
        "",
        '''def decode_image_or_blank(data, shape, dtype):
    """Decode the pixels of an image file; zeros if there is none."""
    blank = tf.zeros([size or 0 for size in shape], dtype)
    decode = lambda: decode_image(data, shape, dtype)
    return tf.ensure_shape(tf.cond(tf.strings.length(data) > 0, decode, lambda: blank), shape)''',
    ),
    "decode_any_image_or_blank": (
        "",
        '''def decode_any_image_or_blank(data, shape, dtype):
    """Decode the pixels of an image file; zeros if there is none."""
    blank = tf.zeros([size or 0 for size in shape], dtype)
    decode = lambda: decode_any_image(data, shape, dtype)
    return tf.ensure_shape(tf.cond(tf.strings.length(data) > 0, decode, lambda: blank), shape)''',
    ),
}


def tensorflow(
    schema: Schema | Mapping[str, Feature],
    *,
    files: str | Sequence[str] = "*.tfrecord",
    compression: Literal["gzip", "zlib"] | None = None,
    batch_size: int | None = 32,
    metadata: Mapping[str, Mapping[str, Any]] | None = None,
) -> str:
    """Return Python code that reads such records with TensorFlow alone, ready to paste and run.

    It contains `feature_spec` for `tf.io.parse_example` (and `sequence_spec` for
    `tf.io.parse_sequence_example`), `parse(serialized)`, which returns tensors of the schema's
    dtypes and shapes, and a `tf.data.Dataset` of batches like those of `Dataset.to_tf`: ragged
    tensors for lengths that differ, `<name>_present` beside features that records may lack. If
    images are decoded, or shapes differ in more than the first dimension, `parse` reads one record
    at a time. Unlike Datum, TensorFlow cannot distinguish an absent list from an empty one.

    Args:
        schema: The features of the records.
        files: The files or patterns to read.
        compression: The compression of the files.
        batch_size: The number of records in a batch; None for single records.
        metadata: Metadata of features: `class_names` are put into the code.

    >>> from datum import Feature
    >>> schema = {"x": Feature("float32", (3,))}
    >>> print(tensorflow(schema, files="a.tfrecord"))  # doctest: +ELLIPSIS
    import tensorflow as tf
    <BLANKLINE>
    feature_spec = {
        "x": tf.io.FixedLenFeature([3], tf.float32),
    }
    ...
    files = ["a.tfrecord"]
    dataset = tf.data.TFRecordDataset(files)
    dataset = dataset.batch(32).map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    <BLANKLINE>
    """
    schema = with_listed_bytes(schema)
    known = metadata or {}
    is_single = batch_size is None or any(map(needs_single_records, schema.values()))
    keys = frozenset(one.key for item in schema.items() for one in lower(*item))
    reads = {
        name: read_feature(
            FeatureRequest(
                name,
                feature,
                is_batched=not is_single,
                in_sequences=any(one.sequence for one in schema.values()),
                formats=tuple(known.get(name, {}).get("formats", ())),
                others=keys,
            )
        )
        for name, feature in schema.items()
    }
    parts = [
        "import tensorflow as tf",
        _write_specs(schema, reads),
        *_write_names(schema, known),
        *_write_helpers(reads.values(), is_single=is_single),
        _write_parse(schema, reads, is_single=is_single),
        _write_dataset(schema, files, compression, batch_size, is_single=is_single),
    ]
    return join_parts(parts)


def _has_sequences(schema: Schema) -> bool:
    return any(feature.sequence for feature in schema.values())


def _write_specs(schema: Schema, reads: Mapping[str, FeatureCode]) -> str:
    context: dict[str, Code] = {}
    lists: dict[str, Code] = {}
    for name, feature in schema.items():
        (lists if feature.sequence else context).update(reads[name].specs)
    text = f"feature_spec = {render_dict(context)}"
    if _has_sequences(schema):
        text += f"\nsequence_spec = {render_dict(lists)}"
    return text


def _write_names(schema: Schema, metadata: Mapping[str, Mapping[str, Any]]) -> list[str]:
    names = {
        name: render_list([quote(str(one)) for one in metadata[name]["class_names"]], indent=4)
        for name in schema
        if metadata.get(name, {}).get("class_names")
    }
    return [f"class_names = {render_dict(dict(names))}"] if names else []


def _write_helpers(reads: Iterable[FeatureCode], *, is_single: bool) -> list[str]:
    used = {helper for read in reads for helper in read.helpers}
    return [texts[is_single] for name, texts in _HELPERS.items() if name in used]


def _write_parse(schema: Schema, reads: Mapping[str, FeatureCode], *, is_single: bool) -> str:
    values = {name: code for read in reads.values() for name, code in read.values.items()}
    notes = {name: read.note for name, read in reads.items()}
    what = "one serialized record" if is_single else "a batch of serialized records"
    lines = ["def parse(serialized):", f'    """Turn {what} into tensors."""']
    if any(map(needs_single_records, schema.values())):
        lines.append(
            "    # Not a batch: images are decoded one by one, on all cores, and differ in size."
        )
    single = "_single" if is_single else ""
    if _has_sequences(schema):
        found = "context, lists" if is_single else "context, lists, _"
        call = f"tf.io.parse{single}_sequence_example(serialized, feature_spec, sequence_spec)"
        lines.append(f"    {found} = {call}")
    else:
        call = f"tf.io.parse{single}_example(serialized, feature_spec)"
        if all(str(code) == f"parsed[{quote(name)}]" for name, code in values.items()):
            shown = [f"    # {quote(name)}: {note}" for name, note in notes.items() if note]
            return "\n".join([*lines, *shown, f"    return {call}"])
        lines.append(f"    parsed = {call}")
    lines.append(f"    return {render_dict(values, indent=4, notes=notes)}")
    return "\n".join(lines)


def _write_dataset(
    schema: Schema,
    files: str | Sequence[str],
    compression: str | None,
    batch_size: int | None,
    *,
    is_single: bool,
) -> str:
    if compression not in _COMPRESSION:
        raise ValueError(Message(f"expected `compression` None, gzip or zlib, got {compression!r}"))
    names, is_pattern = quote_files(files)
    listed = f"[{', '.join(names)}]"
    if is_pattern:
        given = names[0] if len(names) == 1 else listed
        listed = f"tf.data.Dataset.list_files({given}, shuffle=False)"
    packed = f", compression_type={quote(_COMPRESSION[compression])}" if compression else ""
    lines = [f"files = {listed}", f"dataset = tf.data.TFRecordDataset(files{packed})"]
    mapped = "map(parse, num_parallel_calls=tf.data.AUTOTUNE)"
    if not is_single:
        lines.append(f"dataset = dataset.batch({batch_size}).{mapped}")
        return "\n".join(lines)
    lines.append(f"dataset = dataset.{mapped}")
    if batch_size is not None:
        differs = any(None in one.shape and one.encoding != "sparse" for one in schema.values())
        if any(one.encoding == "image" and None in one.shape for one in schema.values()):
            lines.append("# Images of one size can be batched directly: resize them here.")
        lines.append(f"dataset = dataset.{'ragged_' if differs else ''}batch({batch_size})")
    return "\n".join(lines)
