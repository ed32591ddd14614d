"""`datum.export_to`: a dataset back as files that everybody reads."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from datum.dataset import Dataset
from datum.errors import Message, SchemaError, WriteError, suggest
from datum.reader import load
from datum.reading import Split
from datum.reading.tables import bounded_batches
from datum.remaking.exporting_report import ExportedSplit, ExportReport
from datum.remaking.exporting_target import Names, open_target
from datum.schema import Schema
from datum.writing.options import names_nearest_option

__all__ = ["ExportFormat", "export_to"]

ExportFormat = Literal["parquet", "jsonl", "images"]
Told = Callable[[int, int], object]
_FORMATS = ("parquet", "jsonl", "images")


class _Writer(Protocol):
    """Writes one split; its files and their bytes are known when it is closed."""

    files: int
    nbytes: int

    def write(self, batch: Mapping[str, Any], records: int) -> None: ...

    def close(self) -> None: ...


@names_nearest_option
def export_to(
    dataset: Dataset | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    format: ExportFormat = "parquet",
    split: str | Sequence[str] | None = None,
    columns: Iterable[str] | None = None,
    overwrite: bool = False,
    progress: Told | None = None,
) -> ExportReport:
    r"""Turn a dataset back into files, a part of it at a time in memory.

    "parquet" makes `out/train.parquet` and so on, in types that hold all there is: lists for what
    is ragged, lists of one size for arrays, structs of `indices` and `values` for what is sparse,
    binary for images (their stored bytes) and byte strings, timestamps, and nulls for what is
    absent; bfloat16 becomes float, complex numbers a struct of `real` and `imag`. What Datum knew
    of the features is kept in the file's metadata under `datum`, so that `datum.write` of the files
    gives images, sparse features and class names again.

    "jsonl" makes `out/train.jsonl`, an object a line, in which images and byte strings are base64,
    times are ISO 8601, time spans counts of their unit, and what is absent is null. Floats that
    JSON has no number for are the texts "NaN", "Infinity" and "-Infinity"; `datum.write` takes them
    for those floats where its `schema` says that the feature is one.

    "images" makes `out/train/<class>/<name>.jpg`, with the stored bytes untouched: class folders,
    or one folder a split where there are no classes. Further images, such as masks, go to
    `out/train_<feature>/`; if there is one, `out/train.txt` lists the pairs. Other features, such
    as boxes, are in `out/train.jsonl`, where `file` is the path of the image, and in
    `out/train.parquet`, where `filename` is. A class whose name a folder cannot have, or not beside
    the others, gets another one; `out/train.classes.json` then has the class of each folder.

    `datum.write` reads back what was made: `datum.write(out, ...)` tables, class folders and masks,
    `datum.write({"train": "out/train.parquet"}, ...)` images that have other features.

    Args:
        dataset: a dataset, or the path of one, whoever wrote it.
        out: a folder; for one split of "parquet" or "jsonl" also a file of such a name.
        format: "parquet", "jsonl" or "images".
        split: one, such as "val" or "train[:10%]", or several; by default all.
        columns: the features to take; by default all.
        overwrite: whether files of the same names may be replaced.
        progress: called with the records that are done, and how many there are.

    >>> import datum
    >>> written = datum.write({"x": [5, 6, 7]}, "three", shuffle=False, progress=False)
    >>> report = export_to("three", "tables", format="jsonl")
    >>> Path("tables/train.jsonl").read_text()
    '{"x": 5}\n{"x": 6}\n{"x": 7}\n'
    """
    started = time.monotonic()
    _check_format(format)
    opened = dataset if isinstance(dataset, Dataset) else load(dataset)
    schema = opened.schema if columns is None else opened.schema.select(columns)
    if not schema:
        raise SchemaError("expected features to export, got none", where=opened.path)
    splits = _choose_splits(opened, split)
    total = sum(map(len, splits.values()))
    done = 0
    found: dict[str, ExportedSplit] = {}
    with open_target(Path(out), format, list(splits), overwrite=overwrite) as folder:
        make_writer = _writers(format, folder, splits, schema, opened.metadata)
        for name, records in splits.items():
            writer = make_writer(name)
            before = done
            try:
                for batch, count in bounded_batches(records, schema):
                    writer.write(batch, count)
                    done += count
                    if progress is not None:
                        progress(done, total)
            finally:
                writer.close()
            _check_records(opened, name, done - before, len(records))
            found[name] = ExportedSplit(len(records), writer.nbytes, writer.files)
        _check_count(folder, sum(one.files for one in found.values()))
    return ExportReport(Path(out), format, found, time.monotonic() - started)


def _check_format(format: str) -> None:
    if format not in _FORMATS:
        hint = suggest(str(format).lower(), _FORMATS, cutoff=0.4)
        listed = ", ".join(map(repr, _FORMATS))
        raise ValueError(
            Message(f"expected `format` to be one of {listed}, got {format!r}", hint=hint)
        )


def _choose_splits(dataset: Dataset, split: str | Sequence[str] | None) -> dict[str, Split]:
    """The splits to export, by the names that their files get."""
    if split is None:
        wanted: Sequence[str] = list(dataset)
    else:
        wanted = [split] if isinstance(split, str) else list(split)
    for one, count in Counter(wanted).items():
        if count > 1:
            raise ValueError(f"expected splits of different names, got {one!r} twice")
    if not wanted:
        raise WriteError("expected a dataset with splits, got none", where=dataset.path)
    names = Names()  # of train[:50%] and train[50%:], and of Train and train
    for one in sorted(wanted, key=lambda one: one not in dataset):  # whole splits keep theirs
        names.choose(_plain_name(dataset, one), meaning=one)
    return {names.choose(one, meaning=one): dataset[one] for one in wanted}


def _plain_name(dataset: Dataset, split: str) -> str:
    return split if split in dataset else re.sub(r"[^A-Za-z0-9_]+", "_", split).strip("_")


def _check_records(dataset: Dataset, split: str, exported: int, expected: int) -> None:
    if exported != expected:
        raise WriteError(
            f"split {split!r}: expected {expected:,} records to export, read {exported:,}",
            where=dataset.path,
        )


def _check_count(folder: Path, expected: int) -> None:
    """Raise unless as many files were made as the report will say."""
    made = sum(len(files) for _, _, files in os.walk(folder))
    if made != expected:
        raise WriteError(f"expected {expected:,} exported files, found {made:,}", where=folder)


def _writers(
    format: str,
    folder: Path,
    splits: Mapping[str, Split],
    schema: Schema,
    metadata: Mapping[str, Mapping[str, Any]],
) -> Callable[[str], _Writer]:
    """What opens the writer of a split, by its name."""
    if format == "parquet":
        from datum.remaking.exporting_parquet import ParquetSplit

        return lambda name: ParquetSplit(folder / f"{name}.parquet", schema, metadata)
    if format == "jsonl":
        from datum.remaking.exporting_json import JsonSplit

        return lambda name: JsonSplit(folder / f"{name}.jsonl", schema)
    from datum.remaking.exporting_images import ImageSplit

    folders, classes = Names(), Names()
    folders.reserve(
        {name: name for name in splits}
    )  # a folder of masks gives way to that of a split
    return lambda name: ImageSplit(
        folder, name, splits[name], schema, metadata, folders=folders, classes=classes
    )
