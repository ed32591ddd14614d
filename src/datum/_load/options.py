"""Options of the loaders."""

from __future__ import annotations

import operator
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypedDict

from datum._load.functions import check_numpy_function, refuse_generator
from datum._load.missing import Missing, check_missing, fill_missing, present_name
from datum._load.padding import PadOption, check_bucket_pad, check_pad, mask_owners
from datum._options import (
    check_choice,
    check_count,
    check_kind,
    check_known,
    fields_of,
    refuse_unknown,
)
from datum.errors import Message
from datum.schema import Feature, Schema
from datum.schema.feature import INTEGERS

__all__ = [
    "MASK",
    "RECORDS_AT_ONCE",
    "SEED_BITS",
    "Cast",
    "LoadKeywords",
    "LoadOptions",
    "Names",
    "Remainder",
    "SharedKeywords",
    "Shuffle",
    "Supervised",
    "check_cast",
    "check_presence",
    "check_seed",
    "find_casts",
    "owners_of",
    "present_name",
    "select_parts",
    "supervised_names",
]

FLOATS = ("float16", "bfloat16", "float32", "float64")
_NUMBERS = (*INTEGERS, *FLOATS)

Cast = Any  # a dtype, a mapping of features to dtypes, or None


def check_cast(cast: Cast) -> None:
    """Raise ValueError unless every type is a floating-point type."""
    for dtype in cast.values() if isinstance(cast, Mapping) else [cast]:
        if cast is not None:
            _name_of(dtype)


def _name_of(dtype: Any) -> str:
    """The name of a type that is a string, or a type of NumPy, PyTorch, JAX or TensorFlow."""
    name = dtype
    if not isinstance(dtype, str):
        # The one door for types of any framework, none of which need be installed.
        name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
        name = name.removeprefix("torch.")
    if name not in FLOATS:
        raise ValueError(
            Message(
                f"expected `cast` to a floating-point type, {', '.join(FLOATS)}, got {dtype!r}",
                hint="`map` can convert records to anything else",
            )
        )
    return str(name)


def find_casts(cast: Cast, schema: Schema, decode: Any) -> dict[str, str]:
    """The type that each feature is cast to: the features in `cast`, or all that are floats.

    Args:
        cast: The option `cast`.
        schema: Schema of the records.
        decode: The option `decode`: the pixels of images can be cast, their bytes cannot.
    """
    if cast is None:
        return {}
    if not isinstance(cast, Mapping):
        return {
            name: _name_of(cast)
            for name, feature in schema.items()
            if feature.dtype in FLOATS and feature.dtype != _name_of(cast)
        }
    casts = {name: _name_of(dtype) for name, dtype in cast.items() if name in schema}
    for name in casts:
        if not _is_number(schema[name], name, decode):
            raise ValueError(
                Message(
                    f"expected `cast` of numbers or decoded images, got {name!r}: {schema[name]!r}"
                )
            )
    return casts


def _is_number(feature: Feature, name: str, decode: Any) -> bool:
    """Whether the values of a feature are real numbers in a batch."""
    is_image = feature.encoding == "image"
    how = decode.get(name, is_image) if isinstance(decode, Mapping) else decode and is_image
    if is_image or feature.is_string:
        return how is True
    return feature.dtype in _NUMBERS


Names = str | tuple[str, ...] | list[str]
Supervised = tuple[Names, ...]


def supervised_names(supervised: Supervised | None) -> list[str]:
    """The names of all columns in `supervised`.

    >>> supervised_names((["age", "income"], "bought"))
    ['age', 'income', 'bought']
    """
    if supervised is None:
        return []
    given: Any = supervised
    if isinstance(given, (tuple, list)) and len(given) in (2, 3):
        parts = [part if isinstance(part, (tuple, list)) else [part] for part in given]
        names = [name for part in parts for name in part]
        if all(isinstance(name, str) for name in names):
            return names
    raise TypeError(
        Message(
            "expected `supervised` to name the inputs, the targets and optionally the weights,"
            f" got {given!r}",
            hint="supervised=('image', 'label')",
        )
    )


def check_presence(names: Collection[str], columns: Collection[str]) -> None:
    """Raise ValueError if a feature is selected without the column that marks its records.

    Without that column a missing class would look like class 0.
    """
    for name in names:
        beside = f"{name}_present"
        if beside in columns and beside not in names:
            raise ValueError(
                Message(
                    f"`supervised`: some records may lack {name!r}, expected {beside!r} beside it,"
                    " which marks them",
                    hint=f"missing={{{name!r}: 'drop'}} drops such records, 'error' raises, and a"
                    f" value fills the gaps; or add {beside!r} to `supervised`",
                )
            )


def select_parts(batch: Any, supervised: Supervised) -> tuple[Any, ...]:
    """The parts of a batch as a tuple; each is a column, or a dict of columns."""
    names = supervised_names(supervised)
    if not isinstance(batch, Mapping) or not set(names) <= set(batch):
        got = ", ".join(map(str, batch)) if isinstance(batch, Mapping) else type(batch).__name__
        raise ValueError(
            Message(f"expected batches with {', '.join(names)} for `supervised`, got {got}")
        )
    check_presence(names, batch)
    return tuple(
        batch[part] if isinstance(part, str) else {name: batch[name] for name in part}
        for part in supervised
    )


Shuffle = bool | int | Literal["full", "blocks", "shards"]
Remainder = Literal["keep", "drop", "pad", "wrap"]
Decode = bool | Mapping[str, bool | Callable[[bytes], Any]]

RECORDS_AT_ONCE = 128  # single records made together, so that the cost of a step is small
MASK = "batch_mask"  # the column that is False for records that only fill up a batch
SEED_BITS = 62  # size of a random seed
MAX_HOSTS = 2**20  # far above any cluster, and small enough for a list with an item for each


class SharedKeywords(TypedDict, total=False):
    """The keywords that all loaders share; `LoadOptions` documents each of them."""

    batch_size: int | None
    shuffle: Shuffle
    seed: int | None
    epochs: int | None
    columns: Iterable[str] | None
    drop_remainder: bool
    remainder: Remainder | None
    supervised: Supervised | None
    missing: Missing
    decode: Decode
    cast: Cast
    map: Callable[..., Any] | None
    batch_map: Callable[..., Any] | None
    cache_after: Literal["decode", "map"]
    pad: PadOption
    bucket_by: str | None
    prefetch: int | None
    on_error: Literal["raise", "skip"]
    reshuffle: bool


class LoadKeywords(SharedKeywords, total=False):
    """The keywords of `to_numpy`, `to_torch` and `to_jax`; `LoadOptions` documents each of them."""

    host: tuple[int, int] | None
    cache: bool
    batch_tokens: int | None
    buckets: Iterable[int] | None
    threads: int | None


@dataclass(frozen=True, kw_only=True)  # `TfOptions` extends it: slots would break `super()`
class LoadOptions:
    """Options of a loader.

    Attributes:
        batch_size: Number of records in a batch on this host. None returns single records, without
            a batch dimension; several hosts take them in turn. With `batch_tokens` it is the
            largest number of records in a batch, by default unlimited.
        shuffle: True or "full" shuffles all records of the split. "blocks" shuffles runs of
            neighbours and then the records of 64 such runs, which suits slow disks; a number does
            the same with that many records at a time. "shards" shuffles the shards and mixes the
            records of 4 at a time, for datasets in object stores that are larger than the cache.
            False keeps the order of writing.
        seed: Seed of the shuffle, and of the random numbers for `map`. None draws another one
            each time, which works on one host only.
        epochs: Number of passes over the split in one iteration. None never ends.
        columns: Names of the features to read. Others are not parsed.
        drop_remainder: The same as remainder="drop".
        remainder: What happens to the last records of an epoch when they do not fill a batch on
            every host. "keep" returns a short batch, with an even part for each host, which can be
            empty. "drop" leaves them out. "pad" fills the batch up with other records, and adds a
            column `batch_mask` that is False for those. "wrap" fills it up with the first records
            of the epoch. None is "keep" on one host and "wrap" on several, so that every host has
            full batches and no record is lost.
        host: (index, count): the part of each global batch that this host reads. None asks the
            framework, where there is one.
        supervised: Names of inputs and targets, for tuples instead of dicts: ("image", "label"),
            or (["a", "b"], "label") for a dict of inputs. A third name is the weights.
        missing: What to return for a feature that a record lacks, for all features or in a dict
            by feature. "mask" adds a column `<name>_present` and returns zeros or empty values,
            "error" raises, and "drop" drops the record (every record is read once to find them).
            In a dict, anything else is the value to fill in. By default floats are NaN and other
            features get a mask.
        decode: False keeps images encoded. A dict does that by feature: False to keep the bytes,
            True to decode a feature of bytes that holds an image, or a function of the bytes.
        cast: Floating-point type of the values: for all features that are floats ("float32"), or
            in a dict by feature ({"image": "float32"}), where integers and decoded images may be
            cast too. `map` and `batch_map` get cast values. None keeps the types of the schema.
        map: Function of each record, a dict of values, which returns the new record. If it has a
            parameter `rng` it gets a random generator whose numbers are the same for any number
            of threads, workers and hosts. A function that draws from global generators instead
            is called by one thread, with these seeded for each record.
        batch_map: Function of each batch, likewise.
        cache: Keep decoded records in memory.
        cache_after: "map" also keeps the result of `map`, so that it is called once for each
            record. "decode" calls it again in each epoch.
        pad: Pad columns that differ in length, and sparse ones, to dense arrays. True pads with
            zeros to the longest row of the batch, a number pads to that length, and a `datum.Pad`
            has further settings. A dict has for each feature a `datum.Pad` or the value to pad
            with. A length
            and a `datum.Pad` add a column `<name>_mask`, True where there is a value.
        bucket_by: Name of a feature. Records of about the same length of it share a batch.
        batch_tokens: Largest number of tokens in a padded batch of this host: its rows times the
            longest `bucket_by` among them. The lengths of all records are read once, when the
            loader is made.
        buckets: Bounds of the lengths of `bucket_by`, in rising order. A batch has records of one
            bucket, and `pad` fills them up to its bound: there are as many shapes as buckets. It
            has as many rows as `batch_tokens` allow at the bound, and at most `batch_size`.
        threads: Number of threads that make batches. None is one for each core.
        prefetch: Number of batches made ahead. None chooses.
        on_error: "skip" leaves out damaged records, and counts them in `report`. "raise" raises.
        reshuffle: Whether each epoch has another order.
    """

    batch_size: int | None = 32
    shuffle: Shuffle = False
    seed: int = 0
    epochs: int | None = 1
    columns: Iterable[str] | None = None
    drop_remainder: bool = False
    remainder: Remainder | None = None
    host: tuple[int, int] | None = None
    supervised: Supervised | None = None
    missing: Missing = None
    decode: Decode = True
    cast: Cast = None
    map: Callable[..., Any] | None = None
    batch_map: Callable[..., Any] | None = None
    cache: bool = False
    cache_after: Literal["decode", "map"] = "decode"
    pad: PadOption = False
    bucket_by: str | None = None
    batch_tokens: int | None = None
    buckets: Iterable[int] | None = None
    threads: int | None = None
    prefetch: int | None = None
    on_error: Literal["raise", "skip"] = "raise"
    reshuffle: bool = True
    is_seed_drawn: bool = field(default=False, init=False)

    @classmethod
    def of(cls, keywords: Mapping[str, Any], *, caller: str) -> Self:
        """The options of some keywords; a misspelt one raises TypeError with the nearest name."""
        refuse_unknown(keywords, fields_of(cls), caller=caller)
        for name in ("map", "batch_map") if caller != "to_torch" else ():
            if keywords.get(name) is not None:
                refuse_generator(name, keywords[name])
        if keywords.get("batch_tokens") is not None:
            keywords = {"batch_size": None, **keywords}
        return cls(**keywords)

    def __post_init__(self) -> None:
        self._keep_buckets()
        if self.batch_size is None:
            self._refuse_what_needs_batches()
        else:
            self._keep_count("batch_size", least=1)
        if self.epochs is not None:
            self._keep_count("epochs", least=1, hint="epochs=None has no end")
        self._keep_seed()
        if self.threads is not None:
            self._keep_count("threads", least=1)
        self._keep_prefetch()
        for name in ("drop_remainder", "reshuffle"):
            check_kind(name, getattr(self, name), bool, "True or False")
        self._check_cache()
        expected = "True, False, or a dict by feature"
        check_kind("decode", self.decode, (bool, Mapping), expected)
        if self.pad is not False:
            check_pad(self.pad)
        check_cast(self.cast)
        self._check_functions(check_numpy_function)
        check_choice("on_error", self.on_error, ("raise", "skip"))
        check_missing(self.missing)
        supervised_names(self.supervised)
        check_choice("cache_after", self.cache_after, ("decode", "map"))
        self._keep_columns()
        self._check_remainder()
        self._check_shuffle()
        self._check_host()

    def _keep_count(self, name: str, *, least: int, hint: str = "") -> None:
        number = check_count(name, getattr(self, name), least=least, hint=hint)
        object.__setattr__(self, name, number)

    def _keep_prefetch(self) -> None:
        if self.prefetch is not None:
            self._keep_count("prefetch", least=1)

    def _check_cache(self) -> None:
        check_kind("cache", self.cache, bool, "True or False")

    def _check_functions(self, check: Callable[..., None]) -> None:
        for name in ("map", "batch_map"):
            if getattr(self, name) is not None:
                check(name, getattr(self, name))
        for feature, how in self.decode.items() if isinstance(self.decode, Mapping) else ():
            if callable(how):
                check("decode", how, feature=feature)

    def _keep_seed(self) -> None:
        given: int | None = self.seed
        if given is None:
            object.__setattr__(self, "is_seed_drawn", True)
            object.__setattr__(self, "seed", secrets.randbits(SEED_BITS))
        self._keep_count("seed", least=0)

    def _refuse_what_needs_batches(self) -> None:
        needs = {
            "batch_map": self.batch_map is not None,
            "pad": bool(self.pad),
            "bucket_by": self.bucket_by is not None,
            "remainder='pad'": self.remainder == "pad",
        }
        for name, is_asked in needs.items():
            if is_asked:
                raise ValueError(
                    Message(
                        f"expected a `batch_size` with {name}, which works on batches, got None for"
                        " single records",
                        hint="set `batch_size`, or use `map`, which is called with each record",
                    )
                )

    def _keep_columns(self) -> None:
        """Keep the names as a tuple, since an iterator could be read only once."""
        if self.columns is None:
            return
        check_kind("columns", self.columns, Iterable, "names of features")
        columns = [self.columns] if isinstance(self.columns, str) else self.columns
        object.__setattr__(self, "columns", tuple(columns))

    def _keep_buckets(self) -> None:
        is_bounded = self.batch_tokens is not None
        if is_bounded:
            self._keep_count("batch_tokens", least=1)
            if self.batch_size is None:  # there is no other limit
                object.__setattr__(self, "batch_size", self.batch_tokens)
        if self.buckets is not None:
            check_kind("buckets", self.buckets, Iterable, "bounds of lengths")
            bounds = tuple(check_count("buckets", bound, least=1) for bound in self.buckets)
            if not bounds or list(bounds) != sorted(set(bounds)):
                raise ValueError(
                    Message(f"expected `buckets` in rising order, got {self.buckets!r}")
                )
            object.__setattr__(self, "buckets", bounds)
            if self.batch_tokens is not None and self.batch_tokens < bounds[-1]:
                raise ValueError(
                    Message(
                        f"expected `batch_tokens` of {bounds[-1]} or more, the last of"
                        " `buckets`, got"
                        f" {self.batch_tokens}"
                    )
                )
        if self.bucket_by is None and (is_bounded or self.buckets is not None):
            option = "batch_tokens" if is_bounded else "buckets"
            raise ValueError(
                Message(
                    f"expected `bucket_by` with `{option}`, got None",
                    hint="bucket_by='<feature>', whose length is limited",
                )
            )

    def _check_remainder(self) -> None:
        if self.remainder is not None:
            check_choice("remainder", self.remainder, ("keep", "drop", "pad", "wrap"))
        if self.drop_remainder:
            if self.remainder not in (None, "drop"):
                raise ValueError(
                    Message(
                        f"expected `drop_remainder` or `remainder`, got both: {self.remainder!r}"
                    )
                )
            object.__setattr__(self, "remainder", "drop")

    @property
    def plan_records(self) -> int:
        """Number of records that are planned and made together: a batch, or some single ones."""
        return self.batch_size or RECORDS_AT_ONCE

    def remainder_on(self, hosts: int) -> Remainder:
        """The treatment of the last records of an epoch with this number of hosts."""
        return self.remainder or ("keep" if hosts == 1 else "wrap")

    def _check_shuffle(self) -> None:
        if isinstance(self.shuffle, str):
            check_choice("shuffle", self.shuffle, ("full", "blocks", "shards"))
        elif not isinstance(self.shuffle, bool):
            if not hasattr(self.shuffle, "__index__"):
                raise TypeError(
                    Message(
                        "expected `shuffle` to be True, False, 'full', 'blocks', 'shards' or a"
                        f" number of records, got {self.shuffle!r}"
                    )
                )
            self._keep_count("shuffle", least=0)

    def _check_host(self) -> None:
        if self.host is None:
            return
        try:
            index, count = host = tuple(operator.index(number) for number in self.host)
        except (TypeError, ValueError):
            raise TypeError(
                Message(f"expected `host` to be (index, count), got {self.host!r}")
            ) from None
        if any(isinstance(number, bool) for number in self.host):
            raise TypeError(Message(f"expected `host` to be (index, count), got {self.host!r}"))
        if count > MAX_HOSTS:
            raise ValueError(
                Message(f"expected `host` with a count of at most {MAX_HOSTS:,}, got {host!r}")
            )
        if not 0 <= index < count:
            raise ValueError(
                Message(f"expected `host` with an index from 0 to its count - 1, got {host!r}")
            )
        object.__setattr__(self, "host", host)

    def selected(self, schema: Schema) -> Schema:
        """The schema of the features to read; ValueError for names that the dataset lacks."""
        if isinstance(self.decode, Mapping):
            check_known("decode", self.decode, schema)
        if isinstance(self.cast, Mapping):
            check_known("cast", self.cast, schema)
        find_casts(self.cast, schema, self.decode)
        if self.bucket_by is not None:
            check_known("bucket_by", [self.bucket_by], schema)
            check_bucket_pad(self.pad, self.bucket_by, self.buckets)
        chosen = self._chosen(fill_missing(schema, self.missing))
        if self.remainder == "pad" and MASK in chosen:
            raise ValueError(
                Message(
                    f"expected no feature {MASK!r} with remainder='pad', whose mask has that name",
                    hint="exclude it with `columns`, or choose another `remainder`",
                )
            )
        self._check_supervised(chosen)
        return chosen

    def _chosen(self, schema: Schema) -> Schema:
        """The features in `columns`, or else those that the result depends on."""
        if self.columns is not None:
            columns = list(self.columns)
            if not columns:
                raise ValueError(
                    Message("expected `columns` to name at least one feature, got none")
                )
            check_known("columns", columns, schema)
            return schema.select(columns)
        if self.supervised is None or self.map is not None or self.batch_map is not None:
            return schema
        owners = owners_of(schema) | mask_owners(self.pad, schema)
        names = [name for name in supervised_names(self.supervised) if name != MASK]
        check_known("supervised", names, owners)
        return schema.select(dict.fromkeys(owners[name] for name in names))

    def _check_supervised(self, schema: Schema) -> None:
        names = supervised_names(self.supervised)
        if not names:
            return
        if self.remainder == "pad" and MASK not in names:
            raise ValueError(
                Message(
                    f"`supervised`: expected {MASK!r} among the names, since remainder='pad' fills"
                    f" up batches with records that do not count, got {', '.join(names)}",
                    hint=f"use it as the weights: supervised=(..., ..., {MASK!r})",
                )
            )
        if self.map is None and self.batch_map is None:
            known = owners_of(schema) | mask_owners(self.pad, schema)
            check_known("supervised", [name for name in names if name != MASK], known)
            check_presence(names, known)


def check_seed(is_drawn: bool, *, hosts: int) -> None:
    """Raise ValueError if several hosts would each draw their own seed, and so their own order."""
    if is_drawn and hosts > 1:
        raise ValueError(
            Message(
                f"expected a `seed` on {hosts} hosts, which must agree on one order, got None",
                hint="seed=0, or any other number that is the same on all hosts",
            )
        )


def owners_of(schema: Schema) -> dict[str, str]:
    """The feature of each column of a batch."""
    beside = {present_name(name, feature): name for name, feature in schema.items()}
    return {name: name for name in schema} | {
        column: name for column, name in beside.items() if column is not None
    }
