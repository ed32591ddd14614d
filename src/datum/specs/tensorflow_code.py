"""Code that reads records with TensorFlow alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from datum.format.layout import lower
from datum.schema import Feature, Schema
from datum.specs.code import (
    Code,
    join_parts,
    quote,
    quote_files,
    render_dict,
    render_list,
    with_listed_bytes,
)
from datum.specs.tensorflow_asked import Asked, Read
from datum.specs.tensorflow_features import needs_single_records, read_feature

__all__ = ["tensorflow"]

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
