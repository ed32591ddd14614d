"""A survey of a damaged dataset and the sound records of each of its files."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum._read.contents import Contents
from datum._read.copy import Places
from datum._read.foreign.detect import open_dataset, refuse_links
from datum._read.foreign.record_files import check_sets, list_folder, select_record_files
from datum._read.foreign.tfds import FEATURES_FILE, read_tfds_features
from datum._read.record_checks import find_fault
from datum._read.remote import hold_shard
from datum.errors import (
    Call,
    CorruptIndexError,
    Damage,
    DatumError,
    ManifestError,
    Message,
    SchemaError,
    StorageError,
    Text,
    count_of,
    inert,
)
from datum.format import Compression, Index, Manifest, Parser, RecordFile, Records
from datum.format.framing import HEADER_BYTES
from datum.format.index import FRAME_BYTES
from datum.format.layout import lower
from datum.format.manifest import (
    MANIFEST_NAME,
    VERSION,
    NewerManifestError,
    is_own_shard_name,
    read_manifest,
)
from datum.format.parse import place_of
from datum.schema import Feature, Schema

if TYPE_CHECKING:
    from datum._storage.client import Hold

__all__ = [
    "ExpectedFile",
    "Loss",
    "RepairReport",
    "Salvaged",
    "Survey",
    "salvage_file",
    "survey_path",
]

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
        held: what keeps the local copies of objects while this lives.
    """

    folder: Path
    files: tuple[ExpectedFile, ...]
    schema: Schema | None
    metadata: Mapping[str, Mapping[str, Any]]
    compression: Compression | None
    is_certain: bool = True
    notes: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()
    held: tuple[Hold, ...] = ()

    @property
    def splits(self) -> list[str]:
        """The names of the splits."""
        return list(dict.fromkeys(file.split for file in self.files))


def survey_path(
    path: Paths,
    *,
    schema: Schema | None = None,
    trusts_damaged: bool = True,
    follow_links: bool = False,
) -> Survey:
    """Find out what should be there; raises what `datum.load` does if there are no records at all.

    A manifest that was damaged, and sidecars where it cannot be read at all, are used as far as
    they can be, if it `trusts_damaged` ones.
    """
    folder = _manifest_folder(path)
    if folder is not None:
        return _survey_published(folder, schema, trusts_damaged, follow_links)
    try:
        contents = open_dataset(path, schema=schema, skips_damage=True, follow_links=follow_links)
        found = _of_contents(contents)
        is_bare = schema is None and all(_has_own_index(file.path) for file in found.files)
        return _recount(replace(found, forgotten=_tell_forgotten(found)) if is_bare else found)
    except DatumError as error:
        if not follow_links and "follow_links=True" in error.hint:
            raise
        return _survey_undescribed(path, schema, error, trusts_damaged=trusts_damaged)


def _manifest_folder(path: Paths) -> Path | None:
    """The folder of the manifest that a path stands for, if it does."""
    if not isinstance(path, (str, os.PathLike)):
        return None
    place = Path(path).expanduser()
    if place.name == MANIFEST_NAME:
        place = place.parent
    return place if os.path.lexists(place / MANIFEST_NAME) else None


def _survey_published(
    folder: Path, schema: Schema | None, trusts_damaged: bool, follow_links: bool
) -> Survey:
    try:
        contents = _with_schema(folder, Manifest.load(folder), schema)
    except NewerManifestError:
        raise
    except ManifestError as error:
        told = error.parts.beside(folder / MANIFEST_NAME)
    else:
        if not follow_links:
            refuse_links(contents)
        return _of_contents(contents)
    manifest = _read_around_damage(folder) if trusts_damaged else None
    if manifest is not None:
        contents = _with_schema(folder, manifest, schema)
        if not follow_links:
            refuse_links(contents)
        found = _of_contents(contents)
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
    return Survey(
        contents.folder,
        tuple(files),
        schema,
        contents.metadata,
        contents.compression,
        held=tuple(_hold_shards(contents)),
    )


def _hold_shards(contents: Contents) -> Iterator[Hold]:
    """Have the objects of a dataset there, damaged or not; those that are missing are not."""
    shards = [shard for info in contents.splits.values() for shard in info.shards]
    for shard in shards if contents.remote is not None else ():
        assert contents.remote is not None
        try:
            yield hold_shard(
                contents.remote, shard, has_index=contents.is_published, accepts_damage=True
            )
        except StorageError as error:
            if error.kind != "missing":
                raise


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
    return replace(found, notes=(error.parts.line, *found.notes))


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
    message = error.parts
    return message.beside(survey.files[0].path) if len(survey.files) == 1 else message.line


SHOWN_LOSSES = 20
SCHEMA_HINT = Text("pass the features you know: ", Call("datum.repair(path, out, schema={...})"))


@dataclass(frozen=True, slots=True)
class Loss:
    """One place where records were lost.

    Attributes:
        split: whose records they were.
        damage: the file, the bytes, and what is wrong with them. Beside the kinds of damage to
            files these are "missing file", "missing end" (of a file that was cut between two
            records), "malformed" (no tf.train.Example), "schema" (not what the schema says) and
            "image" (one that cannot be decoded).
        records: how many records were lost there; None if that cannot be told.
        reason: more about it; empty where the kind says all.
    """

    split: str
    damage: Damage
    records: int | None
    reason: str = ""

    @property
    def bytes(self) -> int:
        """How many bytes were lost, of the decompressed file if it is compressed."""
        return self.damage.end - self.damage.offset

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        damage = self.damage
        return {
            "split": self.split,
            "file": damage.file,
            "offset": damage.offset,
            "bytes": self.bytes,
            "record": damage.record,
            "records": self.records,
            "kind": damage.kind,
            "reason": self.reason,
        }

    def __str__(self) -> str:
        count = "" if self.records in (None, 1) else f" ({count_of(self.records or 0, 'record')})"
        reason = f": {self.reason}" if self.reason else ""
        return inert(f"{self.damage}{count}{reason}")


@dataclass(frozen=True, slots=True, repr=False)
class RepairReport:
    """What `datum.repair` did; `str()` of it is a summary.

    Attributes:
        path: what was repaired; it is as it was.
        out: the folder that what is whole was written to.
        form: "dataset", or "files": plain TFRecord files without a manifest, for records that are
            no Examples.
        kept: how many records of each split were saved.
        lost: how many of each split were lost; None where nothing says how many there were.
        losses: where, in the order of the files.
        notes: what else is to be known.
        seconds: how long it took.
        forgotten: what only the manifest recorded and is lost or doubtful, one line each: types,
            shapes, class names. The records keep their bytes, but may be read as other types.
    """

    path: Path
    out: Path
    form: Literal["dataset", "files"]
    kept: Mapping[str, int]
    lost: Mapping[str, int | None]
    losses: tuple[Loss, ...]
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    forgotten: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        """How many records were saved."""
        return sum(self.kept.values())

    @property
    def lost_records(self) -> int | None:
        """How many records were lost; None where that cannot be told."""
        counts = [count for count in self.lost.values() if count is not None]
        return sum(counts) if len(counts) == len(self.lost) else None

    @property
    def is_whole(self) -> bool:
        """Whether nothing was lost: neither records, nor what was known of them."""
        return not self.losses and not self.lost_records and not self.forgotten

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "path": str(self.path),
            "out": str(self.out),
            "form": self.form,
            "kept": dict(self.kept),
            "lost": dict(self.lost),
            "kinds": dict(sorted(Counter(loss.damage.kind for loss in self.losses).items())),
            "losses": [loss.to_json() for loss in self.losses],
            "forgotten": list(self.forgotten),
            "notes": list(self.notes),
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        lines = [f"{self.out}: {count_of(self.records, 'record')} saved{self._describe_lost()}"]
        width = max(map(len, self.kept), default=0)
        for name, kept in self.kept.items():
            lost = self.lost[name]
            told = "how many were lost is not known" if lost is None else f"{lost:,} lost"
            lines.append(f"  {name:<{width}}  {kept:,} saved, {told}")
        lines += [f"  {loss}" for loss in self.losses[:SHOWN_LOSSES]]
        if len(self.losses) > SHOWN_LOSSES:
            lines.append(f"  and {count_of(len(self.losses) - SHOWN_LOSSES, 'place')} more")
        lines += [f"  lost: {line}" for line in self.forgotten]
        if self.forgotten:
            lines.append(f"  hint: {SCHEMA_HINT}")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def __repr__(self) -> str:
        return str(self)

    def _describe_lost(self) -> str:
        if self.is_whole:
            return ", nothing was lost"
        lost = self.lost_records
        if not self.losses and not lost:
            return ", no records lost, but part of the schema or metadata"
        return f", {lost:,} lost" if lost is not None else f", damage in {self._places()}"

    def _places(self) -> str:
        return count_of(len(self.losses), "place")


CHUNK_RECORDS = 1024

Advance = Callable[[int, int], None]  # records and bytes that were looked at


@dataclass(frozen=True, slots=True, eq=False)
class Salvaged:
    """What is whole of a file, and what is not.

    Attributes:
        places: where the records that are kept lie; in the decompressed stream, if it is one.
        losses: in the order of the file.
        extra: how many more records there are than a description says.
    """

    file: ExpectedFile
    compression: Compression | None
    places: Places
    losses: tuple[Loss, ...]
    extra: int = 0

    def __len__(self) -> int:
        return len(self.places.offsets)

    def runs(self) -> Iterator[Records]:
        """The records that are kept, in order."""
        wanted = self.places.offsets
        with RecordFile(self.file.path, recovery="skip", use_index=False) as file:
            for records in file.chunks(CHUNK_RECORDS):
                offsets = records.starts + ((records.base or 0) - HEADER_BYTES)
                first, last = np.searchsorted(wanted, [offsets[0], offsets[-1] + 1])
                kept = np.isin(offsets, wanted[first:last], assume_unique=True)
                if kept.any():
                    yield _take(records, kept)


def salvage_file(
    expected: ExpectedFile, schema: Schema | None, *, deep: bool, advance: Advance
) -> Salvaged:
    """Read all of a file, around what is damaged.

    Without a schema records may be anything; with one they have to be what it says, and if it is
    to go `deep`, all images have to be such that they can be decoded.
    """
    path = expected.path
    try:
        with RecordFile(path, recovery="skip", use_index=False) as file:
            return _salvage(expected, file, schema, deep=deep, advance=advance)
    except FileNotFoundError:
        kind = "missing file"
    except OSError as error:
        kind = f"unreadable file: {error.strerror or error}"
    nowhere = Places(path, np.empty(0, np.int64), np.empty(0, np.int64))
    kind, _, reason = kind.partition(": ")
    damage = Damage(str(path), 0, expected.bytes or 0, 0, kind)
    return Salvaged(
        expected, None, nowhere, (Loss(expected.split, damage, expected.records, reason),)
    )


def _salvage(
    expected: ExpectedFile,
    file: RecordFile,
    schema: Schema | None,
    *,
    deep: bool,
    advance: Advance,
) -> Salvaged:
    starts, ends = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    losses: list[Loss] = []
    judge = None if schema is None else _Judge(expected.split, schema, deep=deep)
    for records in file.chunks(CHUNK_RECORDS):
        offsets = records.starts + ((records.base or 0) - HEADER_BYTES)
        stops = offsets + records.lengths + FRAME_BYTES
        advance(len(records), int(records.lengths.sum()))
        if judge is not None:
            refused = judge.refuse(records)
            losses += refused.values()
            kept = np.delete(np.arange(len(records)), list(refused))
            offsets, stops = offsets[kept], stops[kept]
        starts.append(offsets)
        ends.append(stops)
    version = file.content.version
    found = Places(expected.path, np.concatenate(starts), np.concatenate(ends), version)
    torn = [Loss(expected.split, damage, _least(damage)) for damage in file.damage]
    sound = len(found.offsets) + len(losses)
    extra = 0 if expected.records is None else max(0, sound - expected.records)
    torn = _count(torn, expected, sound, found)
    all_losses = sorted([*torn, *losses], key=lambda loss: loss.damage.offset)
    return Salvaged(expected, file.compression, found, tuple(all_losses), extra)


# How many records were lost where the file itself is damaged.


def _count(torn: list[Loss], expected: ExpectedFile, sound: int, found: Places) -> list[Loss]:
    """The places of damage with the number of records that each took, where it can be told."""
    if expected.records is None:
        return torn
    lost = max(0, expected.records - sound)
    if not torn and lost:
        end = int(found.ends[-1]) if len(found.ends) else 0
        damage = Damage(
            str(expected.path), end, max(end, expected.bytes or 0), sound, "missing end"
        )
        return [Loss(expected.split, damage, lost)]
    if len(torn) == 1:
        return [replace(torn[0], records=lost)]
    if len(torn) == lost:
        return [replace(loss, records=1) for loss in torn]
    index = _index_of(expected)
    if index is None:
        return torn
    counted = []
    for loss in torn:
        first, last = np.searchsorted(index.offsets, [loss.damage.offset, loss.damage.end])
        counted.append(replace(loss, records=int(last - first)))
    is_right = sum(loss.records or 0 for loss in counted) == lost
    return counted if is_right else torn


def _least(damage: Damage) -> int | None:
    """How many records a place of damage took, by itself: one whose length is sound is one."""
    return 1 if damage.kind == "payload checksum" else None


def _index_of(expected: ExpectedFile) -> Index | None:
    """The index beside a file, if it is whole and of as many records as there should be."""
    try:
        index = Index.load(Index.path_for(expected.path))
    except (OSError, CorruptIndexError):
        return None
    return index if len(index) == expected.records else None


# Whether records that are whole are what they should be.


class _Judge:
    """Tells records that are not what the schema says."""

    def __init__(self, split: str, schema: Schema, *, deep: bool) -> None:
        self._split = split
        self._schema = schema
        self._parser = Parser(schema)
        images = [name for name, feature in schema.items() if feature.encoding == "image"]
        self._images = images if deep else []

    def refuse(self, records: Records) -> dict[int, Loss]:
        """The rows of a run that cannot be kept, and why."""
        refused: dict[int, Loss] = {}
        first = 0
        while first < len(records):
            rest = _take(records, slice(first, None))
            try:
                columns = self._parse(rest)
                self._check_images(columns, records, first, refused)
                break
            except _Unfit as unfit:
                row = first + unfit.row
                if unfit.row:
                    sound = _take(records, slice(first, row))
                    self._check_images(self._parse(sound), records, first, refused)
                refused[row] = self._lose(records, row, unfit.kind, unfit.reason)
                first = row + 1
        return refused

    def _parse(self, records: Records) -> dict[str, Any]:
        starts = np.ascontiguousarray(records.starts)
        lengths = np.ascontiguousarray(records.lengths)
        try:
            found = self._parser.plan.parse(records.buffer, starts, lengths, 1)
            return self._parser.columns(found, records)
        except _core.Fault as fault:
            error = self._parser.error(records, fault)
            kind = "schema" if isinstance(error, SchemaError) else "malformed"
            row = int(fault.args[1])
            raise _Unfit(row, kind, _reason(error, records, row)) from error
        except SchemaError as error:
            if error.record is None:
                raise
            row = int(np.searchsorted(records.numbers, error.record))
            raise _Unfit(row, "schema", _reason(error, records, row)) from error

    def _check_images(
        self, columns: dict[str, Any], records: Records, first: int, refused: dict[int, Loss]
    ) -> None:
        for name in self._images:
            for at in range(len(columns[name])):
                data = columns[name][at]
                if data is None or first + at in refused:
                    continue
                feature = self._schema[name]
                files = data if feature.holds_images else [data]
                faults = (find_fault(one, feature.single_image) for one in files)
                fault = next((found for found in faults if found is not None), None)
                if fault is not None:
                    reason = f"feature {name!r}: {fault}"
                    refused[first + at] = self._lose(records, first + at, "image", reason)

    def _lose(self, records: Records, row: int, kind: str, reason: str) -> Loss:
        file, number, offset = records.locate(row)
        start = offset or 0
        end = start + int(records.lengths[row]) + FRAME_BYTES
        return Loss(self._split, Damage(file, start, end, number, kind), 1, reason)


class _Unfit(Exception):  # noqa: N818 - it does not leave this module
    """A row that is not what the schema says."""

    def __init__(self, row: int, kind: str, reason: str) -> None:
        super().__init__(row, kind, reason)
        self.row = row
        self.kind = kind
        self.reason = reason


def _reason(error: Exception, records: Records, row: int) -> str:
    """What is wrong, without where that is."""
    return Message.of(error).beside(place_of(records, row)[0])


def _take(records: Records, at: slice | NDArray[np.bool_]) -> Records:
    return replace(
        records, starts=records.starts[at], lengths=records.lengths[at], numbers=records.numbers[at]
    )
