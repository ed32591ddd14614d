"""All records of a split as one table: of Arrow, or of pandas."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from datum._optional import require
from datum.columns import Masked
from datum.errors import SchemaError
from datum.reading.arrow_arrays import to_arrow, type_of
from datum.reading.rows import row_values
from datum.schema import Feature, Schema, numpy_dtype

if TYPE_CHECKING:
    import pyarrow as pa

    from datum.reading.split import Split

__all__ = ["arrow_schema", "bounded_batches", "to_arrow_table", "to_data_frame"]

BATCH_BYTES = 32 * 2**20  # of records, made columns at a time
BATCH_RECORDS = 65_536
_COARSE_UNITS = ("D", "h", "m")  # those that pandas has not


def bounded_batches(split: Split, schema: Schema) -> Iterator[tuple[dict[str, Any], int]]:
    """The records in order as columns, with how many there are; few where they are large."""
    total = len(split)
    nbytes = sum(run.shard.bytes * len(run) // max(run.shard.records, 1) for run in split.runs)
    size = max(1, min(BATCH_RECORDS, BATCH_BYTES * total // max(nbytes, 1)))
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
        raise ValueError("expected `columns` to name at least one feature, got none")
    return chosen


class _Classes:
    """The names of classes, by feature: of single integers whose names differ from one another."""

    def __init__(self, split: Split, schema: Schema, *, is_wanted: bool) -> None:
        self._where = f"split {split.name!r}"
        self._names: dict[str, list[str]] = {}
        for name, feature in schema.items() if is_wanted else ():
            names: Any = split.metadata.get(name, {}).get("class_names")
            is_id = not feature.shape and numpy_dtype(feature.dtype).kind in "iu"
            if is_id and feature.encoding != "sparse" and _are_names(names):
                self._names[name] = list(names)

    def get(self, name: str) -> list[str] | None:
        """The names of the classes of a feature; None if its values stay as they are."""
        return self._names.get(name)

    def check(self, name: str, column: Any, first: int) -> None:
        """Refuse ids that have no name; `first` is the number of the first record."""
        values, present = _unmasked(column)
        is_wrong = (values < 0) | (values >= len(self._names[name]))
        wrong = np.flatnonzero(is_wrong if present is None else is_wrong & present)
        if len(wrong):
            at = int(wrong[0])
            raise SchemaError(
                f"record {first + at}, feature {name!r}: expected a class of 0 to"
                f" {len(self._names[name]) - 1}, got {values[at]}",
                where=self._where,
                hint="class_names=False gives the ids as they are",
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
    """The types of the columns, with what Datum knows of them as metadata of the key `datum`."""
    import pyarrow as pa

    known = {name: found for name, found in metadata.items() if name in schema}
    told = json.dumps({"schema": schema.to_json(), "metadata": known})
    fields = [
        pa.field(name, type_of(feature), nullable=_may_be_null(feature))
        for name, feature in schema.items()
    ]
    return pa.schema(fields, metadata={"datum": told})


def _may_be_null(feature: Feature) -> bool:
    """Whether a record may lack it, or hold a time that is none."""
    return feature.optional or feature.dtype.startswith(("datetime64", "timedelta64"))


def to_arrow_table(split: Split, columns: Iterable[str] | None, *, class_names: bool) -> pa.Table:
    """The records as a table of Arrow, a chunk for each batch that is read."""
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
            # Values of their own: a column of strings would hold on to all of its records.
            pieces[name].append(column if _is_number(feature) else list(row_values(column)))
        first += count
    made = {}
    for name, feature in schema.items():
        made[name] = _pandas_column(pd, feature, pieces.pop(name), classes.get(name))
    return pd.DataFrame(made, index=pd.RangeIndex(len(split)))


def _is_number(feature: Feature) -> bool:
    """Whether each record has a single number, or a single time."""
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
    """Numbers and times of types that pandas has: NaN and NaT where there is none."""
    if numbers.dtype.name == "bfloat16":
        numbers = numbers.astype(np.float32)
    if numbers.dtype.kind in "mM" and np.datetime_data(numbers.dtype)[0] in _COARSE_UNITS:
        numbers = numbers.astype(f"{numbers.dtype.kind}8[s]")
    if absent.any():
        numbers[absent] = np.nan if numbers.dtype.kind in "fc" else "NaT"
    return numbers


def _as_cells(values: list[Any]) -> NDArray[np.object_]:
    """An object for each record; NumPy itself would look into arrays of one shape."""
    cells = np.empty(len(values), object)
    for at, value in enumerate(values):
        cells[at] = value
    return cells
