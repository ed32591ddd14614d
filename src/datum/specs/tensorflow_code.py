"""Code that reads records with TensorFlow alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

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
    "Asked",
    "Read",
    "needs_single_records",
    "read_feature",
    "tensorflow",
]


@dataclass(frozen=True, slots=True)
class Asked:
    """A feature, and how it is asked for.

    Attributes:
        name: what it is called.
        feature: what it holds.
        is_batched: whether many records are parsed at once.
        in_sequences: whether the records are SequenceExamples.
        formats: of images, those that are known to occur.
        others: the keys of all features.
    """

    name: str
    feature: Feature
    is_batched: bool
    in_sequences: bool
    formats: tuple[str, ...] = ()
    others: frozenset[str] = frozenset()

    @property
    def keys(self) -> list[str]:
        """Where it lies in records: values first, then lengths, shape or indices."""
        return [column.key for column in lower(self.name, self.feature)]

    @property
    def is_doubtful(self) -> bool:
        """Whether records may lack it, and only a column beside it tells which do."""
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
        """What was parsed under one of its keys."""
        holder = (
            ("lists" if self.feature.sequence else "context") if self.in_sequences else "parsed"
        )
        return f"{holder}[{quote(self.keys[at])}]"

    def shape(self, *dims: int | None) -> Code:
        """A shape to give tensors, with the dimension of records in front if there is one."""
        lead: tuple[int, ...] = (-1,) if self.is_batched else ()
        return str([*lead, *(-1 if n is None else n for n in dims)])


@dataclass(slots=True)
class Read:
    """The code for one feature.

    Attributes:
        specs: how each key is asked for; of sequences, among the feature lists.
        values: the expression of each column.
        helpers: the functions that the expressions call.
        note: what is to be known of the feature.
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


_COMPRESSION = {None: "", "gzip": "GZIP", "zlib": "ZLIB"}

# Functions of the code that is made, for what takes more than a line: of batches, of records.
_HELPERS: dict[str, tuple[str, str]] = {
    "fill": (
        '''def fill(values, shape, blank):
    """Lists that hold a tensor of this shape or nothing, as tensors."""
    count = tf.TensorShape(shape).num_elements()
    return tf.reshape(values.to_tensor(blank, shape=[None, count]), [-1, *shape])''',
        '''def fill(values, shape, blank):
    """A list that holds a tensor of this shape or nothing, as a tensor."""
    blanks = tf.fill(shape, tf.constant(blank, values.dtype))
    return tf.cond(tf.size(values) > 0, lambda: tf.reshape(values, shape), lambda: blanks)''',
    ),
    "cut": (
        '''def cut(rows, data, row_bytes):
    """The rows of all records, cut into those of each."""
    lengths = tf.strings.length(data) // row_bytes
    return tf.RaggedTensor.from_row_lengths(rows, lengths)''',
        "",
    ),
    "nest": (
        '''def nest(items, levels):
    """Items in rows of the lengths of each level, outermost first."""
    for lengths in reversed(levels):
        items = tf.RaggedTensor.from_row_lengths(items, lengths.values)
    return tf.RaggedTensor.from_row_splits(items, tf.cast(levels[0].row_splits, tf.int64))''',
        '''def nest(items, levels):
    """Items in rows of the lengths of each level, outermost first."""
    for lengths in reversed(levels):
        items = tf.RaggedTensor.from_row_lengths(items, lengths)
    return items''',
    ),
    "as_steps": (
        '''def as_steps(items, row_splits, shape):
    """The steps of all records, cut into those of each."""
    return tf.RaggedTensor.from_row_splits(tf.reshape(items, [-1, *shape]), row_splits)''',
        "",
    ),
    "make_sparse": (
        '''def make_sparse(indices, values, shape):
    """Values at these indices of each dimension, of all records."""
    rows = tf.cast(indices[0].value_rowids(), tf.int64)
    places = tf.stack([rows, *(each.values for each in indices)], axis=1)
    size = [tf.cast(indices[0].nrows(), tf.int64), *shape]
    return tf.sparse.reorder(tf.SparseTensor(places, values, size))''',
        '''def make_sparse(indices, values, shape):
    """Values at these indices of each dimension."""
    return tf.sparse.reorder(tf.SparseTensor(tf.stack(indices, axis=1), values, shape))''',
    ),
    "decode_image": (
        "",
        '''def decode_image(data, shape, dtype):
    """The pixels of an image file."""
    image = tf.io.decode_image(data, shape[-1] or 0, dtype, expand_animations=False)
    return tf.ensure_shape(image, shape)''',
    ),
    "decode_any_image": (
        "",
        '''def decode_any_image(data, shape, dtype):
    """The pixels of an image file, alike in all formats: opaque, and white, as the others are."""
    start, channels = tf.strings.substr(data, 0, 4), shape[-1]

    def fit(image):
        """Pixels of 8 bits with all channels; colours look the same in 16 bits, ids stay."""
        image = tf.cast(image[..., :channels], tf.int32)
        missing = channels - tf.shape(image)[-1]
        image = tf.pad(image, [[0, 0], [0, 0], [0, missing]], constant_values=255)
        return tf.cast(image * 257 if dtype == tf.uint16 and channels > 1 else image, dtype)

    def decode_png():
        bits = tf.cast(tf.io.decode_raw(data, tf.uint8, fixed_length=32)[24], tf.int32)
        image = tf.io.decode_png(data, channels, dtype)
        if channels == 4:  # of 1, 2 or 4 bits, TensorFlow makes opaque pixels transparent
            alpha = tf.cast(tf.io.decode_png(data, 4)[..., 3], tf.int32)
            is_opaque = tf.reduce_all(alpha == tf.bitwise.left_shift(1, bits) - 1)
            return tf.cond(is_opaque, lambda: fit(tf.io.decode_png(data, 3)), lambda: image)
        if channels == 1:  # of 8 bits, TensorFlow makes other numbers of ids in 16
            return tf.cond(bits == 16, lambda: image, lambda: fit(tf.io.decode_png(data, 1)))
        return image

    def decode_other():
        if channels == 1:
            return fit(tf.io.decode_image(data, 1, expand_animations=False))
        is_webp = start == b"RIFF"  # of which the channels have to be those of the file
        decode = lambda channels: fit(tf.io.decode_image(data, channels, expand_animations=False))
        return tf.cond(is_webp, lambda: decode(0), lambda: decode(3))

    image = tf.cond(start == b"\\x89PNG", decode_png, decode_other)
    return tf.ensure_shape(image, shape)''',
    ),
    "decode_image_or_blank": (
        "",
        '''def decode_image_or_blank(data, shape, dtype):
    """The pixels of an image file; of no file, zeros."""
    blank = tf.zeros([size or 0 for size in shape], dtype)
    decode = lambda: decode_image(data, shape, dtype)
    return tf.ensure_shape(tf.cond(tf.strings.length(data) > 0, decode, lambda: blank), shape)''',
    ),
    "decode_any_image_or_blank": (
        "",
        '''def decode_any_image_or_blank(data, shape, dtype):
    """The pixels of an image file; of no file, zeros."""
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
    """Python code that reads such records with TensorFlow alone, ready to be pasted and run.

    It has `feature_spec` for `tf.io.parse_example` (and `sequence_spec` for
    `tf.io.parse_sequence_example`), `parse(serialized)`, which makes tensors of the schema's dtypes
    and shapes, and a `tf.data.Dataset` of batches, alike those of `Dataset.to_tf`: ragged tensors
    of what differs in length, `<name>_present` beside what records may lack. Where images are
    decoded, or shapes differ in more than the first dimension, `parse` takes one record at a time.
    Unlike Datum, TensorFlow cannot tell an absent list from an empty one.

    Args:
        schema: what each record holds.
        files: the files or patterns to read.
        compression: of the files.
        batch_size: how many records a batch has; None for single records.
        metadata: what else is known of features: `class_names` are put into the code.

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
            Asked(
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


def _write_specs(schema: Schema, reads: Mapping[str, Read]) -> str:
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


def _write_helpers(reads: Iterable[Read], *, is_single: bool) -> list[str]:
    used = {helper for read in reads for helper in read.helpers}
    return [texts[is_single] for name, texts in _HELPERS.items() if name in used]


def _write_parse(schema: Schema, reads: Mapping[str, Read], *, is_single: bool) -> str:
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
        raise ValueError(f"expected `compression` None, gzip or zlib, got {compression!r}")
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
            lines.append(
                "# Images of one size can be put into batches as they are: resize them here."
            )
        lines.append(f"dataset = dataset.{'ragged_' if differs else ''}batch({batch_size})")
    return "\n".join(lines)
