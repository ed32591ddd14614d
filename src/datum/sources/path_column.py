"""Whether a table names image files: which of its columns, told by its first rows."""

from __future__ import annotations

import csv
from itertools import islice
from pathlib import Path
from typing import Any

from datum.sources.listing import IMAGE_EXTENSIONS

__all__ = ["find_path_column"]

_ROWS = 20  # looked at: a column that is all paths is so from the start
_HEAD_CHARACTERS = 2**18  # of a file, whatever its lines are like
_DELIMITERS = ",;\t|"
_SUFFIXES = (".csv", ".tsv", ".parquet", ".pq", ".feather", ".arrow", ".ipc")


def find_path_column(path: Path) -> str | None:
    """The column of a CSV, Parquet or Feather file whose values name images that are there.

    Paths are relative to the folder of the table. None if no column, or more than one, does.
    """
    if path.suffix not in _SUFFIXES or not path.is_file():  # a pipe would be waited for
        return None
    try:
        columns = _first_csv_rows(path) if path.suffix in (".csv", ".tsv") else _first_rows(path)
    except Exception:  # whoever reads the table says what is wrong with it
        return None
    found = [name for name, values in columns.items() if _are_images(values, path.parent)]
    return found[0] if len(found) == 1 else None


def _are_images(values: list[Any], root: Path) -> bool:
    named = [value for value in values if value not in (None, "")]
    return bool(named) and all(
        isinstance(value, str)
        and value.lower().endswith(IMAGE_EXTENSIONS)
        and (root / value).is_file()
        for value in named
    )


def _first_csv_rows(path: Path) -> dict[str, list[Any]]:
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        text = file.read(_HEAD_CHARACTERS)
    lines = text.splitlines(keepends=True)
    if len(text) == _HEAD_CHARACTERS:
        lines.pop()  # cut off in the middle
    delimiter = max(_DELIMITERS, key=lines[0].count)
    names, *rows = islice(csv.reader(lines, delimiter=delimiter), 1 + _ROWS)
    return {name: [row[at] for row in rows if at < len(row)] for at, name in enumerate(names)}


def _first_rows(path: Path) -> dict[str, list[Any]]:
    if path.suffix in (".parquet", ".pq"):
        import pyarrow.parquet

        batch = next(pyarrow.parquet.ParquetFile(path).iter_batches(batch_size=_ROWS))
    else:
        import pyarrow.ipc

        with pyarrow.memory_map(str(path)) as source:
            batch = pyarrow.ipc.open_file(source).get_batch(0).slice(0, _ROWS)
    columns: dict[str, list[Any]] = batch.to_pydict()
    return columns
