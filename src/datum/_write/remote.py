"""Writing to an object store: shards are made here one after another and uploaded as they are done.

A dataset in a store is published by its manifest, which is put last, and only if the one that this
write has seen at its start, or none, is still there. So readers see the old dataset or the new one,
and of two writers one wins.

Shards must not replace those of another dataset before that. Every write therefore claims a
generation, the number in the names of its shards, by an object that is put only if it is absent:
`.datum.partial/0.json`. The claim names the plan of the write, and the same call after a crash
takes it over with all that was uploaded. A write that finds a claim of another plan takes the next
number. The manifest is looked at again after the claim, since a writer that has published gives up
its claim only afterwards.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from datum._storage.location import Location, cache_folder
from datum._storage.store import ObjectInfo, Store, open_store
from datum._storage.unfinished import UnfinishedUpload, abort_upload, find_uploads
from datum._write.sidecars import SIDECAR_FILES
from datum._write.staging import QUARANTINE, Staging, check_target, hold_staging
from datum.errors import ManifestError, Option, StorageError, Text, WriteError
from datum.format import Index, Manifest
from datum.format.durable import INNER_STAGING
from datum.format.index import INDEX_FOLDER
from datum.format.manifest import MANIFEST_NAME, ShardInfo, is_own_shard_name, parse_shard_name

__all__ = ["RemoteTarget"]

_UPLOADS = 8  # small objects that are on their way at once
_FOLDER = "uploads"  # within the folder of files that are kept
_MOST_STRANGERS = 3


class RemoteTarget:
    """The place in a store that a dataset is written to.

    Small files of a dataset that is there, such as its manifest, are copied into a folder of this
    computer, where a write looks at them as at those of a local dataset.
    """

    def __init__(self, url: str, storage: Mapping[str, Any] | None) -> None:
        self.location = Location.parse(url)
        self._store = open_store(self.location, storage)
        key = hashlib.blake2b(str(self.location).encode(), digest_size=16).hexdigest()
        base = cache_folder() or Path(tempfile.gettempdir()) / f"datum-{os.getuid()}"
        self.folder = base / _FOLDER / key  # of copies; the staging folder is beside it

    @contextlib.contextmanager
    def open_staging(self, *, overwrite: bool, append: bool) -> Iterator[RemoteStaging]:
        """Hold the staging folder of this target; copy what is there already."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        staging = RemoteStaging(self.folder, self._store)
        with hold_staging(staging):
            try:
                staging.seen = self._copy(append=append)
                self._check(staging.seen, overwrite=overwrite, append=append)
                yield staging
            finally:
                staging.remove_copies()

    def _copy(self, *, append: bool) -> ObjectInfo | None:
        """Copy the manifest, and for an append what is beside it; return its version."""
        self.folder.mkdir(exist_ok=True)
        for left in self.folder.iterdir():
            left.unlink()
        seen = self._copy_file(MANIFEST_NAME)
        if seen is not None and append:
            for name in (QUARANTINE, *SIDECAR_FILES):
                self._copy_file(name)
        return seen

    def _copy_file(self, name: str) -> ObjectInfo | None:
        try:
            data, info = self._store.get_with_info(name)
        except StorageError as error:
            if error.kind == "missing":
                return None
            raise
        (self.folder / name).write_bytes(data)
        return info

    def _check(self, seen: ObjectInfo | None, *, overwrite: bool, append: bool) -> None:
        """Refuse a place that holds what this call may not touch."""
        try:
            check_target(self.folder, overwrite=overwrite, append=append)
        except WriteError as error:
            raise WriteError(error.parts.changed(where=str(self.location))) from None
        if seen is not None:
            return
        strangers = []
        for info in self._store.list():
            if not _is_own(info.path):
                strangers.append(info.path)
            if len(strangers) == _MOST_STRANGERS:
                break
        if strangers:
            raise WriteError(
                f"expected no objects below it, got {', '.join(strangers)}",
                where=self.location,
                hint="write below a prefix of its own",
            )


def _is_own(path: str) -> bool:
    """Whether an object has the name of one that a write makes."""
    folder, _, name = path.rpartition("/")
    if folder == INNER_STAGING:
        return True
    if folder == INDEX_FOLDER:
        return True
    return not folder and (is_own_shard_name(name) or name in (QUARANTINE, *SIDECAR_FILES))


class RemoteStaging(Staging):
    """The staging folder of a write to a store; shards leave it as soon as they are done."""

    def __init__(self, folder: Path, store: Store) -> None:
        super().__init__(folder)
        self.where = store.location
        self.seen: ObjectInfo | None = None  # the manifest when this write began
        self.has_quarantine = False  # beside the dataset that was published
        self._store = store
        self._copies = folder
        self._plan = ""
        self._generation: int | None = None

    # The same call after a crash.

    def begin(self, plan: str | None) -> None:
        """Keep what an interrupted run of the same plan has uploaded."""
        self._plan = plan or os.urandom(16).hex()
        super().begin(plan)

    def _whole(self, notes: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """The notes of shards that are still in the store."""
        if not notes:
            return {}
        sizes = {
            info.path: info.size for info in self._store.list() if is_own_shard_name(info.path)
        }
        return {
            name: note for name, note in notes.items() if sizes.get(name) == note["shard"]["bytes"]
        }

    def _rescue(self, old: Path) -> None:
        """Nothing is ever beside a dataset here."""

    def restore(self) -> None:
        """Nothing is ever moved away here."""

    def remove_copies(self) -> None:
        """Remove the copies of small files."""
        for copy in self._copies.iterdir():
            copy.unlink()
        self._copies.rmdir()

    def close(self, *, has_failed: bool) -> None:
        """Remove what nobody can go on with, in the store as well."""
        if has_failed and not self.is_resumable:
            self._withdraw()
        super().close(has_failed=has_failed)

    # Shards.

    def claim(self, least: int) -> int:
        """The generation of this write's shards: one that no other has."""
        if self._generation is None:
            if self.seen is not None:
                least = max(least, 1 + _last_generation(self._old_manifest()))
            self._generation = self._claim(least)
            self._check_unchanged()
        return self._generation

    def _claim(self, generation: int) -> int:
        content = json.dumps({"plan": self._plan}).encode()
        while True:
            name = _claim_name(generation)
            try:
                self._store.put(name, content, if_absent=True)
                return generation
            except StorageError as error:
                if error.kind not in ("exists", "changed"):
                    raise
            generation += 1

    def _check_unchanged(self) -> None:
        try:
            now = self._store.head(MANIFEST_NAME).etag
        except StorageError as error:
            if error.kind != "missing":
                raise
            now = None
        if now != (None if self.seen is None else self.seen.etag):
            self._give_up_claim()
            raise self._outrun()

    def keep(self, shard: ShardInfo) -> ShardInfo:
        """Upload a shard and its index, unless they are there; remove them here."""
        file = self.data / shard.name
        index = self.data / Index.path_for(shard.name)
        assert shard.crc32c is not None  # it has just been made
        if not self._store.has_checksum(shard.name, shard.bytes, shard.crc32c):
            self._store.put_file(shard.name, file, crc32c=shard.crc32c)
        self._store.put(Index.path_for(shard.name).as_posix(), index.read_bytes())
        file.unlink()
        index.unlink()
        return shard

    # Publishing.

    def publish(self, *, overwrite: bool) -> None:  # noqa: ARG002 - it is known from the start
        """Put the manifest, then remove what it does not name."""
        old = self._find_old()
        uploads = self._find_unfinished()
        manifest = self._upload()
        kept = _named(manifest)
        self._remove_objects(name for name in old if name not in kept)
        self._abort(uploads)
        self._give_up_claim()
        self.remove()

    def append(self) -> None:
        """Put the manifest of old and new shards."""
        uploads = self._find_unfinished()
        self._upload()
        self._abort(uploads)
        self._give_up_claim()
        self.remove()

    def _find_old(self) -> list[str]:
        """What may go once the manifest is there: all that was made before.

        It is listed now: what a writer makes that begins after this one has published is its own.
        """
        folders = (INDEX_FOLDER, INNER_STAGING)
        return [
            info.path
            for info in self._store.list()
            if is_own_shard_name(info.path) or info.path.partition("/")[0] in folders
        ]

    def _find_unfinished(self) -> list[UnfinishedUpload]:
        """Uploads of shards that killed writers began, or those that this one has outrun."""
        with contextlib.suppress(OSError):
            found = find_uploads(self._store.location, self._store.options)
            return [upload for upload in found if is_own_shard_name(upload.path)]
        return []

    def _abort(self, uploads: Iterable[UnfinishedUpload]) -> None:
        with contextlib.suppress(OSError):
            for upload in uploads:
                abort_upload(self._store.location, self._store.options, upload)

    def _upload(self) -> Manifest:
        """Put what is beside the shards, and the manifest last of all."""
        links = [path.name for path in self.data.rglob("*") if path.is_symlink()]
        if links:
            raise WriteError(
                f"the sidecar needs links, such as {links[0]}, which a store has not",
                where=self.where,
                hint=Text("leave it out of ", Option("sidecars")),
            )
        folders = (self.data, self._copies)
        self.has_quarantine = any((folder / QUARANTINE).exists() for folder in folders)
        content = (self.data / MANIFEST_NAME).read_bytes()
        for path in sorted(self.data.iterdir()):
            if path.is_file() and path.name != MANIFEST_NAME:
                self._store.put(path.name, path.read_bytes())
        try:
            self._store.put(MANIFEST_NAME, content, if_absent=self.seen is None, if_match=self.seen)
        except StorageError as error:
            if error.kind not in ("exists", "changed"):
                raise
            self._withdraw()
            raise self._outrun() from None
        return Manifest.from_bytes(content, file=str(self._store.location / MANIFEST_NAME))

    def _outrun(self) -> WriteError:
        return WriteError(
            "another writer has published a dataset there meanwhile",
            where=self.where,
            hint=Text(Option("overwrite", True), " replaces it, or write to another place"),
        )

    def _withdraw(self) -> None:
        """Remove what this write has uploaded, unless the manifest that is there names it too."""
        names = list(self._done)
        names += [Index.path_for(name).as_posix() for name in names]
        kept = self._named_now() if names else set()
        self._remove_objects(name for name in names if name not in kept)
        self._give_up_claim()
        self.remove()

    def _named_now(self) -> set[str]:
        try:
            return _named(Manifest.from_bytes(self._store.get(MANIFEST_NAME)))
        except (StorageError, ManifestError):
            return set()

    def _give_up_claim(self) -> None:
        if self._generation is not None:
            self._remove_objects([_claim_name(self._generation)])

    def _remove_objects(self, names: Iterable[str]) -> None:
        """Remove objects as far as it goes: the dataset is whole with them, too."""

        def remove(name: str) -> None:
            with contextlib.suppress(StorageError):
                self._store.delete(name)

        with ThreadPoolExecutor(_UPLOADS, "datum-delete") as threads:
            for _ in threads.map(remove, list(names)):
                pass

    def _old_manifest(self) -> Manifest | None:
        try:
            return Manifest.load(self._copies)
        except ManifestError:  # which this write replaces
            return None


def _claim_name(generation: int) -> str:
    return f"{INNER_STAGING}/{generation}.json"


def _last_generation(manifest: Manifest | None) -> int:
    if manifest is None:
        return -1
    names = (shard.name for split in manifest.splits.values() for shard in split.shards)
    return max((found[3] for found in map(parse_shard_name, names) if found), default=-1)


def _named(manifest: Manifest) -> set[str]:
    """The objects that a manifest names, with their indexes."""
    names = {shard.name for split in manifest.splits.values() for shard in split.shards}
    return names | {Index.path_for(name).as_posix() for name in names}
