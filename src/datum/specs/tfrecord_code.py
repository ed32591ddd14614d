"""Code that reads records with the package `tfrecord`, for PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from datum._core import Kind
from datum.format.layout import lower
from datum.schema import Feature, Schema
from datum.schema.feature import TIMES
from datum.specs.code import (
    Call,
    Choice,
    Code,
    join_parts,
    list_files,
    literal,
    quote,
    render,
    render_dict,
    with_listed_bytes,
)

__all__ = ["tfrecord"]

_KINDS = {Kind.BYTES: "byte", Kind.FLOAT: "float", Kind.INT64: "int"}
_MODES = {3: "RGB", 4: "RGBA"}

_HELPERS = {
    "as_list": '''def as_list(values):
    """Return a list of byte strings; the package returns a single one without a list."""
    return [values] if isinstance(values, bytes) else values.tolist()''',
    "nest": '''def nest(items, *levels):
    """Group items into rows of the lengths of each level, outermost first."""
    for lengths in reversed(levels):
        items = [items[end - n : end] for n, end in zip(lengths, np.cumsum(lengths))]
    return items''',
    "decode_image": '''def decode_image(data, mode=None):
    """Decode the pixels of an image file: height x width x channels."""
    image = Image.open(io.BytesIO(data))
    mode = "L" if mode is None and image.mode == "1" else mode or image.mode
    pixels = np.asarray(image if image.mode == mode else image.convert(mode))
    return pixels[..., np.newaxis] if pixels.ndim == 2 else pixels''',
}


def tfrecord(
    schema: Schema | Mapping[str, Feature],
    *,
    files: str | Sequence[str] = "*.tfrecord",
    compression: Literal["gzip", "zlib"] | None = None,
) -> str:
    """Return Python code that reads such records with the package `tfrecord`, ready to run.

    It contains the `description` (and `sequence_description`) for the package, `decode(record)`,
    which returns NumPy values of the schema's dtypes and shapes, None if a record lacks them, and
    an iterable PyTorch dataset of all files. Comments state what the package cannot read: zlib.

    >>> from datum import Feature
    >>> schema = {"image": Feature("bytes"), "label": Feature("int64")}
    >>> print(tfrecord(schema, files="a.tfrecord"))  # doctest: +ELLIPSIS
    import torch
    ...
    description = {
        "image": "byte",
        "label": "int",
    }
    ...
    """
    schema = with_listed_bytes(schema)
    in_sequences = any(feature.sequence for feature in schema.values())
    context, lists = _describe(schema)
    values = {name: _value(name, one, in_sequences) for name, one in schema.items()}
    used = " ".join(map(str, values.values()))
    helpers = [text for name, text in _HELPERS.items() if f"{name}(" in used]
    listed, calls_glob = list_files(files)
    return join_parts(
        [
            _write_imports(used + " ".join(helpers), calls_glob=calls_glob),
            f"description = {render_dict(context)}"
            + (f"\nsequence_description = {render_dict(lists)}" if in_sequences else ""),
            *helpers,
            _write_decode(schema, values, in_sequences),
            _write_dataset(schema, listed, compression, in_sequences),
        ]
    )


def _write_imports(code: str, *, calls_glob: bool) -> str:
    library = [*(["import io"] if "io.Bytes" in code else [])]
    library += ["from glob import glob"] if calls_glob else []
    packages = [
        *(["import ml_dtypes"] if "ml_dtypes." in code else []),
        *(["import numpy as np"] if "np." in code else []),
        "import torch",
        *(["from PIL import Image"] if "Image." in code else []),
        "from tfrecord.torch.dataset import TFRecordDataset",
    ]
    return "\n".join([*library, *([""] if library else []), *packages])


def _describe(schema: Schema) -> tuple[dict[str, Code], dict[str, Code]]:
    context: dict[str, Code] = {}
    lists: dict[str, Code] = {}
    for name, feature in schema.items():
        target = lists if feature.sequence else context
        target |= {one.key: quote(_KINDS[one.kind]) for one in lower(name, feature)}
    return context, lists


def _write_decode(schema: Schema, values: Mapping[str, Code], in_sequences: bool) -> str:
    lines = ["def decode(record):", '    """Return the values of a record as written."""']
    lines += ["    context, lists = record"] if in_sequences else []
    notes = {name: "indices, values" for name in schema if schema[name].encoding == "sparse"}
    notes |= {
        name: "the package drops zeros from the end of byte strings in lists"
        for name, feature in schema.items()
        if feature.dtype == "bytes" and feature.shape
    }
    notes |= {
        name: "Pillow decodes only 8 bits of 16-bit colours"
        for name, feature in schema.items()
        if feature.encoding == "image" and feature.dtype == "uint16" and feature.shape[-1] != 1
    }
    return "\n".join([*lines, f"    return {render_dict(values, indent=4, notes=notes)}"])


def _write_dataset(schema: Schema, listed: str, compression: str | None, in_sequences: bool) -> str:
    # The package raises for a record that lacks a key, unless all keys are requested.
    may_lack = any(one.optional or one.encoding == "sparse" for one in schema.values())
    options = ["file", "None", "None" if may_lack else "description", "transform=decode"]
    if in_sequences:
        options.append(f"sequence_description={'{}' if may_lack else 'sequence_description'}")
    options += ['compression_type="gzip"'] if compression == "gzip" else []
    notes = [
        "# With workers each file needs an index: `datum index PATH --format text` writes it, and",
        '# f"{file}.idx" in place of the first None reads it.',
    ]
    if may_lack:
        notes.append("# All keys, not those of `description`: a record that lacks one is an error.")
    if compression == "zlib":
        notes.append(
            "# The package cannot read zlib: first `datum reshard PATH OUT --compression gzip`."
        )
    call = render(Call("TFRecordDataset(", tuple(options)), indent=4)
    return "\n".join(
        [
            f"files = {listed}",
            *notes,
            "datasets = [",
            f"    {call}",
            "    for file in files",
            "]",
            "dataset = torch.utils.data.ChainDataset(datasets)",
        ]
    )


# Values.


def _value(name: str, feature: Feature, in_sequences: bool) -> Code:
    keys = [column.key for column in lower(name, feature)]
    holder = ("lists" if feature.sequence else "context") if in_sequences else "record"
    found = [f"{holder}[{quote(key)}]" for key in keys]
    made = _make(feature, found)
    if feature.encoding == "sparse":
        indices = f"np.zeros([0, {len(feature.shape)}], np.int64)"
        lacking = f"({indices}, np.zeros([0], {_dtype(feature)}))"
    elif not feature.optional:
        return made
    else:
        lacking = "None" if feature.default is None else _default(feature)
    return Choice(made, f"{quote(keys[0])} in {holder}", lacking)


def _default(feature: Feature) -> str:
    value = literal(feature.default)
    if feature.is_string:
        return value
    return (
        f"np.array({value}, {_dtype(feature)})" if feature.shape else f"{_dtype(feature)}({value})"
    )


def _dtype(feature: Feature) -> str:
    if feature.dtype in TIMES:
        return quote(feature.dtype)
    if feature.is_string:
        return "object"
    return "ml_dtypes.bfloat16" if feature.dtype == "bfloat16" else f"np.{_np(feature.dtype)}"


def _np(dtype: str) -> str:
    return "bool_" if dtype == "bool" else dtype


def _make(feature: Feature, found: Sequence[str]) -> Code:
    if feature.encoding == "image":
        mode = _MODES.get(feature.shape[-1] or 0)
        return f"decode_image({found[0]}{f', {quote(mode)}' if mode else ''})"
    if feature.encoding == "sparse":
        indices = Call("np.stack(", (f"[{', '.join(found[1:])}]", "axis=1"))
        return Call("(", (indices, _items(feature, found[0])))
    if feature.sequence:
        return _steps(feature, found[0])
    if feature.is_string:
        return _strings(feature, found)
    if len(found) > 1 and feature.encoding == "raw":
        return f"{_items(feature, found[0])}.reshape({found[1]})"
    items = _items(feature, found[0])
    if feature.ragged_rank > 1:
        inner = feature.shape[feature.ragged_rank :]
        items = f"{items}.reshape(-1, {', '.join(map(str, inner))})" if inner else items
        return Call("nest(", (items, *found[1:]))
    shape = [-1 if n is None else n for n in feature.shape]
    if not shape:
        return f"{items}[0]"
    return items if len(shape) == 1 else f"{items}.reshape({', '.join(map(str, shape))})"


def _items(feature: Feature, found: str) -> str:
    """Return the expression of all elements of a key, in one dimension."""
    if feature.is_string:
        return f"np.array(as_list({found}), object)"
    if feature.is_raw:
        return f"np.frombuffer({found}, {_dtype(feature)})"
    if feature.dtype in ("int64", "float32"):
        return found
    if feature.dtype == "uint64" or feature.dtype in TIMES:
        return f"{found}.view({_dtype(feature)})"
    return f"{found}.astype({_dtype(feature)})"


def _strings(feature: Feature, found: Sequence[str]) -> Code:
    is_text = feature.dtype == "str"
    if not feature.shape:
        return f"{found[0]}.decode()" if is_text else found[0]
    items = f"as_list({found[0]})"
    items = f"[item.decode() for item in {items}]" if is_text else items
    if feature.ragged_rank > 1:
        return Call("nest(", (items, *found[1:]))
    if len(feature.shape) == 1:
        return items
    shape = [-1 if n is None else n for n in feature.shape]
    return f"np.array({items}, object).reshape({', '.join(map(str, shape))}).tolist()"


def _steps(feature: Feature, found: str) -> Code:
    """Return the expression of one value for each step."""
    inner = feature.shape[1:]
    if feature.is_string:
        texts = (
            "[item.decode() for item in as_list(step)]"
            if feature.dtype == "str"
            else "as_list(step)"
        )
        return f"[{texts}{'' if inner else '[0]'} for step in {found}]"
    items = _items(feature, "step")
    if inner == ():
        items = f"{items}[0]"
    elif len(inner) > 1:
        shape = ", ".join(str(-1 if n is None else n) for n in inner)
        items = f"{items}.reshape({shape})"
    rows = f"[{items} for step in {found}]"
    if None in inner:
        return rows
    return f"np.array({rows}, {_dtype(feature)}).reshape({', '.join(map(str, (-1, *inner)))})"
