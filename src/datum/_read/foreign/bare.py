"""TFRecord files without a description: splits from their names, schema from their records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from datum._options import thread_count
from datum._read.contents import Contents
from datum._read.foreign.record_files import no_record_file, size_of, split_order
from datum._read.shards import ByteCounter, ProgressCallback, WatchedFile
from datum.errors import (
    CorruptRecordError,
    Damage,
    ManifestError,
    Option,
    SchemaError,
    Text,
    count_of,
)
from datum.format import Compression, DiscoveredFeature, Discovery, ShardInfo, SplitInfo, discover
from datum.schema import Schema

__all__ = [
    "ScannedFile",
    "common_compression",
    "merge_found",
    "open_files",
    "relative_name",
    "scan_files",
    "schema_of",
]

_DEFAULT = Discovery(0, {}, {})


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """Results of one pass over a file.

    Attributes:
        path: Path of the file.
        records: Number of intact records.
        bytes: Size of the file.
        compression: Compression of the file.
        found: Features of its records; None if the records were only counted.
        damage: Damage that was skipped.
    """

    path: Path
    records: int
    bytes: int
    compression: Compression | None
    found: Discovery | None = None
    damage: tuple[Damage, ...] = ()

    def as_shard(self, folder: Path) -> ShardInfo:
        """The file as a shard of a dataset in this folder."""
        name = relative_name(self.path, folder)
        return ShardInfo(name, self.records, self.bytes, None, self.compression)


def relative_name(path: Path, folder: Path) -> str:
    """The path of a shard relative to a folder, or its absolute path if it is elsewhere."""
    try:
        return path.relative_to(folder).as_posix()
    except ValueError:
        return str(path.absolute())


def scan_files(
    paths: Sequence[Path],
    *,
    discovers: bool,
    threads: int | None = None,
    skips_damage: bool = False,
    progress: ProgressCallback | None = None,
) -> list[ScannedFile]:
    """Count the records of each file, and infer their features.

    Damage, records that are no Examples, and unreadable files raise an error that names the file.

    Args:
        paths: Paths of the files.
        discovers: Whether to infer the features of all records.
        threads: Number of threads; None is one for each core.
        skips_damage: Whether to list damage and records that are no Examples instead of raising.
        progress: Called with the number of bytes read and the total.
    """
    look = _scan_around if skips_damage else _scan
    sizes = {path: size_of(path) or 0 for path in paths}
    counted = ByteCounter(sum(sizes.values()), progress)

    def scan(path: Path) -> ScannedFile:
        try:
            return look(path, counted.of_file(sizes[path]), discovers=discovers)
        except OSError as error:
            raise ManifestError(f"expected a TFRecord file to read: {error}", where=path) from error

    count = min(thread_count(threads), len(paths)) or 1
    with ThreadPoolExecutor(count, "datum-adopt") as pool:
        try:
            return list(pool.map(scan, paths))
        except BaseException:  # the other files are not needed
            counted.is_stopped = True
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _scan(path: Path, note: Callable[[int], None], *, discovers: bool) -> ScannedFile:
    with WatchedFile(path, note) as file:
        nbytes = path.stat().st_size
        found: Discovery | None = None
        try:
            if discovers:
                found = discover(file)
                records = found.records
            else:
                records = len(file) if file.compression is None else len(file.index)
        except CorruptRecordError as error:
            raise _damaged(path, error) from error
        except SchemaError as error:
            raise SchemaError(error, where=path) from error
        return ScannedFile(path, records, nbytes, file.compression if nbytes else None, found)


def _scan_around(path: Path, note: Callable[[int], None], *, discovers: bool) -> ScannedFile:
    with WatchedFile(path, note, recovery="skip") as file:
        nbytes = path.stat().st_size
        malformed: list[Damage] = []
        found: Discovery | None = None
        if discovers:
            try:
                found = discover(file, malformed=malformed)
            except SchemaError as error:
                raise SchemaError(error, where=path) from error
        records = sum(map(len, file.chunks())) if found is None else found.records
        damage = sorted([*file.damage, *malformed], key=lambda one: one.offset)
        compression = file.compression if nbytes else None
        return ScannedFile(path, records, nbytes, compression, found, tuple(damage))


def _damaged(path: Path, error: CorruptRecordError) -> CorruptRecordError:
    if error.damage is not None and error.damage.offset == 0:
        return no_record_file(path)
    hint = "restore the file, or load a list of the files to read"
    return CorruptRecordError(error, hint=hint, damage=error.damage)


def common_compression(shards: Iterable[ShardInfo]) -> Compression | None:
    """The compression of all shards that are not empty; None if they differ."""
    found = {shard.compression for shard in shards if shard.bytes}
    return found.pop() if len(found) == 1 else None


def merge_found(files: Sequence[ScannedFile]) -> Discovery:
    """The features of all files; SchemaError names files that contradict each other."""
    found = {file.path: file.found or _DEFAULT for file in files}
    merged = reduce(Discovery.merge, found.values(), _DEFAULT)
    for name, feature in merged.features.items():
        if len(feature.kinds) > 1:
            kinds = {kind: _file_of_kind(found, name, kind) for kind in feature.kinds}
            got = " and ".join(f"{kind} (in {path})" for kind, path in kinds.items())
            raise _contradiction(name, f"expected one kind in all records, got {got}")
    for name in merged.sequences:
        if name in merged.context:
            _check_place(found, name)
    return merged


def _file_of_kind(found: Mapping[Path, Discovery], name: str, kind: str) -> Path:
    return next(
        path
        for path, part in found.items()
        if name in part.features and kind in part.features[name].kinds
    )


def _check_place(found: Mapping[Path, Discovery], name: str) -> None:
    """Raise SchemaError for a feature that is a sequence in one file and not in another."""
    contexts = [path for path, part in found.items() if _has_kind(part.context, name)]
    sequences = [path for path, part in found.items() if _has_kind(part.sequences, name)]
    if contexts and sequences and not set(contexts) & set(sequences):
        raise _contradiction(
            name,
            f"expected one place in all records, got a sequence (in {sequences[0]})"
            f" and none (in {contexts[0]})",
        )


def _has_kind(features: Mapping[str, DiscoveredFeature], name: str) -> bool:
    return name in features and bool(features[name].kinds)


def _contradiction(name: str, problem: str) -> SchemaError:
    return SchemaError(
        problem,
        where=f"feature {name!r}",
        hint=Text("load the files separately, or list the features to read in ", Option("schema")),
        feature=name,
    )


def open_files(
    folder: Path,
    splits: Mapping[Path, str],
    schema: Schema | None,
    *,
    skips_damage: bool = False,
    missing: Sequence[Path] = (),
    progress: ProgressCallback | None = None,
) -> Contents:
    """Open some files in this order as a dataset.

    Args:
        folder: Folder of the dataset.
        splits: Split of each file.
        schema: Features to read; None to infer them from all records.
        skips_damage: Whether to skip damaged records, which `Contents.damage` then lists.
        missing: Missing files to list there too.
        progress: Called with the number of bytes read and the total.
    """
    files = scan_files(
        list(splits), discovers=schema is None, skips_damage=skips_damage, progress=progress
    )
    damage = [one for file in files for one in file.damage]
    if damage and not any(file.records for file in files):
        raise _nothing_sound(damage)
    damage += [Damage(str(path), 0, 0, 0, "missing file") for path in missing]
    schema = schema_of(folder, files) if schema is None else schema
    shards: dict[str, list[ShardInfo]] = defaultdict(list)
    for file in files:
        shards[splits[file.path]].append(file.as_shard(folder))
    return Contents(
        folder,
        schema,
        {name: SplitInfo(tuple(shards[name])) for name in sorted(shards, key=split_order)},
        compression=common_compression(file.as_shard(folder) for file in files),
        writer="tfrecord files",
        damage=tuple(damage),
    )


def _nothing_sound(damage: Sequence[Damage]) -> CorruptRecordError:
    """The error for files without an intact record: they are of another kind, not damaged."""
    first = next((one for one in damage if one.kind == "malformed"), None)
    if first is None:
        return no_record_file(Path(damage[0].file))
    return CorruptRecordError(
        f"record {first.record} at byte {first.offset}: expected a tf.train.Example"
        " or SequenceExample, got other bytes",
        where=first.file,
        damage=first,
    )


def schema_of(folder: Path, files: Sequence[ScannedFile]) -> Schema:
    """A schema for all records of some files; bytes that are UTF-8 in all of them are text."""
    schema = merge_found(files).schema(text=True)
    if not schema:
        raise _no_features(folder, files)
    return schema


def _no_features(folder: Path, files: Sequence[ScannedFile]) -> SchemaError:
    records = sum(file.records for file in files)
    if records:
        return SchemaError(
            "expected tf.train.Example or SequenceExample records with features,"
            f" got {records} record(s) without",
            where=folder,
            hint="datum.format.RecordFile reads records of any kind",
        )
    where = files[0].path if files else folder
    others = f", like {count_of(len(files) - 1, 'other file')} here" if len(files) > 1 else ""
    return SchemaError(
        f"expected records to infer the features from, got a file without any{others}",
        where=where,
        hint=Text("list the features in ", Option("schema")),
    )
