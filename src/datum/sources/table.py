"""Tables in memory and in .npy and .npz files: columns, DataFrames, Arrow tables."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from datum._optional import require
from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import Call, DatumError, SourceError, Text
from datum.schema import DTYPES
from datum.schema.plain import array_of_tensor, sparse_from_scipy, sparse_from_tensor
from datum.sources.arrow_columns import ConvertedColumns, combine, convert_table
from datum.sources.files import Paths, find_files
from datum.sources.nested_rows import describe_filled
from datum.sources.object_columns import add_objects, add_series, convert_frame
from datum.sources.options import find_splits
from datum.sources.protocol import Part, SourceInfo
from datum.sources.table_part import TablePart

__all__ = [
    "ColumnTable",
    "NumpyFile",
    "is_arrow",
    "is_pandas",
]


class ColumnTable(SourceInfo):
    """A table in memory, as one split.

    `data` is a dict of columns of one length (arrays, lists, `Ragged`, `Sparse`, SciPy matrices,
    `Masked`, `BytesColumn`, Arrow arrays, pandas Series), a pandas DataFrame, or an Arrow table or
    record batch. Values are not copied if possible: do not change them before the dataset is
    written. Categories that are texts become ids, with `class_names` in the metadata.

    Args:
        data: The table.
        key: The column that names the records; it is also stored as a feature.
        index: Whether to store the index of a DataFrame; None to store one that has a name or is
            not integers. One without a name is named `index`.
        split: The name of the split.

    >>> part = ColumnTable({"x": np.arange(3), "name": ["a", None, "c"]}).parts()["train"]
    >>> part.schema
    Schema({
        'x': Feature('int64'),
        'name': Feature('str', optional=True),
    })
    """

    kind = "columns in memory"
    is_table = True

    def __init__(
        self, data: Any, *, key: str | None = None, index: bool | None = None, split: str = "train"
    ) -> None:
        if is_pandas(data, "DataFrame"):
            rows = len(data)
            found = convert_frame(data, index=index)
        elif is_arrow(data, "Table", "RecordBatch"):
            rows = data.num_rows
            found = convert_table(data)
        elif isinstance(data, Mapping):
            rows = _check_lengths(data)
            found = _convert_dict(data)
        else:
            raise SourceError(
                f"expected a dict of columns, a DataFrame or an Arrow table, got {type(data)!r}"
            )
        if not found.columns and not found.metadata:
            raise SourceError("expected a table with columns, got none")
        keys = None if key is None else found.keys(key)
        part = TablePart(
            found.columns,
            schema=found.schema() if found.features else None,
            metadata=found.metadata,
            keys=keys,
            rows=rows,
            remarks=(*found.notes, *describe_filled(found.filled)),
        )
        self._parts = {split: part}

    def parts(self) -> Mapping[str, TablePart]:
        """Return the one split."""
        return self._parts


def is_pandas(value: Any, *names: str) -> bool:
    """Return whether `value` is of a pandas class, or derived from one, of one of these names."""
    return _is_of(value, "pandas", names)


def is_arrow(value: Any, *names: str) -> bool:
    """Return whether `value` is of a pyarrow class of one of these names."""
    return _is_of(value, "pyarrow", names)


def _is_of(value: Any, package: str, names: tuple[str, ...]) -> bool:
    return any(
        base.__name__ in names and base.__module__.partition(".")[0] == package
        for base in type(value).__mro__
    )


def _check_lengths(data: Mapping[Any, Any]) -> int:
    lengths = {}
    for name, column in data.items():
        if not isinstance(name, str):
            raise SourceError(f"expected names of columns that are str, got {name!r}")
        lengths[name] = _length(name, column)
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name!r}: {length}" for name, length in lengths.items())
        hint = "splits are a dict of tables: {'train': {'x': ...}, 'test': {'x': ...}}"
        raise SourceError(
            f"expected columns of one length, got {shown}", hint=hint if find_splits(data) else ""
        )
    return next(iter(lengths.values()), 0)


def _length(name: str, column: Any) -> int:
    if getattr(column, "is_nested", False):
        return int(column.size(0))
    shape = getattr(column, "shape", None)
    if shape is not None and len(shape):
        return int(shape[0])
    if isinstance(column, (str, bytes, Mapping)) or shape == () or not hasattr(column, "__len__"):
        raise SourceError(
            f"expected an array or a list, got {type(column)!r}",
            where=f"column {name!r}",
            hint="for a single record, pass a list of one dict",
        )
    return len(column)


def _convert_dict(data: Mapping[str, Any]) -> ConvertedColumns:
    found = ConvertedColumns()
    for name, column in data.items():
        _add_column(name, column, found)
    return found


def _add_column(name: str, column: Any, found: ConvertedColumns) -> None:
    if isinstance(column, np.ma.MaskedArray):
        gone = np.asarray(np.ma.getmaskarray(column).reshape(len(column), -1).any(axis=1))
        column = Masked(np.ma.filled(column, np.zeros(1, column.dtype)[0]), ~gone)
    column = _plain_column(name, column)
    if isinstance(column, (Ragged, Sparse, Masked, BytesColumn)):
        found.columns[name] = column
    elif is_arrow(column, "Array"):
        found.add(name, column)
    elif is_arrow(column, "ChunkedArray"):
        found.add(name, combine(column))
    elif is_pandas(column, "Series", "Index"):
        add_series(name, column, found)
    elif is_pandas(column, "ExtensionArray"):
        add_series(name, _as_series(column), found)
    elif not isinstance(column, np.ndarray) and hasattr(column, "__array__"):
        _add_array(name, _as_array(name, column), found)
    elif isinstance(column, np.ndarray):
        _add_array(name, column, found)
    else:
        add_objects(name, _as_list(name, column), found)


def _plain_column(name: str, column: Any) -> Any:
    """Convert sparse matrices and tensors to `Sparse`, and nested tensors to a list."""
    if getattr(column, "is_nested", False):  # a PyTorch nested tensor
        return [_as_array(name, row) for row in column.unbind()]
    if hasattr(column, "tocoo") and hasattr(column, "tocsr"):
        return sparse_from_scipy(column)
    tensor = sparse_from_tensor(column)
    return column if tensor is None else tensor


def _as_series(column: Any) -> Any:
    import pandas as pd

    return pd.Series(column)


def _as_list(name: str, column: Any) -> Sequence[Any]:
    if isinstance(column, (list, tuple)):
        return column
    try:
        return list(column)
    except TypeError:
        raise SourceError(
            f"expected an array or a list, got {type(column)!r}", where=f"column {name!r}"
        ) from None


def _as_array(name: str, column: Any) -> NDArray[Any]:
    try:
        return array_of_tensor(column)
    except Exception as error:  # raised by the object's own __array__
        raise SourceError(f"expected an array, got: {error}", where=f"column {name!r}") from error


def _add_array(name: str, array: NDArray[Any], found: ConvertedColumns) -> None:
    kind = array.dtype.kind
    if kind == "O" or kind == "T":
        add_objects(name, array.tolist(), found)
    elif kind == "S":
        found.columns[name] = _fixed_strings(array)
    elif kind == "U":
        found.columns[name] = _texts(name, array)
    elif array.dtype.names is not None:
        for field in array.dtype.names:
            _add_array(f"{name}/{field}", array[field], found)
    elif array.dtype.name in DTYPES:
        found.columns[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
    else:
        raise SourceError(
            f"expected an array of numbers, texts or times, got {array.dtype}",
            where=f"column {name!r}",
            hint="cast it with .astype(...)",
        )


def _fixed_strings(array: NDArray[Any]) -> BytesColumn:
    """Return byte strings of one size, without NumPy's padding of zeros."""
    whole = np.ascontiguousarray(array)
    size = whole.dtype.itemsize
    slices = np.empty((whole.size, 2), np.int64)
    slices[:, 0] = np.arange(whole.size) * size
    slices[:, 1] = np.char.str_len(whole).reshape(-1)
    return BytesColumn(whole.reshape(-1).view(np.uint8), slices, shape=array.shape)


def _texts(name: str, array: NDArray[Any]) -> BytesColumn:
    flat = ConvertedColumns()
    add_objects(name, array.reshape(-1).tolist(), flat)
    if name not in flat.columns:  # no text at all
        return BytesColumn(b"", np.zeros((0, 2), np.int64), is_text=True, shape=array.shape)
    column = flat.columns[name]
    return BytesColumn(column.buffer, column.slices, is_text=True, shape=array.shape)


MAX_INFLATION = 100  # photos and measurements compress less, a zip bomb by 1,000
FREE_BYTES = 2**30  # to which any file may inflate


class NumpyFile(SourceInfo):
    """The arrays of an .npz file as columns of these names, or that of an .npy file as `x`.

    Arrays named `x_train`, `y_train`, `x_test` and `y_test`, or `train_images` and the like, are
    features of splits. A sparse matrix that SciPy saved is a feature `x`. A structured array has
    a column for each field. Arrays of objects are refused: they are pickled, and unpickling a
    file runs its code.

    Args:
        path: The file.
        key: The column that names the records; it is also stored as a feature.
        split: The name of the split.
        max_bytes: The largest size of the arrays in memory; by default 1 GiB, or a hundred times
            the size of the file if that is more.
    """

    kind = "NumPy arrays"
    suffixes = (".npy", ".npz")

    def __init__(
        self,
        path: Paths,
        *,
        key: str | None = None,
        split: str = "train",
        max_bytes: int | None = None,
    ) -> None:
        (self._path, *others) = find_files(path)
        if others:
            raise SourceError(f"expected one file, got {1 + len(others)}", where=self._path)
        self._key = key
        self._split = split
        self._max_bytes = max_bytes

    def parts(self) -> Mapping[str, Part]:
        """Return the splits in the names of arrays, or the one split."""
        columns = _load(self._path, self._max_bytes)
        found = find_splits(columns)
        if not found:
            return ColumnTable(columns, key=self._key, split=self._split).parts()
        parts: dict[str, Part] = {}
        for split, names in found.items():
            table = {feature: columns[name] for feature, name in names.items()}
            parts |= ColumnTable(table, key=self._key, split=split).parts()
        return parts


def _load(path: Path, max_bytes: int | None) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            _check_inflated(file, path, max_bytes)
            found = np.load(file, allow_pickle=False)
            if isinstance(found, np.ndarray):
                names = found.dtype.names
                return {"x": found} if names is None else {name: found[name] for name in names}
            if {"format", "shape", "data"} <= set(found.files):
                return {"x": _load_sparse(path)}
            return {name: found[name] for name in found.files}
    except DatumError:
        raise
    except MemoryError as error:  # a header may claim any shape
        raise SourceError(f"the arrays do not fit into memory: {error}", where=path) from error
    except Exception as error:  # NumPy's parsers raise SyntaxError, TokenError, ...
        hint = "save arrays of one type, not of objects" if "pickle" in str(error) else ""
        raise SourceError(f"expected NumPy arrays, got: {error}", where=path, hint=hint) from error


def _check_inflated(file: BinaryIO, path: Path, max_bytes: int | None) -> None:
    """Raise SourceError if the arrays of an archive take far more memory than its file."""
    if not zipfile.is_zipfile(file):
        file.seek(0)
        return
    size = file.seek(0, os.SEEK_END)
    limit = max(FREE_BYTES, MAX_INFLATION * size) if max_bytes is None else max_bytes
    with zipfile.ZipFile(file) as archive:  # reads no more of a member than its declared size
        total = sum(member.file_size for member in archive.infolist())
    file.seek(0)
    if total > limit:
        raise SourceError(
            f"{size:,} bytes that inflate to {total:,} exceed the limit of {limit:,}",
            where=path,
            hint=Text(
                Call(f"datum.sources.NumpyFile({str(path)!r}, max_bytes={total})"), " reads them"
            ),
        )


def _load_sparse(path: Path) -> Any:
    """Load a matrix that `scipy.sparse.save_npz` wrote."""
    sparse = require("scipy.sparse", purpose=f"{path}: a sparse matrix")
    return sparse.load_npz(path)
