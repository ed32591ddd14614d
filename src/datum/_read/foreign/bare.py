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
from datum._read.shards import ByteCounter, Progress, WatchedFile
from datum.errors import (
    CorruptRecordError,
    Damage,
    ManifestError,
    Option,
    SchemaError,
    Text,
    count_of,
)
from datum.format import Compression, Discovery, ShardInfo, SplitInfo, discover
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
        records: how many are sound.
        found: the features of its records; None if only their number was asked for.
        damage: what is not sound, where that was to be skipped.
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
    """How a shard is named in a folder: from there on, or absolutely if it lies elsewhere."""
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
    progress: Progress | None = None,
) -> list[ScannedFile]:
    """Count the records of each file; with `discovers`, look through all of them.

    Damage, records that are no Examples, and files that cannot be read are errors naming the file.
    With `skips_damage` the first two are listed instead. `progress` is called with the bytes that
    are done, and all there are.
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
        except BaseException:  # nobody waits for the others
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
    """How all shards that hold anything are compressed; None if they differ."""
    found = {shard.compression for shard in shards if shard.bytes}
    return found.pop() if len(found) == 1 else None


def merge_found(files: Sequence[ScannedFile]) -> Discovery:
    """What all files hold; SchemaError names those that contradict each other."""
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
    """Refuse a feature that is in the context in one file, and a sequence in another."""
    contexts = [path for path, part in found.items() if _has_kind(part.context, name)]
    sequences = [path for path, part in found.items() if _has_kind(part.sequences, name)]
    if contexts and sequences and not set(contexts) & set(sequences):
        raise _contradiction(
            name,
            f"expected one place in all records, got a sequence (in {sequences[0]})"
            f" and none (in {contexts[0]})",
        )


def _has_kind(features: Mapping[str, object], name: str) -> bool:
    return bool(getattr(features.get(name), "kinds", ()))


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
    progress: Progress | None = None,
) -> Contents:
    """The dataset of some files, in this order, each with its split.

    Without a schema all records are looked through. With `skips_damage` only those that are sound
    count, and what is not is listed, as are files known to be `missing`.
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
    """The error of files that have no sound record: they are of others, not damaged."""
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
    """A schema that reads all records of some files; what is UTF-8 in all of them is text."""
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
    others = f", as {count_of(len(files) - 1, 'other file')} here" if len(files) > 1 else ""
    return SchemaError(
        f"expected records to tell the features from, got a file without any{others}",
        where=where,
        hint=Text("list the features in ", Option("schema")),
    )
