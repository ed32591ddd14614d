"""What should be at a path that may be damaged: its files, their splits, and what they hold."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from datum.errors import CorruptIndexError, DatumError, ManifestError
from datum.format import Compression, Index, Manifest
from datum.format.layout import lower
from datum.format.manifest import VERSION
from datum.format.manifest_file import read_manifest
from datum.format.naming import MANIFEST_NAME, is_own_shard_name
from datum.reading.adopt.detect import open_dataset
from datum.reading.adopt.names import check_sets
from datum.reading.adopt.record_files import list_folder, select_record_files
from datum.reading.adopt.tfds import FEATURES_FILE, read_tfds_features
from datum.reading.contents import Contents
from datum.schema import Feature, Schema

__all__ = ["ExpectedFile", "Survey", "survey_path"]

Paths = Any  # as `datum.load` takes them


@dataclass(frozen=True, slots=True)
class ExpectedFile:
    """A file that holds records, or should.

    Attributes:
        records: how many, as a description says; None if nothing does.
        bytes: its size, as a description says; None if nothing does.
    """

    split: str
    path: Path
    name: str
    records: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Survey:
    """What should be there.

    Attributes:
        files: in the order of their records.
        schema: what the records hold; None if they are no Examples, or contradict one another.
        is_certain: whether the schema is known, rather than taken from a damaged description.
        notes: what was found out on the way, for people.
        forgotten: what only the manifest recorded and is lost or doubtful, one line each.
    """

    folder: Path
    files: tuple[ExpectedFile, ...]
    schema: Schema | None
    metadata: Mapping[str, Mapping[str, Any]]
    compression: Compression | None
    is_certain: bool = True
    notes: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()

    @property
    def splits(self) -> list[str]:
        """The names of the splits."""
        return list(dict.fromkeys(file.split for file in self.files))


def survey_path(
    path: Paths, *, schema: Schema | None = None, trusts_damaged: bool = True
) -> Survey:
    """Find out what should be there; raises what `datum.load` does if there are no records at all.

    A manifest that was damaged, and sidecars where it cannot be read at all, are used as far as
    they can be, if it `trusts_damaged` ones.
    """
    folder = _manifest_folder(path)
    if folder is not None:
        return _survey_published(folder, schema, trusts_damaged)
    try:
        found = _of_contents(open_dataset(path, schema=schema, skips_damage=True))
        is_bare = schema is None and all(_has_own_index(file.path) for file in found.files)
        return _recount(replace(found, forgotten=_tell_forgotten(found)) if is_bare else found)
    except DatumError as error:
        return _survey_undescribed(path, schema, error, trusts_damaged=trusts_damaged)


def _manifest_folder(path: Paths) -> Path | None:
    """The folder of the manifest that a path stands for, if it does."""
    if not isinstance(path, (str, os.PathLike)):
        return None
    place = Path(path).expanduser()
    if place.name == MANIFEST_NAME:
        place = place.parent
    return place if os.path.lexists(place / MANIFEST_NAME) else None


def _survey_published(folder: Path, schema: Schema | None, trusts_damaged: bool) -> Survey:
    try:
        return _of_contents(_with_schema(folder, Manifest.load(folder), schema))
    except ManifestError as error:
        if "a newer Datum" in error.problem:
            raise
        told = error.message.beside(folder / MANIFEST_NAME)
    manifest = _read_around_damage(folder) if trusts_damaged else None
    if manifest is not None:
        found = _of_contents(_with_schema(folder, manifest, schema))
        note = f"{MANIFEST_NAME} is damaged, and was used as far as records agree with it: {told}"
        doubt = f"{MANIFEST_NAME} fails its checksum: schema, class names and other metadata were"
        doubt += " kept as they read now, and may be wrong"
        return replace(found, is_certain=False, notes=(note,), forgotten=(doubt,))
    found = _survey_files(folder, schema)
    sources, known = ["the records"], set[str]()
    for source, pieces in _read_pieces(folder).items() if trusts_damaged else ():
        found, kept = _with_pieces(found, pieces, is_given=schema is not None)
        known |= kept
        sources.append(source)
    note = f"{MANIFEST_NAME} is damaged, so features were inferred from {' and '.join(sources)}"
    if schema is None:
        found = replace(found, forgotten=_tell_forgotten(found, known))
    return _recount(replace(found, notes=(f"{note}: {told}", *found.notes)))


def _with_schema(folder: Path, manifest: Manifest, schema: Schema | None) -> Contents:
    contents = Contents.of_manifest(folder, manifest)
    return contents if schema is None else replace(contents, schema=schema)


def _read_around_damage(folder: Path) -> Manifest | None:
    """A manifest whose checksum is wrong, if all of it can be read nevertheless."""
    try:
        text = read_manifest(folder)[1].decode()
        found, _ = json.JSONDecoder().raw_decode(text.lstrip())  # whatever follows it
        found["checksum"] = None
        return Manifest.from_bytes(json.dumps(found).encode())
    except (DatumError, OSError, TypeError, ValueError, RecursionError):
        return None


# What tells of features where the manifest is no JSON any more.


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Features, and what is known of them, one by one."""

    features: Mapping[str, Feature]
    metadata: Mapping[str, Mapping[str, Any]]


def _read_pieces(folder: Path) -> dict[str, _Pieces]:
    """What a sidecar and what is left of the manifest tell, each by its name; the best one last."""
    found = {
        FEATURES_FILE: _read_sidecar(folder),
        f"what is left of {MANIFEST_NAME}": _read_rest(folder),
    }
    return {name: pieces for name, pieces in found.items() if pieces.features or pieces.metadata}


def _read_sidecar(folder: Path) -> _Pieces:
    if not (folder / FEATURES_FILE).is_file():
        return _Pieces({}, {})
    try:
        return _Pieces(*read_tfds_features(folder))
    except DatumError:
        return _Pieces({}, {})


def _read_rest(folder: Path) -> _Pieces:
    """The entries of a damaged manifest that can be read."""
    features: dict[str, Feature] = {}
    metadata: dict[str, Mapping[str, Any]] = {}
    try:
        text = read_manifest(folder)[1].decode(errors="replace")
    except (DatumError, OSError):
        return _Pieces(features, metadata)
    for name, value in _read_entries(text, "schema"):
        found = _check_piece(schema={name: value})
        features |= found.schema if found is not None else {}
    for name, value in _read_entries(text, "metadata"):
        found = _check_piece(metadata={name: value})
        metadata |= found.metadata if found is not None else {}
    return _Pieces(features, metadata)


def _read_entries(text: str, section: str) -> Iterator[tuple[str, Any]]:
    """The entries of an object at the top of a manifest that can be read, by its indentation."""
    start = re.search(rf'^  "{section}": {{$', text, re.MULTILINE)
    if start is None:
        return
    after = re.compile(r'^  [}"]', re.MULTILINE).search(text, start.end())
    end = len(text) if after is None else after.start()
    decoder = json.JSONDecoder()
    for entry in re.compile(r'^    ("(?:[^"\\]|\\.)*"): ', re.MULTILINE).finditer(
        text, start.end(), end
    ):
        try:
            yield json.loads(entry[1]), decoder.raw_decode(text, entry.end())[0]
        except (ValueError, RecursionError):
            continue


def _check_piece(**section: Any) -> Manifest | None:
    """An entry as a manifest of its own, if it is one that a manifest may have."""
    bare: dict[str, Any] = {
        "schema": {},
        "splits": {},
        "metadata": {},
        "statistics": {},
        "compression": None,
    }
    whole = {"format": "datum", "version": VERSION, "checksum": None} | bare | section
    try:
        return Manifest.from_bytes(json.dumps(whole).encode())
    except (DatumError, TypeError, ValueError, RecursionError):
        return None


def _with_pieces(found: Survey, pieces: _Pieces, *, is_given: bool) -> tuple[Survey, set[str]]:
    """A survey in which features are as the pieces say, where records may be so; and which are."""
    metadata = {**found.metadata, **pieces.metadata}
    if is_given or not pieces.features:
        return replace(found, metadata=metadata), set()
    if found.schema is None:  # records contradict one another: some may be what the pieces say
        schema = Schema(pieces.features)
        return replace(found, schema=schema, metadata=metadata, is_certain=False), set(schema)
    kinds = {
        (column.key, feature.sequence): (column.kind, name)
        for name, feature in found.schema.items()
        for column in lower(name, feature)
    }
    kept: dict[str, Feature] = {}
    replaced: set[str] = set()  # features whose keys belong to those that are kept
    for name, feature in pieces.features.items():
        columns = lower(name, feature)
        known = [kinds.get((column.key, feature.sequence), (None, "")) for column in columns]
        if all(column.kind == kind for column, (kind, _) in zip(columns, known, strict=True)):
            kept[name] = feature
            replaced |= {owner for _, owner in known}
    rest = {name: one for name, one in found.schema.items() if name not in replaced}
    schema = Schema({**kept, **rest})
    return replace(found, schema=schema, metadata=metadata, is_certain=False), set(kept)


def _tell_forgotten(found: Survey, known: Container[str] = ()) -> tuple[str, ...]:
    """What a lost manifest recorded of features and the records do not show."""
    schema = found.schema or Schema({})
    lines = []
    for dtype, lost in _LOST.items():
        names = [n for n, one in schema.items() if one.dtype == dtype and n not in known]
        if names:
            listed = ", ".join(map(repr, names))
            lines.append(f"{listed}: kept as {dtype}, inferred from the records; {lost}")
    named = [name for name in found.metadata if name in schema]
    left = f", except those of {', '.join(map(repr, named))}" if named else ""
    return (*lines, f"class names, encoders and other metadata of features{left}")


# What records stored as these types do not show.
_LOST = {
    "bytes": "whether it was an image or an array of numbers (such as float64) is unknown",
    "str": "whether it was text or other bytes that read as text is unknown",
    "int64": "whether it was bool, a time or a smaller integer, and its shape, is unknown",
    "float32": "whether it was float16 or bfloat16, and its shape, is unknown",
}


# How many records there were, as the indexes say.


def _has_own_index(path: Path) -> bool:
    """Whether a file is a shard that Datum wrote, by its name and its index."""
    index = Index.path_for(path)
    return is_own_shard_name(path.name) and index.is_file() and Index.is_index(index)


def _recount(found: Survey) -> Survey:
    """A survey with the records of files that only their indexes tell, also of missing files."""
    return replace(found, files=tuple(map(_count_by_index, found.files)))


def _count_by_index(file: ExpectedFile) -> ExpectedFile:
    if file.records is not None or not _has_own_index(file.path):
        return file
    try:
        index = Index.load(Index.path_for(file.path))
    except (OSError, CorruptIndexError):
        return file
    return replace(file, records=len(index), bytes=index.stream_bytes)


def _of_contents(contents: Contents) -> Survey:
    """A dataset that opens; where somebody described it, so many records should be there."""
    is_counted = contents.writer in ("datum", "tfds")
    files = [
        ExpectedFile(
            split,
            contents.folder / shard.name,
            shard.name,
            shard.records if is_counted else None,
            shard.bytes if is_counted else None,
        )
        for split, info in contents.splits.items()
        for shard in info.shards
    ]
    known = {str(file.path) for file in files}
    for damage in contents.damage:  # files that the names of others tell of
        if damage.kind == "missing file" and damage.file not in known:
            path = Path(damage.file)
            split = _split_of_sibling(files, path)
            files.append(ExpectedFile(split, path, path.name))
    schema = contents.schema if len(contents.schema) else None
    return Survey(contents.folder, tuple(files), schema, contents.metadata, contents.compression)


def _split_of_sibling(files: list[ExpectedFile], path: Path) -> str:
    start = path.name.partition("-of-")[0].rstrip("0123456789")
    near = [file.split for file in files if file.path.name.startswith(start)]
    return near[0] if near else files[0].split


def _survey_undescribed(
    path: Paths, schema: Schema | None, error: DatumError, *, trusts_damaged: bool
) -> Survey:
    """Records without features, or files whose description cannot be used."""
    try:
        found = _of_contents(open_dataset(path, schema={}, skips_damage=True))
        return replace(found, schema=schema, notes=(_without_path(error, found),))
    except DatumError:
        place = Path(path) if isinstance(path, (str, os.PathLike)) else None
        if place is None or not place.is_dir():
            raise error from None
    found = _survey_files(place, schema, error)
    if trusts_damaged:
        found, _ = _with_pieces(found, _read_sidecar(place), is_given=schema is not None)
    return replace(found, notes=(error.message.line, *found.notes))


def _survey_files(folder: Path, schema: Schema | None, error: DatumError | None = None) -> Survey:
    """The record files of a folder, whatever else in it describes them."""
    files = select_record_files(list_folder(folder)[0], skips_damage=True)
    if not files:
        raise error or ManifestError("expected files of records, got none", where=folder)
    found = _survey_list(files, schema)
    missing = check_sets(files, may_miss=True)
    lost = [
        ExpectedFile(_split_of_sibling(list(found.files), one), one, one.name) for one in missing
    ]
    return replace(found, files=(*found.files, *lost))


def _survey_list(files: list[Path], schema: Schema | None) -> Survey:
    try:
        return _of_contents(open_dataset(files, schema=schema, skips_damage=True))
    except DatumError as error:
        found = _of_contents(open_dataset(files, schema={}, skips_damage=True))
        return replace(found, schema=schema, notes=(_without_path(error, found),))


def _without_path(error: DatumError, survey: Survey) -> str:
    """What an error says; it need not say which file it is about, where there is one alone."""
    message = error.message
    return message.beside(survey.files[0].path) if len(survey.files) == 1 else message.line
