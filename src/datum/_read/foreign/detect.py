"""Detection of datasets of any writer by their files, and manifests for those without one."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from datum._options import thread_count
from datum._read.contents import Contents
from datum._read.foreign.bare import open_files
from datum._read.foreign.older import MAPPING_FILE, SHARD_FILE, open_older
from datum._read.foreign.record_files import (
    check_sets,
    is_beside,
    list_folder,
    natural_order,
    select_record_files,
    size_of,
    split_of_file,
    split_of_folder,
)
from datum._read.foreign.tfds import FEATURES_FILE, INFO_FILE, open_tfds, read_tfds_features
from datum._read.local import cache_folder
from datum._read.shards import ProgressCallback, Shards, checksum_file, tail_checksum
from datum._storage.location import is_url, local_path
from datum.errors import (
    Call,
    CorruptRecordError,
    ManifestError,
    Message,
    Option,
    Text,
    WriteError,
    count_of,
)
from datum.format import Manifest, ShardInfo, SplitInfo
from datum.format.durable import find_unfinished
from datum.format.manifest import MANIFEST_NAME
from datum.schema import Schema

__all__ = [
    "open_dataset",
    "refuse_links",
    "save_manifest",
]

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

SHOWN_FOLDERS = 5


@dataclass(frozen=True, slots=True)
class _Options:
    """Options for files without a description; see `open_dataset`."""

    schema: Schema | None
    skips_damage: bool
    follow_links: bool
    progress: ProgressCallback | None


def open_dataset(
    path_or_paths: Paths,
    *,
    schema: Schema | Mapping[str, Any] | None = None,
    skips_damage: bool = False,
    follow_links: bool = False,
    progress: ProgressCallback | None = None,
    storage: Mapping[str, Any] | None = None,
    cache_bytes: int | None = None,
) -> Contents:
    """Open the dataset at a folder, a manifest, a TFRecord file, a pattern, or a list of files.

    A folder is one of Datum (`datum.json`), of its older library (`shard_info.json`) or of TFDS
    (`dataset_info.json`, also in a single version below), or it has TFRecord files, or a folder of
    them for each split. The features of files without a description are inferred from all records.
    A pattern or a list may name some shards of a dataset of Datum, which its manifest then
    describes. Otherwise no JSON is read.

    Raises ManifestError if there is no dataset, or if it does not match its description.

    Args:
        path_or_paths: The path, pattern (`train-*`) or list, or the URL of a folder in an object
            store, which is read through local copies.
        schema: Features to read from files without a description; None to infer them.
        skips_damage: Whether to skip damaged records and missing files of these.
        follow_links: Whether shards of a manifest may be links out of its folder. Files without a
            manifest are always read through links.
        progress: Called with the number of bytes read and the total, if files are read.
        storage: Options of the object store of a URL.
        cache_bytes: Largest size of the local copies of objects.
    """
    options = _Options(
        Schema(schema) if schema is not None else None, skips_damage, follow_links, progress
    )
    if not isinstance(path_or_paths, (str, os.PathLike)):
        if not isinstance(path_or_paths, Iterable):
            raise TypeError(
                Message(f"expected a path, a pattern, or a list of paths, got {path_or_paths!r}")
            )
        return _open_list(path_or_paths, options)
    if isinstance(path_or_paths, str) and is_url(path_or_paths):
        local = local_path(path_or_paths)
        if local is None:
            return _open_url(path_or_paths, options, storage, cache_bytes)
        path_or_paths = local
    elif storage is not None or cache_bytes is not None:
        given = "cache_bytes" if storage is None else "storage"
        raise ValueError(
            Message(f"expected a URL with `{given}`, got {os.fspath(path_or_paths)!r}")
        )
    path = _expanded(path_or_paths)
    if _is_folder(path):
        return _open_folder(path, options)
    is_file = size_of(path) is not None
    if is_file and path.name in (SHARD_FILE, MAPPING_FILE, INFO_FILE, FEATURES_FILE):
        return _open_folder(path.parent, options)
    if is_file and path.suffix != ".json":
        return _open_list([path], options)
    if not is_file and glob.has_magic(os.fspath(path)):
        return _open_pattern(path, options)
    return _open_manifest(path, options)


def _open_url(
    url: str, options: _Options, storage: Mapping[str, Any] | None, cache_bytes: int | None
) -> Contents:
    """A dataset in an object store: the local folder of its copies, read as any other."""
    from datum._read.remote import open_folder

    remote = open_folder(url, cache_folder(), storage=storage, cache_bytes=cache_bytes)
    return replace(_open_manifest(remote.folder, options), remote=remote)


def _expanded(path: str | os.PathLike[str]) -> Path:
    try:
        found = Path(path).expanduser()
    except RuntimeError as error:  # a user that does not exist
        raise ManifestError(f"expected a path: {error}", where=path) from error
    if "\0" in os.fspath(found):
        raise ManifestError(
            "expected a path, got one with a null byte", where=f"{os.fspath(path)!r}"
        )
    return found


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except OSError:
        return False


def _open_manifest(path: Path, options: _Options) -> Contents:
    manifest = Manifest.load(path)
    contents = Contents.of_manifest(path if path.is_dir() else path.parent, manifest)
    if not options.follow_links:
        refuse_links(contents)
    return contents if options.schema is None else replace(contents, schema=options.schema)


def refuse_links(contents: Contents) -> None:
    """Raise ManifestError if a shard is a link out of the folder of its dataset."""
    folder = contents.folder
    try:
        with os.scandir(folder) as entries:
            links = {entry.name for entry in entries if entry.is_symlink()}
    except OSError:  # reported when the shards are opened
        return
    named = {shard.name for split in contents.splits.values() for shard in split.shards}
    inside = os.path.realpath(folder)
    for name in sorted(links & named):
        target = os.path.realpath(folder / name)
        if os.path.dirname(target) != inside:  # noqa: PTH120 - the path is resolved
            raise ManifestError(
                f"expected a file in the folder of the dataset, got a link to {target}",
                where=f"{folder / name}",
                hint=Text(
                    Call(
                        f"datum.load({str(folder)!r}, follow_links=True)", shell="--follow-links,"
                    ),
                    " if you trust its links",
                ),
            )


def _open_list(paths: Iterable[str | os.PathLike[str]], options: _Options) -> Contents:
    """Open a list of files in this order, from any sets of shards."""
    files = [_expanded(path) for path in paths]
    if not files:
        raise ManifestError("expected paths of TFRecord files, got none")
    seen: dict[str, Path] = {}
    for path in files:
        if _is_folder(path):
            raise ManifestError(
                "expected a TFRecord file in a list, got a folder",
                where=path,
                hint="load one folder, or list the files in it",
            )
        other = seen.setdefault(os.path.realpath(path), path)
        if other is not path:
            raise ManifestError(f"expected each file once, got it as {other} too", where=path)
    return _open_named(files, options)


def _open_named(
    files: Sequence[Path], options: _Options, *, missing: Sequence[Path] = ()
) -> Contents:
    """Open some files with the manifest beside them if it lists all of them, or else without."""
    folder = _folder_of(files)
    notes: tuple[str, ...] = ()
    try:
        manifest = _manifest_of(files)
    except ManifestError as error:
        problem = error.parts.line
        manifest, notes = None, (f"the files were read without their manifest: {problem}",)
    if manifest is None:
        contents = _open_files(folder, _splits_of(files), options, missing=missing)
        return replace(contents, notes=notes)
    shards = {
        shard.name: (name, shard) for name, one in manifest.splits.items() for shard in one.shards
    }
    found = {path: shards[path.name] for path in files}
    changed = [path for path, (_, shard) in found.items() if size_of(path) != shard.bytes]
    if not changed and not missing:
        contents = _of_shards(folder, manifest, list(found.values()), options.schema)
        if not options.follow_links:
            refuse_links(contents)
        return contents
    if not options.skips_damage:
        path = changed[0]
        raise CorruptRecordError(
            f"expected {found[path][1].bytes} bytes, as the manifest says, got {size_of(path)}",
            where=path,
            hint=Text(
                "restore the file; ", Option("on_error", "skip"), " reads its intact records"
            ),
        )
    known = replace(
        options, schema=options.schema if options.schema is not None else manifest.schema
    )
    splits = {path: split for path, (split, _) in found.items()}
    contents = _open_files(folder, splits, known, missing=missing)
    return replace(contents, metadata=manifest.metadata)


def _manifest_of(files: Sequence[Path]) -> Manifest | None:
    """The manifest in the folder of some files, if it lists all of them."""
    folder = files[0].parent
    if any(path.parent != folder or size_of(path) is None for path in files):
        return None
    if not (folder / MANIFEST_NAME).is_file():
        return None
    manifest = Manifest.load(folder)
    named = {shard.name for split in manifest.splits.values() for shard in split.shards}
    return manifest if named.issuperset(path.name for path in files) else None


def _of_shards(
    folder: Path, manifest: Manifest, chosen: Sequence[tuple[str, ShardInfo]], schema: Schema | None
) -> Contents:
    """Some shards of a dataset; statistics are kept for complete splits only."""
    whole = Contents.of_manifest(folder, manifest)
    splits = {
        name: SplitInfo(tuple(shard for split, shard in chosen if split == name))
        for name in manifest.splits
    }
    splits = {name: split for name, split in splits.items() if split.shards}
    complete = [
        name for name in splits if set(splits[name].shards) == set(manifest.splits[name].shards)
    ]
    return replace(
        whole,
        schema=manifest.schema if schema is None else schema,
        splits=splits,
        statistics={name: whole.statistics[name] for name in complete if name in whole.statistics},
        is_part=len(complete) < len(manifest.splits),
    )


def _open_files(
    folder: Path, splits: Mapping[Path, str], options: _Options, *, missing: Sequence[Path] = ()
) -> Contents:
    return open_files(
        folder,
        splits,
        options.schema,
        skips_damage=options.skips_damage,
        missing=missing,
        progress=options.progress,
    )


def _open_sets(folder: Path, splits: Mapping[Path, str], options: _Options) -> Contents:
    """Open files whose sets of shards must be complete."""
    missing = check_sets(splits, may_miss=options.skips_damage)
    return _open_files(folder, splits, options, missing=missing)


def _splits_of(files: Iterable[Path]) -> dict[Path, str]:
    return {path: split_of_file(path) for path in files}


def _folder_of(files: Sequence[Path]) -> Path:
    """The deepest folder that holds all files."""
    parents = [os.fspath(path.parent) for path in files]
    try:
        return Path(os.path.commonpath(parents) or ".")
    except ValueError:  # absolute and relative paths, or several drives
        return Path()


def _open_pattern(pattern: Path, options: _Options) -> Contents:
    names = glob.glob(os.fspath(pattern), recursive=True)  # noqa: PTH207 - any root
    found = [Path(name) for name in sorted(names, key=natural_order)]
    candidates = [path for path in found if path.is_file() and not is_beside(path.name)]
    files = select_record_files(candidates, skips_damage=options.skips_damage)
    if not files:
        raise ManifestError(
            "expected a pattern of TFRecord files, got no file that matches",
            where=pattern,
            hint="check the path; quote the pattern so that no shell expands it",
        )
    return _open_named(files, options, missing=check_sets(files, may_miss=options.skips_damage))


# Folders.


def _open_folder(folder: Path, options: _Options) -> Contents:
    def has(name: str) -> bool:
        return os.path.lexists(folder / name)

    if has(MANIFEST_NAME):
        return _open_manifest(folder, options)
    if has(SHARD_FILE) and has(MAPPING_FILE):
        return open_older(folder, options.schema)
    if has(INFO_FILE):
        return open_tfds(folder, options.schema)
    if has(FEATURES_FILE):
        return _open_features(folder, options)
    files, folders = list_folder(folder)
    found = select_record_files(files, skips_damage=options.skips_damage)
    if found:
        return _open_sets(folder, _splits_of(found), options)
    versions = _find_prepared(folders)
    if versions:
        return open_tfds(_only(folder, versions), options.schema)
    published = [sub for sub in folders if (sub / MANIFEST_NAME).is_file()]
    if published:
        raise ManifestError(
            "expected a dataset, got a folder of datasets",
            where=folder,
            hint=f"load one of them, such as {published[0]}",
        )
    splits = {path: split for sub in folders for path, split in _find_split(sub, options).items()}
    if splits:
        _check_splits(splits)
        return _open_sets(folder, splits, options)
    raise _nothing_in(folder)


def _open_features(folder: Path, options: _Options) -> Contents:
    """Open a folder of TFDS without `dataset_info.json`; its files imply splits and numbers."""
    metadata: Mapping[str, Mapping[str, Any]] = {}
    if options.schema is None:
        schema, metadata = read_tfds_features(folder)
        options = replace(options, schema=schema)
    files = select_record_files(list_folder(folder)[0], skips_damage=options.skips_damage)
    if not files:
        raise ManifestError(
            f"expected TFRecord files beside {FEATURES_FILE}, got none", where=folder
        )
    contents = _open_sets(folder, _splits_of(files), options)
    return replace(contents, metadata=metadata, writer="tfds")


def _find_prepared(folders: Iterable[Path]) -> list[Path]:
    """The versions that TFDS prepared in these folders, or one level below in configurations."""
    found = []
    for folder in folders:
        if (folder / INFO_FILE).is_file():
            found.append(folder)
        else:
            found += [sub for sub in list_folder(folder)[1] if (sub / INFO_FILE).is_file()]
    return found


def _only(folder: Path, versions: list[Path]) -> Path:
    if len(versions) > 1:
        names = [path.relative_to(folder).as_posix() for path in versions]
        shown = ", ".join(names[:SHOWN_FOLDERS]) + (", ..." if len(names) > SHOWN_FOLDERS else "")
        raise ManifestError(
            f"expected one dataset that TFDS prepared, got {shown}",
            where=folder,
            hint=f"load one of them, such as {versions[-1]}",
        )
    return versions[0]


def _find_split(folder: Path, options: _Options) -> dict[Path, str]:
    files = select_record_files(list_folder(folder)[0], skips_damage=options.skips_damage)
    return dict.fromkeys(files, split_of_folder(folder)) if files else {}


def _check_splits(splits: Mapping[Path, str]) -> None:
    owners: dict[str, Path] = {}
    for path, split in splits.items():
        other = owners.setdefault(split, path.parent)
        if other != path.parent:
            raise ManifestError(
                f"expected one folder for split {split!r}, got {other.name} too",
                where=path.parent,
                hint="load one of them, or a list of files",
            )


def _nothing_in(folder: Path) -> ManifestError:
    found = (
        "expected a dataset, got a folder that was never published: it has no"
        f" {MANIFEST_NAME}, no {SHARD_FILE}, no {INFO_FILE} and no TFRecord files, nor do its"
        " folders"
    )
    write = Call("datum.write", shell="datum write")
    hint: str = Text("check the path, or write other files as a dataset with ", write)
    for staging in find_unfinished(folder):
        hint = f"a write did not finish; repeat the call to resume what is in {staging}"
    return ManifestError(found, where=folder, hint=hint)


CHUNK_RECORDS = 4096


def save_manifest(contents: Contents, *, threads: int | None = None) -> Path:
    """Write `datum.json` beside the files of a dataset, and return its path.

    Every shard is read: its records are counted and checked, and the checksum of the file is
    computed. Raises WriteError, before anything is read, if there is a manifest already, if files
    are in several folders, or if they differ in compression; CorruptRecordError if a shard does not
    match the dataset.

    Args:
        contents: The dataset.
        threads: Number of threads; None is one for each core.
    """
    path = contents.folder / MANIFEST_NAME
    shards = [shard for split in contents.splits.values() for shard in split.shards]
    _check_place(path, shards)
    _describe(contents, {shard: replace(shard, crc32c=0) for shard in shards})  # raises if none can
    opener = Shards(contents.folder, contents.writer)
    with ThreadPoolExecutor(thread_count(threads), "datum-save") as pool:
        checked = list(pool.map(lambda shard: _check_shard(opener, shard), shards))
    manifest = _describe(contents, dict(zip(shards, checked, strict=True)))
    manifest.save(path, overwrite=False)  # also if one was written meanwhile
    return path


def _check_place(path: Path, shards: list[ShardInfo]) -> None:
    if path.exists():
        raise WriteError(
            "expected a dataset without a manifest, got one that has a manifest",
            where=path,
            hint="delete it to write a new one",
        )
    strays = [shard.name for shard in shards if Path(shard.name).name != shard.name]
    if strays:
        raise WriteError(
            f"expected all files in the folder of the manifest, got {strays[0]!r}",
            where=path,
            hint=Text(
                "move them into one folder, or write them with ",
                Call("datum.reshard", shell="datum reshard"),
            ),
        )
    ways = sorted({str(shard.compression) for shard in shards if shard.bytes})
    if len(ways) > 1:
        raise WriteError(
            f"expected files of one compression, got {' and '.join(ways)}",
            where=path,
            hint=Text(
                "save a manifest for those of one kind, or write them with ",
                Call("datum.reshard", shell="datum reshard"),
            ),
        )


def _describe(contents: Contents, shards: Mapping[ShardInfo, ShardInfo]) -> Manifest:
    splits = {
        name: SplitInfo(tuple(shards[shard] for shard in split.shards))
        for name, split in contents.splits.items()
    }
    return Manifest(
        contents.schema, splits, contents.metadata, contents.statistics, contents.compression
    )


def _check_shard(opener: Shards, shard: ShardInfo) -> ShardInfo:
    """The shard with its checksum, after all its records were read."""
    with opener.open(shard) as file:
        records = sum(map(len, file.chunks(CHUNK_RECORDS)))
        if records != shard.records:
            raise CorruptRecordError(
                f"expected {count_of(shard.records, 'record')}, {opener.known_from}, got {records}",
                where=file.name,
            )
        nbytes, crc = checksum_file(file)
        tail = tail_checksum(file)
    if nbytes != shard.bytes:
        raise CorruptRecordError(f"expected {shard.bytes} bytes, got {nbytes}", where=file.name)
    return replace(shard, crc32c=crc, tail_crc32c=tail)
