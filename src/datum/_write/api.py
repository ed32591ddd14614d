"""`datum.write`: any source to a published dataset."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from datum._storage.store import is_url, local_path
from datum._write.append import append_to
from datum._write.blocks import OnError
from datum._write.encoders import fit_encoders, make_encoders, with_stored
from datum._write.job import Job, MadeSplit
from datum._write.options import check_options, names_nearest_option
from datum._write.order import Division, divide_part
from datum._write.parts import Intake, SourceOptions, check_stratify, collect_parts
from datum._write.remote import RemoteStaging, RemoteTarget
from datum._write.report import SplitReport, WriteReport, show_progress
from datum._write.staging import QUARANTINE, Staging, check_target, open_staging
from datum.errors import Message, StorageError, WriteError
from datum.format import Compression
from datum.schema import Feature, Floats, Schema
from datum.sources import Block
from datum.sources.options import TableOptions
from datum.sources.protocol import list_reported

__all__ = [
    "write",
]


@names_nearest_option
def write(
    source: Any,
    out: str | os.PathLike[str],
    *,
    problem: str | None = None,
    splits: Mapping[str, Any] | None = None,
    schema: Schema | Mapping[str, Feature] | None = None,
    floats: Floats = "float32",
    shuffle: bool = True,
    seed: int = 0,
    shard_bytes: int = 128 * 2**20,
    shards: int | Mapping[str, int] | None = None,
    records_per_shard: int | None = None,
    compression: Compression | None = None,
    workers: int | None = None,
    executor: str = "local",
    on_error: OnError = "raise",
    overwrite: bool = False,
    append: bool = False,
    stratify: str | None = None,
    encoders: Mapping[str, Any] | None = None,
    max_side: int | None = None,
    quality: int | None = None,
    verify: bool = False,
    sidecars: Iterable[str] = (),
    storage: Mapping[str, Any] | None = None,
    keys: str | None = None,
    progress: bool | None = None,
    **table: Unpack[TableOptions],
) -> WriteReport:
    """Write any dataset as sharded TFRecord files, with an index and a manifest.

    Nothing appears at `out` before all of it is on the disk. An interrupted call leaves its work
    beside the target; the same call again goes on from there.

    Args:
        source: a path whose layout is found out, an iterable of dicts or of (key, dict), a
            function that returns one, a dict of columns, a pandas or Arrow table, a map-style
            dataset, or any `datum.sources.Source`.
        out: the folder of the dataset, or its URL in an object store: s3://, gs:// or az://.
        problem: what a path holds, where its layout leaves it open: image_clf, image_det,
            image_seg or text_clf.
        splits: None for those of the source; fractions such as {"train": 0.9, "val": 0.1}, by a
            hash of each record's key; or, with `source` None, a source for each split.
        schema: a `Schema` is complete, and anything else in a record is an error; a dict of
            features fixes those, and the others are found out. Texts of CSV and JSON are read as
            the features given; those that cannot be are bad records.
        floats: how floating-point values are stored, where `schema` does not say. "float32" rounds
            them as `tf.train.FloatList` does, so that every reader of TFRecord reads them; a
            feature with values that overflow, or that are of 2**24 or more and would change, stays
            float64. "float64" keeps every bit, as raw bytes. The report names what was rounded.
        shuffle: whether to store records in a random order, the same for the same `seed`.
        seed: of the order.
        shard_bytes: about how large shards become, where neither `shards` nor `records_per_shard`
            says how many there are.
        shards: how many there are, of every split or by split.
        records_per_shard: at most so many records are in a shard; there are as few shards as that
            allows, evenly filled. Not together with `shards`.
        compression: None, "gzip" or "zlib"; compressed shards have no random access.
        workers: how many cores to use; all by default. The result is the same.
        executor: where the work is done; "local" is this machine.
        on_error: what to do about records that cannot be written: "raise", "skip", or
            "quarantine", which lists them with reasons in `quarantine.jsonl`.
        overwrite: whether a dataset at `out` may be replaced.
        append: whether to add the records to the dataset at `out`, in shards of their own.
        stratify: a feature; each of its values is divided by the fractions exactly.
        encoders: scikit-learn encoders by feature; applied to values before they are written. An
            append applies those that the dataset keeps; None for one takes values as they are.
        max_side: images larger than this are shrunk to it.
        quality: JPEG and WebP images are compressed again to this quality, 1 to 100.
        verify: whether to decode every image, and refuse those that are damaged.
        sidecars: for other programs that read the same shards: "tfds" writes what TensorFlow
            Datasets needs, "label_map" the classes as `label_map.pbtxt`, "older" the JSON files of
            the older library of this name. An append keeps those that are there. The report notes
            what a program reads otherwise.
        storage: options of the object store that `out` is in, by obstore's names, such as
            {"region": "eu-west-1"}. What is not given comes from the environment variables of the
            cloud. Secrets in it are not written anywhere.
        keys: "tf_object_detection" stores images and boxes under the keys of the TF Object
            Detection API, with the label map beside them; features keep their names.
        progress: whether to show it; None shows a bar on a terminal and lines elsewhere.
        **table: How tables in files are read, where `source` is a path: `header`, `names`,
            `delimiter`, `skip_rows`, `comment`, `decimal`, `columns`, `rename`, `null_values` and
            `encoding`; and `root`, the folder that paths of images in a table must stay within.
            See `datum.sources.TableOptions`. One that the source does not take is a SourceError.

    >>> import tempfile
    >>> report = write([{"x": i} for i in range(10)], tempfile.mkdtemp(), progress=False)
    >>> report.records
    10
    """
    from datum.images import ImageOptions

    started = time.monotonic()
    options = check_options(
        schema=schema,
        floats=floats,
        shuffle=shuffle,
        seed=seed,
        shard_bytes=shard_bytes,
        shards=shards,
        records_per_shard=records_per_shard,
        compression=compression,
        workers=workers,
        executor=executor,
        on_error=on_error,
        stratify=stratify,
        sidecars=sidecars,
        keys=keys,
    )
    images = ImageOptions(max_side=max_side, quality=quality, verify=verify)
    target = _target(out, storage)
    if append and overwrite:
        raise ValueError("expected `append` or `overwrite`, got both")
    made_encoders = {} if append else make_encoders(encoders or {})
    stage = _stage(target, overwrite=overwrite, append=append)
    with stage as staging, show_progress(progress) as shown:
        intake = collect_parts(
            source, splits, problem, SourceOptions.of(options, encoders or (), table)
        )
        division = _divide(intake, stratify)
        appended = append_to(staging.target, options) if append else None
        if appended is not None:
            metadata = appended.manifest.metadata
            made_encoders = make_encoders(with_stored(encoders or {}, metadata, intake.parts))
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
        raise ValueError(f"`storage` is for object stores, got the folder {text!r}")
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
