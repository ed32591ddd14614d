"""Options of `datum.write` and `datum.plan`, checked before anything is read."""

from __future__ import annotations

import operator
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, TypeVar, get_args

from datum._options import (
    check_choice,
    check_count,
    fields_of,
    refuse_unknown,
    thread_count,
    wrong_kind,
)
from datum._write.blocks import OnError
from datum._write.images import Keys
from datum._write.sidecars import check_sidecars
from datum.errors import Message, Option, SplitError, Text, suggest
from datum.format import Compression
from datum.schema import Feature, FloatRule, Floats, Schema
from datum.sources.options import TableKeywords, TableOptions

if TYPE_CHECKING:
    from datum.images import ImageOptions

__all__ = [
    "PlanKeywords",
    "PlanOptions",
    "RecordKeywords",
    "RunKeywords",
    "StoreKeywords",
    "WriteKeywords",
    "WriteOptions",
    "read_keywords",
]

MIN_SHARD_BYTES = 1024  # less makes a file of every few records
MAX_SHARDS = 99_999  # what five digits hold; more files than this help nobody

_Options = TypeVar("_Options", bound="PlanOptions")


class StoreKeywords(TypedDict, total=False):
    """The keywords of every function that writes shards; `PlanOptions` documents them."""

    floats: Floats
    shuffle: bool
    seed: int
    shard_bytes: int
    shards: int | Mapping[str, int] | None
    records_per_shard: int | None
    sidecars: Iterable[str]


class RunKeywords(TypedDict, total=False):
    """The keywords of how the work is done; `WriteOptions` documents them."""

    workers: int | None
    overwrite: bool
    storage: Mapping[str, Any] | None
    progress: bool | None


class RecordKeywords(StoreKeywords, total=False):
    """The keywords of functions that make records; `PlanOptions` documents them."""

    schema: Schema | Mapping[str, Feature] | None
    compression: Compression | None
    on_error: OnError
    encoders: Mapping[str, Any] | None
    max_side: int | None
    quality: int | None
    verify: bool


class PlanKeywords(RecordKeywords, TableKeywords, total=False):
    """The keywords of `datum.plan`; `PlanOptions` documents them."""

    problem: str | None
    splits: Mapping[str, Any] | None
    stratify: str | None
    keys: Keys | None
    root: str | os.PathLike[str] | None


class WriteKeywords(PlanKeywords, RunKeywords, total=False):
    """The keywords of `datum.write`; `WriteOptions` documents them."""

    executor: Literal["local"]
    append: bool


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """Options that decide what is written.

    Attributes:
        problem: What a path holds, if several layouts fit. One of "image_clf", "image_det",
            "image_seg" and "text_clf".
        splits: How records are divided into splits. None keeps the splits of the source. Fractions
            such as {"train": 0.9, "val": 0.1} divide by a hash of each record's key. With `source`
            None, a dict has a source for each split.
        schema: Types of features. A `Schema` is complete: anything else in a record is an error. A
            dict of features fixes those and leaves the others to be inferred. Cells of CSV and
            texts of JSON are read as the features given; those that cannot be are bad records.
        floats: Type that floating-point values are stored as, unless `schema` says otherwise.
            "float32" rounds them as `tf.train.FloatList` does, so that every reader of TFRecord
            reads them; a feature with values that overflow, or that are of 2**24 or more and would
            change, stays float64. "float64" keeps every bit, as raw bytes. The report names the
            features that were rounded.
        shuffle: Store records in a random order, the same for the same `seed`.
        seed: Seed of the shuffle.
        shard_bytes: Approximate size of a shard, unless `shards` or `records_per_shard` is given.
        shards: Number of shards of each split. A dict has one for each split.
        records_per_shard: Largest number of records in a shard, instead of `shards`. There are as
            few shards as that allows, evenly filled.
        compression: Compression of the shards. Compressed shards have no random access.
        on_error: What happens to records that cannot be written. "raise" stops at the first,
            "skip" leaves them out, and "quarantine" also lists them with reasons in
            `quarantine.jsonl`.
        stratify: Feature of which each value is divided exactly by the fractions of `splits`.
        encoders: Encoders of scikit-learn by feature. They are applied to values before those are
            written. An append applies the encoders that the dataset keeps; None for a feature
            takes its values as they are.
        max_side: Largest side of an image in pixels. Larger images are shrunk.
        quality: Quality, 1 to 100, that JPEG and WebP images are compressed again with.
        verify: Decode every image, and refuse damaged ones.
        sidecars: Files for other programs that read the same shards. "tfds" writes the description
            that TensorFlow Datasets reads, "label_map" the classes as `label_map.pbtxt`, and
            "older" the JSON files of the older library of this name. An append keeps the sidecars
            that are there. The report notes what a program reads differently.
        keys: Library whose keys images and boxes are stored under. "tf_object_detection" is the TF
            Object Detection API; a label map is written, too, and features keep their names.
        root: Folder of the images that a table names. Paths are relative to it, and a path
            that leads out of it, by `..`, as an absolute path or through a link, is a bad record.
            By default paths are relative to the folder of the table or to the working folder, and
            may lead anywhere: give a root for a table that you do not trust.
    """

    problem: str | None = None
    splits: Mapping[str, Any] | None = None
    schema: Schema | Mapping[str, Feature] | None = None
    floats: Floats = "float32"
    shuffle: bool = True
    seed: int = 0
    shard_bytes: int = 128 * 2**20
    shards: int | Mapping[str, int] | None = None
    records_per_shard: int | None = None
    compression: Compression | None = None
    on_error: OnError = "raise"
    stratify: str | None = None
    encoders: Mapping[str, Any] | None = None
    max_side: int | None = None
    quality: int | None = None
    verify: bool = False
    sidecars: Iterable[str] = ()
    keys: Keys | None = None
    root: str | os.PathLike[str] | None = None

    complete_schema: Schema | None = field(default=None, init=False)  # nothing else is allowed
    features: Mapping[str, Feature] = field(default_factory=dict, init=False)  # the others vary

    @classmethod
    def of(cls, keywords: Mapping[str, Any], *, caller: str) -> Self:
        """The options of some keywords; a misspelt one raises TypeError with the nearest name."""
        refuse_unknown(keywords, fields_of(cls), caller=caller)
        return cls(**keywords)

    def __post_init__(self) -> None:
        check_choice("floats", self.floats, get_args(Floats))
        self._check_compression()
        check_choice("on_error", self.on_error, get_args(OnError))
        check_choice("keys", self.keys, (None, *get_args(Keys)))
        self._keep_sidecars()
        self._keep_shards()
        try:
            self._keep("seed", operator.index(self.seed))
        except TypeError:
            raise wrong_kind("seed", "a whole number", self.seed) from None
        self._keep("shuffle", bool(self.shuffle))
        if isinstance(self.schema, Schema):
            self._keep("complete_schema", self.schema)
        elif self.schema is not None:
            self._keep("features", dict(Schema(self.schema)))

    def _keep(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _keep_count(self, name: str, *, least: int) -> None:
        self._keep(name, check_count(name, getattr(self, name), least=least))

    def _check_compression(self) -> None:
        check_choice("compression", self.compression, (None, *get_args(Compression)))

    def _keep_sidecars(self) -> None:
        names = check_sidecars(self.sidecars, self.compression)
        needs_map = self.keys is not None and "label_map" not in names
        self._keep("sidecars", (*names, "label_map") if needs_map else names)

    def _keep_shards(self) -> None:
        self._keep_count("shard_bytes", least=MIN_SHARD_BYTES)
        if isinstance(self.shards, Mapping):
            counts = self.shards.items()
            self._keep("shards", {name: _check_shards(count) for name, count in counts})
        elif self.shards is not None:
            self._keep("shards", _check_shards(self.shards))
        if self.records_per_shard is not None:
            self._keep_count("records_per_shard", least=1)
            if self.shards is not None:
                both = Option("shards"), " or ", Option("records_per_shard")
                got = f", got both: {self.shards!r} and {self.records_per_shard!r}"
                problem = Text("expected ", *both, got)
                raise ValueError(Message(problem, hint="leave one of them out"))

    @property
    def images(self) -> ImageOptions:
        """The options of images."""
        from datum.images import ImageOptions  # brings Pillow, which not every dataset needs

        return ImageOptions(max_side=self.max_side, quality=self.quality, verify=self.verify)

    def guide(self, encoded: Collection[str]) -> Mapping[str, Feature]:
        """The features that texts of a source are read as; encoders read their own."""
        given = self.features if self.complete_schema is None else self.complete_schema
        return {name: feature for name, feature in given.items() if name not in encoded}

    def shard_count(self, split: str, *, records: int, nbytes: int) -> int:
        """The number of shards of a split: at least one, and at most one for each record."""
        asked = self.shards.get(split) if isinstance(self.shards, Mapping) else self.shards
        if asked is not None:
            return asked
        if self.records_per_shard is not None:
            return self._count_by_records(split, records)
        wanted = -(-nbytes // self.shard_bytes)
        return max(1, min(wanted, records, MAX_SHARDS))

    def _count_by_records(self, split: str, records: int) -> int:
        assert self.records_per_shard is not None
        wanted = max(1, -(-records // self.records_per_shard))
        if wanted > MAX_SHARDS:
            least = -(-records // MAX_SHARDS)
            raise ValueError(
                Message(
                    Text(
                        f"expected at most {MAX_SHARDS:,} shards, got {wanted:,} by ",
                        Option("records_per_shard"),
                        f" {self.records_per_shard:,}",
                    ),
                    where=f"split {split!r}",
                    hint=Text(Option("records_per_shard", least), " or more"),
                )
            )
        return wanted

    def check_split_names(self, splits: Sequence[str]) -> None:
        """Refuse a number of shards for a split that does not exist."""
        for name in self.shards if isinstance(self.shards, Mapping) else ():
            if name not in splits:
                problem = Text(Option("shards"), f": expected the name of a split, got {name!r}")
                hint = suggest(name, splits, f"there are {', '.join(splits)}")
                raise SplitError(problem, hint=hint)

    @property
    def rule(self) -> FloatRule:
        """The rule for storing floats: a feature that is given as float64 keeps them."""
        given = {**(self.complete_schema or {}), **self.features}
        kept = frozenset(name for name, one in given.items() if one.dtype == "float64")
        return FloatRule(self.floats, kept)

    def describe(self) -> dict[str, Any]:
        """All that decides which bytes are written, as plain values."""
        complete = self.complete_schema
        return {
            "schema": None if complete is None else complete.to_json(),
            "features": Schema(self.features).to_json(),
            "floats": self.floats,
            "shuffle": self.shuffle,
            "seed": self.seed,
            "shard_bytes": self.shard_bytes,
            "shards": self.shards,
            "records_per_shard": self.records_per_shard,
            "compression": self.compression,
            "on_error": self.on_error,
            "stratify": self.stratify,
            "keys": self.keys,
        }


@dataclass(frozen=True, kw_only=True)
class WriteOptions(PlanOptions):
    """Options of `datum.write`: those of a plan, and how the work is done.

    Attributes:
        workers: Number of cores to use. By default all; the output is the same.
        executor: Where the work runs. "local" is this machine.
        overwrite: Replace the dataset at `out`.
        append: Add the records to the dataset at `out`, in shards of their own.
        storage: Options of the object store that `out` is in. Names are those of obstore, such as
            {"region": "eu-west-1"}; those that are not given come from the environment variables
            of the cloud. Secrets among them are not stored anywhere.
        progress: Show progress. None shows a bar on a terminal and lines elsewhere.
    """

    workers: int | None = None
    executor: Literal["local"] = "local"
    overwrite: bool = False
    append: bool = False
    storage: Mapping[str, Any] | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.workers is not None:
            self._keep_count("workers", least=1)
        check_choice("executor", self.executor, ("local",))
        if self.append and self.overwrite:
            both = Option("append"), " or ", Option("overwrite")
            raise ValueError(Message(Text("expected ", *both, ", got both")))

    @property
    def cores(self) -> int:
        """The number of cores to use."""
        return thread_count(self.workers)


def _check_shards(count: Any) -> int:
    return check_count("shards", count, least=1, most=MAX_SHARDS)


def read_keywords(
    declared: type[_Options], keywords: Mapping[str, Any], *, caller: str
) -> tuple[_Options, TableOptions]:
    """The options of some keywords, and those of tables among them.

    A misspelt one raises TypeError with the nearest name.
    """
    own, of_tables = fields_of(declared), fields_of(TableOptions)
    refuse_unknown(keywords, (*own, *of_tables), caller=caller)
    table = TableOptions(**{name: keywords[name] for name in keywords if name in of_tables})
    return declared(**{name: keywords[name] for name in keywords if name in own}), table
