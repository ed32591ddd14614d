"""Records as rows, Arrow tables and pandas DataFrames."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from datum._optional import require
from datum._read.shards import bytes_of
from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import Message, Option, SchemaError, SourceError, Text
from datum.schema import Feature, Schema, numpy_dtype

if TYPE_CHECKING:
    import pyarrow as pa

    from datum._read.split import Split

__all__ = [
    "arrow_schema",
    "bounded_batches",
    "iterate_rows",
    "row_values",
    "single_row",
    "to_arrow",
    "to_arrow_table",
    "to_data_frame",
    "type_of",
]


def iterate_rows(
    batch: dict[str, Any],
    schema: Schema,
    numbers: Sequence[int] | NDArray[np.int64],
    *,
    where: str,
) -> Iterator[dict[str, Any]]:
    """The records of a batch, as dicts.

    Numbers are NumPy scalars and arrays of their dtype, texts and byte strings `str` and `bytes`,
    or lists of these. Ragged values are arrays, or lists of arrays if rows within a record differ
    in length; sparse ones are `Sparse`; missing ones are None. An image is decoded when its record
    is taken.

    Args:
        batch: Parsed columns.
        schema: Schema of the columns.
        numbers: Number of each record, for messages.
        where: Description of the records, for messages.
    """
    names, images = _plan(schema)
    if not names:
        return ({} for _ in numbers)
    columns = [row_values(batch[name]) for name in names]
    for at, feature in images:
        columns[at] = _decode_images(columns[at], feature, numbers, (where, names[at]))
    # All in C except for images, since there may be many small records.
    return map(dict, map(zip, repeat(names), zip(*columns, strict=True)))


def single_row(batch: dict[str, Any], schema: Schema, number: int, *, where: str) -> dict[str, Any]:
    """The only record of a batch, as `iterate_rows` returns it, but faster."""
    record = {
        name: column[0] if type(column) is np.ndarray else next(iter(row_values(column)))
        for name, column in batch.items()
    }
    names, images = _plan(schema)
    for at, feature in images:
        name = names[at]
        record[name] = next(_decode_images([record[name]], feature, [number], (where, name)))
    return record


@functools.lru_cache(maxsize=64)
def _plan(schema: Schema) -> tuple[tuple[str, ...], list[tuple[int, Feature]]]:
    """The names of the columns, and the places and features of images among them."""
    features = list(schema.values())
    images = [(at, one) for at, one in enumerate(features) if one.encoding == "image"]
    return tuple(schema), images


def row_values(column: Any) -> Iterable[Any]:
    """The value of each record of a column; images stay encoded."""
    if type(column) is np.ndarray:  # by far the most frequent
        return column
    if isinstance(column, Masked):
        present = column.present.tolist()
        values = zip(row_values(column.values), present, strict=True)
        return (value if is_there else None for value, is_there in values)
    if isinstance(column, Ragged):
        return _ragged_values(column)
    if isinstance(column, Sparse):
        return _sparse_values(column)
    strings: BytesColumn = column
    return strings.to_list()


def _ragged_values(column: Ragged) -> list[Any]:
    """Arrays, lists of arrays if rows within a record differ in length, and lists of texts."""
    levels, values = [column.row_splits], column.values
    while isinstance(values, Ragged):
        levels.append(values.row_splits)
        values = values.values
    if isinstance(values, np.ndarray) and len(levels) > 1:
        return [_nested_value(column, levels, values, at) for at in range(len(column))]
    items: Any = values if len(levels) == 1 else column.values
    items = items if isinstance(items, np.ndarray) else list(row_values(items))
    return [items[start:end] for start, end in pairwise(column.row_splits.tolist())]


def _nested_value(
    column: Ragged, levels: Sequence[NDArray[np.int64]], values: NDArray[Any], at: int
) -> Any:
    """The value of a record: a view as one array if all its rows have one length."""
    first, last = at, at + 1
    shape: list[int] = []
    for splits in levels:
        lengths = np.diff(splits[first : last + 1])
        if len(lengths) and (lengths != lengths[0]).any():
            return _ragged_values(column[at])
        shape.append(int(lengths[0]) if len(lengths) else 0)
        first, last = int(splits[first]), int(splits[last])
    return values[first:last].reshape(*shape, *values.shape[1:])


def _sparse_values(column: Sparse) -> Iterator[Sparse]:
    """Find all rows at once: `Sparse` itself would search all values for each row."""
    ends = np.searchsorted(column.indices[:, 0], np.arange(len(column) + 1)).tolist()
    for start, end in pairwise(ends):
        values: Any = column.values[start:end]
        yield Sparse(column.indices[start:end, 1:], values, column.dense_shape[1:])


def _decode_images(
    values: Iterable[Any],
    feature: Feature,
    numbers: Sequence[int] | NDArray[np.int64],
    place: tuple[str, str],
) -> Iterator[Any]:
    from datum.images import decode  # imports Pillow, which not every dataset needs

    for data, number in zip(values, numbers, strict=True):
        try:
            pixels = None if data is None else decode(data, feature)
            # Images of Pillow are read-only, which makes PyTorch warn.
            yield np.require(pixels, requirements="W") if type(pixels) is np.ndarray else pixels
        except SourceError as error:
            where, name = place
            where = f"{where}, record {number}, feature {name!r}"
            raise SourceError(error, where=where) from error


_COARSE = {"D": 86_400, "h": 3_600, "m": 60}  # seconds in units that Arrow lacks


def type_of(feature: Feature) -> pa.DataType:
    """The Arrow type of the column of a feature."""
    import pyarrow as pa

    if feature.encoding == "image":
        feature = Feature("bytes", feature.shape[:-3])
    item = _item_type(feature.dtype)
    if feature.encoding == "sparse":
        place = pa.int64() if len(feature.shape) == 1 else pa.list_(pa.int64(), len(feature.shape))
        return pa.struct([("indices", pa.list_(place)), ("values", pa.list_(item))])
    for length in reversed(feature.shape):
        item = pa.list_(item) if length is None else pa.list_(item, length)
    return item


def _item_type(dtype: str) -> pa.DataType:
    import pyarrow as pa

    if dtype in ("str", "bytes"):
        return pa.string() if dtype == "str" else pa.binary()
    if dtype == "bfloat16":
        return pa.float32()
    if dtype.startswith("complex"):
        part = pa.float32() if dtype == "complex64" else pa.float64()
        return pa.struct([("real", part), ("imag", part)])
    if "64[" in dtype:
        unit = dtype[dtype.index("[") + 1 : -1]
        if dtype == "datetime64[D]":
            return pa.date32()
        unit = "s" if unit in _COARSE else unit
        return pa.timestamp(unit) if dtype.startswith("datetime") else pa.duration(unit)
    return pa.from_numpy_dtype(np.dtype(dtype))


def to_arrow(column: Any, feature: Feature) -> pa.Array:
    """A parsed column as an Arrow array; missing values are null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, Masked):
        values = to_arrow(column.values, feature)
        present = pa.array(column.present)
        return pc.if_else(present, values, pa.scalar(None, values.type))
    if isinstance(column, Sparse):
        return _sparse(column, feature)
    if isinstance(column, np.ndarray) and column.dtype == object:
        return _tensors(column, feature)
    return _nested(column, type_of(feature))


def _nested(column: Any, kind: Any) -> Any:
    """Items in nested lists, like those of the column."""
    import pyarrow as pa

    if isinstance(column, Ragged):
        items = _nested(column.values, kind.value_type)
        return pa.ListArray.from_arrays(pa.array(column.row_splits, pa.int32()), items, type=kind)
    if isinstance(column, BytesColumn):
        inner = _innermost(kind)
        flat = pa.array(column.to_numpy().reshape(-1).tolist(), inner)
        return _wrap(flat, column.shape, inner)
    array: NDArray[Any] = column
    flat = _items(np.ascontiguousarray(array).reshape(-1), _innermost(kind))
    return _wrap(flat, array.shape, _innermost(kind))


def _innermost(kind: Any) -> Any:
    import pyarrow as pa

    while pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        kind = kind.value_type
    return kind


def _wrap(flat: Any, shape: Sequence[int], inner: Any) -> Any:
    """Items in lists of a fixed size for each dimension except the first."""
    import pyarrow as pa

    if math.prod(shape[1:]) == 0:  # without items, their number does not imply that of lists
        kind = inner
        for length in reversed(shape[1:]):
            kind = pa.list_(kind, length)
        return pa.array(np.empty(shape, object).tolist(), kind)
    for length in reversed(shape[1:]):
        flat = pa.FixedSizeListArray.from_arrays(flat, length)
    return flat


def _items(flat: NDArray[Any], kind: Any) -> Any:
    import pyarrow as pa

    if flat.dtype.kind == "c":
        parts = [pa.array(np.ascontiguousarray(part)) for part in (flat.real, flat.imag)]
        return pa.StructArray.from_arrays(parts, ["real", "imag"])
    if flat.dtype.kind in "mM":
        return _times(flat, kind)
    if flat.dtype.name == "bfloat16":
        flat = flat.astype(np.float32)
    return pa.array(flat, kind)


def _times(flat: NDArray[Any], kind: Any) -> Any:
    """Counts of the unit; NaT is null."""
    import pyarrow as pa

    unit = np.datetime_data(flat.dtype)[0]
    counts = flat.view(np.int64)
    if pa.types.is_date32(kind):
        return pa.array(counts, pa.int32(), mask=np.isnat(flat)).cast(kind)
    if unit in _COARSE:
        counts = np.where(np.isnat(flat), 0, counts) * _COARSE[unit]
    return pa.array(counts, pa.int64(), mask=np.isnat(flat)).cast(kind)


def _sparse(column: Sparse, feature: Feature) -> Any:
    import pyarrow as pa

    kind = type_of(feature)
    ends = np.searchsorted(column.indices[:, 0], np.arange(len(column) + 1))
    offsets = pa.array(ends, pa.int32())
    places = column.indices[:, 1:]
    places = places.reshape(-1) if places.shape[1] == 1 else places
    indices = pa.ListArray.from_arrays(offsets, _nested(places, kind.field(0).type.value_type))
    values = pa.ListArray.from_arrays(
        offsets, _nested(column.values, kind.field(1).type.value_type)
    )
    return pa.StructArray.from_arrays(
        [indices.cast(kind.field(0).type), values.cast(kind.field(1).type)],
        fields=list(kind),
    )


def _tensors(column: NDArray[Any], feature: Feature) -> Any:
    """Arrays of several shapes, each as nested lists."""
    import pyarrow as pa

    kind = type_of(feature)
    pieces = []
    for tensor in column.tolist():
        if tensor is None:
            pieces.append(pa.nulls(1, kind))
            continue
        items = _items(np.ascontiguousarray(tensor).reshape(-1), _innermost(kind))
        pieces.append(_as_lists(items, tensor.shape, kind))
    return pa.concat_arrays(pieces) if pieces else pa.array([], kind)


def _as_lists(items: Any, shape: Sequence[int], kind: Any) -> Any:
    """One value of nested lists with the lengths of a shape."""
    import pyarrow as pa

    kinds = [kind]
    while len(kinds) < len(shape):
        kinds.append(kinds[-1].value_type)
    for at in reversed(range(len(shape))):
        count, length = math.prod(shape[:at]), shape[at]
        if pa.types.is_fixed_size_list(kinds[at]):
            items = pa.FixedSizeListArray.from_arrays(items, type=kinds[at])
        else:
            offsets = pa.array(np.arange(count + 1) * length, pa.int32())
            items = pa.ListArray.from_arrays(offsets, items, type=kinds[at])
    return items


BATCH_BYTES = 32 * 2**20  # records converted at a time
BATCH_RECORDS = 65_536
_COARSE_UNITS = ("D", "h", "m")  # units that pandas lacks


def bounded_batches(split: Split, schema: Schema) -> Iterator[tuple[dict[str, Any], int]]:
    """Batches of columns in order, with their number of records, of a limited size."""
    total = len(split)
    size = max(1, min(BATCH_RECORDS, BATCH_BYTES * total // max(bytes_of(split.runs), 1)))
    left = total
    for batch in split.batches(size, columns=list(schema), threads=2):
        count = min(size, left)
        left -= count
        yield batch, count


def _selected(split: Split, columns: Iterable[str] | None) -> Schema:
    if columns is None:
        return split.schema
    chosen = split.schema.select([columns] if isinstance(columns, str) else columns)
    if not chosen:
        problem = Text("expected ", Option("columns"), " to name at least one feature, got none")
        raise ValueError(Message(problem))
    return chosen


class _Classes:
    """Class names of features that are single integers, if the names are unique.

    Args:
        split: The records, with metadata.
        schema: Features to convert.
        is_wanted: Whether class ids are replaced by names at all.
    """

    def __init__(self, split: Split, schema: Schema, *, is_wanted: bool) -> None:
        self._where = f"split {split.name!r}"
        self._names: dict[str, list[str]] = {}
        for name, feature in schema.items() if is_wanted else ():
            names: Any = split.metadata.get(name, {}).get("class_names")
            is_id = not feature.shape and numpy_dtype(feature.dtype).kind in "iu"
            if is_id and feature.encoding != "sparse" and _are_names(names):
                self._names[name] = list(names)

    def get(self, name: str) -> list[str] | None:
        """The class names of a feature; None if its values stay as they are."""
        return self._names.get(name)

    def check(self, name: str, column: Any, first: int) -> None:
        """Raise SchemaError for ids without a name; `first` is the number of the first record."""
        values, present = _unmasked(column)
        is_wrong = (values < 0) | (values >= len(self._names[name]))
        wrong = np.flatnonzero(is_wrong if present is None else is_wrong & present)
        if len(wrong):
            at = int(wrong[0])
            raise SchemaError(
                f"record {first + at}, feature {name!r}: expected a class of 0 to"
                f" {len(self._names[name]) - 1}, got {values[at]}",
                where=self._where,
                hint="class_names=False keeps the ids",
                feature=name,
            )


def _are_names(names: Any) -> bool:
    is_list = isinstance(names, Sequence) and not isinstance(names, str)
    return is_list and all(isinstance(n, str) for n in names) and 0 < len(names) == len(set(names))


def _unmasked(column: Any) -> tuple[Any, NDArray[np.bool_] | None]:
    if isinstance(column, Masked):
        return column.values, column.present
    return column, None


# Arrow.


def arrow_schema(schema: Schema, metadata: Mapping[str, Mapping[str, Any]]) -> pa.Schema:
    """The Arrow types of the columns, with schema and metadata as JSON under the key `datum`."""
    import pyarrow as pa

    known = {name: found for name, found in metadata.items() if name in schema}
    description = json.dumps({"schema": schema.to_json(), "metadata": known})
    fields = [
        pa.field(name, type_of(feature), nullable=_may_be_null(feature))
        for name, feature in schema.items()
    ]
    return pa.schema(fields, metadata={"datum": description})


def _may_be_null(feature: Feature) -> bool:
    """Whether a record may lack the feature, or have NaT."""
    return feature.optional or feature.dtype.startswith(("datetime64", "timedelta64"))


def to_arrow_table(split: Split, columns: Iterable[str] | None, *, class_names: bool) -> pa.Table:
    """The records as an Arrow table, with a chunk for each batch."""
    import pyarrow as pa

    schema = _selected(split, columns)
    classes = _Classes(split, schema, is_wanted=class_names)
    types = arrow_schema(schema, split.metadata)
    dictionaries = {}
    for at, name in enumerate(schema):
        names = classes.get(name)
        if names is not None:
            dictionaries[name] = pa.array(names, pa.string())
            kind = pa.dictionary(pa.int32(), pa.string())
            types = types.set(at, types.field(at).with_type(kind))
    chunks = []
    first = 0
    for batch, count in bounded_batches(split, schema):
        arrays = []
        for name, feature in schema.items():
            array = to_arrow(batch[name], feature)
            if name in dictionaries:
                classes.check(name, batch[name], first)
                ids = array.cast(pa.int32())
                array = pa.DictionaryArray.from_arrays(ids, dictionaries[name])
            arrays.append(array)
        chunks.append(pa.RecordBatch.from_arrays(arrays, schema=types))
        first += count
    return pa.Table.from_batches(chunks, schema=types)


# pandas.


def to_data_frame(split: Split, columns: Iterable[str] | None, *, class_names: bool) -> Any:
    """The records as a DataFrame."""
    pd = require("pandas", purpose="`Split.to_pandas`")
    schema = _selected(split, columns)
    classes = _Classes(split, schema, is_wanted=class_names)
    pieces: dict[str, list[Any]] = {name: [] for name in schema}
    first = 0
    for batch, count in bounded_batches(split, schema):
        for name, feature in schema.items():
            column = batch[name]
            if classes.get(name) is not None:
                classes.check(name, column, first)
            # Copies, since a column of strings would keep all of its records in memory.
            pieces[name].append(column if _is_number(feature) else list(row_values(column)))
        first += count
    made = {}
    for name, feature in schema.items():
        made[name] = _pandas_column(pd, feature, pieces.pop(name), classes.get(name))
    return pd.DataFrame(made, index=pd.RangeIndex(len(split)))


def _is_number(feature: Feature) -> bool:
    """Whether each record has a single number or time."""
    is_single = not feature.shape and feature.encoding in ("values", "raw")
    return is_single and not feature.is_string


def _pandas_column(pd: Any, feature: Feature, pieces: list[Any], names: list[str] | None) -> Any:
    if not _is_number(feature):
        values = [value for piece in pieces for value in piece]
        is_text = feature.dtype == "str" and not feature.shape and feature.encoding != "sparse"
        return pd.array(values, dtype="string") if is_text else _as_cells(values)
    may_lack = feature.optional and feature.default is None
    dtype = numpy_dtype(feature.dtype)
    parts = [_unmasked(piece) for piece in pieces]
    numbers = np.concatenate([np.empty(0, dtype), *(values for values, _ in parts)])
    absent = np.zeros(len(numbers), np.bool_)
    if may_lack and parts:
        masks = [np.ones(len(v), np.bool_) if there is None else there for v, there in parts]
        absent = ~np.concatenate(masks)
    if names is not None:
        codes = np.where(absent, -1, numbers.astype(np.int64))
        return pd.Categorical.from_codes(codes, categories=names)
    if may_lack and dtype.kind in "iu":
        return pd.arrays.IntegerArray(numbers, absent)
    if may_lack and dtype.kind == "b":
        return pd.arrays.BooleanArray(numbers, absent)
    return _with_blanks(numbers, absent)


def _with_blanks(numbers: NDArray[Any], absent: NDArray[np.bool_]) -> NDArray[Any]:
    """Numbers and times in types of pandas, with NaN and NaT for missing ones."""
    if numbers.dtype.name == "bfloat16":
        numbers = numbers.astype(np.float32)
    if numbers.dtype.kind in "mM" and np.datetime_data(numbers.dtype)[0] in _COARSE_UNITS:
        numbers = numbers.astype(f"{numbers.dtype.kind}8[s]")
    if absent.any():
        numbers[absent] = np.nan if numbers.dtype.kind in "fc" else "NaT"
    return numbers


def _as_cells(values: list[Any]) -> NDArray[np.object_]:
    """An object array of these values; NumPy itself would stack arrays of one shape."""
    cells = np.empty(len(values), object)
    for at, value in enumerate(values):
        cells[at] = value
    return cells
