"""Table columns that contain paths of image files, by one rule for every kind of table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from datum._identity import version_of
from datum.columns import BytesColumn, Masked
from datum.errors import Call, Option, SourceError, Text, suggest
from datum.images import sniff_format
from datum.schema import Feature, Schema
from datum.sources.files import IMAGE_EXTENSIONS, FoundFile, fingerprint_of, list_folders
from datum.sources.image_files import IMAGE
from datum.sources.open import as_source, table_folder
from datum.sources.protocol import (
    Block,
    IndexedPart,
    Part,
    Reject,
    SerializedRecords,
    SourceInfo,
    StreamedPart,
    WrappedPart,
    take_rows,
)

__all__ = [
    "ImageTable",
    "with_image_columns",
]

_SAMPLE_RECORDS = 256  # of each part, spread over it
_FIRST_RECORDS = 8  # read first where reading is slow, to see whether more is worthwhile
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class _ImageColumn:
    """A column of paths that is stored as images.

    Attributes:
        name: The column.
        image: The feature of its images.
        text: The feature of the paths themselves; None to leave them out.
        roots: The folder that relative paths start from, for each part.
    """

    name: str
    image: str
    text: str | None
    roots: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class _ImageColumns:
    """The columns of some parts that contain paths of images, with notes and warnings.

    Attributes:
        columns: The columns that contain paths of images.
        notes: The decisions made, a line each.
        warnings: Likely mistakes.
        is_confined: Whether a path that leads out of its root makes a bad record.
    """

    columns: tuple[_ImageColumn, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    is_confined: bool = False

    def change_of(self, split: str, metadata: Mapping[str, Mapping[str, Any]]) -> _Change:
        """Return the function that replaces paths with images in blocks of a part."""
        return _Change(
            tuple(
                (one, one.roots[split], _names_of(one.name, metadata))
                for one in self.columns
                if split in one.roots
            ),
            self.is_confined,
        )

    def change_schema(self, schema: Schema) -> Schema:
        """Return the schema with images in place of paths; features of paths come last."""
        found = {one.name: one for one in self.columns}
        features: dict[str, Feature] = {}
        texts: dict[str, Feature] = {}
        for name, feature in schema.items():
            if name not in found:
                features[name] = feature
                continue
            features[found[name].image] = replace(IMAGE, optional=feature.optional)
            if found[name].text is not None:
                texts[str(found[name].text)] = Feature("str", optional=feature.optional)
        return Schema(features | texts)

    def change_metadata(
        self, metadata: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Mapping[str, Any]]:
        """Return the metadata without that of the columns, which are no longer ids."""
        gone = {one.name for one in self.columns}
        return {name: found for name, found in metadata.items() if name not in gone}


def with_image_columns(
    parts: Mapping[str, Part],
    roots: Mapping[str, Path | None],
    *,
    features: Mapping[str, Feature] | None = None,
    is_complete: bool = False,
    keep: Iterable[str] = (),
    needs_images: bool = False,
    confined: Path | None = None,
) -> dict[str, Part]:
    """Return the parts of a table with images in place of the paths in its columns of text.

    A column of text is one of images if at least half of the values sampled have the extension of
    an image and exist: as absolute paths, or relative to the folder of the table or to the working
    folder. The sample is spread over each part; for a stream it is its first block.

    Args:
        parts: The parts, by split; all have the same image columns.
        roots: The folder of the table, if it has one, for each part to which the rule applies.
        features: Features that the user has specified: a text stays text, an image is one.
        is_complete: Whether these are all the features there are.
        keep: Further columns to keep unchanged.
        needs_images: Whether to raise SourceError if there is no column of images.
        confined: The only folder that paths are relative to and must stay within; a path that
            leads out of it makes a bad record.
    """
    roots = roots if confined is None else dict.fromkeys(roots, confined)
    peeked = {split: _peek(part) if split in roots else part for split, part in parts.items()}
    samples = {split: _sample(peeked[split]) for split in roots}
    found = _find_image_columns(
        samples,
        roots,
        features or {},
        is_complete=is_complete,
        keep=keep,
        is_confined=confined is not None,
    )
    schemas = [part.schema for part in peeked.values() if part.schema is not None]
    has_images = any(one.encoding == "image" for schema in schemas for one in schema.values())
    if needs_images and not found.columns and not has_images:
        raise SourceError(
            "expected a table with a column of paths of existing images, got none",
            where=next((root for root in roots.values() if root), Path()),
            hint=Text(
                Call("datum.sources.ImageTable(table, path_column='path', root='images')"),
                " names column and folder",
            ),
        )
    return {
        split: _wrap_part(split, part, found) if split in roots else part
        for split, part in peeked.items()
    }


def _find_image_columns(
    samples: Mapping[str, Mapping[str, Sequence[Any]]],
    roots: Mapping[str, Path | None],
    features: Mapping[str, Feature],
    *,
    is_complete: bool = False,
    keep: Iterable[str] = (),
    is_confined: bool = False,
) -> _ImageColumns:
    """Find the columns of images by samples of each part; see `with_image_columns`."""
    kept = {name for name, one in features.items() if one.encoding != "image"} | set(keep)
    names = list(dict.fromkeys(name for sample in samples.values() for name in sample))
    if any(_holds_images(sample.values()) for sample in samples.values()):
        names = [name for name in names if name in features]
    chosen: dict[str, dict[str, Path]] = {}
    warnings = []
    for name in names:
        given = features.get(name)
        if name in kept:
            continue
        values = {split: _given(sample.get(name, ())) for split, sample in samples.items()}
        count = sum(map(len, values.values()))
        look_alike = sum(_is_image_name(one) for some in values.values() for one in some)
        if not count or 2 * look_alike < count:
            continue
        best = {
            split: _best_root(some, roots[split], is_only=is_confined)
            for split, some in values.items()
        }
        present = sum(found for _, found in best.values())
        if 2 * present >= count or given is not None:
            chosen[name] = {split: root for split, (root, _) in best.items()}
        elif look_alike == count:
            warnings.append(_missing(name, values, roots, count, present))
    columns = _name_columns(chosen, set(names) - set(chosen), features, is_complete=is_complete)
    notes = tuple(map(_describe, columns))
    return _ImageColumns(columns, notes, tuple(warnings), is_confined)


def _name_columns(
    chosen: Mapping[str, Mapping[str, Path]],
    others: set[str],
    features: Mapping[str, Feature],
    *,
    is_complete: bool,
) -> tuple[_ImageColumn, ...]:
    """Name features: a single column becomes `image`; several, or a specified one, keep names."""
    found = []
    for name, roots in chosen.items():
        is_only = len(chosen) == 1 and name not in features and "image" not in others
        image, text = ("image", "filename") if is_only else (name, f"{name}_filename")
        is_free = text not in others and (text not in chosen or is_only)
        is_wanted = not is_complete or text in features
        found.append(_ImageColumn(name, image, text if is_free and is_wanted else None, roots))
    return tuple(found)


def _describe(column: _ImageColumn) -> str:
    paths = "" if column.text is None else f", the paths as {column.text!r}"
    return Text(
        f"{column.name!r} names image files: stored as {column.image!r}{paths} (",
        Option("schema", {column.name: Feature("str")}),
        " stores the text)",
    )


def _missing(
    name: str,
    values: Mapping[str, Sequence[Any]],
    roots: Mapping[str, Path | None],
    count: int,
    present: int,
) -> str:
    """Return the warning for paths of images that do not exist."""
    split, some = next((split, some) for split, some in values.items() if some)
    root = roots[split]
    folders = [Path()] if root is None else [root, Path()]
    places = " or ".join(dict.fromkeys(os.path.realpath(one) for one in folders))
    hint = f"ImageTable(table, path_column={name!r}, root=...)"
    inner = [] if root is None or not root.is_dir() else [root / one for one in list_folders(root)]
    for place in inner:
        if 2 * sum(_exists(place, one) for one in some) >= len(some):
            hint = f"ImageTable(table, path_column={name!r}, root={str(place)!r})"
            break
    listed = ", ".join(map(repr, some[:_SHOWN]))
    return (
        f"{name!r} looks like paths of images, but only {present:,} of {count:,} sampled are files"
        f" in {places}: stored as text ({listed}); {hint} reads them from another folder"
    )


# Values.


def _given(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if value is not None and not _is_blank(value)]


def _is_blank(value: Any) -> bool:
    return isinstance(value, str) and not value


def _is_image_name(value: Any) -> bool:
    """Return whether a text may be the path of an image; URLs are not."""
    return (
        isinstance(value, str) and value.lower().endswith(IMAGE_EXTENSIONS) and "://" not in value
    )


def _holds_images(columns: Iterable[Sequence[Any]]) -> bool:
    """Return whether a column already contains images: files, bytes, Pillow's or pixels."""
    for values in columns:
        for value in values[:_FIRST_RECORDS]:
            is_bytes = isinstance(value, bytes) and sniff_format(value[:16]) is not None
            is_image = isinstance(value, Path) or type(value).__module__.startswith("PIL.")
            is_pixels = isinstance(value, np.ndarray) and value.ndim > 1 and value.dtype == np.uint8
            if is_bytes or is_image or is_pixels:
                return True
    return False


def _path(root: Path, text: str) -> Path:
    is_of_windows = "\\" in text and "/" not in text and os.sep == "/"
    return root / (text.replace("\\", "/") if is_of_windows else text)


def _exists(root: Path, text: Any) -> bool:
    try:
        return _is_image_name(text) and _path(root, text).is_file()
    except (OSError, ValueError):  # not a path
        return False


def _is_within(root: Path, path: Path) -> bool:
    """Return whether a path stays in a folder once its links are resolved."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))
    except (OSError, ValueError):  # not a path, which is reported when it is read
        return True


def _best_root(values: Sequence[Any], folder: Path | None, *, is_only: bool) -> tuple[Path, int]:
    """Return the folder in which most paths exist, the table's first, and how many exist."""
    places = [Path()] if folder is None else [folder] if is_only else [folder, Path()]
    counts = [sum(_exists(place, value) for value in values) for place in places]
    best = max(range(len(places)), key=counts.__getitem__)  # the first of several
    return places[best], counts[best]


# Samples.


class _Peeked(WrappedPart):
    """A stream whose first block was sampled; the block is not read twice."""

    def __init__(self, part: StreamedPart) -> None:
        super().__init__(part)
        self._open: Iterator[Block] | None = part.blocks()
        self.first = next(self._open, None)

    def blocks(self) -> Iterator[Block]:
        """Yield all records in order."""
        rest, first = self._open, self.first
        self._open = self.first = None
        if rest is None:
            yield from self.part.blocks()
            return
        if first is not None:
            yield first
            del first
        yield from rest


def _peek(part: Part) -> Any:
    if isinstance(part, IndexedPart) or not _may_name_images(part):
        return part
    return _Peeked(part)


def _may_name_images(part: Part) -> bool:
    """Return whether the schema, if known, has text, or ids of texts, and no images."""
    if part.schema is None:
        return True
    if any(one.encoding == "image" for one in part.schema.values()):
        return False
    return any(_is_text(name, one, part.metadata) for name, one in part.schema.items())


def _is_text(name: str, feature: Feature, metadata: Mapping[str, Mapping[str, Any]]) -> bool:
    is_ids = feature.dtype == "int64" and _names_of(name, metadata) is not None
    return feature.shape == () and (feature.dtype == "str" or is_ids)


def _names_of(name: str, metadata: Mapping[str, Mapping[str, Any]]) -> Sequence[str] | None:
    """Return the texts of the ids of a column, if they may be paths of images."""
    names = metadata.get(name, {}).get("class_names")
    return names if names and _is_image_name(names[0]) else None


def _sample(part: Any) -> dict[str, list[Any]]:
    """Return some values of the columns that may contain paths of images, or images."""
    if isinstance(part, _Peeked):
        first = part.first
        if first is None:
            return {}
        return _sample_block(_spread_block(first), part.schema, part.metadata)
    if not isinstance(part, IndexedPart) or not _may_name_images(part) or not len(part):
        return {}
    few = _read_sample(part, _FIRST_RECORDS)
    is_hopeless = not any(_is_image_name(value) for values in few.values() for value in values)
    if part.is_slow_python and is_hopeless:
        return {}
    return few if part.is_slow_python else _read_sample(part, _SAMPLE_RECORDS)


def _read_sample(part: IndexedPart, count: int) -> dict[str, list[Any]]:
    numbers = np.unique(np.linspace(0, len(part) - 1, min(count, len(part))).astype(np.int64))
    return _sample_block(part.read(numbers), part.schema, part.metadata)


def _spread_block(block: Block) -> Block:
    """Return a sample of the records of a block, spread over it."""
    if isinstance(block.data, SerializedRecords) or len(block) <= _SAMPLE_RECORDS:
        return block
    at = np.linspace(0, len(block) - 1, _SAMPLE_RECORDS).astype(np.int64)
    data: Any = block.data
    if isinstance(data, list):
        return replace(block, data=[data[i] for i in at.tolist()], numbers=block.numbers[at])
    sampled = {name: column[at] for name, column in data.items() if not isinstance(column, list)}
    return replace(block, data=sampled, numbers=block.numbers[at])


def _sample_block(
    block: Block, schema: Schema | None, metadata: Mapping[str, Mapping[str, Any]]
) -> dict[str, list[Any]]:
    """Return the values of a block that `_find_image_columns` uses to decide."""
    if isinstance(block.data, SerializedRecords):
        return {}
    if isinstance(block.data, list):
        names = dict.fromkeys(name for row in block.data for name in row)
        return {name: [row.get(name) for row in block.data] for name in names}
    found: dict[str, list[Any]] = {}
    for name, column in block.data.items():
        feature = None if schema is None else schema.get(name)
        is_bytes = feature is not None and feature.dtype == "bytes" and feature.shape == ()
        is_pixels = feature is not None and feature.dtype == "uint8" and len(feature.shape) > 1
        if feature is None or _is_text(name, feature, metadata):
            found[name] = _texts(column, _names_of(name, metadata))
        elif is_bytes or is_pixels:
            found[name] = [column[at] for at in range(min(len(block), _FIRST_RECORDS))]
        else:
            found[name] = []  # the name is in use
    return found


def _texts(column: Any, names: Sequence[str] | None = None) -> list[Any]:
    """Return the values of a column, None where a record has none."""
    if isinstance(column, Masked):
        values = _texts(column.values, names)
        return [v if here else None for v, here in zip(values, column.present, strict=True)]
    plain: list[Any] = column.to_list() if isinstance(column, BytesColumn) else list(column)
    return plain if names is None else [names[number] for number in plain]


# Parts.


@dataclass(frozen=True, slots=True)
class _Change:
    """Replaces paths with images in a block; picklable."""

    columns: tuple[tuple[_ImageColumn, Path, Sequence[str] | None], ...]
    is_confined: bool = False

    def __call__(self, block: Block) -> Block:
        if self.is_confined:
            block = self._refuse_outside(block)
        if isinstance(block.data, list):
            return replace(block, data=[self._change_row(row) for row in block.data])
        data: dict[str, Any] = {}
        texts: dict[str, Any] = {}
        found = {one.name: (one, root, names) for one, root, names in self.columns}
        given: Any = block.data
        for name, column in given.items():
            if name not in found:
                data[name] = column
                continue
            one, root, names = found[name]
            values = _texts(column, names)
            paths = np.empty(len(values), object)
            paths[:] = [None if not value else _path(root, value) for value in values]
            data[one.image] = paths
            if one.text is not None:
                texts[one.text] = column if names is None else values
        return replace(block, data={**data, **texts})

    def _refuse_outside(self, block: Block) -> Block:
        """Return the block with records rejected whose paths lead out of their root."""
        faults: dict[int, str] = {}
        for one, root, names in self.columns:
            for at, text in enumerate(_column_of(block, one.name, names)):
                if isinstance(text, str) and text and not _is_within(root, _path(root, text)):
                    faults.setdefault(
                        at, f"{one.name!r}: expected a path within {root}, got {text!r}"
                    )
        if not faults:
            return block
        rejects = [
            Reject(
                int(block.numbers[at]),
                None if block.keys is None else block.keys[at],
                "" if block.locate is None else block.locate(at),
                reason,
            )
            for at, reason in faults.items()
        ]
        kept = [at for at in range(len(block)) if at not in faults]
        data: Any = block.data
        if isinstance(data, list):
            data = [data[at] for at in kept]
        else:
            places = np.array(kept, np.int64)
            data = {name: take_rows(column, places) for name, column in data.items()}
        locate = block.locate
        return Block(
            data,
            block.numbers[kept],
            None if block.keys is None else [block.keys[at] for at in kept],
            sorted([*block.rejects, *rejects], key=lambda reject: reject.record),
            None if locate is None else lambda at: locate(kept[at]),
        )

    def _change_row(self, row: dict[str, Any]) -> dict[str, Any]:
        found = {one.name: (one, root) for one, root, _ in self.columns}
        changed: dict[str, Any] = {}
        texts: dict[str, Any] = {}
        for name, value in row.items():
            if name not in found or not isinstance(value, str):
                changed[found[name][0].image if name in found else name] = value
                continue
            one, root = found[name]
            changed[one.image] = _path(root, value) if value else None
            if one.text is not None:
                texts[one.text] = value
        return {**changed, **texts}


def _wrap_part(split: str, part: Part, found: _ImageColumns) -> Part:
    """Return the part with images in place of the paths in the columns found."""
    if not found.columns and not found.warnings:
        return part
    if isinstance(part, IndexedPart):
        return _ImageIndex(split, part, found)
    return _ImageStream(split, part, found)


class _WithImages(WrappedPart):
    """A part with images in place of paths."""

    def __init__(self, split: str, part: Part, found: _ImageColumns) -> None:
        super().__init__(part)
        self.change = found.change_of(split, part.metadata)
        self.schema = part.schema and found.change_schema(part.schema)
        self.metadata = found.change_metadata(part.metadata)
        self.warnings = (*self.warnings, *found.warnings)
        self.image_columns = [one.name for one in found.columns]
        self._found = found

    @property
    def remarks(self) -> Sequence[str]:
        """The remarks of the part, and the decisions about its columns."""
        return (*super().remarks, *self._found.notes)


class _ImageStream(_WithImages):
    """A stream; changes to its images are not detected."""

    def __init__(self, split: str, part: Part, found: _ImageColumns) -> None:
        super().__init__(split, part, found)
        if found.columns:
            self.fingerprint = None

    def blocks(self) -> Iterator[Block]:
        """Yield all records in order."""
        return map(self.change, self.part.blocks())


class _ImageIndex(_WithImages):
    """Records in any order; those without keys take their first path as one."""

    def __init__(self, split: str, part: IndexedPart, found: _ImageColumns) -> None:
        super().__init__(split, part, found)
        if found.columns and not part.is_slow_python and len(part):
            self._scan_files(part)

    def _scan_files(self, part: IndexedPart) -> None:
        """Stat all files, for the size of the dataset and the fingerprint."""
        block = part.read(np.arange(len(part)))
        files: list[FoundFile] = []
        names: list[Any] = []
        for one, root, labels in self.change.columns:
            texts = _column_of(block, one.name, labels)
            names = names or texts
            files += [_look_at(root, text) for text in texts if text and isinstance(text, str)]
        self.stored_bytes = sum(file.size for file in files)
        paths = [one for one in names if one and isinstance(one, str)]
        if self.keys is None and len(set(paths)) == len(paths):
            keys = [f"record {number}" for number in range(len(part))]
            for number, name in zip(block.numbers.tolist(), names, strict=False):
                keys[number] = name if isinstance(name, str) and name else keys[number]
            self.keys = keys
        if self.fingerprint is not None:
            roots = [os.fspath(root) for _, root, _ in self.change.columns]
            confined = f"within {roots}" if self.change.is_confined else ""
            self.fingerprint = fingerprint_of(files, "image columns", self.fingerprint, confined)

    def __len__(self) -> int:
        return len(self.part)

    def read(self, numbers: NDArray[np.int64]) -> Block:
        """Return the records of these numbers, in the order given."""
        block: Block = self.change(self.part.read(numbers))
        if self.keys is None or block.keys is not None:
            return block
        keys = self.keys
        return replace(block, keys=[keys[number] for number in block.numbers.tolist()])


def _column_of(block: Block, name: str, labels: Sequence[str] | None) -> list[Any]:
    data: Any = block.data
    if isinstance(data, list):
        return [row.get(name) for row in data]
    return _texts(data[name], labels) if name in data else []


def _look_at(root: Path, text: str) -> FoundFile:
    try:
        status = _path(root, text).stat()
    except (OSError, ValueError):  # reported when it is read
        return FoundFile(text, 0, 0)
    return FoundFile(text, status.st_size, version_of(status))


@dataclass(frozen=True, slots=True)
class ImageTable(SourceInfo):
    """Images whose paths are in a column of a table; all other columns are features.

    `datum.write` finds such columns itself if their files exist; this names the column, and the
    folder that its paths start from. The features are image, the other columns, and filename, the
    path in the table, which is also the key unless a path occurs twice.

    Attributes:
        table: The path of a CSV, Parquet, Feather, JSON or JSON Lines file, a pandas DataFrame, an
            Arrow table, a dict of columns, or rows.
        path_column: The name of the column with the paths.
        root: The folder that paths are relative to and must stay within once links are resolved; a
            path that leads out of it makes a bad record. By default paths are relative to the
            folder of the table's file, or else the current folder, and may lead anywhere.
        split: The name of the split, if the table has no splits of its own.
    """

    kind: ClassVar[str] = "table"

    table: Any
    _: KW_ONLY
    path_column: str
    root: str | os.PathLike[str] | None = None
    split: str = "train"

    def parts(self) -> dict[str, Part]:
        """Return the records of each split."""
        source = as_source(self.table)
        parts = dict(source.parts())
        if len(parts) == 1:
            parts = {self.split: next(iter(parts.values()))}
        root = Path(self.root or table_folder(self.table) or ".")
        return {split: self._with_images(split, part, root) for split, part in parts.items()}

    def _with_images(self, split: str, part: Part, root: Path) -> Part:
        names = list(part.schema or ())
        column = self.path_column
        if part.schema is not None and column not in names:
            hint = suggest(column, names, f"there are {', '.join(names)}")
            raise SourceError(f"expected a column {column!r} of paths, got none", hint=hint)
        for name in ("image", "filename"):
            if name in names and name != column:
                raise SourceError(
                    f"expected no column {name!r} beside {column!r}: the images or their"
                    " paths have this name",
                    hint="rename it, or leave it out",
                )
        chosen = _ImageColumn(column, "image", "filename", {split: root})
        return _wrap_part(split, part, _ImageColumns((chosen,), is_confined=self.root is not None))
