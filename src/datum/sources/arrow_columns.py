"""Conversion of Arrow arrays to columns, as views of Arrow's memory where layouts agree."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import Option, SchemaError, SourceError, Text
from datum.schema import Feature, Schema
from datum.sources.arrow_features import ColumnSpec, find_specs, join_files, shape_arrays
from datum.sources.image_files import IMAGE
from datum.sources.table_part import keys_of, schema_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ConvertedColumns", "check_names", "combine", "convert_table"]

_MAX_OFFSET = 2**31 - 1  # of string and list types with 32-bit offsets
_DATUM_KEY = b"datum"  # schema metadata that `Split.to_arrow` and `export_to` write
_COUNTED = ("channels", "converted", "dtypes", "formats", "height", "left_out", "width")
_HINTS = {
    "map": "convert it to a struct, or to a list of keys and a list of values",
    "union": "split it into one column for each type",
    "month_day_nano_interval": "cast it to a duration",
}


class ConvertedColumns:
    """The columns of an Arrow table.

    Attributes:
        columns: The columns by name; fields of structs are named "struct/field".
        metadata: `class_names` of dictionary columns, columns that were left out, and the metadata
            of columns that Datum wrote.
        features: Features that Arrow's types do not determine: images, and columns Datum wrote.
        notes: Columns that were left out, a line each.
        filled: Columns whose lists of structs had missing items, now filled with blanks.
    """

    def __init__(self, specs: Mapping[str, ColumnSpec] | None = None) -> None:
        self.columns: dict[str, Any] = {}
        self.metadata: dict[str, dict[str, Any]] = {}
        self.features: dict[str, Feature] = {}
        self.filled: set[str] = set()
        self.notes: list[str] = []
        self._specs = specs or {}

    def add(self, name: str, array: pa.Array) -> None:
        """Convert a column; a struct, or a list of structs, adds a column for each field."""
        import pyarrow as pa

        kind = array.type
        spec = self._specs.get(name)
        if pa.types.is_struct(kind):
            self._add_struct(name, array, spec)
        elif _holds_structs(kind):
            self._add_structs(name, array)
        elif pa.types.is_null(kind):
            self.metadata[name] = {"left_out": "no record has a value"}
        elif name in self.columns:
            raise SourceError(f"expected columns of different names, got {name!r} twice")
        elif pa.types.is_dictionary(kind):
            self._add_dictionary(name, array)
        else:
            self.columns[name] = _Converter(name).convert(array)
        if spec is not None and name in self.columns:
            self._apply(name, spec)

    def _add_struct(self, name: str, array: pa.StructArray, spec: ColumnSpec | None) -> None:
        """Add a struct: a column for each field, or a file if it is one."""
        if spec is not None and spec.kind in ("image", "file"):
            self._add_files(name, array, spec.kind)
            return
        for field, child in zip(array.type, array.flatten(), strict=True):
            self.add(f"{name}/{field.name}", _decoded(child))

    def _add_structs(self, name: str, array: pa.Array) -> None:
        """Add a list of structs: a list for each field."""
        for field, child, is_filled in _unzip(array):
            if is_filled:
                self.filled.add(f"{name}/{field}")
            self.add(f"{name}/{field}", child)

    def _add_files(self, name: str, array: pa.StructArray, kind: str) -> None:
        """Add a struct of bytes and path: files under its own name, and their paths."""
        import pyarrow as pa

        children = dict(zip([field.name for field in array.type], array.flatten(), strict=True))
        blank = pa.nulls(len(array), pa.string())
        data = _Converter(name).convert(children.get("bytes", blank).cast(pa.large_binary()))
        paths = _Converter(name).convert(children.get("path", blank).cast(pa.large_string()))
        self.columns[name] = join_files(name, data, paths, kind)
        if kind == "image":
            self.features[name] = replace(IMAGE, optional=_lacks_some(self.columns[name]))
        self.columns.setdefault(f"{name}_filename", paths)

    def drop_unnamed_files(self) -> None:
        """Drop columns of paths that have no path at all."""
        for name, spec in self._specs.items():
            paths = self.columns.get(f"{name}_filename")
            is_named = not isinstance(paths, Masked) or paths.present.any()
            if spec.kind in ("image", "file") and not is_named:
                self.drop(f"{name}_filename")

    def _apply(self, name: str, spec: ColumnSpec) -> None:
        """Apply a column's spec."""
        if spec.class_names:
            self.metadata[name] = {"class_names": list(spec.class_names)}
        elif spec.kind == "array":
            self.columns[name] = shape_arrays(self.columns[name], spec)

    def add_exported(self, name: str, array: pa.Array, feature: Feature) -> None:
        """Convert a column that Datum wrote; if its type has changed since, like any other."""
        import pyarrow as pa

        kind = array.type
        fields = [one.name for one in kind] if pa.types.is_struct(kind) else []
        if feature.encoding == "image" and (pa.types.is_binary(kind) or _is_large_binary(kind)):
            self.add(name, array)
        elif feature.encoding == "sparse" and fields == ["indices", "values"]:
            sparse = _join_sparse(name, array, feature)
            self.columns[name] = Masked(sparse, _present(array)) if array.null_count else sparse
        elif feature.dtype == "bfloat16" and pa.types.is_float32(_item_of(kind)):
            self.add(name, array)
        else:
            self.add(name, array)
            return
        is_optional = isinstance(self.columns[name], Masked)
        self.features[name] = replace(feature, optional=is_optional, default=None, keys=())

    def schema(self) -> Schema:
        """The features of the columns."""
        others = {name: one for name, one in self.columns.items() if name not in self.features}
        found = {**schema_of(others), **self.features}
        return Schema({name: found[name] for name in self.columns if name in found})

    def drop(self, name: str) -> None:
        """Drop a column."""
        self.columns.pop(name)
        self.metadata.pop(name, None)
        self.features.pop(name, None)

    def keys(self, name: str, numbers: NDArray[np.int64] | None = None) -> list[str]:
        """Return the values of a column as the keys of the records of these numbers."""
        if name not in self.columns:
            raise SourceError(f"expected a key among {', '.join(self.columns)}, got {name!r}")
        names = self.metadata.get(name, {}).get("class_names")
        return keys_of(name, self.columns[name], numbers=numbers, class_names=names)

    def _add_dictionary(self, name: str, array: pa.DictionaryArray) -> None:
        """Convert texts to ids, and keep their names; decode other values."""
        import pyarrow as pa

        names = array.dictionary
        is_text = pa.types.is_string(names.type) or pa.types.is_large_string(names.type)
        if not is_text or names.null_count or len(names.unique()) < len(names):
            self.add(name, array.dictionary_decode())
            return
        self.columns[name] = _Converter(name).convert(array.indices.cast(pa.int64()))
        self.metadata[name] = {"class_names": names.to_pylist()}


def _lacks_some(column: Any) -> bool:
    if isinstance(column, Masked):
        return not column.present.all()
    return isinstance(column, np.ndarray) and any(value is None for value in column)


def convert_table(
    table: pa.Table | pa.RecordBatch,
    metadata: Mapping[bytes, bytes] | None = None,
    specs: Mapping[str, ColumnSpec] | None = None,
) -> ConvertedColumns:
    """Return the columns of a table; a column with nulls is `Masked`.

    `metadata` is the metadata of the schema, by default the table's: features that Datum wrote
    there apply to the columns. `specs` come from `find_specs` for this table, or for the whole
    table that this is a part of.
    """
    import pyarrow as pa

    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    names = table.column_names
    check_names(names)
    found = ConvertedColumns(find_specs(table) if specs is None else specs)
    if metadata is None:
        metadata = table.schema.metadata
    features, known = _read_datum_metadata(metadata)
    for name, column in zip(names, table.columns, strict=True):
        if name in features:
            found.add_exported(name, combine(column), features[name])
        else:
            found.add(name, combine(column))
        if name in known and name in found.columns:
            found.metadata[name] = {**known[name], **found.metadata.get(name, {})}
    if specs is None:
        found.drop_unnamed_files()
    return found


def _read_datum_metadata(
    metadata: Mapping[bytes, bytes] | None,
) -> tuple[Mapping[str, Feature], dict[str, dict[str, Any]]]:
    """Return the features that Datum wrote and the metadata of each; empty for other writers."""
    if metadata is None or _DATUM_KEY not in metadata:
        return {}, {}
    try:
        written = json.loads(metadata[_DATUM_KEY])
        schema = Schema.from_json(written["schema"])
        known = {
            name: {what: value for what, value in found.items() if what not in _COUNTED}
            for name, found in written["metadata"].items()
        }
    except (AttributeError, KeyError, SchemaError, TypeError, ValueError):
        return {}, {}  # another program that uses the same key
    return schema, {name: found for name, found in known.items() if found}


def _is_large_binary(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_large_binary(kind))


def _item_of(kind: pa.DataType) -> pa.DataType:
    while _is_list(kind):
        kind = kind.value_type
    return kind


def _join_sparse(name: str, array: Any, feature: Feature) -> Sparse:
    """Join lists of indices and of values into one column."""
    indices, values = array.flatten()  # null where the struct is null
    splits = _splits_of(values)
    if not np.array_equal(splits, _splits_of(indices)):
        raise SourceError(
            "expected an index for each value, got another number", where=f"column {name!r}"
        )
    found = _Converter(name)
    places = np.asarray(found.items(indices), np.int64).reshape(splits[-1], len(feature.shape))
    rows = np.repeat(np.arange(len(array)), np.diff(splits))
    shape: Any = (len(array), *feature.shape)
    return Sparse(np.column_stack([rows, places]), found.items(values), shape)


def check_names(names: Sequence[str], hint: str = "") -> None:
    """Raise SourceError if a name occurs twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise SourceError(f"expected columns of different names, got {name!r} twice", hint=hint)
        seen.add(name)


def combine(column: pa.ChunkedArray) -> pa.Array:
    """Return one array of all chunks; a single chunk is not copied."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.nbytes > _MAX_OFFSET:
        column = column.cast(_widen(column.type))
    if column.num_chunks == 0:
        return pa.array([], column.type)
    return pa.concat_arrays(column.chunks)


def _widen(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_string(kind):
        return pa.large_string()
    if pa.types.is_binary(kind):
        return pa.large_binary()
    return pa.large_list(_widen(kind.value_type)) if pa.types.is_list(kind) else kind


def _decoded(array: Any) -> Any:
    """Return the array without its dictionary; only top-level columns keep theirs."""
    import pyarrow as pa

    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _is_list(kind: pa.DataType) -> bool:
    import pyarrow as pa

    types = pa.types
    is_listed = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(is_listed) or str(kind).startswith(("list_view", "large_list_view"))


def _holds_structs(kind: pa.DataType) -> bool:
    """Return whether it is a list of structs, or a list of such lists."""
    import pyarrow as pa

    inner = kind.value_type if _is_list(kind) else None
    return inner is not None and (bool(pa.types.is_struct(inner)) or _holds_structs(inner))


def _unzip(array: Any) -> Iterator[tuple[str, pa.Array, bool]]:
    """Yield a list for each field of a list of structs, and whether values were missing in it."""
    import pyarrow as pa

    items = array.flatten()
    offsets = pa.array(_splits_of(array))
    mask = array.is_null() if array.null_count else None
    children: Iterable[tuple[str, Any, bool]]
    if pa.types.is_struct(items.type):
        names = [field.name for field in items.type]
        children = [
            (name, *_fill(_decoded(child)))
            for name, child in zip(names, items.flatten(), strict=True)
        ]
    else:
        children = _unzip(items)
    for name, child, filled in children:
        if pa.types.is_null(child.type):
            yield name, pa.nulls(len(array)), False
        else:
            yield name, pa.LargeListArray.from_arrays(offsets, child, mask=mask), filled


def _fill(array: Any) -> tuple[Any, bool]:
    """Return the fields of structs in a list with nulls filled in, as `NestedLists` does."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, types = array.type, pa.types
    if not array.null_count or types.is_null(kind) or types.is_struct(kind):
        return array, False  # the nulls of a struct are filled in its fields
    if _is_list(kind):
        return pa.LargeListArray.from_arrays(_splits_of(array), array.flatten()), True
    blank: Any = None
    if types.is_string(kind) or types.is_large_string(kind):
        blank = ""
    elif types.is_binary(kind) or types.is_large_binary(kind):
        blank = b""
    elif types.is_boolean(kind) or types.is_integer(kind):
        blank = 0
    elif types.is_floating(kind):
        blank = math.nan
    if blank is None:
        return array, False
    scalar = pa.scalar(bool(blank) if types.is_boolean(kind) else blank, kind)
    return pc.fill_null(array, scalar), True


def _splits_of(array: Any) -> NDArray[np.int64]:
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def _present(array: Any) -> NDArray[np.bool_]:
    present: NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return present


class _Converter:
    """Converts one column; its name appears in errors."""

    def __init__(self, name: str) -> None:
        self.name = name

    def items(self, array: pa.Array) -> Any:
        """Return the items of all lists, concatenated."""
        return self._values(array.flatten())

    def convert(self, array: pa.Array) -> Any:
        values = self._values(array)
        return Masked(values, _present(array)) if array.null_count else values

    def _values(self, array: Any) -> Any:
        """Return the values of the array, with blanks for nulls."""
        import pyarrow as pa

        kind = array.type
        types = pa.types
        if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
            return _numbers(array)
        if types.is_timestamp(kind) or types.is_duration(kind) or types.is_date(kind):
            return _times(array)
        if types.is_time(kind):
            return _times(array)
        if types.is_fixed_size_binary(kind):
            return _strings(array.cast(pa.large_binary()))
        if types.is_large_string(kind) or types.is_large_binary(kind):
            return _strings(array)
        if types.is_string(kind) or types.is_binary(kind):
            return _strings(array)
        if _is_list(kind):
            return self._lists(array)
        if isinstance(kind, pa.BaseExtensionType):
            return self._extension(array)
        return self._values(self._cast_rare(array))

    def _cast_rare(self, array: Any) -> Any:
        """Convert a type that is equivalent to another one with a different layout."""
        import pyarrow as pa
        import pyarrow.compute as pc

        text = str(array.type)
        if text in ("string_view", "binary_view"):
            return array.cast(pa.large_string() if text == "string_view" else pa.large_binary())
        if text.startswith("run_end_encoded"):
            return pc.run_end_decode(array)
        if pa.types.is_dictionary(array.type):  # within a list
            return array.dictionary_decode()
        hint: str = next((hint for word, hint in _HINTS.items() if word in text), "")
        if pa.types.is_decimal(array.type):
            given = Option("schema", {self.name: Feature("float64")})
            hint = Text(given, " stores floats, 'str' every digit")
        raise SourceError(
            f"expected numbers, texts, times or lists of them, got {text}",
            where=f"column {self.name!r}",
            hint=hint or "cast it, or drop the column",
        )

    def _extension(self, array: Any) -> Any:
        if hasattr(array, "to_numpy_ndarray") and not array.null_count:  # tensors of one shape
            return array.to_numpy_ndarray()
        return self._values(array.storage)

    def _lists(self, array: Any) -> Any:
        import pyarrow as pa

        items = array.flatten()  # skips items of null lists
        if items.null_count:
            at = int(np.flatnonzero(~_present(items))[0])
            row = int(np.searchsorted(_splits_of(array), at, "right")) - 1
            raise SourceError(
                f"column {self.name!r}: expected a list without nulls in it", where=f"record {row}"
            )
        values = self._values(items)
        if not pa.types.is_fixed_size_list(array.type) or isinstance(values, Ragged):
            return Ragged(values, _splits_of(array))
        return _reshape(values, array)


def _reshape(values: Any, array: Any) -> Any:
    """Return lists of one size: a dimension of the array, or of the shape of texts."""
    size = array.type.list_size
    rows = len(array) - array.null_count
    present = _present(array) if array.null_count else slice(None)
    if isinstance(values, BytesColumn):
        slices = np.zeros((len(array), size, *values.shape[1:], 2), np.int64)
        slices[present] = values.slices.reshape(rows, size, *values.shape[1:], 2)
        shape = slices.shape[:-1]
        return BytesColumn(values.buffer, slices, is_text=values.is_text, shape=shape)
    shaped = values.reshape(rows, size, *values.shape[1:])
    if not array.null_count:
        return shaped
    blank = np.zeros((len(array), *shaped.shape[1:]), shaped.dtype)
    blank[present] = shaped
    return blank


def _numbers(array: Any) -> NDArray[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if array.null_count:
        blank = False if pa.types.is_boolean(array.type) else 0
        array = pc.fill_null(array, pa.scalar(blank).cast(array.type))
    numbers: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return numbers


def _times(array: Any) -> NDArray[Any]:
    """Return times as NumPy's; times with a zone are converted to UTC."""
    import pyarrow as pa

    kind = array.type
    unit = "D" if pa.types.is_date32(kind) else "ms" if pa.types.is_date64(kind) else kind.unit
    is_span = pa.types.is_duration(kind) or pa.types.is_time(kind)
    narrow = pa.types.is_date32(kind) or pa.types.is_time32(kind)
    numbers = array.cast(pa.int32()).cast(pa.int64()) if narrow else array.cast(pa.int64())
    return _numbers(numbers).view(f"{'m' if is_span else 'M'}8[{unit}]")


def _strings(array: Any) -> BytesColumn:
    import pyarrow as pa

    kind = array.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    _, offsets, data = array.buffers()
    count = len(array)
    width: Any = np.int64 if is_large else np.int32
    if offsets is None or not offsets.size:
        return BytesColumn(b"", np.zeros((count, 2), np.int64), is_text=is_text)
    ends = np.frombuffer(offsets, width)[array.offset : array.offset + count + 1]
    slices = np.empty((count, 2), np.int64)
    slices[:, 0] = ends[:-1]
    np.subtract(ends[1:], ends[:-1], out=slices[:, 1])
    if array.null_count:
        slices[~_present(array)] = 0
    buffer: Any = b"" if data is None else np.frombuffer(data, np.uint8)
    return BytesColumn(buffer, slices, is_text=is_text)
