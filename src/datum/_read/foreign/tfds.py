"""Datasets that TensorFlow Datasets prepared, in TFRecord or ArrayRecord files."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, BinaryIO

import numpy as np

from datum._optional import require
from datum._read.contents import Contents
from datum._read.foreign.bare import ScannedFile, common_compression, scan_files, schema_of
from datum._read.foreign.record_files import check_member, expect, read_json, size_of
from datum._read.foreign.tfds_features import parse_labels, read_features
from datum._read.local import cache_folder, check_unchanged, keep, name_for, places
from datum.errors import (
    Call,
    CorruptRecordError,
    ManifestError,
    Message,
    SchemaError,
    SplitError,
    Text,
    count_of,
    format_bytes,
    shell_word,
)
from datum.format import Index, ShardInfo, SplitInfo
from datum.format.framing import frame
from datum.format.index import FRAME_BYTES
from datum.format.manifest import check_split_name
from datum.format.strict_json import describe
from datum.schema import Schema

__all__ = [
    "FEATURES_FILE",
    "INFO_FILE",
    "copy_array_records",
    "open_tfds",
    "read_tfds_features",
]

COPIED_RECORDS = 1024  # records in memory at a time


def copy_array_records(paths: Sequence[Path]) -> list[ShardInfo]:
    """Copy ArrayRecord files to TFRecord files in the cache directory, unless they are there.

    The native core does not read ArrayRecord, so it reads the copies, which are as large as the
    records. A warning reports files that are copied.
    """
    found = [_find_copy(path) for path in paths]
    lacking = [path for path, copy in zip(paths, found, strict=True) if copy is None]
    if lacking:
        files = count_of(len(lacking), "file")
        nbytes = format_bytes(sum(path.stat().st_size for path in lacking))
        warnings.warn(
            Message(
                f"{files} of ArrayRecord, {nbytes}, copied as TFRecord to"
                f" {cache_folder() or 'a temporary folder'}; DATUM_CACHE sets another folder",
                where=lacking[0].parent,
            ),
            UserWarning,
            stacklevel=2,
        )
    copies = zip(paths, found, strict=True)
    return [_make_copy(path) if copy is None else copy for path, copy in copies]


def _name(path: Path) -> str:
    return name_for(path, _shard_of(path))


def _shard_of(path: Path) -> ShardInfo:
    return ShardInfo(path.name, 0, 0, None)


def _find_copy(path: Path) -> ShardInfo | None:
    """An earlier copy; its index, which is written last, shows that it is complete."""
    name = _name(path)
    for copy, index in zip(places(f"{name}.tfrecord"), places(f"{name}.index"), strict=True):
        if copy.is_file() and index.is_file():
            found, nbytes = Index.load(index), copy.stat().st_size
            if found.stream_bytes == nbytes:
                return ShardInfo(str(copy), len(found), nbytes, None)
    return None


def _make_copy(path: Path) -> ShardInfo:
    made: list[Index] = []
    name = _name(path)

    def write(target: BinaryIO) -> None:
        offsets, position = [np.empty(0, np.int64)], 0
        for payloads in _read(path):
            framed = frame(payloads)
            target.write(framed.data)
            offsets.append(position + framed.offsets)
            position += framed.nbytes
        check_unchanged(path, _shard_of(path), name)
        made.append(Index(np.concatenate(offsets), position))

    def write_index(target: BinaryIO) -> None:
        target.write(made[-1].to_bytes())

    copy = keep(f"{name}.tfrecord", write)
    keep(f"{name}.index", write_index)
    return ShardInfo(str(copy), len(made[-1]), made[-1].stream_bytes, None)


def _read(path: Path) -> Iterator[list[bytes]]:
    """The records of a file, some at a time."""
    module = require(
        "array_record.python.array_record_module", purpose=f"{path.name}: reading ArrayRecord"
    )
    try:
        reader: Any = module.ArrayRecordReader(str(path))
        count = reader.num_records()
        for first in range(0, count, COPIED_RECORDS):
            yield reader.read(first, min(first + COPIED_RECORDS, count))
        reader.close()  # raises the error of a damaged file that seems to be empty
    except (RuntimeError, ValueError, IndexError, OSError) as error:
        text = Message.of(error).line
        raise CorruptRecordError(
            f"expected a whole file of ArrayRecord: {text:.300}",
            where=path,
            hint="restore the file",
        ) from error


INFO_FILE = "dataset_info.json"
FEATURES_FILE = "features.json"
MAX_LABEL_BYTES = 16 * 2**20  # far above the size of any file of class names
_FORMATS = ("tfrecord", "array_record")
_TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
_COUNT = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class _Shard:
    """A file and its number of records, which versions before 2.0 did not store."""

    name: str
    bytes: int
    records: int | None


def open_tfds(folder: Path, schema: Schema | None) -> Contents:
    """Open the dataset of a folder with `dataset_info.json`.

    Shards are read only if there is no `features.json`, or no number of records.

    Args:
        folder: The folder.
        schema: Features to read; None for those of `features.json`.
    """
    splits = _read_splits(folder)
    metadata: Mapping[str, Mapping[str, Any]] = {}
    if schema is None and (folder / FEATURES_FILE).is_file():
        schema, metadata = read_tfds_features(folder)
    listed = [shard for shards in splits.values() for shard in shards]
    if schema is None or any(shard.records is None for shard in listed):
        files = scan_files([folder / shard.name for shard in listed], discovers=schema is None)
        _check_records(listed, files)
        found = {file.path: file.as_shard(folder) for file in files}
        schema = schema_of(folder, files) if schema is None else schema
    else:
        found = {
            folder / shard.name: ShardInfo(shard.name, shard.records or 0, shard.bytes, None)
            for shard in listed
        }
    infos = {
        name: SplitInfo(tuple(found[folder / shard.name] for shard in shards))
        for name, shards in splits.items()
    }
    compression = common_compression(found.values())
    return Contents(folder, schema, infos, metadata, compression=compression, writer="tfds")


def _check_records(listed: Sequence[_Shard], files: Sequence[ScannedFile]) -> None:
    """Raise CorruptRecordError for shards with another number of records than listed."""
    for shard, file in zip(listed, files, strict=True):
        if shard.records not in (None, file.records):
            raise _wrong_count(file.path, shard.records, file.records)


def _wrong_count(path: Path, expected: int | None, got: int) -> CorruptRecordError:
    return CorruptRecordError(
        f"expected {expected} records, as {INFO_FILE} says, got {got}",
        where=path,
        hint="restore it, or load a list of the files",
    )


def read_tfds_features(folder: Path) -> tuple[Schema, dict[str, dict[str, Any]]]:
    """The schema of `features.json`, and metadata from it and from files of labels.

    The metadata of a feature that cannot be read has the reason under `left_out`.
    """
    path = folder / FEATURES_FILE
    try:
        found = read_features(read_json(path))
    except SchemaError as error:
        raise SchemaError(error, where=path) from error
    metadata = {name: dict(about) for name, about in found.metadata.items()}
    for name, file in found.label_files.items():
        # A feature whose name cannot be that of a file in this folder has no file of labels.
        names = _read_labels(folder / file) if PurePath(file).name == file else []
        if names:
            metadata.setdefault(name, {}).setdefault("class_names", names)
    for name, why in found.left_out.items():
        metadata.setdefault(name, {})["left_out"] = why
    return found.schema, metadata


def _read_labels(path: Path) -> list[str]:
    nbytes = size_of(path)
    if nbytes is None:
        return []
    if nbytes > MAX_LABEL_BYTES:
        raise ManifestError(f"expected at most {MAX_LABEL_BYTES} bytes, got more", where=path)
    try:
        return parse_labels(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"expected names of classes: {error}", where=path) from error


# Splits.


def _read_splits(folder: Path) -> dict[str, list[_Shard]]:
    """The listed splits with their files, which must exist, each in one split."""
    path = folder / INFO_FILE
    info = read_json(path)
    form = _file_format(info, path)
    splits: dict[str, list[_Shard]] = {}
    owners: dict[str, str] = {}
    for at, found in enumerate(_listed_splits(info, path)):
        where = f"{path}: $.splits[{at}]"
        name, shards = _read_split(expect(found, dict, where), where, folder, info, form)
        if name in splits:
            raise ManifestError(f"expected each split once, got {name!r} twice", where=where)
        splits[name] = shards
        for shard in shards:
            if shard.name in owners:
                raise ManifestError(
                    f"expected each shard once, got {shard.name!r} twice", where=where
                )
            owners[shard.name] = name
    if form == "array_record":
        return {name: _copy_shards(folder, shards) for name, shards in splits.items()}
    return splits


def _copy_shards(folder: Path, shards: list[_Shard]) -> list[_Shard]:
    """TFRecord shards that replace those of ArrayRecord, with their numbers of records."""
    copies = copy_array_records([folder / shard.name for shard in shards])
    for shard, copy in zip(shards, copies, strict=True):
        if shard.records not in (None, copy.records):
            raise _wrong_count(folder / shard.name, shard.records, copy.records)
    return [_Shard(copy.name, copy.bytes, copy.records) for copy in copies]


def _file_format(info: Mapping[str, Any], path: Path) -> str:
    """The format of the files to read; TFRecord if there are several."""
    form = info.get("fileFormat", "tfrecord")
    others = expect(
        info.get("alternativeFileFormats", []), list, f"{path}: $.alternativeFileFormats"
    )
    found = next((known for known in _FORMATS if known == form or known in others), None)
    if found is None:
        raise ManifestError(
            f"expected files of format 'tfrecord' or 'array_record', got {describe(form)}",
            where=path,
            hint="prepare it again with file_format='tfrecord', or convert it with TFDS's"
            " scripts.convert_format",
        )
    return found


def _listed_splits(info: Mapping[str, Any], path: Path) -> list[Any]:
    listed = info.get("splits", [])
    if isinstance(listed, dict):
        raise ManifestError(
            "expected a dataset that TFDS prepared, got one of Hugging Face",
            where=path,
            hint=Text(
                Call(
                    f"datum.write({str(path.parent)!r}, out)",
                    shell=f"datum write {shell_word(path.parent)} OUT",
                ),
                " makes a dataset of it",
            ),
        )
    if not expect(listed, list, f"{path}: $.splits"):
        raise ManifestError("expected splits, got none", where=path)
    return list(listed)


def _read_split(
    found: dict[str, Any], where: str, folder: Path, info: Mapping[str, Any], form: str
) -> tuple[str, list[_Shard]]:
    try:
        name = check_split_name(expect(found.get("name"), str, f"{where}.name"))
    except SplitError as error:
        raise ManifestError(error, where=f"{where}.name") from None
    lengths = _read_lengths(found, where)
    count = len(lengths) if lengths is not None else _count(found.get("numShards"), where)
    fields = {
        "DATASET": expect(info.get("name", folder.parent.name), str, "$.name"),
        "SPLIT": name,
        "FILEFORMAT": form,
    }
    template = found.get("filepathTemplate") or _TEMPLATE
    template = expect(template, str, f"{where}.filepathTemplate")
    shards = []
    for number, file in enumerate(_file_names(template, fields, count, where)):
        records = None if lengths is None else lengths[number]
        nbytes = size_of(folder / file)
        if nbytes is not None:
            shards.append(_Shard(file, nbytes, records))
        elif records != 0:  # TFDS may write no file for a shard without records
            raise ManifestError(
                f"expected a shard {file!r}, got no such file",
                where=where,
                hint="copy all files of the dataset, or prepare it again",
            )
        is_framed = form == "tfrecord"
        if is_framed and nbytes is not None and nbytes < FRAME_BYTES * (records or 0):
            raise ManifestError(
                f"{file}: expected {records} records, got {nbytes} bytes",
                where=where,
                hint="the file was truncated, or is of another version; restore it",
            )
    return name, shards


def _read_lengths(found: dict[str, Any], where: str) -> list[int] | None:
    lengths = found.get("shardLengths")
    if lengths is None:
        return None if "numShards" in found else []
    where = f"{where}.shardLengths"
    return [_count(length, where) for length in expect(lengths, list, where)]


def _count(value: Any, where: str) -> int:
    """A number, which is text in the JSON form of protobuf."""
    if not isinstance(value, bool) and isinstance(value, (int, str)):
        text = str(value)
        if _COUNT.fullmatch(text):
            return int(text)
    raise ManifestError(
        f"expected a number of records or shards, got {describe(value)}", where=where
    )


def _file_names(template: str, fields: dict[str, str], count: int, where: str) -> Iterator[str]:
    if count > 1 and "{SHARD_INDEX}" not in template and "{SHARD_X_OF_Y}" not in template:
        raise ManifestError(
            f"expected the number of each shard, got {describe(template)}",
            where=f"{where}.filepathTemplate",
        )
    width = max(5, len(str(count)))
    for number in range(count):
        index, total = f"{number:0{width}}", f"{count:0{width}}"
        own = {"SHARD_INDEX": index, "NUM_SHARDS": total, "SHARD_X_OF_Y": f"{index}-of-{total}"}
        name = template
        for field, value in (fields | own).items():
            name = name.replace(f"{{{field}}}", value)
        yield check_member(name, f"{where}.filepathTemplate")
