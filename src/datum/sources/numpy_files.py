"""Arrays in .npy and .npz files."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from datum._optional import require
from datum.errors import DatumError, SourceError
from datum.sources.files import Paths, find_files
from datum.sources.source import Part
from datum.sources.splits import find_splits
from datum.sources.table import ColumnTable

__all__ = ["NumpyFile"]

MAX_INFLATION = 100  # arrays of photos or measurements shrink by less, a file made to harm by 1,000
FREE_BYTES = 2**30  # that any file may inflate to


class NumpyFile:
    """The arrays of an .npz file as columns of these names, or that of an .npy file as `x`.

    Arrays called `x_train`, `y_train`, `x_test` and `y_test`, or `train_images` and the like, are
    features of splits. A sparse matrix that SciPy saved is a feature `x`. A structured array gives
    a column for each field. Arrays of objects are refused: they are pickled, and to unpickle a
    file is to run what it says.

    Args:
        path: the file.
        key: the column that names the records; it stays a feature, too.
        split: what the split is called.
        max_bytes: how many bytes the arrays may take in memory; by default 1 GiB, or a hundred
            times the size of the file if that is more.
    """

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
        """The splits that the names of arrays tell, or the one split."""
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
    except Exception as error:  # NumPy's parsers raise what they meet: SyntaxError, TokenError, ...
        hint = "save arrays of one type, not of objects" if "pickle" in str(error) else ""
        raise SourceError(
            f"expected arrays of NumPy, got: {error}", where=path, hint=hint
        ) from error


def _check_inflated(file: BinaryIO, path: Path, max_bytes: int | None) -> None:
    """Refuse an archive whose arrays take far more memory than its size lets expect."""
    if not zipfile.is_zipfile(file):
        file.seek(0)
        return
    size = file.seek(0, os.SEEK_END)
    limit = max(FREE_BYTES, MAX_INFLATION * size) if max_bytes is None else max_bytes
    with zipfile.ZipFile(file) as archive:  # which reads no more of a member than it claims here
        total = sum(member.file_size for member in archive.infolist())
    file.seek(0)
    if total > limit:
        raise SourceError(
            f"{size:,} bytes that inflate to {total:,} exceed the limit of {limit:,}",
            where=path,
            hint=f"datum.sources.NumpyFile({str(path)!r}, max_bytes={total}) takes them",
        )


def _load_sparse(path: Path) -> Any:
    """A matrix that `scipy.sparse.save_npz` wrote."""
    sparse = require("scipy.sparse", purpose=f"{path}: a sparse matrix")
    return sparse.load_npz(path)
