"""Columns from Python objects: lists of values, and DataFrames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.columns import Masked, Ragged
from datum.errors import Message, SchemaError, SourceError
from datum.schema import Feature, InexactError, SchemaGuess, as_array, numpy_dtype
from datum.sources.arrow_columns import ConvertedColumns, check_names, combine
from datum.sources.nested_rows import NestedLists, holds_dicts

__all__ = [
    "add_objects",
    "add_series",
    "convert_frame",
]


def add_objects(name: str, values: Sequence[Any], found: ConvertedColumns) -> None:
    """Add a column of `values`, None where a record has none.

    Dicts add a column for each of their names; values without a common type stay a list.
    """
    kinds = set(map(type, values)) - {type(None)}
    if not kinds:
        found.metadata[name] = {"left_out": "no record has a value"}
    elif all(issubclass(kind, Mapping) for kind in kinds):
        for inner in dict.fromkeys(key for row in values if row is not None for key in row):
            parts = [None if row is None else row.get(inner) for row in values]
            add_objects(f"{name}/{inner}", parts, found)
    elif any(issubclass(kind, Mapping) for kind in kinds):
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise SourceError(f"expected only dicts or None, got {names}", where=f"column {name!r}")
    elif any(map(holds_dicts, values)):
        _add_nested(name, values, found)
    elif name in found.columns:
        raise SourceError(f"expected columns of different names, got {name!r} twice")
    elif kinds in ({str}, {bytes}):
        found.columns[name] = _strings(name, values, is_text=kinds == {str})
    else:
        feature = _feature_of(name, values)
        if feature is None:  # all values are None or equivalent
            found.metadata[name] = {"left_out": "no record has a value"}
        else:
            found.columns[name] = _typed(values, feature)


def _add_nested(name: str, values: Sequence[Any], found: ConvertedColumns) -> None:
    """Add lists of dicts, as a column of lists for each of their names."""
    nested = NestedLists()
    rows = [{name: value} for value in values]
    nested.learn(rows)
    flat = nested.flatten(rows)
    if any(row.get(name) is not None for row in flat):
        raise SourceError(
            "expected only lists of dicts, got other values among them", where=f"column {name!r}"
        )
    for inner in dict.fromkeys(key for row in flat for key in row):
        add_objects(inner, [row.get(inner) for row in flat], found)
        if inner in found.columns:
            found.columns[inner] = _as_ragged(inner, found.columns[inner])
    found.filled.update(nested.filled)


def _as_ragged(name: str, column: Any) -> Any:
    """Return lists as `Ragged` even if all have the same length."""
    feature = _feature_of(name, list(column))
    if (
        feature is None
        or isinstance(column, Ragged)
        or isinstance(getattr(column, "values", 0), Ragged)
    ):
        return column
    rows = [row.tolist() if isinstance(row, np.ndarray) else row for row in column]
    present = np.array([row is not None for row in rows])
    dtype = None if feature.is_string else numpy_dtype(feature.dtype)
    given = [[] if row is None else row for row in rows]
    ragged = Ragged.from_rows(given, dtype=dtype, levels=len(feature.shape))
    return ragged if present.all() else Masked(ragged, present)


def _strings(name: str, values: Sequence[Any], *, is_text: bool) -> Any:
    import pyarrow as pa

    try:
        array = pa.array(values, pa.large_string() if is_text else pa.large_binary())
    except UnicodeEncodeError as error:
        record = next(at for at, value in enumerate(values) if value == error.object)
        raise SourceError(
            f"column {name!r}: expected text that UTF-8 can encode, got {error.object!r}",
            where=f"record {record}",
        ) from None
    column = ConvertedColumns()
    column.add(name, array)
    return column.columns[name]


def _feature_of(name: str, values: Sequence[Any]) -> Feature | None:
    guess = SchemaGuess()
    try:
        guess.add_columns({name: list(values)})
        return guess.to_schema().get(name)
    except SchemaError as error:
        raise SourceError(error) from error


def _typed(values: Sequence[Any], feature: Feature) -> Any:
    """Return an array or `Ragged` of the values if they fit into one; else the list itself."""
    if feature.encoding not in ("values", "raw") or feature.is_string:
        return list(values)
    present = np.fromiter((value is not None for value in values), np.bool_, len(values))
    given = [value for value in values if value is not None]
    try:
        column = _ragged(given, feature) if None in feature.shape else _dense(given, feature)
    except (InexactError, TypeError, ValueError):
        return list(values)
    return column if present.all() else Masked(_spread(column, present), present)


def _dense(values: list[Any], feature: Feature) -> NDArray[Any]:
    array = as_array(values, feature.dtype)
    if array.shape != (len(values), *feature.shape):
        raise ValueError(Message("expected values of one shape"))
    return array


def _ragged(values: list[Any], feature: Feature) -> Ragged:
    if feature.shape != (None,):
        raise ValueError(Message("expected rows of single values"))
    splits = np.concatenate([[0], np.cumsum([len(row) for row in values], dtype=np.int64)])
    if all(isinstance(row, (list, tuple)) for row in values):
        items = [item for row in values for item in row]
        return Ragged(as_array(items, feature.dtype), splits)
    arrays = [as_array(row, feature.dtype) for row in values]
    blank = np.empty(0, numpy_dtype(feature.dtype))
    return Ragged(np.concatenate([blank, *arrays]), splits)


def _spread(column: Any, present: NDArray[np.bool_]) -> Any:
    """Return the column with blanks where nothing is present."""
    if isinstance(column, Ragged):
        lengths = np.zeros(len(present), np.int64)
        lengths[present] = column.row_lengths
        return Ragged(column.values, np.concatenate([[0], np.cumsum(lengths)]))
    blank = np.zeros((len(present), *column.shape[1:]), column.dtype)
    blank[present] = column
    return blank


def convert_frame(frame: Any, *, index: bool | None = None) -> ConvertedColumns:
    """Return the columns of a DataFrame, and of its index if it has a name or `index` is True.

    An index without a name is kept as `index` unless it contains integers. Integers that do not
    number the rows, such as those of selected rows, are left out with a note.

    Values that pandas regards as missing are absent, but NaN stays NaN in columns of floats.
    """
    found = ConvertedColumns()
    named = list(_index_columns(frame, index))
    named += [(_name_of(label), frame.iloc[:, at]) for at, label in enumerate(frame.columns)]
    hint = "frame.columns = [...] renames them"
    check_names([name for name, _ in named], hint)
    for name, series in named:
        add_series(name, series, found)
    if index is None and _is_left_out(frame.index):
        found.notes.append(
            "the index of the DataFrame, integers without a name, is left out"
            " (frame.reset_index() makes it a column)"
        )
    return found


def _is_left_out(index: Any) -> bool:
    is_plain = index.nlevels == 1 and index.name is None and index.dtype.kind in "iu"
    return is_plain and not np.array_equal(index.to_numpy(), np.arange(len(index)))


def _name_of(label: Any) -> str:
    return "/".join(map(str, label)) if isinstance(label, tuple) else str(label)


def _index_columns(frame: Any, wanted: bool | None) -> Iterator[tuple[str, Any]]:
    for level in range(frame.index.nlevels):
        values = frame.index.get_level_values(level)
        is_informative = values.name is not None or getattr(values.dtype, "kind", "O") not in "iu"
        if not (wanted or (wanted is None and (is_informative or frame.index.nlevels > 1))):
            continue
        if values.name is not None:
            yield _name_of(values.name), values
        else:
            name = "index" if frame.index.nlevels == 1 else f"index_{level}"
            yield f"{name}_of_frame" if name in frame.columns else name, values


def add_series(name: str, series: Any, found: ConvertedColumns) -> None:
    """Add the column of a Series or Index."""
    import pandas as pd

    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        _add_categories(name, series, found)
    elif isinstance(dtype, pd.DatetimeTZDtype):
        moments = series.to_numpy(f"datetime64[{dtype.unit}]")  # in UTC
        found.columns[name] = _without_nat(moments)
    elif isinstance(dtype, pd.SparseDtype):
        found.columns[name] = np.asarray(series)
    elif not isinstance(dtype, np.dtype):
        _add_extension(name, series, found)
    elif dtype.kind == "O":
        add_objects(name, _objects(series), found)
    else:
        found.columns[name] = _without_nat(series.to_numpy())


def _objects(series: Any) -> list[Any]:
    """Return the values, None for those that pandas regards as missing."""
    values: list[Any] = series.to_numpy().tolist()
    missing = series.isna()
    if not missing.any():
        return values
    return [None if gone else value for value, gone in zip(values, missing, strict=True)]


def _without_nat(array: NDArray[Any]) -> Any:
    if array.dtype.kind not in "mM" or not np.isnat(array).any():
        return array
    present = ~np.isnat(array)
    return Masked(np.where(present, array, np.zeros(1, array.dtype)), present)


def _add_categories(name: str, series: Any, found: ConvertedColumns) -> None:
    """Add ids, and keep the names of the categories, if those are texts; else add the values."""
    held = getattr(series, "cat", series)  # an index is its own accessor
    labels = held.categories
    if not all(isinstance(label, str) for label in labels):
        values = series.astype(labels.dtype if not series.isna().any() else object)
        add_series(name, values, found)
        return
    codes = np.asarray(held.codes, np.int64)
    present = codes >= 0
    found.columns[name] = codes if present.all() else Masked(np.where(present, codes, 0), present)
    found.metadata[name] = {"class_names": list(labels)}


def _add_extension(name: str, series: Any, found: ConvertedColumns) -> None:
    import pyarrow as pa

    try:
        array = pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SourceError(
            f"expected a type that Arrow supports, got {series.dtype}: {error}",
            where=f"column {name!r}",
        ) from error
    if isinstance(array.type, pa.BaseExtensionType):  # periods, intervals
        raise SourceError(
            f"expected numbers, texts or times, got {series.dtype}",
            where=f"column {name!r}",
            hint="convert it, for example with .astype(str)",
        )
    found.add(name, combine(pa.chunked_array([array]) if isinstance(array, pa.Array) else array))
