"""Sources for anything a user passes: paths by layout, objects by kind."""

from __future__ import annotations

import glob
import inspect
import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from datum._optional import require
from datum.errors import AmbiguousSourceError, Call, Option, SourceError, Text, shell_word, suggest
from datum.images import sniff_file
from datum.schema import Feature
from datum.sources.arrow import ArrowTable
from datum.sources.arrow_files import cast_decimals
from datum.sources.class_folders import ClassFolders
from datum.sources.coco import CocoAnnotations, is_coco_file, is_coco_folder
from datum.sources.files import (
    IMAGE_EXTENSIONS,
    find_files,
    list_files,
    list_folders,
    unpacked_suffix,
)
from datum.sources.huggingface import (
    HuggingFaceDataset,
    HuggingFaceFolder,
    is_huggingface,
    is_huggingface_folder,
)
from datum.sources.image_files import read_set_file
from datum.sources.labelled_images import LabelledImages
from datum.sources.masks import SegmentationMasks
from datum.sources.options import is_split_name, refuse_options, splits_of_files
from datum.sources.protocol import Source, TextSource, source_info
from datum.sources.python import PythonRows
from datum.sources.table import ColumnTable, NumpyFile, is_arrow, is_pandas
from datum.sources.voc import ANNOTATION_FOLDERS, IMAGE_FOLDERS, VocDetection
from datum.sources.yolo import YoloLabels, is_yolo_folder

__all__ = [
    "as_source",
    "detect",
    "find_table_roots",
    "source_with",
    "table_folder",
]

_CLF: Final = "image_clf"
_DET: Final = "image_det"
_SEG: Final = "image_seg"
_TEXT: Final = "text_clf"
_PROBLEMS = (_CLF, _DET, _SEG, _TEXT)

_CSV = (".csv", ".tsv")
_ARROW = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
_LINES = (".jsonl", ".ndjson")
_TABLES = (*_CSV, *_ARROW, *_LINES, ".json")
# Folders that contain all images, or their annotations: they are not classes.
_CONTAINERS = frozenset(
    ("annotations", "images", "imagesets", "imgs", "jpegimages", "labels", "masks", "photos")
)
_WANTED = {
    _CLF: "folders named after classes, or train.csv and train/",
    _DET: "JPEGImages/ or images/, and Annotations/ or annotations/ with XML files; or COCO's JSON"
    " files in annotations/",
    _SEG: "JPEGImages/, and SegmentationClass/ with masks, or lists of pairs of paths",
    _TEXT: "train.json, train.jsonl or train.csv",
}
_HINTS = {
    _CLF: Call(
        "ClassFolders(path, splits={'train': ...}),"
        " LabelledImages(path, splits={'train': {'csv_path': ..., 'image_dir': ...}})"
    ),
    _DET: Call("VocDetection(path, splits={'train': {'image_dir': ..., 'annotation_dir': ...}})"),
    _SEG: Call("SegmentationMasks(path, splits={'train': {'image_dir': ..., 'label_dir': ...}})"),
    _TEXT: Call("CsvTable(path), JsonLines(path) or JsonText(path)"),
}


_IMAGE_ROWS = "[{'image': path} for path in sorted(Path(...).glob('*.*'))]"


def detect(
    path: str | os.PathLike[str],
    problem: str | None = None,
    table: Mapping[str, Any] | None = None,
) -> Source:
    """Return the source for a file or a folder; `problem` restricts its kind.

    `table` contains options of tables in files (`TableOptions`).

    Raises SourceError if no kind or more than one fits: it says what was looked for, what was
    found, and how to name the source. It is also raised for an option that the source lacks.
    """
    if problem is not None and problem not in _PROBLEMS:
        hint = suggest(problem, _PROBLEMS)
        expected = f" {', '.join(_PROBLEMS)}, got {problem!r}"
        raise SourceError(Text("expected ", Option("problem"), expected), hint=hint)
    place = Path(path)
    if place.is_dir():
        return _detect_folder(place, problem, table or {})
    if not place.exists():
        raise SourceError("expected a file or a folder, got nothing there", where=place)
    return _detect_file(place, problem, table or {})


def _detect_file(path: Path, problem: str | None, options: Mapping[str, Any]) -> Source:
    suffix = unpacked_suffix(path)
    if problem in (None, _DET) and suffix == ".json" and is_coco_file(path):
        refuse_options(options, f"{path} holds COCO annotations")
        return CocoAnnotations(path)
    if problem in (_DET, _SEG):
        raise SourceError(f"expected a folder with {_WANTED[problem]}, got a file", where=path)
    if suffix in _TABLES:
        return _table(suffix, path, options, path)
    got = f"an image ({path.suffix})" if sniff_file(path) else f"a file {path.name!r}"
    raise SourceError(
        f"expected a folder, or a file of {', '.join(_TABLES)}, got {got}",
        where=path,
        hint=Text("load it and pass its records or columns to ", Call("datum.write")),
    )


def _table(suffix: str, paths: Any, options: Mapping[str, Any], place: Path) -> Source:
    """Return the source for files of one kind, with the options that it takes."""
    made: Any
    if suffix in _CSV:
        from datum.sources.csv import CsvTable

        return CsvTable(paths, **options)
    if suffix in _ARROW:
        from datum.sources.arrow import ArrowTable

        made, kind = ArrowTable, "Parquet" if suffix in (".parquet", ".pq") else "Arrow"
    elif suffix in _LINES:
        from datum.sources.json_files import JsonLines

        made, kind = JsonLines, "JSON Lines"
    else:
        from datum.sources.json_files import JsonText

        made, kind = JsonText, "JSON"
    accepted = list(inspect.signature(made).parameters)
    refuse_options(options, f"{place} holds {kind}", accepted)
    source: Source = made(paths, **options)
    return source


def _group_by_split(
    files: Sequence[Path], options: Mapping[str, Any]
) -> list[Path] | dict[str, list[Path]]:
    """Group files of one kind by the split in their names; one table if a name has none.

    Beside files of several splits such a file is an error, as adding it to one of them would be a
    guess, unless the options say that files with other columns make one table.
    """
    splits: dict[str | None, list[Path]] = {}
    for file, split in zip(files, splits_of_files(files), strict=True):
        splits.setdefault(split, []).append(file)
    others = splits.pop(None, [])
    is_one = options.get("columns") in ("union", "intersection")
    if others and len(splits) > 1 and not is_one:
        named = {str(split): str(some[0]) for split, some in splits.items()}
        given = [f"--source {shell_word(f'{split}={file}')}" for split, file in named.items()]
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise SourceError(
            "expected every file to be named after a split, as"
            f" {splits[next(iter(splits))][0].name} is, got {others[0].name}{more}",
            where=others[0].parent,
            hint=Text(
                "name the files of each split: ",
                Call(f"datum.write({named!r}, out)", shell=f"datum write OUT {' '.join(given)}"),
                "; or combine all into one table with ",
                Option("columns", "union"),
            ),
        )
    return list(files) if others else {str(split): some for split, some in splits.items()}


@dataclass(frozen=True, slots=True)
class _Folder:
    """The content of a folder, as far as it matters."""

    path: Path
    folders: list[str]
    files: list[str]

    @classmethod
    def read(cls, path: Path) -> _Folder:
        folders = list_folders(path)
        with os.scandir(path) as entries:
            names = {entry.name for entry in entries if not entry.name.startswith(".")}
        return cls(path, folders, sorted(names.difference(folders)))

    def has_folder(self, name: str, suffix: str | tuple[str, ...]) -> bool:
        """Return whether there is such a folder, with a file of this extension."""
        return name in self.folders and _has_file(self.path / name, suffix)

    def is_voc(self) -> bool:
        has_images = any(name in self.folders for name in IMAGE_FOLDERS)
        return has_images and any(self.has_folder(name, ".xml") for name in ANNOTATION_FOLDERS)

    def is_masks(self) -> bool:
        if self.has_folder("SegmentationClass", IMAGE_EXTENSIONS):
            return "JPEGImages" in self.folders
        lists = [name for name in self.files if name.endswith(".txt")]
        return any(_names_pairs(self.path / name) for name in lists if is_split_name(name[:-4]))

    def is_labelled(self) -> bool:
        tables = (name[: -len(".csv")] for name in self.files if name.endswith(".csv"))
        return any(name in self.folders for name in tables)

    def is_classes(self, least: int) -> bool:
        """Return whether at least `least` folders, also of one split, contain images."""
        if any(name.lower() in _CONTAINERS for name in self.folders):
            return False
        splits = [self.path / name for name in self.folders if is_split_name(name)]
        return any(_has_classes(path, least) for path in splits or [self.path])

    def tables(self) -> dict[str, list[str]]:
        """Return the files of tables and texts, by their extension."""
        found: dict[str, list[str]] = {}
        for name in self.files:
            suffix = unpacked_suffix(Path(name))
            if suffix in _TABLES:
                found.setdefault(suffix, []).append(name)
        return found

    def describe(self) -> str:
        """Summarise the content."""
        folders = self.folders[:8]
        shown = [
            name + ("/" if _has_file(self.path / name, "") else "/ (empty)") for name in folders
        ]
        shown += self.files[:8]
        left = len(self.folders) + len(self.files) - len(shown)
        listed = ", ".join(shown) or "nothing"
        return f"{listed} and {left} more" if left else listed


def _has_file(folder: Path, suffix: str | tuple[str, ...]) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(entry.name.lower().endswith(suffix) for entry in entries)
    except OSError:
        return False


def _has_classes(folder: Path, least: int) -> bool:
    names = (name for name in list_folders(folder) if _has_file(folder / name, IMAGE_EXTENSIONS))
    return len(list(itertools.islice(names, least))) == least


def _has_images(folder: Path) -> bool:
    places = [folder, *(folder / name for name in list_folders(folder))]
    return any(_has_file(place, IMAGE_EXTENSIONS) for place in places)


def _names_pairs(path: Path) -> bool:
    """Return whether the first line of a list contains the paths of an image and its mask."""
    try:
        lines = read_set_file(path)
    except SourceError:
        return False
    return bool(lines) and len(lines[0].names) == 2


def _detect_folder(path: Path, problem: str | None, options: Mapping[str, Any]) -> Source:
    folder = _Folder.read(path)
    if problem in (None, _CLF, _TEXT) and is_huggingface_folder(path):
        return HuggingFaceFolder(path)
    layouts: Mapping[str, tuple[str, Callable[[], bool], Callable[[Path], Source]]] = {
        "VocDetection": (_DET, folder.is_voc, VocDetection),
        "CocoAnnotations": (_DET, lambda: is_coco_folder(path), CocoAnnotations),
        "YoloLabels": (_DET, lambda: is_yolo_folder(path), YoloLabels),
        "SegmentationMasks": (_SEG, folder.is_masks, SegmentationMasks),
        "LabelledImages": (_CLF, folder.is_labelled, LabelledImages),
        "ClassFolders": (_CLF, lambda: folder.is_classes(2 - (problem == _CLF)), ClassFolders),
    }
    found = [
        (name, kind, make)
        for name, (kind, fits, make) in layouts.items()
        if problem in (None, kind) and fits()
    ]
    if len(found) > 1 and found[0][1] == _CLF:  # a table is more specific than folder names
        found = found[:1]
    if len(found) == 1:
        if found[0][0] == "ClassFolders" and problem is None:
            _refuse_mostly_loose(folder)
        refuse_options(options, f"{path} is a folder of images ({found[0][0]})")
        return found[0][2](path)
    if found:
        names = [f"{name} ({kind})" for name, kind, _ in found]
        choices = [(" or ", Option("problem", kind)) for _, kind, _ in found]
        raise AmbiguousSourceError(
            f"expected one layout, got several that fit: {', '.join(names)}",
            where=path,
            hint=Text("pass ", *list(itertools.chain(*choices))[1:]),
        )
    table = _detect_parquet(folder, options) if problem in (None, _CLF, _TEXT) else None
    if table is None and problem in (None, _TEXT):
        table = _detect_tables(folder, problem, options)
    if table is not None:
        return table
    raise _no_layout(folder, problem)


def _refuse_mostly_loose(folder: _Folder) -> None:
    """Raise SourceError if most images are outside the folders that would be classes."""
    loose = [name for name in folder.files if name.lower().endswith(IMAGE_EXTENSIONS)]
    if not loose:
        return
    inner = (
        file.name
        for name in folder.folders
        for file in list_files(folder.path / name)
        if file.name.lower().endswith(IMAGE_EXTENSIONS)
    )
    count = len(list(itertools.islice(inner, len(loose))))
    if count == len(loose):
        return
    listed = ", ".join(f"{name}/" for name in folder.folders[:3])
    raise SourceError(
        f"expected images in folders named after classes, got {count:,} in"
        f" {listed} and {len(loose):,} beside them, such as {loose[0]}",
        where=folder.path,
        hint=[
            Text(
                Option("problem", "image_clf"),
                " reads the folders as classes and skips the other images",
            ),
            Text("without classes, pass rows: ", Call(_IMAGE_ROWS)),
        ],
    )


def _detect_tables(
    folder: _Folder, problem: str | None, options: Mapping[str, Any]
) -> Source | None:
    """Return the source for files of one kind; None if there are none, or images beside them."""
    tables = folder.tables()
    is_mixed = len(tables) > 1 or (problem is None and _has_images(folder.path))
    if not tables or is_mixed:
        return None
    ((suffix, names),) = tables.items()
    files = [folder.path / name for name in names]
    paths = folder.path if suffix == ".json" else _group_by_split(files, options)
    return _table(suffix, paths, options, folder.path)


def _detect_parquet(folder: _Folder, options: Mapping[str, Any]) -> Source | None:
    """Return the source for a Hugging Face hub folder: Parquet files in `data/`, or by name."""
    if set(folder.tables()) - {".json"} or any(
        name.lower() in _CONTAINERS for name in folder.folders
    ):
        return None
    inner = {name: sorted((folder.path / name).glob("*.parquet")) for name in folder.folders}
    found = {name: files for name, files in inner.items() if files}
    if found and all(map(is_split_name, found)):
        return _table(".parquet", found, options, folder.path)
    if len(found) > 1:
        names = ", ".join(list(found)[:8])
        first = next(iter(found))
        raise SourceError(
            f"expected one folder of Parquet files, got {names}",
            where=folder.path,
            hint=f"name one of them: {str(folder.path / first)!r}",
        )
    for files in found.values():
        return _table(".parquet", _group_by_split(files, options), options, folder.path)
    return None


def _no_layout(folder: _Folder, problem: str | None) -> SourceError:
    kinds = _PROBLEMS if problem is None else (problem,)
    wanted = "; or ".join(_WANTED[kind] for kind in kinds)
    tables = [name for names in folder.tables().values() for name in names]
    if problem in (None, _CLF) and tables and _has_images(folder.path):
        hint = Text(_HINTS[_CLF], f" or ImageTable({tables[0]!r}, path_column=...)")
    elif problem is None and _has_file(folder.path, IMAGE_EXTENSIONS):
        hint = Text("without labels, pass rows: ", Call(_IMAGE_ROWS))
    elif problem is None:
        hint = Text("name the source, one of datum.sources, such as ", _HINTS[_DET])
    else:
        hint = Text(_HINTS[problem])
    return SourceError(f"expected {wanted}, got {folder.describe()}", where=folder.path, hint=hint)


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
    """Return a source for any object that has records.

    That is a path or pattern (`problem` restricts the kind of dataset), an object with the
    `Source` protocol, a dict of columns, an array, a pandas DataFrame, an Arrow or Polars table, a
    dataset of PyTorch or Hugging Face, an iterable of rows, or a function that returns one.

    `table` contains options of tables in files (`TableOptions`): one that the source does not take
    raises SourceError. `features` say how to convert the texts of a source that has only texts.

    >>> type(as_source({"x": [1, 2]})).__name__
    'ColumnTable'
    >>> as_source(7)
    Traceback (most recent call last):
    datum.errors.SourceError: expected something with records, got int
    hint: pass a path, rows (dicts, from a list, an iterable or a function), a dict of arrays, \
a DataFrame or an Arrow table
    """
    found = _find_source(source, problem, table or {})
    return found.with_features(features) if features and isinstance(found, TextSource) else found


def _find_source(source: Any, problem: str | None, table: Mapping[str, Any]) -> Source:
    if isinstance(source, type):
        name = source.__name__
        raise SourceError(
            f"expected something with records, got the class {name}", hint=f"{name}()"
        )
    if isinstance(source, (str, os.PathLike)):
        return _from_path(source, problem, table)
    if table:
        refuse_options(table, f"the source is not a file but {_describe(source)}")
    if problem is not None:
        raise SourceError(
            Text(
                "expected a path where ",
                Option("problem", problem),
                f" is given, got {type(source).__name__}",
            )
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
    """Return the source as `as_source` does, with decimals cast to the dtypes of the features."""
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


def find_table_roots(
    given: Any, source: Source, splits: Iterable[str], problem: str | None
) -> dict[str, Path | None]:
    """Return the folder of the table of each split, as `with_image_columns` expects them.

    It is empty if the user passes a source, or says that it contains no images.
    """
    known = source_info(source)
    is_path = isinstance(given, (str, os.PathLike))  # Path has `parts`, too
    is_final = not is_path and isinstance(given, Source) and known.is_final
    if is_final or not known.is_table or problem == _TEXT:
        return {}
    return dict.fromkeys(splits, table_folder(given))


def table_folder(given: Any) -> Path | None:
    """Return the folder of a path or pattern of tables; None for anything else."""
    if not isinstance(given, (str, os.PathLike)):
        return None
    place = Path(os.path.expanduser(os.fspath(given)))  # noqa: PTH111 - may be a pattern
    if place.is_dir():
        return place
    while glob.has_magic(str(place)) and not place.exists():
        place = place.parent
    return place if place.is_dir() else place.parent


def _describe(source: Any) -> str:
    kind = type(source).__name__
    if isinstance(source, Source):
        return f"a {kind}, which has options of its own"
    return f"a Python object ({kind})"


def _from_path(
    path: str | os.PathLike[str], problem: str | None, table: Mapping[str, Any]
) -> Source:
    text = os.fspath(path)
    if not isinstance(text, str):
        raise SourceError(f"expected a path that is text, got {text!r}")
    text = os.path.expanduser(text)  # noqa: PTH111 - may be a pattern
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
    """Return all files of a pattern as one table: they must be of one kind."""
    files = find_files(pattern)
    kinds = sorted({unpacked_suffix(file) for file in files})
    if len(kinds) > 1:
        raise SourceError(f"expected files of one kind, got {', '.join(kinds)}", where=pattern)
    one = detect(files[0], problem, table)
    if len(files) == 1:
        return one
    try:
        return type(one)(_group_by_split(files, table), **table)  # type: ignore[call-arg]
    except TypeError:
        raise SourceError(
            f"expected one file of {kinds[0]}, got {len(files)}", where=pattern
        ) from None


def _find_table(source: Any) -> Any:
    """Return the table for `ColumnTable` if `source` is a table of some kind; else None."""
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
    """Convert a frame or series of Polars to an Arrow table; integers of 128 bits to int64."""
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
    """Raise SourceError for objects without records, even if they can be iterated."""
    got = type(source).__name__
    if inspect.isawaitable(source) or hasattr(source, "__aiter__"):
        if inspect.iscoroutine(source):
            source.close()  # so that Python does not warn
        raise SourceError(
            f"expected rows that can be iterated, got the asynchronous {got}",
            hint="collect its rows in a list first",
        )
    is_value = isinstance(source, (bytes, bytearray, memoryview, np.generic))
    is_set = isinstance(source, (set, frozenset))  # unordered
    has_rows = hasattr(source, "__iter__") or hasattr(source, "__getitem__") or callable(source)
    if is_value or is_set or not has_rows:
        raise SourceError(f"expected something with records, got {got}", hint=_HINT)
