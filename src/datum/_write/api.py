"""`datum.write`: any source to a published dataset."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from datum._options import lists_options
from datum._storage.store import is_url, local_path
from datum._write.append import append_to
from datum._write.encoders import fit_encoders, make_encoders, with_stored
from datum._write.job import Job, MadeSplit
from datum._write.options import WriteKeywords, WriteOptions, read_keywords
from datum._write.order import Division, divide_part
from datum._write.parts import Intake, SourceOptions, check_stratify, collect_parts
from datum._write.remote import RemoteStaging, RemoteTarget
from datum._write.report import SplitReport, WriteReport, show_progress
from datum._write.staging import QUARANTINE, Staging, check_target, open_staging
from datum.errors import Message, Option, StorageError, Text, WriteError
from datum.sources import Block
from datum.sources.options import TableOptions
from datum.sources.protocol import list_reported

__all__ = [
    "write",
]


@lists_options(WriteOptions, TableOptions, keywords=WriteKeywords)
def write(
    source: Any, out: str | os.PathLike[str], **options: Unpack[WriteKeywords]
) -> WriteReport:
    """Write any dataset as sharded TFRecord files, with an index and a manifest.

    Types and shapes are inferred from every record; output is published atomically. An interrupted
    call leaves its work beside the target, and the same call resumes it.

    Args:
        source: A path whose layout is detected, an iterable of dicts or of (key, dict), a function
            that returns one, a dict of columns, a pandas or Arrow table, a map-style dataset, or
            any `datum.sources.Source`.
        out: Folder of the dataset, or its URL in an object store: s3://, gs:// or az://.
        options: See `WriteOptions`.

    >>> import tempfile
    >>> report = write([{"x": i} for i in range(10)], tempfile.mkdtemp(), progress=False)
    >>> report.records
    10
    """
    asked, table = read_keywords(WriteOptions, options, caller="write")
    return _write(source, out, asked, table)


def _write(
    source: Any, out: str | os.PathLike[str], options: WriteOptions, table: TableOptions
) -> WriteReport:
    started = time.monotonic()
    images = options.images  # checks them
    target = _target(out, options.storage)
    overwrite, append, encoders = options.overwrite, options.append, options.encoders or {}
    made_encoders = {} if append else make_encoders(encoders)
    stage = _stage(target, overwrite=overwrite, append=append)
    with stage as staging, show_progress(options.progress) as shown:
        of_source = SourceOptions.of(options, table)
        intake = collect_parts(source, options.splits, options.problem, of_source)
        division = _divide(intake, options.stratify)
        appended = append_to(staging.target, options) if append else None
        if appended is not None:
            metadata = appended.manifest.metadata
            made_encoders = make_encoders(with_stored(encoders, metadata, intake.parts))
        fit_encoders(made_encoders, intake.parts, keep=_keeper(division))
        run = Job(intake, division, options, images, made_encoders, appended, staging, shown)
        manifest, made = run.make()
        run.save(manifest, made)
        if append:
            staging.append()
        else:
            staging.publish(overwrite=overwrite)
    parts = intake.parts.values()
    return replace(
        _report(out, staging, made, time.monotonic() - started),
        skipped=tuple(sorted(list_reported(parts, "skipped"))),
        notes=(*list_reported(parts, "remarks"), *run.notes),
        floats=run.floats,
        warnings=list_reported(parts, "warnings"),
    )


def _target(out: str | os.PathLike[str], storage: Mapping[str, Any] | None) -> Path | RemoteTarget:
    """The folder or the place in a store to write to; links are followed."""
    text = os.fspath(out)
    if not text or "\0" in text:
        raise WriteError(f"expected the path of a folder, got {text!r}")
    if is_url(text):
        local = local_path(text)
        if local is None:
            return RemoteTarget(text, storage)
        text = str(local)
    if storage is not None:
        problem = Text(Option("storage"), f" is for object stores, got the folder {text!r}")
        raise ValueError(Message(problem))
    return Path(os.path.realpath(os.path.expanduser(text)))  # noqa: PTH111


def _divide(intake: Intake, stratify: str | None) -> Division | None:
    check_stratify(intake, stratify)
    if intake.fractions is None:
        return None
    return divide_part(next(iter(intake.parts.values())), intake.fractions, stratify=stratify)


def _keeper(division: Division | None) -> Callable[[Block], NDArray[np.bool_]] | None:
    """Which records encoders learn from: of a part that is divided, those of `train`."""
    if division is None:
        return None
    names = list(division.fractions)
    learnt = names.index("train") if "train" in names else 0
    return lambda block: division.splits_of(block.numbers, block.keys) == learnt


@contextmanager
def _stage(target: Path | RemoteTarget, *, overwrite: bool, append: bool) -> Iterator[Staging]:
    """Hold the staging folder; say what became of the target if the system or the user stops it."""
    staging: Staging | None = None
    where = target if isinstance(target, Path) else target.location
    try:
        if isinstance(target, RemoteTarget):
            with target.open_staging(overwrite=overwrite, append=append) as staging:
                yield staging
            return
        _check_folder(target, overwrite=overwrite, append=append)
        with open_staging(target) as staging:
            check_target(target, overwrite=overwrite, append=append)  # nobody else writes now
            yield staging
    except (WriteError, StorageError):
        raise
    except OSError as error:
        raise WriteError(
            f"nothing was published: {error}", where=where, hint=_hint(staging)
        ) from error
    except KeyboardInterrupt:
        with suppress(AttributeError, OSError, ValueError):  # there may be nothing to write to
            stopped = Message("stopped, nothing was published", where=where, hint=_hint(staging))
            print(stopped, file=sys.stderr)  # noqa: T201
        raise


def _check_folder(target: Path, *, overwrite: bool, append: bool) -> None:
    try:
        check_target(target, overwrite=overwrite, append=append)
    except WriteError:
        raise
    except OSError as error:
        raise WriteError(
            f"expected a folder that can be written to: {error}", where=target
        ) from error


def _hint(staging: Staging | None) -> str:
    if staging is not None and staging.is_resumable:
        return "the same call goes on where this one stopped"
    return "the same call starts anew"


def _report(
    out: str | os.PathLike[str],
    staging: Staging,
    made: Mapping[str, MadeSplit],
    seconds: float,
) -> WriteReport:
    place: Path | str = str(staging.where)
    quarantine: Path | str | None = None
    if isinstance(staging, RemoteStaging):
        quarantine = f"{place}/{QUARANTINE}" if staging.has_quarantine else None
    else:
        place = Path(out)
        quarantine = place / QUARANTINE if (staging.target / QUARANTINE).exists() else None
    return WriteReport(
        place,
        {
            name: SplitReport(
                sum(one.shard.records for one in split.shards),
                sum(one.shard.bytes for one in split.shards),
                len(split.shards),
                len(split.rejects),
            )
            for name, split in made.items()
        },
        seconds,
        sum(one.is_resumed for split in made.values() for one in split.shards),
        quarantine,
    )
