"""What should be at a path that may be damaged: its files, their splits, and what they hold."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from datum.errors import DatumError, ManifestError
from datum.format import Compression, Manifest
from datum.format.manifest_file import read_manifest
from datum.format.naming import MANIFEST_NAME
from datum.reading.adopt.detect import open_dataset
from datum.reading.adopt.names import check_sets
from datum.reading.adopt.record_files import list_folder, select_record_files
from datum.reading.adopt.tfds import FEATURES_FILE, read_tfds_features
from datum.reading.contents import Contents
from datum.schema import Schema

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
    """

    folder: Path
    files: tuple[ExpectedFile, ...]
    schema: Schema | None
    metadata: Mapping[str, Mapping[str, Any]]
    compression: Compression | None
    is_certain: bool = True
    notes: tuple[str, ...] = ()

    @property
    def splits(self) -> list[str]:
        """The names of the splits."""
        return list(dict.fromkeys(file.split for file in self.files))


def survey_path(
    path: Paths, *, schema: Schema | None = None, trusts_damaged: bool = True
) -> Survey:
    """Find out what should be there; raises what `datum.load` does if there are no records at all.

    A manifest that was damaged is used as far as it can be read, if it `trusts_damaged` ones.
    """
    folder = _manifest_folder(path)
    if folder is not None:
        return _survey_published(folder, schema, trusts_damaged)
    try:
        return _of_contents(open_dataset(path, schema=schema, skips_damage=True))
    except DatumError as error:
        return _survey_undescribed(path, schema, error)


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
        if "a newer Datum" in str(error):
            raise
        told = str(error).partition("\n")[0].removeprefix(f"{folder / MANIFEST_NAME}: ")
    manifest = _read_around_damage(folder) if trusts_damaged else None
    if manifest is not None:
        found = _of_contents(_with_schema(folder, manifest, schema))
        note = f"{MANIFEST_NAME} is damaged, and was used as far as records agree with it: {told}"
        return replace(found, is_certain=False, notes=(note,))
    note = f"{MANIFEST_NAME} is damaged, so that features were told from the records: {told}"
    found = _survey_files(folder, schema)
    return replace(found, notes=(note, *found.notes))


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


def _survey_undescribed(path: Paths, schema: Schema | None, error: DatumError) -> Survey:
    """Records without features, or files whose description cannot be used."""
    told = str(error).partition("\n")[0]
    try:
        found = _of_contents(open_dataset(path, schema={}, skips_damage=True))
        return replace(found, schema=schema, notes=(_without_path(told, found),))
    except DatumError:
        place = Path(path) if isinstance(path, (str, os.PathLike)) else None
        if place is None or not place.is_dir():
            raise error from None
    found = _survey_files(place, schema, error)
    return replace(found, notes=(told, *found.notes))


def _survey_files(folder: Path, schema: Schema | None, error: DatumError | None = None) -> Survey:
    """The record files of a folder, whatever else in it describes them."""
    files = select_record_files(list_folder(folder)[0], skips_damage=True)
    if not files:
        raise error or ManifestError(f"{folder}: expected files of records, got none")
    metadata: Mapping[str, Mapping[str, Any]] = {}
    if schema is None and (folder / FEATURES_FILE).is_file():
        try:
            schema, metadata = read_tfds_features(folder)
        except DatumError:
            metadata = {}
    found = _survey_list(files, schema)
    missing = check_sets(files, may_miss=True)
    lost = [
        ExpectedFile(_split_of_sibling(list(found.files), one), one, one.name) for one in missing
    ]
    return replace(found, files=(*found.files, *lost), metadata=metadata)


def _survey_list(files: list[Path], schema: Schema | None) -> Survey:
    try:
        return _of_contents(open_dataset(files, schema=schema, skips_damage=True))
    except DatumError as error:
        found = _of_contents(open_dataset(files, schema={}, skips_damage=True))
        told = _without_path(str(error).partition("\n")[0], found)
        return replace(found, schema=schema, notes=(told,))


def _without_path(told: str, survey: Survey) -> str:
    """A message that need not say which file it is about, where there is one alone."""
    return told.removeprefix(f"{survey.files[0].path}: ") if len(survey.files) == 1 else told
