"""`datum.export_to`: a dataset as Parquet, JSON Lines, image files, COCO, YOLO or Pascal VOC."""

from __future__ import annotations

import base64
import io
import json
import math
import os
import re
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from datum._options import names_nearest_option
from datum._read.split import Split
from datum._read.tables import arrow_schema, bounded_batches, to_arrow
from datum._storage.store import Location, is_url
from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.dataset import Dataset
from datum.errors import (
    Message,
    Option,
    SchemaError,
    Text,
    WriteError,
    count_of,
    format_bytes,
    inert,
    suggest,
)
from datum.format.durable import exchange, find_abandoned, hold_folder, remove_folder, rename_new
from datum.format.manifest import MANIFEST_NAME
from datum.reader import load
from datum.schema import Schema

__all__ = [
    "ExportFormat",
    "ExportReport",
    "ExportedSplit",
    "JsonSplit",
    "Names",
    "ParquetSplit",
    "create",
    "export_to",
    "json_rows",
    "open_target",
    "safe_name",
    "split_classes",
]


@dataclass(frozen=True, slots=True)
class ExportedSplit:
    """What was made of one split.

    Attributes:
        records: how many it has.
        bytes: how large its files are.
        files: how many there are.
    """

    records: int
    bytes: int
    files: int


@dataclass(frozen=True, slots=True, repr=False)
class ExportReport:
    """What `datum.export_to` did; it shows itself as a summary.

    Attributes:
        path: the folder, or the one file.
        format: "parquet", "jsonl", "images", "coco", "yolo" or "voc".
        splits: what was made of each split.
        seconds: how long it took.
    """

    path: Path
    format: str
    splits: Mapping[str, ExportedSplit]
    seconds: float

    @property
    def records(self) -> int:
        """How many records were exported."""
        return sum(split.records for split in self.splits.values())

    @property
    def bytes(self) -> int:
        """How large all files are."""
        return sum(split.bytes for split in self.splits.values())

    @property
    def files(self) -> int:
        """How many files there are."""
        return sum(split.files for split in self.splits.values())

    def to_json(self) -> dict[str, Any]:
        """Plain values by name, for programs; sizes are in bytes."""
        return {
            "path": str(self.path),
            "format": self.format,
            "records": self.records,
            "bytes": self.bytes,
            "files": self.files,
            "seconds": round(self.seconds, 3),
            "splits": {
                name: {"records": split.records, "bytes": split.bytes, "files": split.files}
                for name, split in self.splits.items()
            },
        }

    def __repr__(self) -> str:
        records = count_of(self.records, "record")
        lines = [f"{self.path}: {records} as {self.format} in {self.seconds:.1f} s"]
        width = max(map(len, self.splits), default=0)
        lines += [
            f"  {name:<{width}}  {count_of(split.records, 'record')},"
            f" {count_of(split.files, 'file')}, {format_bytes(split.bytes)}"
            for name, split in self.splits.items()
        ]
        return "\n".join(map(inert, lines))


_SUFFIX = ".datum-export"  # of the folder beside the target, where files are made
_NEW, _OLD = "new", "old"  # in it: what is made, and what it replaced
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069/\\:*?\"<>|]+")
_DEVICE = re.compile(r"(con|prn|aux|nul|(com|lpt)[0-9])", re.IGNORECASE)  # no files on Windows
_MAX_NAME_BYTES = 200  # file systems take 255, and a suffix may follow

_SUFFIXES = {"parquet": (".parquet", ".pq"), "jsonl": (".jsonl", ".ndjson")}
# Names of files, which a folder gets only by mistake.
_OTHER_FILES = (".arrow", ".csv", ".feather", ".gz", ".json", ".tfrecord", ".tsv", ".zip", ".zst")
_ALL_FILES = (*_OTHER_FILES, *_SUFFIXES["parquet"], *_SUFFIXES["jsonl"])


@contextmanager
def open_target(
    out: Path, format: str, splits: Sequence[str], *, overwrite: bool
) -> Iterator[Path]:
    """Give a folder to make files in, by the names they shall have; in the end they are at `out`.

    WriteError if there are files of those names already, unless `overwrite` is set, and in any
    case within a dataset of Datum.
    """
    out = Path(os.path.realpath(out.expanduser()))
    is_file = out.suffix.lower() in _SUFFIXES.get(format, ())
    _check(out, format, splits, is_file=is_file, overwrite=overwrite)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with _workplace(out) as place:
            folder = place / _NEW
            folder.mkdir()
            yield folder
            if is_file:
                (made,) = folder.iterdir()
                _put(made, out, place, overwrite=overwrite)
            else:
                tables = [split_classes(split) for split in splits]
                stale = [name for name in tables if not (folder / name).exists()]
                _publish(folder, out, overwrite=overwrite)
                for name in stale if format == "images" else ():
                    # It would name other classes than those of the folders that replaced its own.
                    (out / name).unlink(missing_ok=True)
    except WriteError:
        raise
    except OSError as error:
        raise WriteError(f"nothing was exported: {error}", where=out) from error


@contextmanager
def _workplace(out: Path) -> Iterator[Path]:
    """A folder of our own beside `out`; those that killed exports left there are removed."""
    left = re.compile(rf"\.{re.escape(out.name)}\.[a-z0-9_]+{re.escape(_SUFFIX)}")
    for place in find_abandoned(out.parent, left):
        _restore(place, out)
        remove_folder(place)
    made = tempfile.mkdtemp(prefix=f".{out.name}.", suffix=_SUFFIX, dir=out.parent)
    place = Path(made)
    descriptor = hold_folder(place)
    try:
        yield place
    finally:
        _restore(place, out)
        remove_folder(place)
        os.close(descriptor)


def _check(
    out: Path, format: str, splits: Sequence[str], *, is_file: bool, overwrite: bool
) -> None:
    if is_file and len(splits) > 1:
        raise WriteError(
            f"expected a folder for {len(splits)} splits, got the name of a file",
            where=out,
            hint=Text(
                "give ", Option("split", splits[0]), f", or the folder {out.parent / out.stem}"
            ),
        )
    if is_file:
        taken = [out] if out.exists() else []
    elif out.exists() and not out.is_dir():
        raise WriteError("expected a folder, got a file", where=out)
    elif out.suffix.lower() in _ALL_FILES and not out.exists():
        meant = [name for name, endings in _SUFFIXES.items() if out.suffix.lower() in endings]
        other: object = "for one split a name in .parquet or .jsonl"
        other = Option("format", meant[0]) if meant else other
        raise WriteError(
            f"expected a folder for {format}, got the name of another kind of file",
            where=out,
            hint=Text(f"give the folder {out.parent / out.stem}, or ", other),
        )
    else:
        if (out / MANIFEST_NAME).exists():
            raise WriteError(
                "expected a folder for exported files, got a dataset of Datum",
                where=out,
                hint="export to a folder of its own",
            )
        taken = [path for split in splits for path in _names_of(out, split, format)]
    if is_file and out.is_dir():
        raise WriteError("expected a file, got a folder", where=out)
    if taken and not overwrite:
        raise _taken(taken[0])


def _taken(path: Path) -> WriteError:
    return WriteError(
        "expected nothing of that name, got what is there already",
        where=path,
        hint=Text(Option("overwrite", True), " replaces it"),
    )


def _names_of(out: Path, split: str, format: str) -> list[Path]:
    """What is there by the names that the files of a split get."""
    if not out.is_dir():
        return []
    wanted = {
        "images": (
            split,
            f"{split}.jsonl",
            f"{split}.parquet",
            f"{split}.txt",
            split_classes(split),
        ),
        "coco": (split, "annotations"),
        "yolo": ("images", "labels", "data.yaml"),
        "voc": ("JPEGImages", "Annotations", "ImageSets", "classes.names"),
    }.get(format, (f"{split}.{format}",))
    return [entry for entry in sorted(out.iterdir()) if entry.name in wanted]


def split_classes(split: str) -> str:
    """The name of the table from folders of images to the classes they stand for."""
    return f"{split}.classes.json"


def _publish(made: Path, out: Path, *, overwrite: bool) -> None:
    """Move what was made to where it belongs; what it replaces goes with the rest."""
    if not out.exists():
        rename_new(made, out)
        return
    taken = [out / entry.name for entry in sorted(made.iterdir()) if (out / entry.name).exists()]
    if taken and not overwrite:  # made meanwhile, or of a name that nobody could know before
        raise _taken(taken[0])
    for entry in sorted(made.iterdir()):
        _put(entry, out / entry.name, made.parent, overwrite=overwrite)


def _put(made: Path, place: Path, workplace: Path, *, overwrite: bool) -> None:
    """Give a file or a folder its name; what had it goes to the workplace, to be removed."""
    try:
        rename_new(made, place)
        return
    except FileExistsError:
        if not overwrite:
            raise _taken(place) from None
    if not made.is_dir() and (place.is_symlink() or not place.is_dir()):
        made.replace(place)
    elif not exchange(made, place):
        old = workplace / _OLD
        old.mkdir(exist_ok=True)
        place.rename(old / place.name)
        made.rename(place)


def _restore(workplace: Path, out: Path) -> None:
    """Bring back what was to be replaced, where nothing was put in its place."""
    old = workplace / _OLD
    if old.is_dir() and not old.is_symlink() and out.is_dir():
        for entry in sorted(old.iterdir()):
            with suppress(FileExistsError):
                rename_new(entry, out / entry.name)


# Names of files.


class Names:
    """One-to-one names of files or folders.

    Two things never share a name, not even on a file system that ignores case or composes
    accents. A thing keeps the name it first got.

    >>> names = Names()
    >>> names.choose("a/b"), names.choose("a_b"), names.choose("A_B"), names.choose("a/b")
    ('a_b', 'a_b_2', 'A_B_3', 'a_b')
    """

    def __init__(self) -> None:
        self._chosen: dict[Hashable, str] = {}
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}  # the number last tried after a name

    def choose(self, wanted: str, meaning: Hashable = None) -> str:
        """Return the name of `meaning`, by default of `wanted`, as near to `wanted` as can be."""
        key = wanted if meaning is None else meaning
        if key not in self._chosen:
            plain = name = safe_name(wanted)
            while not self.take(name):
                self._last[plain] = self._last.get(plain, 1) + 1
                name = f"{plain}_{self._last[plain]}"
            self._chosen[key] = name
        return self._chosen[key]

    def take(self, name: str) -> bool:
        """Reserve a name; False if it is taken."""
        plain = _fold(name)
        is_free = plain not in self._taken
        self._taken.add(plain)
        return is_free

    def reserve(self, wanted: Mapping[Hashable, str]) -> None:
        """Choose names by what they mean, so that those that can keep their own do."""
        for meaning, name in sorted(wanted.items(), key=lambda item: item[1] != safe_name(item[1])):
            self.choose(name, meaning)


def create(path: Path) -> BinaryIO:
    """A new file to write; WriteError if there is one of its name."""
    try:
        return path.open("xb")
    except FileExistsError:
        raise WriteError(
            "expected nothing of that name, got a file that was exported before",
            where=path,
            hint="export to a file system that tells upper from lower case",
        ) from None


def safe_name(name: str) -> str:
    """A name that folders and files can have anywhere, and that does not hide them.

    >>> safe_name("a/b"), safe_name("..."), safe_name("etc."), safe_name("con")
    ('a_b', '_._', 'etc_', '_con')
    """
    name = _UNSAFE.sub("_", name).strip(" ")
    name = name.encode(errors="replace")[:_MAX_NAME_BYTES].decode(errors="ignore")
    if name[-1:] in (" ", "."):  # which Windows and its file systems drop
        name = f"{name[:-1]}_"
    if name.startswith("."):
        name = f"_{name[1:]}"
    if _DEVICE.fullmatch(name.partition(".")[0]):
        name = f"_{name}"
    return name or "_"


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


ExportFormat = Literal["parquet", "jsonl", "images", "coco", "yolo", "voc"]
Told = Callable[[int, int], object]
_FORMATS = get_args(ExportFormat)


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

    "coco", "yolo" and "voc" make images with boxes as those formats have them, with the class
    names: `out/annotations/instances_train.json` and `out/train/`, with masks, keypoints and
    captions; `out/data.yaml`, `out/images/train/` and `out/labels/train/`, with keypoints or
    corners; `out/JPEGImages/`, `out/Annotations/` and `out/ImageSets/Main/train.txt`. The features
    have the names that `datum.write` of these formats gives them. One that the format cannot hold
    is an error; `columns` leaves it out.

    `datum.write` reads back what was made: `datum.write(out, ...)` tables, class folders and masks,
    `datum.write({"train": "out/train.parquet"}, ...)` images that have other features.

    Args:
        dataset: a dataset, or the path of one, whoever wrote it.
        out: a folder; for one split of "parquet" or "jsonl" also a file of such a name.
        format: "parquet", "jsonl", "images", "coco", "yolo" or "voc".
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
    if is_url(os.fspath(out)):
        raise WriteError(
            "expected a folder on this computer, got a URL",
            where=Location.parse(os.fspath(out)),
            hint="export to a folder, then upload it with the tools of the cloud",
        )
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
        problem = Text("expected ", Option("format"), f" to be one of {listed}, got {format!r}")
        raise ValueError(Message(problem, hint=hint))


def _choose_splits(dataset: Dataset, split: str | Sequence[str] | None) -> dict[str, Split]:
    """The splits to export, by the names that their files get."""
    if split is None:
        wanted: Sequence[str] = list(dataset)
    else:
        wanted = [split] if isinstance(split, str) else list(split)
    for one, count in Counter(wanted).items():
        if count > 1:
            raise ValueError(Message(f"expected splits of different names, got {one!r} twice"))
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
        return lambda name: ParquetSplit(folder / f"{name}.parquet", schema, metadata)
    if format == "jsonl":
        return lambda name: JsonSplit(folder / f"{name}.jsonl", schema)
    if format != "images":
        from datum._rewrite.export_annotations import open_annotations

        return open_annotations(format, folder, list(splits), schema, metadata)
    from datum._rewrite.export_images import ImageSplit

    folders, classes = Names(), Names()
    folders.reserve(
        {name: name for name in splits}
    )  # a folder of masks gives way to that of a split
    return lambda name: ImageSplit(
        folder, name, splits[name], schema, metadata, folders=folders, classes=classes
    )


class JsonSplit:
    """Writes a line for each record.

    Attributes:
        files: how many files there are.
        nbytes: how large they are, once they are closed.
    """

    def __init__(self, path: Path, schema: Schema) -> None:
        self.files = 1
        self.nbytes = 0
        self._path = path
        self._names = list(schema)
        self._file = io.TextIOWrapper(create(path), encoding="utf-8", newline="\n")

    def write(self, batch: Mapping[str, Any], records: int) -> None:
        """Write the records of a batch."""
        columns = {name: batch[name] for name in self._names}
        for row in json_rows(columns, records):
            self._file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")

    def close(self) -> None:
        """Put all lines into the file."""
        self._file.close()
        self.nbytes = self._path.stat().st_size


def json_rows(columns: Mapping[str, Any], records: int) -> Iterator[dict[str, Any]]:
    """The records of some columns as what JSON holds.

    Byte strings are base64, times ISO 8601, time spans counts of their unit, complex numbers pairs;
    what is sparse is `indices`, `values` and `shape`. Floats that JSON has no number for are the
    texts "NaN", "Infinity" and "-Infinity". What is absent is None, and so is a time that is none.

    >>> list(json_rows({"x": np.array([1.5, np.nan]), "y": [b"a", b"b"]}, 2))
    [{'x': 1.5, 'y': 'YQ=='}, {'x': 'NaN', 'y': 'Yg=='}]
    """
    names = list(columns)
    values = [iter(_values(column)) for column in columns.values()]
    for _ in range(records):
        yield {name: next(one) for name, one in zip(names, values, strict=True)}


def _values(column: Any) -> Iterable[Any]:
    if isinstance(column, Masked):
        pairs = zip(_values(column.values), column.present.tolist(), strict=True)
        return [value if is_there else None for value, is_there in pairs]
    if isinstance(column, Ragged):
        items = list(_values(column.values))
        return [items[first:last] for first, last in pairwise(column.row_splits.tolist())]
    if isinstance(column, Sparse):
        return _sparse_values(column)
    if isinstance(column, BytesColumn):
        values = column.to_list()
        return values if column.is_text else [_encoded(value) for value in values]
    if isinstance(column, np.ndarray) and column.dtype != object:
        return _array_values(column)
    return [_encoded(value) for value in column]


def _array_values(array: NDArray[Any]) -> list[Any]:
    kind = array.dtype.kind
    found: NDArray[Any] = array.astype(np.float32) if array.dtype.name == "bfloat16" else array
    if kind in "mM":
        found = np.datetime_as_string(array) if kind == "M" else array.astype(np.int64)
        if np.isnat(array).any():
            found = found.astype(object)
            found[np.isnat(array)] = None
    elif kind == "c":
        found = np.stack([array.real, array.imag], axis=-1)
    if found.dtype.kind == "f" and not (is_finite := np.isfinite(found)).all():
        names = [_name_float(value) for value in found[~is_finite].tolist()]
        found = found.astype(object)
        found[~is_finite] = names
    values: list[Any] = found.tolist()
    return values


def _encoded(value: Any) -> Any:
    """A value of Python's, also in lists, as what JSON holds."""
    if isinstance(value, (list, tuple)):
        return [_encoded(item) for item in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, np.ndarray):
        return _array_values(value)
    if isinstance(value, float) and not math.isfinite(value):
        return _name_float(value)
    return value


def _name_float(value: float) -> str:
    """What JSON has no number for, as JavaScript calls it."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _sparse_values(column: Sparse) -> Iterator[dict[str, Any]]:
    ends = np.searchsorted(column.indices[:, 0], np.arange(len(column) + 1)).tolist()
    shape = list(column.dense_shape[1:])
    values = list(_values(column.values))
    for first, last in pairwise(ends):
        places = column.indices[first:last, 1:]
        indices = places[:, 0] if len(shape) == 1 else places
        yield {"indices": indices.tolist(), "values": values[first:last], "shape": shape}


class ParquetSplit:
    """Writes a row group for each batch.

    Attributes:
        files: how many files there are.
        nbytes: how large they are, once they are closed.
    """

    def __init__(
        self, path: Path, schema: Schema, metadata: Mapping[str, Mapping[str, Any]]
    ) -> None:
        import pyarrow.parquet as pq

        self.files = 1
        self.nbytes = 0
        self._path = path
        self._features = schema
        self._schema = arrow_schema(schema, metadata)
        self._file = create(path)
        self._writer = pq.ParquetWriter(self._file, self._schema)

    def write(self, batch: Mapping[str, Any], records: int) -> None:
        """Write the columns of some records."""
        import pyarrow as pa

        arrays = [to_arrow(batch[name], feature) for name, feature in self._features.items()]
        table = pa.Table.from_arrays(arrays, schema=self._schema)
        self._writer.write_table(table, row_group_size=max(records, 1))

    def close(self) -> None:
        """Write the end of the file."""
        self._writer.close()
        self._file.close()
        self.nbytes = self._path.stat().st_size
