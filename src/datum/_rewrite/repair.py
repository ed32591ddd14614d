"""`datum.repair`: the sound records of a damaged dataset, written as a new one."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from datum._options import names_nearest_option, thread_count
from datum._read.copy import PlacedRun, StoredRecords, StoredStream, frames_of, lasting_metadata
from datum._rewrite.export import Names
from datum._rewrite.reshard import check_free
from datum._rewrite.salvage import RepairReport, Salvaged, Survey, salvage_file, survey_path
from datum._write.api import write
from datum._write.report import Progress, show_progress
from datum._write.staging import open_staging
from datum.errors import CorruptRecordError, WriteError, count_of
from datum.format import Framed, Records, RecordWriter
from datum.format.durable import sync_folder
from datum.schema import Feature, Schema

__all__ = [
    "repair",
    "write_files",
]


def write_files(found: Sequence[Salvaged], target: Path, *, overwrite: bool) -> None:
    """Write what is whole of each file to one of the same name, compressed as it was.

    They appear at once, when all are on the disk. Files of which nothing is whole are left out.
    """
    with open_staging(target) as staging:
        staging.begin(None)
        for one, name in zip(found, _names_of(found), strict=True):
            if not len(one):
                continue
            path = staging.data / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file, RecordWriter(file, compression=one.compression) as writer:
                for records in one.runs():
                    writer.write_framed(Framed(*frames_of(records)))
                writer.close()
                file.flush()
                os.fsync(file.fileno())
        for folder in [path for path in staging.data.rglob("*") if path.is_dir()]:
            sync_folder(folder)
        staging.publish(overwrite=overwrite)


def _names_of(found: Sequence[Salvaged]) -> list[str]:
    """Each file's path within the dataset; of those that lay elsewhere the name, told apart."""
    given = [PurePosixPath(one.file.name) for one in found]
    inside = [not path.is_absolute() and ".." not in path.parts for path in given]
    taken = Names()
    for path, is_inside in zip(given, inside, strict=True):
        if is_inside:
            taken.take(path.as_posix())
    names: list[str] = []
    for number, path in enumerate(given):
        name = path.as_posix() if inside[number] else path.name
        while not inside[number] and not taken.take(name):
            name = f"{number}-{name}"
        names.append(name)
    return names


@names_nearest_option
def repair(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    deep: bool = False,
    schema: Schema | Mapping[str, Feature] | None = None,
    workers: int | None = None,
    overwrite: bool = False,
    follow_links: bool = False,
    progress: bool | None = None,
) -> RepairReport:
    """Write what is whole of a damaged dataset, folder or file to a new dataset.

    Left out are records that are damaged, torn or cut off, files that are missing, and records
    that are not what the schema says; the others keep their order and their bytes. A damaged
    manifest is used as far as it can be read and records agree with it. Without one, features are
    inferred from sidecars and the records, and the report lists what was lost in `forgotten`.
    Where records are no Examples, what is whole is written as plain TFRecord files of the same
    names, without a manifest. What lies at `path` is not touched.

    CorruptRecordError if no record is whole, and what `datum.load` raises if there are none.

    Args:
        path: whatever `datum.load` takes, sound or not.
        out: the folder of the new dataset.
        deep: whether to decode every image, and leave out records with one that is damaged.
        schema: what records hold, where no manifest tells it, or a wrong one does.
        workers: how many cores to use; all by default.
        overwrite: whether a dataset at `out` may be replaced.
        follow_links: Whether shards that a manifest names may be links out of its folder.
        progress: whether to show it; None shows a bar on a terminal and lines elsewhere.

    >>> import datum
    >>> report = datum.write({"x": range(5)}, "five", shuffle=False, progress=False)
    >>> shard = report.path / "train-00000-of-00001.tfrecord"
    >>> data = bytearray(shard.read_bytes())
    >>> data[-5] ^= 1
    >>> size = shard.write_bytes(data)
    >>> repaired = repair("five", "four", progress=False)
    >>> repaired.kept, repaired.lost, repaired.losses[0].damage.kind
    ({'train': 4}, {'train': 1}, 'payload checksum')
    """
    started = time.monotonic()
    given: Any = path
    _check_apart([Path(given)] if isinstance(given, (str, os.PathLike)) else [], out)
    target = check_free(out, overwrite=overwrite)
    asked = Schema(schema) if schema is not None else None
    survey = survey_path(path, schema=asked, follow_links=follow_links)
    _check_apart([file.path.parent for file in survey.files], target)
    with show_progress(progress) as shown:
        found = _salvage_all(survey, deep=deep, workers=workers, progress=shown)
        if not survey.is_certain and any(_is_refused(one) for one in found):
            survey = survey_path(
                path, schema=asked, trusts_damaged=False, follow_links=follow_links
            )
            found = _salvage_all(survey, deep=deep, workers=workers, progress=shown)
    if not any(map(len, found)):
        raise _nothing_whole(survey, found)
    if survey.schema is None:
        write_files(found, target, overwrite=overwrite)
    else:
        write(
            _Source(survey, found),
            target,
            shuffle=False,
            floats="float64",  # as they are: nothing is to be rounded
            shards=_shards_of(found),
            compression=survey.compression,
            workers=workers,
            overwrite=overwrite,
            progress=progress,
        )
    return _report(survey, found, Path(out), time.monotonic() - started)


def _check_apart(places: Iterable[Path], target: str | os.PathLike[str]) -> None:
    """Refuse to write into what is repaired, or around it."""
    wanted = _real(Path(target))
    for place in places:
        found = _real(place)
        if wanted == found or wanted in found.parents:
            raise WriteError(
                "expected a folder apart from what is repaired, got one that holds it",
                where=target,
                hint="write to another folder, then put it in its place",
            )


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path.expanduser()))  # which takes links in a circle, too


def _salvage_all(
    survey: Survey, *, deep: bool, workers: int | None, progress: Progress
) -> list[Salvaged]:
    known = [file.records for file in survey.files if file.records is not None]
    progress.stage("reading", sum(known) if len(known) == len(survey.files) else None)
    lock = threading.Lock()

    def advance(records: int, nbytes: int) -> None:
        with lock:
            progress.advance(records, nbytes)

    count = min(thread_count(workers), len(survey.files)) or 1
    with ThreadPoolExecutor(count, "datum-repair") as pool:
        futures = [
            pool.submit(salvage_file, file, survey.schema, deep=deep, advance=advance)
            for file in survey.files
        ]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _is_refused(salvaged: Salvaged) -> bool:
    return any(loss.damage.kind in ("schema", "malformed") for loss in salvaged.losses)


def _nothing_whole(survey: Survey, found: Sequence[Salvaged]) -> CorruptRecordError:
    losses = [loss for one in found for loss in one.losses]
    told = f"; the first: {losses[0]}" if losses else ""
    is_one = len(found) == 1
    place = found[0].file.path if is_one else survey.folder
    files = "" if is_one else f" in {count_of(len(found), 'file')}"
    return CorruptRecordError(
        f"expected records to save, got none that is whole{files}{told}",
        where=place,
        damage=losses[0].damage if losses else None,
    )


def _shards_of(found: Sequence[Salvaged]) -> dict[str, int]:
    """As many shards as there were, but none that is empty."""
    files: dict[str, int] = {}
    records: dict[str, int] = {}
    for one in found:
        files[one.file.split] = files.get(one.file.split, 0) + 1
        records[one.file.split] = records.get(one.file.split, 0) + len(one)
    return {split: max(1, min(files[split], records[split])) for split in files}


class _Source:
    """The records that are whole, by split."""

    def __init__(self, survey: Survey, found: Sequence[Salvaged]) -> None:
        self._survey = survey
        self._found = found

    def parts(self) -> dict[str, Any]:
        """The records of each split, in their order."""
        return {split: self._part(split) for split in self._survey.splits}

    def _part(self, split: str) -> StoredRecords | StoredStream:
        schema = self._survey.schema
        assert schema is not None
        metadata = lasting_metadata(self._survey.metadata)
        files = [one for one in self._found if one.file.split == split and len(one)]
        if any(one.compression is not None for one in files):
            return StoredStream(lambda: _runs(files), schema, metadata, None)
        runs = [PlacedRun(lambda one=one: one.places, 0, len(one)) for one in files]  # type: ignore[misc]
        return StoredRecords(runs, schema, metadata, None)


def _runs(files: Sequence[Salvaged]) -> Iterator[Records]:
    return (records for one in files for records in one.runs())


def _missing(file: Salvaged) -> int | None:
    """How many records of a file were lost; None where nothing tells."""
    if file.file.records is not None:
        return max(0, file.file.records - len(file))
    counts = [loss.records for loss in file.losses]
    return None if None in counts else sum(count or 0 for count in counts)


def _report(survey: Survey, found: Sequence[Salvaged], out: Path, seconds: float) -> RepairReport:
    kept: dict[str, int] = dict.fromkeys(survey.splits, 0)
    lost: dict[str, int | None] = dict.fromkeys(survey.splits, 0)
    notes = list(survey.notes)
    for one in found:
        split = one.file.split
        kept[split] += len(one)
        before, missing = lost[split], _missing(one)
        lost[split] = None if before is None or missing is None else before + missing
        if one.extra:
            notes.append(
                f"{one.file.path}: {count_of(one.extra, 'record')} more than there should be, kept"
            )
    if survey.schema is None:
        notes.append("what is whole was written as plain TFRecord files, without a manifest")
    losses = tuple(loss for one in found for loss in one.losses)
    form: Literal["dataset", "files"] = "files" if survey.schema is None else "dataset"
    forgotten = survey.forgotten if form == "dataset" else ()
    return RepairReport(
        survey.folder, out, form, kept, lost, losses, tuple(notes), seconds, forgotten
    )
