"""Hugging Face datasets, read without the `datasets` package: folders and objects."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datum.errors import SourceError
from datum.sources.arrow import ArrowTable, part_of_files
from datum.sources.files import list_folders, open_folder, origin_in
from datum.sources.protocol import Part, SourceInfo

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["HuggingFaceDataset", "HuggingFaceFolder", "is_huggingface", "is_huggingface_folder"]

_DICT = "dataset_dict.json"
_STATE = "state.json"
_INFO = "dataset_info.json"
_BATCH_ROWS = 1000


def is_huggingface_folder(path: Path) -> bool:
    """Return whether `save_to_disk` wrote the folder, or `load_dataset` cached a dataset there."""
    if (path / _DICT).is_file() or ((path / _STATE).is_file() and (path / _INFO).is_file()):
        return True
    return (path / _INFO).is_file() and any(path.glob("*.arrow"))


class HuggingFaceFolder(ArrowTable):
    """A folder that Hugging Face's `Dataset.save_to_disk` or `DatasetDict.save_to_disk` wrote.

    Splits, types and class names are kept. Images are stored unchanged under the name of their
    column, and their paths as `<column>_filename`; arrays of a fixed shape keep it. The package
    `datasets` is not needed.

    Args:
        path: The folder.
        key: The column that names the records; it is also stored as a feature.
        columns: The columns to read, in this order; by default all.
    """

    kind = "Hugging Face dataset"

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        key: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        root = open_folder(path)
        if (root / _DICT).is_file():
            found = {split: _saved_files(root / split) for split in _splits_of(root)}
        elif (root / _STATE).is_file():
            found = {_read(root / _STATE).get("_split") or "train": _saved_files(root)}
        else:
            found = _cached_files(root)
        super().__init__(found, key=key, columns="same" if columns is None else columns)
        self.path = root

    def origin_of(self, split: str) -> str:
        """Return the folder of a split."""
        return origin_in(self.path, split)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise SourceError(
            f"expected JSON of a Hugging Face dataset, got: {error}", where=path
        ) from None
    if not isinstance(found, dict):
        raise SourceError(f"expected an object, got {type(found).__name__}", where=path)
    return found


def _splits_of(root: Path) -> list[str]:
    splits = _read(root / _DICT).get("splits")
    if not isinstance(splits, list) or not all(isinstance(split, str) for split in splits):
        raise SourceError(f"expected a list of splits, got {splits!r:.80}", where=root / _DICT)
    for split in splits:
        if split not in list_folders(root):
            raise SourceError(f"expected a folder of split {split!r}, got none", where=root)
    return splits


def _saved_files(folder: Path) -> list[Path]:
    """Return the Arrow files of a saved dataset, in order."""
    state = _read(folder / _STATE)
    listed = state.get("_data_files")
    if state.get("_indices_data_files"):
        raise SourceError(
            "expected records in the order of their files, got a list of indices",
            where=folder,
            hint="datasets.load_from_disk(path).flatten_indices().save_to_disk(...)",
        )
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise SourceError(
            f"expected a list of data files, got {listed!r:.80}", where=folder / _STATE
        )
    names = [one.get("filename") for one in listed]
    for name in names:
        if not isinstance(name, str) or Path(name).name != name:
            raise SourceError(f"expected names of files, got {name!r:.80}", where=folder / _STATE)
    if not names:
        raise SourceError("expected files with records, got none", where=folder)
    return [folder / str(name) for name in names]


def _cached_files(root: Path) -> dict[str, list[Path]]:
    """Return the files of each split in a cache: `name-train-00000-of-00002.arrow`."""
    splits = _read(root / _INFO).get("splits")
    found: dict[str, list[Path]] = {}
    for split in splits if isinstance(splits, dict) else ():
        name = re.compile(rf".*-{re.escape(split)}(-\d+-of-\d+)?\.arrow")
        files = sorted(file for file in root.glob("*.arrow") if name.fullmatch(file.name))
        if files:
            found[split] = files
    if not found:
        raise SourceError(f"expected Arrow files of the splits that {_INFO} names", where=root)
    return found


def is_huggingface(value: Any) -> bool:
    """Return whether it is a `datasets.Dataset`; a streamed one is an iterable of rows."""
    return any(
        base.__name__ == "Dataset" and base.__module__.partition(".")[0] == "datasets"
        for base in type(value).__mro__
    )


class HuggingFaceDataset(SourceInfo):
    """A `datasets.Dataset`, read as the Arrow table behind it.

    Selected or shuffled rows and the columns of its format are respected.
    """

    kind = "Hugging Face dataset"
    is_table = True

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    @staticmethod
    def has_transform(dataset: Any) -> bool:
        """Return whether rows are made by a function, or changed by format options."""
        form = dataset.format
        return form["type"] == "custom" or bool(form["format_kwargs"])

    def parts(self) -> Mapping[str, Part]:
        """Return the one split, with the dataset's name for it, or `train`."""
        rows = _DatasetRows(self._dataset)
        split = str(self._dataset.split or "train")
        name = split if split.isidentifier() else "train"  # a slice such as train[:10%]
        return {name: part_of_files([rows], fingerprint=rows.fingerprint)}


class _DatasetRows:
    """The rows of a dataset as an `ArrowFile`: its table, and the indices of selected rows."""

    def __init__(self, dataset: Any) -> None:

        form = dataset.format
        columns = dataset.column_names if form["output_all_columns"] else form["columns"]
        self.path = Path("dataset")
        known = dataset.features.arrow_schema.metadata
        table: pa.Table = dataset.data.table.select(list(columns))
        self._table = table.replace_schema_metadata(known)
        chosen = getattr(dataset, "_indices", None)
        self._indices = None if chosen is None else chosen.column(0)
        self.schema = self._table.schema
        self.nbytes = int(table.nbytes * len(dataset) / max(table.num_rows, 1))
        self.is_mapped = False
        found = getattr(dataset, "_fingerprint", None)
        self.fingerprint = None if found is None else f"{found} {list(columns)}"

    def read(self, *, mapped: bool = False) -> pa.Table:  # noqa: ARG002 - cannot be mapped
        """Return all rows."""
        return self._table if self._indices is None else self._table.take(self._indices)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield all rows of these columns, in batches."""
        table = self._table if columns is None else self._table.select(list(columns))
        if self._indices is None:
            yield from table.to_batches(max_chunksize=_BATCH_ROWS)
            return
        for first in range(0, len(self._indices), _BATCH_ROWS):
            rows = table.take(self._indices.slice(first, _BATCH_ROWS))
            yield from rows.combine_chunks().to_batches()

    def null_count(self, column: str) -> int | None:
        """Return the number of records without a value; None for selected rows."""
        return None if self._indices is not None else int(self._table.column(column).null_count)
