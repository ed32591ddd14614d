"""Arrays in .npy and .npz files."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from datum._optional import require
from datum.errors import SourceError
from datum.sources.files import Paths, find_files
from datum.sources.source import Part
from datum.sources.splits import find_splits
from datum.sources.table import ColumnTable

__all__ = ["NumpyFile"]


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
    """

    def __init__(self, path: Paths, *, key: str | None = None, split: str = "train") -> None:
        (self._path, *others) = find_files(path)
        if others:
            raise SourceError(f"{self._path}: expected one file, got {1 + len(others)}")
        self._key = key
        self._split = split

    def parts(self) -> Mapping[str, Part]:
        """The splits that the names of arrays tell, or the one split."""
        columns = _load(self._path)
        found = find_splits(columns)
        if not found:
            return ColumnTable(columns, key=self._key, split=self._split).parts()
        parts: dict[str, Part] = {}
        for split, names in found.items():
            table = {feature: columns[name] for feature, name in names.items()}
            parts |= ColumnTable(table, key=self._key, split=split).parts()
        return parts


def _load(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            if isinstance(found, np.ndarray):
                names = found.dtype.names
                return {"x": found} if names is None else {name: found[name] for name in names}
            if {"format", "shape", "data"} <= set(found.files):
                return {"x": _load_sparse(path)}
            return {name: found[name] for name in found.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        hint = "\nhint: save arrays of one type, not of objects" if "pickle" in str(error) else ""
        raise SourceError(f"{path}: expected arrays of NumPy, got: {error}{hint}") from error


def _load_sparse(path: Path) -> Any:
    """A matrix that `scipy.sparse.save_npz` wrote."""
    sparse = require("scipy.sparse", purpose=f"{path}: a sparse matrix")
    return sparse.load_npz(path)
