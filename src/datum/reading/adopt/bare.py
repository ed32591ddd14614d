"""TFRecord files that nothing describes: splits from their names, the schema from their records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from datum.errors import CorruptRecordError, Damage, SchemaError
from datum.format import ShardInfo, SplitInfo
from datum.format.wording import count_of
from datum.reading.adopt.names import split_order
from datum.reading.adopt.record_files import no_record_file
from datum.reading.adopt.scan import ScannedFile, common_compression, merge_found, scan_files
from datum.reading.contents import Contents
from datum.reading.progress import Progress
from datum.schema import Schema

__all__ = ["open_files", "schema_of"]


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
        " or SequenceExample, got bytes that are no such message",
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
        hint="pass schema= with the features",
    )
