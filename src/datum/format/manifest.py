"""Manifest of a dataset: schema, splits, shards and their names."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from datum import _core
from datum.errors import ManifestError, Message, SchemaError, SplitError, WriteError, nearest
from datum.format.durable import find_unfinished, replace_file
from datum.format.framing import Compression
from datum.format.index import most_records
from datum.format.strict_json import (
    MAX_BYTES,
    check_size,
    describe,
    join_path,
    parse_json,
    plain_value,
    restore_floats,
    stored_value,
)
from datum.schema import Feature, Schema, is_encodable

__all__ = [
    "ALL_SPLITS",
    "MANIFEST_NAME",
    "Manifest",
    "ShardInfo",
    "SplitInfo",
    "check_split_name",
    "is_own_shard_name",
    "parse_shard_name",
    "read_manifest",
    "shard_name",
]

MANIFEST_NAME = "datum.json"
ALL_SPLITS = "all"  # stands for every split
MAX_SPLIT_BYTES = 128  # leaves room for the rest of a file name of at most 255 bytes

_SPLIT = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_-])?")
_LIKE_A_SHARD = re.compile(r".*(-[0-9]{5,}|\.[1-9][0-9]*)")
# At most 18 digits: longer numbers are not counts of files, and slow to convert.
_SHARD = re.compile(r"(.+)[-_]([0-9]{1,18})-of-([0-9]{1,18})((?:\.[A-Za-z][A-Za-z0-9_]*)*)")
_GENERATION = re.compile(r"(.+)\.([1-9][0-9]{0,17})")
_FORMATS = (".tfrecord", ".tfrecords", ".tfrec", ".array_record")


def shard_name(split: str, number: int, count: int, *, generation: int = 0) -> str:
    """Name shard `number` of the `count` that one write made for a split.

    Appended shards have a generation, counted from 1. Numbers have five digits, or as many as
    `count`, so that names sort in the order of the shards.

    >>> shard_name("train", 0, 8)
    'train-00000-of-00008.tfrecord'
    >>> shard_name("train", 1, 2, generation=1)
    'train.1-00001-of-00002.tfrecord'
    """
    check_split_name(split)
    if not 0 <= number < count:
        raise ValueError(
            Message(f"expected a number below {count}, the number of shards, got {number}")
        )
    if generation < 0:
        raise ValueError(Message(f"expected `generation` of 0 or more, got {generation}"))
    appended = f".{generation}" if generation else ""
    width = max(5, len(str(count)))
    return f"{split}{appended}-{number:0{width}}-of-{count:0{width}}.tfrecord"


def parse_shard_name(name: str) -> tuple[str, int, int, int] | None:
    """Return split, number, count and generation from a shard's name, Datum's or another's.

    Names of `shard_name` are parsed exactly. For others this is a guess: numbers of any width, any
    extensions or none, `_` for the first `-`, and the names of TensorFlow Datasets,
    `DATASET-SPLIT.tfrecord-NUMBER-of-COUNT`, where the split follows the last `-`.

    >>> parse_shard_name("validation-00003-of-00128")
    ('validation', 3, 128, 0)
    >>> parse_shard_name("mnist-train.tfrecord-00001-of-00002.gz")
    ('train', 1, 2, 0)
    """
    found = _SHARD.fullmatch(name)
    if found is None:
        return None
    split, number, count, extensions = found[1], int(found[2]), int(found[3]), found[4]
    if number >= count:
        return None
    generation = 0
    form = next((form for form in _FORMATS if split.endswith(form)), None)
    if form is not None and not extensions.startswith(_FORMATS):
        split = split.removesuffix(form).rpartition("-")[2]
    else:
        appended = _GENERATION.fullmatch(split)
        if appended is not None:
            split, generation = appended[1], int(appended[2])
    return (split, number, count, generation) if split else None


def is_own_shard_name(name: str) -> bool:
    """Return whether `shard_name` makes this name.

    >>> is_own_shard_name("train.1-00001-of-00002.tfrecord"), is_own_shard_name("train-0-of-2")
    (True, False)
    """
    found = parse_shard_name(name)
    if found is None:
        return False
    split, number, count, generation = found
    try:
        return shard_name(split, number, count, generation=generation) == name
    except SplitError:
        return False


def check_split_name(name: str) -> str:
    """Raise SplitError for names that a split cannot have, as file names start with them.

    Letters (a-z), digits, `_`, `-` and inner dots are allowed; but not a name that reads like part
    of a shard's name (`train-00000`, `train.1`), nor `all`, which stands for every split.

    >>> check_split_name("train_2012")
    'train_2012'
    """
    problem = _find_problem(name)
    if problem:
        raise SplitError(problem, where=f"split {name!r:.200}")
    return name


def _find_problem(name: str) -> str | Message | None:
    if not isinstance(name, str):
        return f"expected a name, got {type(name).__name__}"
    if name == ALL_SPLITS:
        return f"expected another name: {ALL_SPLITS!r} stands for every split"
    if len(name) > MAX_SPLIT_BYTES:
        return f"expected at most {MAX_SPLIT_BYTES} characters, got {len(name)}"
    if not _SPLIT.fullmatch(name):
        return Message(
            "expected letters from a to z, digits, '_', '-' and inner dots",
            hint="name it like 'train', 'val' or 'test_2012'",
        )
    if _LIKE_A_SHARD.fullmatch(name):
        return Message(
            "expected a name that does not end like that of a shard,"
            " in '-' and five digits or in '.' and a number",
            hint="use '_' before the number",
        )
    return None


def read_manifest(path: Path) -> tuple[Path, bytes]:
    """Return the path of a folder's manifest, or of the file itself, and its content."""
    try:
        if stat.S_ISDIR(path.stat().st_mode):
            return path / MANIFEST_NAME, _read(path / MANIFEST_NAME)
        if path.suffix != ".json" and path.is_file():
            raise ManifestError(
                f"expected the folder of a dataset, or its {MANIFEST_NAME}, got a file", where=path
            )
        return path, _read(path)
    except (FileNotFoundError, NotADirectoryError):
        raise _missing(path) from None
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL character
        raise ManifestError(f"expected a manifest to read: {error}", where=path) from error


def _read(path: Path) -> bytes:
    # Not blocking: opening a FIFO would wait for a writer before it could be refused.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ManifestError("expected a regular file, got something else", where=path)
        data = b""
        if status.st_size <= MAX_BYTES:
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    if max(status.st_size, len(data)) > MAX_BYTES:
        raise ManifestError(f"expected at most {MAX_BYTES} bytes, got more", where=path)
    return data


def _find_near(path: Path) -> Path | None:
    """Return an existing path with almost the same name."""
    try:
        names = [other.name for other in path.parent.iterdir()]
    except OSError:
        return None
    near = nearest(path.name, [name for name in names if name[:1] != "."])
    return path.with_name(near[0]) if near else None


def _missing(path: Path) -> ManifestError:
    folder = path.parent if path.name == MANIFEST_NAME else path
    if folder.is_dir():
        found = "expected a dataset, got a folder that was never published:"
        found += f" it has no {MANIFEST_NAME}"
        hint = "datum.format.read_batches reads TFRecord files that have no manifest"
    else:
        found = "expected a dataset, got no such folder or file"
        near = _find_near(folder)
        hint = f"did you mean {str(near)!r}?" if near else "check the path"
    for staging in find_unfinished(folder):
        hint = f"a write did not finish; repeat the call to resume what is in {staging}"
    return ManifestError(found, where=folder, hint=hint)


VERSION = 1
TAIL_BYTES = 4096  # of a shard; contain the checksum of its last record, or of all if compressed
MAX_COUNT = 2**53  # exact in every JSON reader
MAX_DEFAULT_VALUES = 2**20  # a default fills the whole shape: few bytes could ask for any memory

_NO_CHECKSUM = "00000000"
_CHECKSUM = re.compile(rb'"checksum": "([0-9a-f]{8})"')  # the first: it precedes any content
_CRC = re.compile(r"[0-9a-f]{8}")
_FILE_NAME = re.compile(r'[^\x00-\x1f\x7f/\\:*?"<>|.][^\x00-\x1f\x7f/\\:*?"<>|]*(?<![. ])')


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """One file of records.

    Attributes:
        name: The name of the file, in the folder of the manifest. Without a manifest it may be a
            path, relative to the folder of the dataset or absolute.
        records: The number of records.
        bytes: Its size on disk.
        crc32c: The checksum of the file on disk; None if unknown, which no manifest allows.
        compression: How it is compressed; all shards of a manifest are alike.
        tail_crc32c: The checksum of its last `TAIL_BYTES` bytes, or of all if it has fewer: a quick
            check whether a file is this shard. None if unknown.
    """

    name: str
    records: int
    bytes: int
    crc32c: int | None
    compression: Compression | None = None
    tail_crc32c: int | None = None


@dataclass(frozen=True, slots=True)
class SplitInfo:
    """The shards of one split, in the order of their records."""

    shards: tuple[ShardInfo, ...]

    @property
    def records(self) -> int:
        """The number of records in all shards."""
        return sum(shard.records for shard in self.shards)

    @property
    def bytes(self) -> int:
        """The size of all shards on disk."""
        return sum(shard.bytes for shard in self.shards)


@dataclass(frozen=True, slots=True, eq=False)
class Manifest:
    """The content of a dataset, validated as a whole; two are equal if their bytes are.

    Attributes:
        schema: The features of the records.
        splits: The shards of each split, by its name.
        metadata: Metadata of features, by their names: class names, vocabularies.
        statistics: The statistics of each split, by its name.
        compression: The compression of all shards.
        version: The version of the format.

    `metadata` and `statistics` contain plain JSON values (NumPy's are converted), and floats that
    are not finite. The order of features and splits is kept; that of other names is irrelevant.

    >>> shard = ShardInfo("train-00000-of-00001.tfrecord", records=0, bytes=0, crc32c=0)
    >>> manifest = Manifest(Schema({"x": Feature("int64")}), {"train": SplitInfo((shard,))})
    >>> Manifest.from_bytes(manifest.to_bytes()) == manifest
    True
    """

    schema: Schema
    splits: Mapping[str, SplitInfo]
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    statistics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    compression: Compression | None = None
    version: int = VERSION

    def __post_init__(self) -> None:
        _check_version(self.version)
        if self.compression not in (None, "gzip", "zlib"):
            got = describe(self.compression)
            raise ManifestError(f"$.compression: expected null, gzip or zlib, got {got}")
        if not isinstance(self.schema, Schema):
            object.__setattr__(self, "schema", Schema(self.schema))
        for feature in self.schema.values():
            if feature.default is not None:
                _check_default(feature)
        splits = {name: _compressed(split, self.compression) for name, split in self.splits.items()}
        object.__setattr__(self, "splits", splits)
        _check_splits(self.splits, is_plain=self.compression is None)
        for name in ("metadata", "statistics"):
            object.__setattr__(self, name, _plain_objects(getattr(self, name), f"$.{name}"))
        strays = [name for name in self.statistics if name not in self.splits]
        if strays:
            path = join_path("$.statistics", strays[0])
            raise ManifestError("expected the name of a split, got another", where=path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Manifest) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the content of a manifest file; equal manifests have equal bytes.

        docs/concepts/format.md describes it. Raises ManifestError if it is larger than a reader
        accepts: 256 MiB, or 2^23 values.
        """
        found = {
            "format": "datum",
            "version": self.version,
            "checksum": _NO_CHECKSUM,
            "compression": self.compression,
            "schema": self.schema.to_json(),
            "splits": {name: _split_to_json(split) for name, split in self.splits.items()},
            "metadata": stored_value(self.metadata),
            "statistics": stored_value(self.statistics),
        }
        text = json.dumps(found, ensure_ascii=False, allow_nan=False, indent=2)
        data = text.encode() + b"\n"
        check_size(data)
        return data.replace(_NO_CHECKSUM.encode(), b"%08x" % _core.crc32c(data), 1)

    @classmethod
    def from_bytes(cls, data: bytes, *, file: str = "<memory>") -> Manifest:
        """Read the output of `to_bytes`; raise ManifestError with the path of the fault.

        Unknown fields are ignored, except in the schema.
        """
        try:
            return cls._from_json(parse_json(data), data)
        except ManifestError as error:
            raise type(error)(error, where=file) from None
        except RecursionError:  # of the schema: the depth of everything else is checked
            raise ManifestError("$.schema: expected less nesting, got more", where=file) from None

    @classmethod
    def _from_json(cls, found: Any, data: bytes) -> Manifest:
        found = _expect(found, dict, "$")
        if found.get("format") != "datum":
            got = describe(found.get("format"))
            raise ManifestError(f"$.format: expected 'datum', got {got}")
        _check_version(_take(found, "version", int, "$"))
        _check_checksum(found, data)
        splits = _take(found, "splits", dict, "$")
        return cls(
            schema=_schema_from_json(_take(found, "schema", dict, "$")),
            splits={
                name: _split_from_json(split, join_path("$.splits", name))
                for name, split in splits.items()
            },
            metadata=restore_floats(_take(found, "metadata", dict, "$"), "$.metadata"),
            statistics=restore_floats(_take(found, "statistics", dict, "$"), "$.statistics"),
            compression=_take(found, "compression", object, "$"),
        )

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
        """Write the manifest into a folder, or to a file, durably and atomically.

        Without `overwrite`, raise WriteError if there is one by then.
        """
        path = Path(path)
        path = path / MANIFEST_NAME if path.is_dir() else path
        try:
            replace_file(path, self.to_bytes(), overwrite=overwrite)
        except OSError as error:
            raise WriteError(f"expected to write the manifest, got: {error}", where=path) from error

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Manifest:
        """Read the manifest of a folder, or from a file."""
        file, data = read_manifest(Path(path))
        return cls.from_bytes(data, file=os.fspath(file))


class NewerManifestError(ManifestError):
    """A newer version of Datum wrote a manifest."""


def _check_version(version: Any) -> None:
    if type(version) is int and version > VERSION:
        raise NewerManifestError(
            f"$.version: expected at most {VERSION}, got {version}: a newer Datum wrote this",
            hint="upgrade, pip install --upgrade datum",
        )
    if type(version) is not int or version != VERSION:
        raise ManifestError(f"$.version: expected {VERSION}, got {describe(version)}")


def _check_checksum(found: dict[str, Any], data: bytes) -> None:
    """Raise ManifestError if the file has changed; null is for edits by hand."""
    stored = _take(found, "checksum", object, "$")
    if stored is None:
        return
    place = _CHECKSUM.search(data)
    is_sound = False
    if place is not None and place[1].decode() == stored:
        start, end = place.span(1)
        crc = _core.crc32c(_NO_CHECKSUM.encode(), _core.crc32c(data[:start]))
        is_sound = int(stored, 16) == _core.crc32c(data[end:], crc)
    if not is_sound:
        raise ManifestError(
            f"$.checksum: expected the checksum of the file, got {describe(stored)}:"
            " the manifest was changed or damaged after it was written",
            hint='restore it; or, if the change is intended, set "checksum" to null',
        )


# Splits and shards.


def _compressed(split: SplitInfo, compression: Compression | None) -> SplitInfo:
    """Return a split whose shards have the compression of the manifest."""
    if all(shard.compression == compression for shard in split.shards):
        return split
    return SplitInfo(tuple(replace(shard, compression=compression) for shard in split.shards))


def _split_to_json(split: SplitInfo) -> dict[str, Any]:
    return {"shards": [_shard_to_json(shard) for shard in split.shards]}


def _shard_to_json(shard: ShardInfo) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": shard.name,
        "records": shard.records,
        "bytes": shard.bytes,
        "crc32c": f"{shard.crc32c:08x}",
    }
    if shard.tail_crc32c is not None:
        found["tail_crc32c"] = f"{shard.tail_crc32c:08x}"
    return found


def _split_from_json(found: Any, path: str) -> SplitInfo:
    shards = _take(_expect(found, dict, path), "shards", list, path)
    return SplitInfo(
        tuple(_shard_from_json(shard, f"{path}.shards[{i}]") for i, shard in enumerate(shards))
    )


def _shard_from_json(found: Any, path: str) -> ShardInfo:
    found = _expect(found, dict, path)
    crc = _take_crc(found, "crc32c", path)
    name = _take(found, "name", str, path)
    records, nbytes = (_take(found, count, int, path) for count in ("records", "bytes"))
    tail = _take_crc(found, "tail_crc32c", path) if "tail_crc32c" in found else None
    return ShardInfo(name, records, nbytes, crc, tail_crc32c=tail)


def _take_crc(found: dict[str, Any], key: str, path: str) -> int:
    crc = _take(found, key, str, path)
    if not _CRC.fullmatch(crc):
        raise ManifestError(
            f"expected eight hex digits, got {describe(crc)}", where=f"{path}.{key}"
        )
    return int(crc, 16)


def _check_splits(splits: Mapping[str, SplitInfo], *, is_plain: bool) -> None:
    seen: dict[str, str] = {}
    records = nbytes = 0
    for name, split in splits.items():
        path = join_path("$.splits", str(name))
        try:
            check_split_name(name)
        except SplitError as error:
            raise ManifestError(error, where=path) from None
        for i, shard in enumerate(split.shards):
            at = f"{path}.shards[{i}]"
            _check_shard(shard, at, is_plain=is_plain)
            first = seen.setdefault(shard.name.casefold(), at)
            if first is not at:  # some file systems ignore case
                raise ManifestError(
                    f"expected a file of its own, got that of {first}", where=f"{at}.name"
                )
        records, nbytes = records + split.records, nbytes + split.bytes
    for what, total in (("records", records), ("bytes", nbytes)):
        if total > MAX_COUNT:
            raise ManifestError(f"$.splits: expected at most 2^53 {what} in all, got more")


def _check_shard(shard: ShardInfo, path: str, *, is_plain: bool) -> None:
    if not _is_file_name(shard.name):
        got = describe(shard.name)
        raise ManifestError(f"expected a file of the same folder, got {got}", where=f"{path}.name")
    for name in ("records", "bytes", "crc32c"):
        count, limit = getattr(shard, name), 2**32 - 1 if name == "crc32c" else MAX_COUNT
        if type(count) is not int or not 0 <= count <= limit:
            got = describe(count)
            raise ManifestError(
                f"expected an integer up to {limit}, got {got}", where=f"{path}.{name}"
            )
    if is_plain and (shard.bytes == 0) != (shard.records == 0):
        raise ManifestError(f"expected no bytes for no records, got {shard}", where=path)
    most = most_records(shard.bytes, shard.compression)
    if shard.records > most:
        raise ManifestError(
            f"expected at most {most:,}, the capacity of {shard.bytes:,} bytes,"
            f" got {shard.records:,}",
            where=f"{path}.records",
        )


def _is_file_name(name: Any) -> bool:
    """Return whether this is the name of a file in the same folder, on any system."""
    if type(name) is not str or not _FILE_NAME.fullmatch(name) or not is_encodable(name):
        return False
    return len(name.encode()) <= 255 and name.casefold() != MANIFEST_NAME


# The rest.


def _schema_from_json(found: dict[str, Any]) -> Schema:
    features = {}
    for name, feature in found.items():
        path = join_path("$.schema", name)
        try:
            features[name] = _feature_from_json(_expect(feature, dict, path))
        except ValueError as error:  # includes SchemaError
            message = Message.of(error)
            raise ManifestError(message.line[:500], where=path, hint=message.hint[:500]) from None
    return Schema(features)


def _feature_from_json(found: dict[str, Any]) -> Feature:
    bare = Feature.from_json({name: found[name] for name in found if name != "default"})
    if found.get("default") is None:
        return bare
    _check_default(bare)
    return Feature.from_json(found)


def _check_default(feature: Feature) -> None:
    if math.prod(n for n in feature.shape if n) > MAX_DEFAULT_VALUES:
        raise SchemaError(f"expected a default of at most {MAX_DEFAULT_VALUES} values")


def _plain_objects(found: Any, path: str) -> dict[str, dict[str, Any]]:
    plain: dict[str, dict[str, Any]] = _expect(plain_value(found, path), dict, path)
    for name, value in plain.items():
        _expect(value, dict, join_path(path, name))
    return plain


def _take(found: dict[str, Any], name: str, kind: type, path: str) -> Any:
    """Return a required field of this kind."""
    if name not in found:
        raise ManifestError(f"expected a field {name!r}, got none", where=path)
    return _expect(found[name], kind, join_path(path, name))


def _expect(value: Any, kind: type, path: str) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        kinds = {dict: "an object", list: "a list", str: "a text", int: "an integer"}
        raise ManifestError(f"expected {kinds[kind]}, got {describe(value)}", where=path)
    return value
