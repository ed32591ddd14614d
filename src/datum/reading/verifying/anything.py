"""Whatever lies at a path, verified as far as that can be."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from datum.errors import DatumError, ManifestError
from datum.format.naming import MANIFEST_NAME
from datum.reading.adopt.detect import Paths, open_dataset
from datum.reading.adopt.older import MAPPING_FILE, SHARD_FILE
from datum.reading.adopt.record_files import list_folder, select_record_files
from datum.reading.adopt.tfds import FEATURES_FILE, INFO_FILE
from datum.reading.contents import Contents
from datum.reading.progress import Progress
from datum.reading.verify import verify_shards
from datum.reading.verifying.report import Problem, VerifyReport

__all__ = ["verify_path"]

_DESCRIPTIONS = (MANIFEST_NAME, SHARD_FILE, MAPPING_FILE, INFO_FILE, FEATURES_FILE)


@dataclass(frozen=True, slots=True)
class _Opened:
    contents: Contents
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


def verify_path(
    path: Paths,
    *,
    deep: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> VerifyReport:
    """Verify what lies at a path, as `Dataset.verify` does, also where `datum.load` gives up.

    Of files that are damaged, what is sound is looked at. Where the description of a dataset is
    damaged its files are verified as plain ones, and where records are no Examples their CRCs are.
    Raises what `datum.load` does if there are no records at all.
    """
    started = time.monotonic()
    if not isinstance(path, (str, os.PathLike)) and isinstance(path, Iterable):
        path = list(path)  # it may be gone through twice
    halves = _Halves(progress)
    opened = _open(path, halves.opening)
    report = verify_shards(opened.contents, deep=deep, threads=threads, progress=halves.verifying)
    return replace(
        report,
        problems=(*opened.problems, *report.problems),
        notes=(*opened.notes, *report.notes),
        seconds=time.monotonic() - started,
    )


class _Halves:
    """The progress of two passes as one: files that nobody described are read to be opened, too."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._opened = 0
        self._done = 0

    def opening(self, done: int, total: int) -> None:
        self._opened = total
        self._done = max(self._done, done)  # records of no known kind are gone through twice
        if self._progress is not None:
            self._progress(self._done, 2 * total)

    def verifying(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(self._opened + done, self._opened + total)


def _open(path: Paths, progress: Progress) -> _Opened:
    try:
        return _open_records(path, progress)
    except DatumError as error:
        folder = _folder_at(path)
        if folder is None:
            raise
        return _open_undescribed(folder, error, progress)


def _open_records(path: Paths, progress: Progress) -> _Opened:
    """A dataset; of records whose features cannot be told, as records without features."""
    try:
        return _Opened(open_dataset(path, skips_damage=True, progress=progress))
    except DatumError as error:
        try:
            contents = open_dataset(path, schema={}, skips_damage=True, progress=progress)
        except DatumError:
            raise error from None
        note = f"features not looked at: {error.message.line}"
        return _Opened(contents, notes=(note,))


def _open_undescribed(folder: Path, error: DatumError, progress: Progress) -> _Opened:
    """The record files of a folder whose description cannot be used."""
    described = [name for name in _DESCRIPTIONS if os.path.lexists(folder / name)]
    files = select_record_files(list_folder(folder)[0], skips_damage=True) if described else []
    if not files:
        raise error
    opened = _open_records(files, progress)
    if not isinstance(error, ManifestError):  # the description is sound, records are not
        return opened
    text = error.message.beside(folder / described[0])
    problem = Problem("", described[0], "manifest", text)
    notes = (*opened.notes, "the files were read as plain TFRecord files")
    return replace(opened, problems=(problem,), notes=notes)


def _folder_at(path: Paths) -> Path | None:
    """The folder that was asked for, or that of the description that was."""
    if not isinstance(path, (str, os.PathLike)):
        return None
    found = Path(path).expanduser()
    if found.name in _DESCRIPTIONS:
        found = found.parent
    return found if found.is_dir() else None
