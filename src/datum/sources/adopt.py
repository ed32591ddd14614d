"""The one door for whatever a user calls a dataset."""

from __future__ import annotations

import glob
import inspect
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from datum._optional import require
from datum.errors import SourceError
from datum.schema import Feature
from datum.sources.arrow import ArrowTable
from datum.sources.decimals import cast_decimals
from datum.sources.detect import detect, group_by_split
from datum.sources.files import find_files, unpacked_suffix
from datum.sources.huggingface import HuggingFaceDataset, is_huggingface
from datum.sources.numpy_files import NumpyFile
from datum.sources.python import PythonRows
from datum.sources.source import Source, TextSource
from datum.sources.table import ColumnTable, is_arrow, is_pandas
from datum.sources.table_options import refuse_options

__all__ = ["as_source", "find_table_roots", "source_with", "table_folder"]

_TENSORS = ("jax", "jaxlib", "tensorflow", "torch")
_HINT = (
    "pass a path, rows (dicts, from a list, an iterable or a function), a dict of arrays,"
    " a DataFrame or an Arrow table"
)


def as_source(
    source: Any,
    problem: str | None = None,
    *,
    table: Mapping[str, Any] | None = None,
    features: Mapping[str, Feature] | None = None,
) -> Source:
    """The source of records that `source` is, or stands for.

    That is a path or pattern (`problem` says what kind of dataset lies there), an object with the
    `Source` protocol, a dict of columns, an array, a pandas DataFrame, an Arrow or Polars table, a
    dataset of PyTorch or Hugging Face, an iterable of rows, or a function that returns one.

    `table` holds options of tables in files (`TableOptions`): one that the source does not take
    raises SourceError. `features` say how to read the texts of a source that has only texts.

    >>> type(as_source({"x": [1, 2]})).__name__
    'ColumnTable'
    >>> as_source(7)
    Traceback (most recent call last):
    datum.errors.SourceError: expected something with records, got int
    hint: pass a path, rows (dicts, from a list, an iterable or a function), a dict of arrays, \
a DataFrame or an Arrow table
    """
    found = _find_source(source, problem, table or {})
    return found.guided(features) if features and isinstance(found, TextSource) else found


def _find_source(source: Any, problem: str | None, table: Mapping[str, Any]) -> Source:
    if isinstance(source, type):
        name = source.__name__
        raise SourceError(
            f"expected something with records, got the class {name}", hint=f"{name}()"
        )
    if isinstance(source, (str, os.PathLike)):
        return _from_path(source, problem, table)
    if table:
        refuse_options(table, f"the source is no file but {_describe(source)}")
    if problem is not None:
        raise SourceError(
            f"expected a path where problem={problem!r} is given, got {type(source).__name__}"
        )
    if isinstance(source, Source):
        return source
    if is_huggingface(source) and not HuggingFaceDataset.has_transform(source):
        return HuggingFaceDataset(source)
    columns = _find_table(source)
    if columns is not None:
        return ColumnTable(columns)
    _refuse_odd(source)
    return PythonRows(source)


def source_with(
    given: Any,
    problem: str | None,
    features: Mapping[str, Feature],
    *,
    table: Mapping[str, Any] | None = None,
) -> Source:
    """What `as_source` makes of it, with decimals as the features given have them."""
    dtypes = {
        name: one.dtype
        for name, one in features.items()
        if one.dtype == "str" or one.dtype.startswith(("float", "int", "uint"))
    }
    if dtypes and not isinstance(given, (str, os.PathLike, Source)):
        columns = _find_table(given)
        given = given if columns is None else cast_decimals(columns, dtypes)
    source = as_source(given, problem, table=table, features=features)
    if dtypes and isinstance(source, ArrowTable) and source is not given:
        source.cast_decimals(dtypes)
    return source


# What has columns of text that may name images; other sources know what theirs are.
_TABLES = (
    "ArrowTable",
    "ColumnTable",
    "CsvTable",
    "HuggingFaceDataset",
    "HuggingFaceFolder",
    "JsonLines",
    "JsonText",
    "LinesOfStdin",
    "PythonRows",
)


def find_table_roots(
    given: Any, source: Source, splits: Iterable[str], problem: str | None
) -> dict[str, Path | None]:
    """The folder of the table of each split, as `with_image_columns` takes them.

    There are none where the user has named the source, or says that it holds no images.
    """
    is_path = isinstance(given, (str, os.PathLike))  # which has `parts`, too
    is_named = not is_path and isinstance(given, Source) and not hasattr(given, "is_table")
    if is_named or type(source).__name__ not in _TABLES or problem == "text_clf":
        return {}
    return dict.fromkeys(splits, table_folder(given))


def table_folder(given: Any) -> Path | None:
    """The folder that a path or pattern of tables lies in; None of anything else."""
    if not isinstance(given, (str, os.PathLike)):
        return None
    place = Path(os.path.expanduser(os.fspath(given)))  # noqa: PTH111 - it may be a pattern
    if place.is_dir():
        return place
    while glob.has_magic(str(place)) and not place.exists():
        place = place.parent
    return place if place.is_dir() else place.parent


def _describe(source: Any) -> str:
    kind = type(source).__name__
    if isinstance(source, Source):
        return f"a {kind}, which takes its options itself"
    return f"an object of Python ({kind})"


def _from_path(
    path: str | os.PathLike[str], problem: str | None, table: Mapping[str, Any]
) -> Source:
    text = os.fspath(path)
    if not isinstance(text, str):
        raise SourceError(f"expected a path that is text, got {text!r}")
    text = os.path.expanduser(text)  # noqa: PTH111 - it may be a pattern
    place = Path(text)
    if place.exists():
        is_numpy = problem is None and place.suffix.lower() in (".npy", ".npz")
        if not is_numpy or not place.is_file():
            return detect(place, problem, table)
        refuse_options(table, f"{place} is a file of NumPy arrays")
        return NumpyFile(place)
    if glob.has_magic(text):
        return _from_pattern(text, problem, table)
    if "://" in text:
        raise SourceError("expected a path on this computer, got a URL", where=text)
    raise SourceError(
        "expected a file or a folder, got nothing there",
        where=text,
        hint=f"the working folder is {Path.cwd()}",
    )


def _from_pattern(pattern: str, problem: str | None, table: Mapping[str, Any]) -> Source:
    """All files of a pattern as one table: they must be of one kind."""
    files = find_files(pattern)
    kinds = sorted({unpacked_suffix(file) for file in files})
    if len(kinds) > 1:
        raise SourceError(f"expected files of one kind, got {', '.join(kinds)}", where=pattern)
    one = detect(files[0], problem, table)
    if len(files) == 1:
        return one
    try:
        return type(one)(group_by_split(files, table), **table)  # type: ignore[call-arg]
    except TypeError:
        raise SourceError(
            f"expected one file of {kinds[0]}, got {len(files)}", where=pattern
        ) from None


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
    if type(source).__module__.partition(".")[0] == "polars":
        return _of_polars(source)
    if hasattr(source, "__arrow_c_stream__") and not hasattr(source, "features"):
        return _of_arrow_stream(source)
    is_tensor = type(source).__module__.partition(".")[0] in _TENSORS
    if is_tensor and len(getattr(source, "shape", None) or ()):
        return {"x": source}
    return None


def _of_arrow_stream(source: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.table(source)
    except pa.ArrowException as error:
        raise SourceError(f"expected a table that Arrow can hold, got: {error}") from error


def _of_polars(source: Any) -> Any:
    """A frame or series of Polars as an Arrow table; integers of 128 bits as int64."""
    import pyarrow as pa

    kind = type(source).__name__
    if kind == "LazyFrame":
        raise SourceError("expected a table with rows, got a LazyFrame", hint="frame.collect()")
    frame = source.to_frame(source.name or "x") if kind == "Series" else source
    polars = require("polars", purpose="a DataFrame of Polars")
    wide = [name for name, dtype in frame.schema.items() if str(dtype) in ("Int128", "UInt128")]
    try:
        frame = frame.with_columns(polars.col(name).cast(polars.Int64) for name in wide)
    except polars.exceptions.PolarsError:
        raise SourceError(
            f"columns {', '.join(wide)}: expected integers of 64 bits, got larger ones",
            hint="frame.with_columns(pl.col(name).cast(pl.String)) keeps every digit",
        ) from None
    try:
        return frame.to_arrow(compat_level=polars.CompatLevel.oldest())
    except (pa.ArrowException, polars.exceptions.PolarsError) as error:
        raise SourceError(f"expected a table that Arrow can hold, got: {error}") from error


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
            f"expected rows that can be gone through, got the asynchronous {got}",
            hint="gather its rows in a list first",
        )
    is_value = isinstance(source, (bytes, bytearray, memoryview, np.generic))
    is_set = isinstance(source, (set, frozenset))  # of no order
    has_rows = hasattr(source, "__iter__") or hasattr(source, "__getitem__") or callable(source)
    if is_value or is_set or not has_rows:
        raise SourceError(f"expected something with records, got {got}", hint=_HINT)
