"""Code that reads records with NVIDIA DALI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from datum._core import Kind
from datum.format.layout import StoredColumn, lower
from datum.schema import Feature, Schema
from datum.specs.code import (
    Call,
    Code,
    join_parts,
    list_files,
    quote,
    render,
    render_dict,
    with_listed_bytes,
)

__all__ = ["dali"]

_TYPES = {
    Kind.BYTES: ("tfrec.string", '""'),
    Kind.FLOAT: ("tfrec.float32", "0.0"),
    Kind.INT64: ("tfrec.int64", "0"),
}
# Element types of DALI; it lacks the others.
_DTYPES = {
    **{name: f"types.{name.upper()}" for name in ("bool", "int8", "int16", "int32", "int64")},
    **{name: f"types.{name.upper()}" for name in ("uint8", "uint16", "uint32", "uint64")},
    "float16": "types.FLOAT16",
    "float32": "types.FLOAT",
    "float64": "types.FLOAT64",
}
_COLOURS = {1: "types.GRAY", 3: "types.RGB"}


def dali(
    schema: Schema | Mapping[str, Feature],
    *,
    files: str | Sequence[str] = "*.tfrecord",
    compression: Literal["gzip", "zlib"] | None = None,
    batch_size: int = 32,
) -> str:
    """Return Python code that reads such records with NVIDIA DALI, ready to paste and run.

    It contains `features` for `nvidia.dali.fn.readers.tfrecord`, and a pipeline that converts raw
    bytes, decodes images, and returns the outputs in `names`. Comments state what DALI cannot
    read: compressed files, lists of strings, sequences. It needs an index of each file, which
    `datum index PATH --format text` writes.

    >>> from datum import Feature
    >>> print(dali({"x": Feature("float64", (3,))}, files="a.tfrecord"))  # doctest: +ELLIPSIS
    import nvidia.dali.fn as fn
    ...
        return (
            fn.reinterpret(read["x"], dtype=types.FLOAT64, shape=[3]),
        )
    ...
    """
    schema = with_listed_bytes(schema)
    features: dict[str, Code] = {}
    outputs: dict[str, Code] = {}
    notes: dict[str, str] = {}
    left_out = []
    for name, feature in schema.items():
        problem = _find_problem(feature)
        if problem:
            left_out.append(f"# {quote(name)} is left out: DALI cannot read {problem}.")
            continue
        columns = lower(name, feature)
        features |= {column.key: _ask(feature, column) for column in columns}
        outputs |= _outputs(name, feature, columns)
        notes[name] = _note(feature)
    if compression is not None:
        left_out.insert(
            0, f"# DALI cannot read {compression} files: rewrite them without compression, with"
        )
        left_out.insert(1, "# `datum reshard PATH OUT --compression none`, and read those.")
    imports, paths = _paths(files)
    spec = [
        f"features = {render_dict(features)}",
        f"names = {render(Call('[', tuple(map(quote, outputs)), ']'), indent=0, before=8)}",
    ]
    pipeline = [
        f"@pipeline_def(batch_size={batch_size}, num_threads=4, device_id=0)",
        "def read_records():",
        '    """Return the outputs in `names` for a batch of records."""',
        "    read = fn.readers.tfrecord(",
        '        path=files, index_path=index_files, features=features, name="reader"',
        "    )",
        "    return (",
        *_returned(outputs, notes),
        "    )",
    ]
    parts = ["\n".join(imports), "\n".join([paths, *left_out]), *map("\n".join, (spec, pipeline))]
    return join_parts([*parts, "pipeline = read_records()\npipeline.build()"])


def _paths(files: str | Sequence[str]) -> tuple[list[str], str]:
    listed, calls_glob = list_files(files)
    imports = [
        *(["from glob import glob", ""] if calls_glob else []),
        "import nvidia.dali.fn as fn",
        "import nvidia.dali.tfrecord as tfrec",
        "import nvidia.dali.types as types",
        "from nvidia.dali import pipeline_def",
    ]
    paths = (
        f"files = {listed}\n"
        "# Written by `datum index PATH --format text`.\n"
        'index_files = [f"{file}.idx" for file in files]'
    )
    return imports, paths


def _find_problem(feature: Feature) -> str | None:
    if feature.sequence:
        return "feature lists of a SequenceExample"
    if feature.is_string and feature.shape:
        return "lists of strings"
    return "lists without values" if 0 in feature.shape else None


def _ask(feature: Feature, column: StoredColumn) -> Code:
    kind, blank = _TYPES[column.kind]
    if column.role != "values":
        rank = [len(feature.shape)] if column.role == "shape" else []
        name = "tfrec.FixedLenFeature(" if rank else "tfrec.VarLenFeature("
        return Call(name, (*([str(rank)] if rank else []), kind, blank))
    if column.kind == Kind.BYTES:
        return Call("tfrec.FixedLenFeature(", ("[]", kind, blank))
    inner = list(feature.shape[feature.ragged_rank :])
    is_variable = feature.ragged_rank > 0 or feature.encoding == "sparse"
    if not is_variable:
        return Call("tfrec.FixedLenFeature(", (str(inner), kind, blank))
    shape = [str(inner)] if inner and feature.encoding != "sparse" else []
    return Call("tfrec.VarLenFeature(", (*shape, kind, blank))


def _outputs(name: str, feature: Feature, columns: Sequence[StoredColumn]) -> dict[str, Code]:
    first, *others = columns
    has_shape = bool(others) and others[0].role == "shape"
    made = {first.key if feature.encoding == "sparse" else name: _make(feature, columns)}
    return made if has_shape else made | {one.key: f"read[{quote(one.key)}]" for one in others}


def _make(feature: Feature, columns: Sequence[StoredColumn]) -> Code:
    """Return a tensor of the feature's dtype and shape; empty for records that lack it."""
    read = f"read[{quote(columns[0].key)}]"
    if feature.encoding == "image" and not feature.optional:
        colours = _COLOURS.get(feature.shape[-1] or 0, "types.ANY_DATA")
        dtype = ["dtype=types.UINT16"] if feature.dtype == "uint16" else []
        return Call(
            "fn.decoders.image(", (read, 'device="mixed"', f"output_type={colours}", *dtype)
        )
    if feature.is_string or feature.encoding == "image":
        return read
    dtype_name = _DTYPES.get(feature.dtype)
    if feature.is_raw:
        if dtype_name is None:
            return read
        return _view(feature, read, dtype_name, columns)
    if feature.dtype in ("int64", "float32") or dtype_name is None:
        cast: Code = read
    elif feature.dtype == "uint64":
        cast = Call("fn.reinterpret(", (read, f"dtype={dtype_name}"))
    else:
        cast = Call("fn.cast(", (read, f"dtype={dtype_name}"))
    if feature.shape or feature.optional:
        return cast
    return Call("fn.squeeze(", (cast, "axes=0"))


def _view(feature: Feature, read: str, dtype: str, columns: Sequence[StoredColumn]) -> Code:
    is_list = feature.encoding == "sparse" or feature.ragged_rank > 1
    if feature.optional or (is_list and len(columns) > 1 and columns[1].role != "shape"):
        return Call("fn.reinterpret(", (read, f"dtype={dtype}"))
    if len(columns) > 1:
        return Call("fn.reinterpret(", (read, f"read[{quote(columns[1].key)}]", f"dtype={dtype}"))
    shape = [-1 if n is None else n for n in feature.shape]
    return Call("fn.reinterpret(", (read, f"dtype={dtype}", f"shape={shape}"))


def _note(feature: Feature) -> str:
    notes = []
    if feature.optional:
        notes.append("empty if a record lacks it")
    if feature.dtype == "str":
        notes.append("the bytes of its UTF-8")
    elif feature.is_raw and feature.dtype not in _DTYPES:
        notes.append(f"bytes of {feature.dtype}, which DALI does not support")
    elif feature.dtype == "bfloat16":
        notes.append("bfloat16 is returned as float32")
    elif "64[" in feature.dtype:
        notes.append(f"the numbers of {feature.dtype}")
    if feature.encoding == "image" and feature.optional:
        notes.insert(0, "the bytes of the file")
    elif feature.encoding == "image" and feature.shape[-1] == 1:
        notes.append("for a palette the grey of each colour, not its id")
    return ", ".join(notes)


def _returned(outputs: Mapping[str, Code], notes: Mapping[str, str]) -> list[str]:
    lines = []
    for name, code in outputs.items():
        if notes.get(name):
            lines.append(f"        # {notes[name]}")
        lines.append(f"        {render(code, indent=8, after=1)},")
    return lines
