"""Staging of a dataset, and its atomic publication."""

from __future__ import annotations

import contextlib
import filecmp
import json
import os
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from datum import _core
from datum._write.sidecars import owned_sidecar_names
from datum.errors import CorruptIndexError, ManifestError, Option, Text, WriteError
from datum.format import Index, Manifest
from datum.format.durable import (
    INNER_STAGING,
    NEW_SUFFIX,
    entries_of,
    exchange,
    hold_folder,
    is_own_folder,
    is_same_folder,
    remove_folder,
    replace_file,
    staging_beside,
    sync_folder,
)
from datum.format.index import INDEX_FOLDER
from datum.format.manifest import MANIFEST_NAME, ShardInfo, is_own_shard_name

__all__ = [
    "QUARANTINE",
    "Staging",
    "check_target",
    "hold_staging",
    "open_staging",
]

QUARANTINE = "quarantine.jsonl"
_PLAN = "plan.json"
_JOURNAL = "done.jsonl"
_WIDENED = "float64.json"


class Staging:
    """A folder beside the target, locked by one writer.

    A journal lists finished shards, so that another run of the same plan resumes. Files of another
    plan are removed. The folder carries a mark; one without it is never touched.

    A shard enters the journal only when it and its index are on the disk. So an entry that
    survives a power cut is true, and a lost or torn one costs one shard: the journal itself need
    not be synced.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        self.where: object = target  # what messages call it
        self.folder = _place_of(target)
        self.data = self.folder / "data"
        self.spill = self.folder / "spill"
        self._journal = self.folder / _JOURNAL
        self._old = self.folder / "old"
        self._widened = self.folder / _WIDENED
        self._has_plan = False
        self._has_begun = False
        self._done: dict[str, dict[str, Any]] = {}  # journal entries by shard
        self._lock = threading.Lock()

    def begin(self, plan: str | None) -> None:
        """Resume an interrupted run of the same plan; remove everything else."""
        self._has_plan = plan is not None
        self._has_begun = True
        path = self.folder / _PLAN
        is_same = plan is not None and _read_json(path) == {"plan": plan}
        for folder in (self.data, self._old):
            self._rescue(folder)
        if not is_same or self.data.is_symlink():
            _remove(self.data)
        self.data.mkdir(exist_ok=True)
        notes = _read_notes(self._journal) if is_same else {}
        self._done = self._whole(notes)
        self._drop_unfinished()
        kept = (self.data, path, self._widened) if is_same else (self.data, path)
        for entry in entries_of(self.folder):
            if entry not in kept or entry.is_symlink():
                _remove(entry)
        if plan is None:
            path.unlink(missing_ok=True)
        else:  # the journal first: it must never belong to another plan
            replace_file(self._journal, b"".join(_note(*item) for item in self._done.items()))
            replace_file(path, json.dumps({"plan": plan}).encode())

    def _whole(self, notes: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """The notes of shards that are still as noted."""
        return {name: note for name, note in notes.items() if self._is_whole(name, note)}

    def _is_whole(self, name: str, note: dict[str, Any]) -> bool:
        """Return whether the files of a shard match its journal entry."""
        try:
            size = (self.data / name).stat().st_size
            index = Index.load(self.data / Index.path_for(name))
            return bool(size == note["shard"]["bytes"] and len(index) == note["shard"]["records"])
        except (OSError, KeyError, TypeError, CorruptIndexError):
            return False

    def _drop_unfinished(self) -> None:
        """Remove files of unfinished shards."""
        kept = {*self._done, *(Index.path_for(name).as_posix() for name in self._done)}
        for name in _entries(self.data):
            if name not in kept or (self.data / name).is_symlink():
                _remove(self.data / name)

    def restore(self) -> None:
        """Restore the old dataset if an overwrite was interrupted between two renames."""
        has_old = not self._old.is_symlink() and (self._old / MANIFEST_NAME).is_file()
        if has_old and not os.path.lexists(self.target):
            self._old.rename(self.target)

    def close(self, *, has_failed: bool) -> None:
        """Remove the folder if no run can resume from it."""
        is_useless = has_failed and self._has_begun and not self.is_resumable
        if is_useless or not entries_of(self.folder):
            self.remove()

    @property
    def is_resumable(self) -> bool:
        """Whether another run can resume from here."""
        return self._has_plan and bool(self._done)

    def load_done(self, name: str) -> dict[str, Any] | None:
        """Return the journal entry of a shard that an earlier run finished, if any."""
        return self._done.get(name)

    def save_done(self, name: str, result: dict[str, Any]) -> None:
        """Record in the journal that a shard and its index are on the disk; thread-safe."""
        with self._lock:
            if self._has_plan:
                with self._journal.open("ab") as journal:
                    journal.write(_note(name, result))
            self._done[name] = result

    def claim(self, least: int) -> int:
        """The generation that shards of this write get: `least`, or the first that is free."""
        return least

    def keep(self, shard: ShardInfo) -> ShardInfo:
        """Take over a shard that is on the disk with its index; any thread may call it."""
        return shard

    def sync(self) -> None:
        """Sync the names of all files, whose contents are already on the disk."""
        if (self.data / INDEX_FOLDER).is_dir():
            sync_folder(self.data / INDEX_FOLDER)
        sync_folder(self.data)

    @property
    def widened(self) -> frozenset[str]:
        """Features that were widened since this plan, or an interrupted run of it, began."""
        found = _read_json(self._widened)
        return frozenset(found) if isinstance(found, list) else frozenset()

    def start_anew(self, widened: Iterable[str]) -> None:
        """Remove all shards of the plan, because these features need a wider type."""
        with self._lock:
            self._done = {}
            if self._has_plan:  # the journal first: it must never list a shard of another type
                replace_file(self._journal, b"")
        _remove(self.data)
        self.data.mkdir()
        replace_file(self._widened, json.dumps(sorted(widened)).encode())

    # Publishing.

    def publish(self, *, overwrite: bool) -> None:
        """Move `data`, with the manifest in it, to the target."""
        sync_folder(self.data)
        if overwrite:
            self._check_strangers()
        # From here on, a later run must not resume this plan.
        (self.folder / _PLAN).unlink(missing_ok=True)
        sync_folder(self.folder)
        if not self.target.exists():
            self.data.rename(self.target)
        elif not _names_in(self.target):
            self._fill()
        elif not overwrite:
            raise WriteError(
                "expected an empty folder, got files that appeared during the write",
                where=self.target,
            )
        elif _is_fixed(self.target):
            self._replace_files()
        else:
            self._replace()
        try:
            sync_folder(self.target.parent)
        except OSError as error:
            raise WriteError(
                f"the dataset is published, but could not be synced to the disk: {error}",
                where=self.target,
            ) from error
        self.remove()

    def _check_strangers(self) -> None:
        """Raise WriteError if publishing would replace a file that Datum did not write."""
        if not self.target.is_dir():
            return
        owned = owned_names(self.target)
        for name in _entries(self.data):
            place = self.target / name
            is_taken = name not in owned and os.path.lexists(place)
            if is_taken and not _are_alike(self.data / name, place):
                raise WriteError(
                    "this file is not from Datum, and the new dataset would replace it",
                    where=place,
                    hint="move it elsewhere, then call again",
                )

    def _replace(self) -> None:
        """Replace the old dataset; other files in its folder stay."""
        old = self._old
        if exchange(self.data, self.target):
            old = self.data
        else:
            self.target.rename(old)
            try:
                self.data.rename(self.target)
            except OSError:
                old.rename(self.target)
                raise
        self._rescue(old)

    def _rescue(self, old: Path) -> None:
        """Move other files from the replaced folder back to the target."""
        if old.is_symlink() or not (old / MANIFEST_NAME).is_file() or not self.target.is_dir():
            return
        owned = owned_names(old)
        for name in _entries(old):
            is_own = name in owned or _is_unfinished(name)
            if not is_own and not os.path.lexists(self.target / name):
                (self.target / name).parent.mkdir(exist_ok=True)
                (old / name).rename(self.target / name)

    def _replace_files(self) -> None:
        """Replace file by file in a folder that cannot be renamed; meanwhile it has no manifest."""
        owned = owned_names(self.target)
        (self.target / MANIFEST_NAME).unlink()
        sync_folder(self.target)
        for name in owned:
            _remove(self.target / name)
        self.move_in()

    def _fill(self) -> None:
        """Publish into an existing empty folder."""
        if _is_fixed(self.target):
            self.move_in()
        else:
            self.data.rename(self.target)

    def move_in(self) -> None:
        """Move files into the target one by one, the manifest last."""
        for name in _entries(self.data):
            if name != MANIFEST_NAME:
                (self.target / name).parent.mkdir(exist_ok=True)
                if (self.data / name).is_dir():  # the folder of links is replaced as a whole
                    _remove(self.target / name)
                (self.data / name).replace(self.target / name)
        if (self.target / INDEX_FOLDER).is_dir():
            sync_folder(self.target / INDEX_FOLDER)
        sync_folder(self.target)
        (self.data / MANIFEST_NAME).replace(self.target / MANIFEST_NAME)
        sync_folder(self.target)

    def append(self) -> None:
        """Add the files of `data` to the existing dataset and replace its manifest."""
        self._check_strangers()
        self.move_in()
        self.remove()

    def remove(self) -> None:
        """Remove the folder."""
        remove_folder(self.folder)


def owned_names(folder: Path) -> set[str]:
    """Names of the files that belong to the dataset in a folder, complete or not.

    These are the files that the manifest lists, indexes recognised by content, and shards with
    such an index, which an interrupted append or a damaged manifest leaves unlisted.
    """
    manifest = None
    shards = [path.name for path in folder.iterdir() if _is_own_shard(path)]
    try:
        manifest = Manifest.load(folder)
        shards += [shard.name for split in manifest.splits.values() for shard in split.shards]
    except ManifestError:
        pass
    names = {MANIFEST_NAME} | owned_sidecar_names(folder, manifest)
    if _is_own_quarantine(folder / QUARANTINE):
        names.add(QUARANTINE)
    names.update(shards, (Index.path_for(name).as_posix() for name in shards))
    return names | _own_indexes(folder)


def _own_indexes(folder: Path) -> set[str]:
    """Indexes in a folder, even without their shards."""
    indexes = folder / INDEX_FOLDER
    if not indexes.is_dir() or indexes.is_symlink():
        return set()
    return {
        f"{INDEX_FOLDER}/{path.name}"
        for path in indexes.iterdir()
        if path.is_file() and Index.is_index(path)
    }


def _is_own_shard(path: Path) -> bool:
    index = Index.path_for(path)
    return is_own_shard_name(path.name) and index.is_file() and Index.is_index(index)


def _is_own_quarantine(path: Path) -> bool:
    """Return whether Datum wrote this list of rejected records."""
    try:
        with path.open("rb") as file:
            first = json.loads(file.readline())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(first, dict) and {"split", "record", "reason"} <= first.keys()


def _is_unfinished(name: str) -> bool:
    """Return whether a file is one of ours, left before its final rename."""
    return Path(name).name.startswith(".") and name.endswith(NEW_SUFFIX)


def _are_alike(made: Path, place: Path) -> bool:
    """Return whether two files have the same content."""
    try:
        return made.is_file() and place.is_file() and filecmp.cmp(made, place, shallow=False)
    except OSError:
        return False


def _entries(folder: Path) -> list[str]:
    """Names in the folder of a dataset, with indexes as `index/NAME`."""
    names = {entry.name for entry in folder.iterdir()}
    indexes = folder / INDEX_FOLDER
    if indexes.is_dir() and not indexes.is_symlink():
        names.remove(INDEX_FOLDER)
        names |= {f"{INDEX_FOLDER}/{entry.name}" for entry in indexes.iterdir()}
    return sorted(names)


def _note(name: str, result: dict[str, Any]) -> bytes:
    """A line of the journal, with a checksum that reveals torn lines."""
    text = json.dumps([name, result]).encode()
    return b"%08x %s\n" % (_core.crc32c(text), text)


def _read_notes(journal: Path) -> dict[str, dict[str, Any]]:
    """Entries of a journal, without torn ones."""
    try:
        lines = journal.read_bytes().split(b"\n")
    except OSError:
        return {}
    found: dict[str, dict[str, Any]] = {}
    for line in lines:
        crc, _, text = line.partition(b" ")
        if text and crc == b"%08x" % _core.crc32c(text):
            match json.loads(text):
                case [str(name), dict(result)]:
                    found[name] = result
    return found


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def _remove(path: Path) -> None:
    """Remove a file, a folder or a link, not the target of a link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _place_of(target: Path) -> Path:
    """Path of the staging folder: beside the target, or inside it if that is impossible."""
    if target.is_dir():
        is_other_disk = target.stat().st_dev != target.parent.stat().st_dev
        if is_other_disk or not os.access(target.parent, os.W_OK):
            return target / INNER_STAGING
    return staging_beside(target)


def _names_in(folder: Path) -> list[str]:
    """Names in a folder, without our staging folder."""
    entries = (entry for entry in folder.iterdir())
    return [
        entry.name for entry in entries if entry.name != INNER_STAGING or not is_own_folder(entry)
    ]


def _is_fixed(folder: Path) -> bool:
    """Return whether a folder cannot be replaced by another: a mount, or the current folder."""
    try:
        return _place_of(folder).parent == folder or folder.samefile(Path.cwd())
    except OSError:  # the current folder is gone
        return False


@contextlib.contextmanager
def open_staging(target: Path) -> Iterator[Staging]:
    """Lock the staging folder of a target; raise WriteError for a second writer."""
    staging = Staging(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with hold_staging(staging):
        yield staging


@contextlib.contextmanager
def hold_staging(staging: Staging) -> Iterator[None]:
    """Hold a staging folder; what is left in it at the end is what another run can go on with."""
    descriptor = _hold(staging.folder)
    has_failed = True
    try:
        staging.restore()
        yield
        has_failed = False
    finally:
        if is_same_folder(staging.folder, descriptor):
            with contextlib.suppress(OSError):
                staging.close(has_failed=has_failed)
        os.close(descriptor)  # last, because the next writer may then create this folder


def _hold(folder: Path) -> int:
    try:
        return hold_folder(folder)
    except BlockingIOError:
        raise WriteError(
            "another process is writing to the same target",
            where=folder,
            hint="wait until it ends, or write to another folder",
        ) from None
    except FileExistsError:
        raise WriteError(
            f"the staging folder must be absent or from Datum, got {_describe(folder)}",
            where=folder,
            hint="move it elsewhere, or write to a folder with another name",
        ) from None


def _describe(place: Path) -> str:
    if place.is_symlink():
        return "a link"
    return "a folder with other files" if place.is_dir() else "a file"


def check_target(target: Path, *, overwrite: bool, append: bool) -> None:
    """Raise WriteError for a target that this call may not touch."""
    if target.exists() and not target.is_dir():
        raise WriteError("expected a folder, got a file", where=target)
    has_manifest = (target / MANIFEST_NAME).is_file()
    indexes = target / INDEX_FOLDER
    if (append or overwrite) and os.path.lexists(indexes) and not indexes.is_dir():
        raise WriteError(
            "expected a folder of indexes, got a file",
            where=indexes,
            hint="move it elsewhere",
        )
    if append:
        if not has_manifest:
            raise WriteError(
                "expected a dataset to append to, got none",
                where=target,
                hint=Text("leave out ", Option("append", True)),
            )
        return
    if has_manifest and not overwrite:
        raise WriteError(
            "a dataset already exists",
            where=target,
            hint=Text(
                Option("overwrite", True), " replaces it, ", Option("append", True), " adds to it"
            ),
        )
    others = _first_names(target) if target.exists() and not has_manifest else []
    if others:
        raise WriteError(
            f"the target folder is not empty: {', '.join(others)}",
            where=target,
            hint="write to a new or empty folder",
        )


def _first_names(folder: Path, limit: int = 3) -> list[str]:
    return sorted(_names_in(folder))[:limit]
