"""The columns of a pandas DataFrame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.columns import Masked
from datum.errors import SourceError
from datum.sources.arrow_columns import FoundColumns, check_names, combine
from datum.sources.object_columns import add_objects

__all__ = ["add_series", "convert_frame"]


def convert_frame(frame: Any, *, index: bool | None = None) -> FoundColumns:
    """The columns of a DataFrame, and of its index if that is named, or asked for by `index`.

    An index without a name is kept as `index` where it is more than numbers of rows; integers that
    do not count the rows, as rows that were chosen have them, are left out with a note.

    What pandas takes for missing is absent, but NaN stays NaN in columns of floats.
    """
    found = FoundColumns()
    named = list(_index_columns(frame, index))
    named += [(_name_of(label), frame.iloc[:, at]) for at, label in enumerate(frame.columns)]
    hint = "frame.columns = [...] gives them new ones"
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
        is_telling = values.name is not None or getattr(values.dtype, "kind", "O") not in "iu"
        if not (wanted or (wanted is None and (is_telling or frame.index.nlevels > 1))):
            continue
        if values.name is not None:
            yield _name_of(values.name), values
        else:
            name = "index" if frame.index.nlevels == 1 else f"index_{level}"
            yield f"{name}_of_frame" if name in frame.columns else name, values


def add_series(name: str, series: Any, found: FoundColumns) -> None:
    """Add the column of a Series or Index to those found."""
    dtype = series.dtype
    kind = type(dtype).__name__
    if kind == "CategoricalDtype":
        _add_categories(name, series, found)
    elif kind == "DatetimeTZDtype":
        moments = series.to_numpy(f"datetime64[{dtype.unit}]")  # in UTC
        found.columns[name] = _without_nat(moments)
    elif kind == "SparseDtype":
        found.columns[name] = np.asarray(series)
    elif not isinstance(dtype, np.dtype):
        _add_extension(name, series, found)
    elif dtype.kind == "O":
        add_objects(name, _objects(series), found)
    else:
        found.columns[name] = _without_nat(series.to_numpy())


def _objects(series: Any) -> list[Any]:
    """The values, None for what pandas takes for missing."""
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


def _add_categories(name: str, series: Any, found: FoundColumns) -> None:
    """Ids of the categories, whose names are kept, if they are texts; else their values."""
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


def _add_extension(name: str, series: Any, found: FoundColumns) -> None:
    import pyarrow as pa

    try:
        array = pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SourceError(
            f"expected a type that Arrow has too, got {series.dtype}: {error}",
            where=f"column {name!r}",
        ) from error
    if isinstance(array.type, pa.BaseExtensionType):  # periods, intervals
        raise SourceError(
            f"expected numbers, texts or times, got {series.dtype}",
            where=f"column {name!r}",
            hint="convert it, for example with .astype(str)",
        )
    found.add(name, combine(pa.chunked_array([array]) if isinstance(array, pa.Array) else array))
