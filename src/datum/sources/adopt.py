"""The one door for whatever a user calls a dataset."""

from __future__ import annotations

import glob
import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from datum.errors import SourceError
from datum.sources.detect import detect
from datum.sources.files import find_files, unpacked_suffix
from datum.sources.numpy_files import NumpyFile
from datum.sources.python import PythonRows
from datum.sources.source import Source
from datum.sources.splits import split_of_file
from datum.sources.table import ColumnTable, is_arrow, is_pandas

__all__ = ["as_source"]

_HINT = (
    "pass a path, rows (dicts, from a list, an iterable or a function), a dict of arrays,"
    " a DataFrame or an Arrow table"
)


def as_source(source: Any, problem: str | None = None) -> Source:
    """The source of records that `source` is, or stands for.

    That is a path or pattern (`problem` says what kind of dataset lies there), an object with the
    `Source` protocol, a dict of columns, an array, a pandas DataFrame, an Arrow or Polars table, a
    dataset of PyTorch or Hugging Face, an iterable of rows, or a function that returns one.

    >>> type(as_source({"x": [1, 2]})).__name__
    'ColumnTable'
    >>> as_source(7)
    Traceback (most recent call last):
    datum.errors.SourceError: expected something with records, got int
    hint: pass a path, rows (dicts, from a list, an iterable or a function), a dict of arrays, \
a DataFrame or an Arrow table
    """
    if isinstance(source, type):
        name = source.__name__
        raise SourceError(f"expected something with records, got the class {name}\nhint: {name}()")
    if isinstance(source, (str, os.PathLike)):
        return _from_path(source, problem)
    if problem is not None:
        raise SourceError(
            f"expected a path where problem={problem!r} is given, got {type(source).__name__}"
        )
    if isinstance(source, Source):
        return source
    table = _find_table(source)
    if table is not None:
        return ColumnTable(table)
    _refuse_odd(source)
    return PythonRows(source)


def _from_path(path: str | os.PathLike[str], problem: str | None) -> Source:
    text = os.fspath(path)
    if not isinstance(text, str):
        raise SourceError(f"expected a path that is text, got {text!r}")
    text = os.path.expanduser(text)  # noqa: PTH111 - it may be a pattern
    place = Path(text)
    if place.exists():
        is_numpy = problem is None and place.suffix.lower() in (".npy", ".npz")
        return NumpyFile(place) if is_numpy and place.is_file() else detect(place, problem)
    if glob.has_magic(text):
        return _from_pattern(text, problem)
    if "://" in text:
        raise SourceError(f"{text}: expected a path on this computer, got a URL")
    raise SourceError(
        f"{text}: expected a file or a folder, got nothing there\nhint: the working folder is"
        f" {Path.cwd()}"
    )


def _from_pattern(pattern: str, problem: str | None) -> Source:
    """All files of a pattern as one table: they must be of one kind."""
    files = find_files(pattern)
    kinds = sorted({unpacked_suffix(file) for file in files})
    if len(kinds) > 1:
        raise SourceError(f"{pattern}: expected files of one kind, got {', '.join(kinds)}")
    one = detect(files[0], problem)
    if len(files) == 1:
        return one
    splits: dict[str | None, list[Path]] = {}
    for file in files:
        splits.setdefault(split_of_file(file.name), []).append(file)
    try:
        return type(one)(files if None in splits else splits)  # type: ignore[call-arg]
    except TypeError:
        raise SourceError(f"{pattern}: expected one file of {kinds[0]}, got {len(files)}") from None


def _find_table(source: Any) -> Any:
    """What `ColumnTable` takes, if `source` is a table of some kind; else None."""
    if is_pandas(source, "DataFrame") or is_arrow(source, "Table", "RecordBatch"):
        return source
    if isinstance(source, Mapping):
        return source
    if isinstance(source, np.ndarray):
        return _columns_of(source)
    if hasattr(source, "tocsr") and hasattr(source, "shape"):
        return {"x": source}
    if is_pandas(source, "Series"):
        return {"x" if source.name is None else str(source.name): source}
    if hasattr(source, "__arrow_c_stream__") and not hasattr(source, "features"):
        import pyarrow as pa

        return pa.table(source)
    return None


def _columns_of(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    if array.ndim == 0:
        raise SourceError("expected an array of records, got a single value")
    names = array.dtype.names
    return {"x": array} if names is None else {name: array[name] for name in names}


def _refuse_odd(source: Any) -> None:
    """Refuse what has no records, though some of it could be gone through."""
    got = type(source).__name__
    if inspect.isawaitable(source) or hasattr(source, "__aiter__"):
        if inspect.iscoroutine(source):
            source.close()  # so that Python does not miss it
        raise SourceError(
            f"expected rows that can be gone through, got the asynchronous {got}\n"
            "hint: gather its rows in a list first"
        )
    is_value = isinstance(source, (bytes, bytearray, memoryview, np.generic))
    is_set = isinstance(source, (set, frozenset))  # of no order
    has_rows = hasattr(source, "__iter__") or hasattr(source, "__getitem__") or callable(source)
    if is_value or is_set or not has_rows:
        raise SourceError(f"expected something with records, got {got}\nhint: {_HINT}")
