"""`datum.reshard`: a dataset laid out anew, its records copied or filtered."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from datum._options import check_choice, fields_of, lists_options, wrong_kind
from datum._read.copy import StoredRecords, StoredStream
from datum._read.local import repair_hint
from datum._read.split import Split
from datum._read.tables import iterate_rows
from datum._storage.store import is_url, local_path
from datum._write.api import write
from datum._write.blocks import OnError
from datum._write.images import Keys
from datum._write.job import EmptySourceError
from datum._write.options import RunKeywords, StoreKeywords, WriteOptions
from datum._write.remote import RemoteTarget
from datum._write.report import Progress, WriteReport, show_progress
from datum._write.sidecars import check_sidecars
from datum._write.staging import check_target
from datum.dataset import Dataset
from datum.errors import (
    CorruptIndexError,
    CorruptRecordError,
    DatumError,
    ManifestError,
    Message,
    Option,
    SourceError,
    SplitError,
    Text,
    WriteError,
)
from datum.format import Compression, Framed, Parser
from datum.format.manifest import MANIFEST_NAME
from datum.reader import load
from datum.schema import Feature, Floats, Schema
from datum.sources.protocol import SerializedRecords

__all__ = [
    "LazyRecord",
    "Where",
    "check_free",
    "filter_part",
    "reshard",
]

CHECKED_RECORDS = 4096  # read at a time
CHECKED_BYTES = 8 * 2**20

Where = Callable[[Mapping[str, Any]], Any]


class LazyRecord(Mapping[str, Any]):
    """A record whose features are parsed, and whose images are decoded, when they are asked for.

    Values are those of `split[number]`: None where a record lacks a feature.
    """

    __slots__ = ("_at", "_batch")

    def __init__(self, batch: _Batch, at: int) -> None:
        self._batch = batch
        self._at = at

    def __getitem__(self, name: str) -> Any:
        return self._batch.value(name, self._at)

    def __iter__(self) -> Iterator[str]:
        return iter(self._batch.schema)

    def __len__(self) -> int:
        return len(self._batch.schema)

    def __repr__(self) -> str:
        return f"LazyRecord({dict(self)!r})"


class _UnknownFeatureError(KeyError):
    """A record was asked for what it cannot have: told from a KeyError of the user's own."""


class _Batch:
    """Some records, and what was parsed of them so far."""

    def __init__(
        self, stored: SerializedRecords, schema: Schema, wanted: dict[str, Parser]
    ) -> None:
        self.schema = schema
        self._records = Framed(stored.frames, stored.offsets).records()
        self._wanted = wanted  # by feature, kept from batch to batch
        self._values: dict[str, Any] = {}

    def value(self, name: str, at: int) -> Any:
        if name not in self.schema:
            raise _UnknownFeatureError(name)
        if name not in self._values:
            self._values[name] = self._parse(name, self.schema[name])
        found = self._values[name][at]
        if found is None or self.schema[name].encoding != "image":
            return found
        from datum.images import decode  # brings Pillow, which not every dataset needs

        return decode(found, self.schema[name])

    def _parse(self, name: str, feature: Feature) -> Any:
        parser = self._wanted.get(name)
        if parser is None:
            parser = self._wanted[name] = Parser(Schema({name: feature}))
        columns = parser.parse(self._records)
        if feature.encoding == "image":
            return columns[name]
        numbers = range(len(self._records))
        rows = iterate_rows(columns, parser.schema, numbers, where="")
        return [row[name] for row in rows]


class _Chooser:
    """Asks a function of the user's about one record after the other."""

    def __init__(self, where: Where, schema: Schema, split: str) -> None:
        self._where = where
        self._schema = schema
        self._split = split
        self._parsers: dict[str, Parser] = {}
        self._seen = 0

    def __call__(self, stored: SerializedRecords) -> NDArray[np.bool_]:
        batch = _Batch(stored, self._schema, self._parsers)
        chosen = np.zeros(len(stored), np.bool_)
        for at in range(len(stored)):
            chosen[at] = self._ask(batch, at)
        self._seen += len(stored)
        return chosen

    def _ask(self, batch: _Batch, at: int) -> bool:
        try:
            return bool(self._where(LazyRecord(batch, at)))
        except DatumError:
            raise
        except Exception as error:  # it is the user's own code
            if isinstance(error, _UnknownFeatureError):
                self._schema.select(error.args)  # raises, with the nearest name
            place = f"split {self._split!r}, record {self._seen + at}"
            raise SourceError(
                f"expected true or false, got {type(error).__name__}: {error}",
                where=f"where: {place}",
            ) from error


def filter_part(
    part: StoredRecords | StoredStream, where: Where, split: str, progress: Progress
) -> StoredRecords | StoredStream:
    """The records of a part for which `where` is true, counted anew; SourceError if it raises.

    Of a part that can be read in any order, all records are looked at now.
    """
    chooser = _Chooser(where, part.schema, split)
    if isinstance(part, StoredStream):
        # A new one each time: it counts the records that it sees.
        return part.filtered(lambda: _Chooser(where, part.schema, split))
    chosen = [np.empty(0, np.int64)]
    step = _step_of(part)
    for first in range(0, len(part), step):
        block = part.read(np.arange(first, min(first + step, len(part))))
        if block.rejects:
            raise SourceError(block.rejects[0].message)
        data: Any = block.data
        chosen.append(first + np.flatnonzero(chooser(data)))
        progress.advance(len(block), len(data.frames))
    return part.select(np.concatenate(chosen))


def _step_of(part: StoredRecords) -> int:
    record_bytes = (part.stored_bytes or 0) / max(len(part), 1)
    return int(np.clip(CHECKED_BYTES / max(record_bytes, 1), 1, CHECKED_RECORDS))


def check_free(out: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """The folder that is to be written, links followed; WriteError if it is not free.

    It is looked at before anything is read, which may take long; `datum.write` looks again.
    """
    text = os.fspath(out)
    if not text or "\0" in text or "://" in text:
        raise WriteError(f"expected the path of a folder on this computer, got {text!r}")
    target = Path(os.path.realpath(os.path.expanduser(text)))  # noqa: PTH111
    try:
        check_target(target, overwrite=overwrite, append=False)
    except WriteError as error:
        if (target / MANIFEST_NAME).is_file():
            hint = Text(Option("overwrite", True), " replaces it")
            raise WriteError(error, hint=hint) from None
        raise
    except OSError as error:
        raise WriteError(
            f"expected a folder that can be written to: {error}", where=target
        ) from error
    return target


def _check_place(
    out: str | os.PathLike[str], storage: Mapping[str, Any] | None, *, overwrite: bool
) -> None:
    """Refuse a folder or a place in a store that is not free."""
    text = os.fspath(out)
    if not is_url(text):
        check_free(text, overwrite=overwrite)
    elif (folder := local_path(text)) is not None:
        check_free(folder, overwrite=overwrite)
    else:
        with RemoteTarget(text, storage).open_staging(overwrite=overwrite, append=False):
            pass  # it looks at what is there


_Part = StoredRecords | StoredStream


class ReshardKeywords(StoreKeywords, RunKeywords, total=False):
    """The keywords of `datum.reshard`; `ReshardOptions` documents them."""

    splits: Mapping[str, float] | Mapping[str, str] | None
    compression: Compression | Literal["keep"] | None
    stratify: str | None
    columns: Iterable[str] | None
    drop: Iterable[str] | None
    where: Where | None
    recount: bool


@dataclass(frozen=True, kw_only=True)
class ReshardOptions(WriteOptions):
    """Options of `datum.reshard`: some of a write, and which records and features are kept.

    Attributes:
        splits: How records are divided into splits. None keeps the splits. Fractions such as
            {"train": 0.9, "val": 0.1} divide all records by a hash of their numbers. Instructions
            such as {"train": "train[:80%]", "val": "train[80%:]+test"} name the records of each.
        floats: Type that features of float64 are stored as. "float64" keeps them; "float32" rounds
            them, unless float32 cannot hold a value, as in `datum.write`.
        compression: Compression of the shards. "keep" is that of the old dataset.
        sidecars: Files for other programs that read the same shards. See `datum.write`.
        columns: Features to keep. By default all.
        drop: Features to leave out, instead of `columns`.
        where: Condition for keeping a record. A function of a record, as `split[0]` returns it;
            only the features that it reads are parsed. It chooses among the records of
            instructions, and before fractions divide the rest.
        recount: Recompute the statistics of splits that keep all their records. Otherwise those of
            the old dataset are copied.
    """

    splits: Mapping[str, float] | Mapping[str, str] | None = None
    floats: Floats = "float64"
    shuffle: bool = False
    compression: Compression | Literal["keep"] | None = "keep"  # type: ignore[assignment]
    columns: Iterable[str] | None = None
    drop: Iterable[str] | None = None
    where: Where | None = None
    recount: bool = False
    # Options of a write that make records, which are copied here.
    problem: str | None = field(default=None, init=False)
    schema: Schema | Mapping[str, Feature] | None = field(default=None, init=False)
    on_error: OnError = field(default="raise", init=False)
    encoders: Mapping[str, Any] | None = field(default=None, init=False)
    max_side: int | None = field(default=None, init=False)
    quality: int | None = field(default=None, init=False)
    verify: bool = field(default=False, init=False)
    keys: Keys | None = field(default=None, init=False)
    root: str | os.PathLike[str] | None = field(default=None, init=False)
    executor: Literal["local"] = field(default="local", init=False)
    append: bool = field(default=False, init=False)

    def _check_compression(self) -> None:
        check_choice("compression", self.compression, (None, "keep", *get_args(Compression)))

    def _keep_sidecars(self) -> None:
        known = None if self.compression == "keep" else self.compression
        self._keep("sidecars", check_sidecars(self.sidecars, known))

    def for_write(self, source: Dataset | Split) -> dict[str, Any]:
        """The keywords of `datum.write` that lay out the records of a dataset or split anew."""
        shared = [name for name in fields_of(self) if name in fields_of(WriteOptions)]
        kept = _compression_of(source) if self.compression == "keep" else self.compression
        return {name: getattr(self, name) for name in shared} | {"compression": kept}


@lists_options(ReshardOptions, keywords=ReshardKeywords)
def reshard(
    dataset: Dataset | Split | str | os.PathLike[str],
    out: str | os.PathLike[str],
    **options: Unpack[ReshardKeywords],
) -> WriteReport:
    """Write a dataset anew: other shards, splits, order, compression, or only a part of it.

    Records are copied byte for byte without being parsed. Only if features are left out or floats
    are rounded are they encoded again, and even then images keep their bytes. Schema and metadata
    are kept; statistics are those of the records that are left. Output is published atomically, as
    by `datum.write`, and the same call makes the same bytes. The dataset may be anything that
    `datum.load` opens, so that this also turns datasets of other writers into datasets of Datum.

    Args:
        dataset: An open dataset, one split of it, or a path.
        out: Folder of the new dataset, or its URL in an object store. With `overwrite`, it may be
            that of the old one.
        options: See `ReshardOptions`.

    >>> import datum
    >>> report = datum.write({"x": range(100)}, "hundred", shuffle=False, progress=False)
    >>> splits = {"train": "train[:80%]", "val": "train[80%:]"}
    >>> report = reshard(
    ...     "hundred",
    ...     "even",
    ...     splits=splits,
    ...     where=lambda record: record["x"] % 2 == 0,
    ...     progress=False,
    ... )
    >>> {name: split.records for name, split in report.splits.items()}
    {'train': 40, 'val': 10}
    """
    asked = ReshardOptions.of(options, caller="reshard")
    where = asked.where
    _check_place(out, asked.storage, overwrite=asked.overwrite)
    source = load(dataset) if isinstance(dataset, (str, os.PathLike)) else dataset
    chosen, fractions = _choose_parts(source, asked.splits)
    schema = _choose_features(source.schema, asked.columns, asked.drop)
    with _hinted(source, has_filter=where is not None):
        parts = chosen if where is None else _filter(chosen, where, asked.progress)
        if asked.recount:
            parts = {name: replace(part, statistics=None) for name, part in parts.items()}
        if list(schema) != list(source.schema):
            parts = {name: part.narrow(schema) for name, part in parts.items()}
        return write(_Parts(parts), out, **{**asked.for_write(source), "splits": fractions})


@dataclass(frozen=True, slots=True)
class _Parts:
    """Parts as a source."""

    found: Mapping[str, Any]

    def parts(self) -> Mapping[str, Any]:
        """The records of each split."""
        return self.found


def _choose_parts(
    source: Dataset | Split, splits: Mapping[str, Any] | None
) -> tuple[dict[str, Any], Mapping[str, float] | None]:
    """What each split is made of, and the fractions by which the only one is divided."""
    if not isinstance(source, (Dataset, Split)):
        raise TypeError(Message(f"expected a dataset, a split or a path, got {source!r:.200}"))
    if splits is None:
        return dict(source.parts()), None
    given: Any = splits
    values = list(given.values()) if isinstance(given, Mapping) else []
    if values and all(_is_number(value) for value in values):
        everything = source if isinstance(source, Split) else source["all"]
        return {"train": _part_of(everything)}, dict(splits)
    if values and all(isinstance(value, str) for value in values):
        if isinstance(source, Split):
            raise SplitError(
                Text(
                    "expected fractions in ",
                    Option("splits"),
                    f" where one split is given, got {dict(splits)!r}",
                ),
                hint="give the dataset that it is of",
            )
        return {name: _part_of(source[value]) for name, value in splits.items()}, None
    raise SplitError(
        Text(
            "expected ",
            Option("splits"),
            f" as a dict of fractions, or of instructions, got {splits!r:.200}",
        ),
        hint=Text(
            Option("splits", {"train": 0.9, "val": 0.1}),
            ", or ",
            Option("splits", {"val": "train[:10%]"}),
        ),
    )


def _part_of(split: Split) -> Any:
    return next(iter(split.parts().values()))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _choose_features(
    schema: Schema, columns: Iterable[str] | None, drop: Iterable[str] | None
) -> Schema:
    """The features to keep, in the order that they have."""
    if columns is not None and drop is not None:
        both = Option("columns"), " or ", Option("drop")
        raise ValueError(Message(Text("expected ", *both, ", got both")))
    if columns is not None:
        kept = set(schema.select(columns))
    else:
        kept = set(schema) - set(schema.select(drop or ()))
    if not kept:
        raise ValueError(Message("expected a feature to keep, got none"))
    return schema.select(name for name in schema if name in kept)


def _filter(parts: Mapping[str, _Part], where: Where, progress: bool | None) -> dict[str, _Part]:
    given: Any = where
    if not callable(given):
        raise wrong_kind("where", "a function of a record", where)
    with show_progress(progress) as shown:
        shown.stage("choosing", _count(parts))
        found = {name: filter_part(part, where, name, shown) for name, part in parts.items()}
    if all(isinstance(part, StoredRecords) and not len(part) for part in found.values()):
        raise _nothing_kept()
    return found


def _nothing_kept() -> SourceError:
    problem = Text(Option("where"), ": expected a record to be kept, got none")
    return SourceError(problem, hint="check what it asks")


def _count(parts: Mapping[str, _Part]) -> int:
    return sum(len(part) for part in parts.values() if isinstance(part, StoredRecords))


def _compression_of(source: Dataset | Split) -> Compression | None:
    if isinstance(source, Dataset):
        return source.compression
    found = {run.shard.compression for run in source.runs}
    return found.pop() if len(found) == 1 else None


@contextmanager
def _hinted(source: Dataset | Split, *, has_filter: bool) -> Iterator[None]:
    """Let errors propose a repair, and no options that only a write has."""
    folder = source.path if isinstance(source, Dataset) else source.shards.folder
    hint = repair_hint(folder)
    try:
        yield
    except CorruptIndexError as error:
        raise CorruptIndexError(error, hint=hint) from error
    except CorruptRecordError as error:
        raise CorruptRecordError(error, hint=hint, damage=error.damage) from error
    except ManifestError as error:
        raise ManifestError(error, hint=hint) from error
    except EmptySourceError as error:
        raise (_nothing_kept() if has_filter else error) from error
    except SourceError as error:
        usable = [line for line in error.parts.hint_lines if _is_usable(line)]
        raise SourceError(error.parts.changed(hint=usable)) from error


def _is_usable(line: str) -> bool:
    """Whether a line names options of `reshard` alone."""
    options = line.options if isinstance(line, Text) else ()
    return all(option.name in fields_of(ReshardOptions) for option in options)
