"""The options of a write, checked before anything is read."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from datum._options import thread_count
from datum._write.blocks import OnError
from datum._write.images import KEYS
from datum._write.sidecars import check_sidecars
from datum.errors import Message, SplitError, suggest
from datum.format import Compression
from datum.schema import Feature, FloatRule, Floats, Schema
from datum.sources.options import TableOptions

__all__ = [
    "WriteOptions",
    "check_options",
    "names_nearest_option",
]

_P = ParamSpec("_P")
_R = TypeVar("_R")

MIN_SHARD_BYTES = 1024  # less makes a file of every few records
MAX_SHARDS = 99_999  # what five digits hold; more files than this help nobody


@dataclass(frozen=True)
class WriteOptions:
    """What `datum.write` was asked for, beside the source and the target."""

    schema: Schema | None  # complete: anything else in a record is an error
    features: Mapping[str, Feature]  # those given; the others are as found
    floats: Floats
    shuffle: bool
    seed: int
    shard_bytes: int
    shards: Mapping[str, int] | int | None
    records_per_shard: int | None
    compression: Compression | None
    workers: int
    on_error: OnError
    stratify: str | None
    sidecars: tuple[str, ...] = ()
    keys: str | None = None

    def guide(self, encoded: Collection[str]) -> Mapping[str, Feature]:
        """How texts of a source are read: as the features given, but those that encoders make."""
        given: Mapping[str, Feature] = self.features if self.schema is None else self.schema
        return {name: feature for name, feature in given.items() if name not in encoded}

    def shard_count(self, split: str, *, records: int, nbytes: int) -> int:
        """How many shards a split gets: never more than it has records, at least one."""
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
            raise ValueError(
                Message(
                    f"split {split!r}: expected at most {MAX_SHARDS:,} shards, got {wanted:,} by"
                    f" `records_per_shard` {self.records_per_shard:,}",
                    hint=f"records_per_shard={-(-records // MAX_SHARDS)} or more",
                )
            )
        return wanted

    def check_split_names(self, splits: Sequence[str]) -> None:
        """Refuse a number of shards for a split that there is not."""
        for name in self.shards if isinstance(self.shards, Mapping) else ():
            if name not in splits:
                hint = suggest(name, splits, f"there are {', '.join(splits)}")
                raise SplitError(f"shards: expected the name of a split, got {name!r}", hint=hint)

    @property
    def rule(self) -> FloatRule:
        """How floats are stored: a feature that is given as float64 keeps them."""
        given = {**(self.schema or {}), **self.features}
        kept = frozenset(name for name, one in given.items() if one.dtype == "float64")
        return FloatRule(self.floats, kept)

    def describe(self) -> dict[str, Any]:
        """All that decides which bytes are written, as plain values."""
        return {
            "schema": None if self.schema is None else self.schema.to_json(),
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


def names_nearest_option(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Have a function that is given an option it does not have name the nearest it has.

    One that takes any option takes those of tables.
    """
    names = []
    for name, parameter in inspect.signature(function).parameters.items():
        is_open = parameter.kind is inspect.Parameter.VAR_KEYWORD
        names += list(TableOptions.__annotations__) if is_open else [name]

    @functools.wraps(function)
    def checked(*args: _P.args, **options: _P.kwargs) -> _R:
        for name in options:
            if name not in names:
                within = [known for known in names if known in name or name in known]
                otherwise = f"did you mean {within[0]!r}?" if within else ""
                hint = suggest(name, names, otherwise, cutoff=0.5)
                raise TypeError(Message(f"{function.__name__}() has no option {name!r}", hint=hint))
        return function(*args, **options)

    return checked


def check_options(
    *,
    schema: Schema | Mapping[str, Feature] | None,
    floats: Floats,
    shuffle: bool,
    seed: int,
    shard_bytes: int,
    shards: int | Mapping[str, int] | None,
    records_per_shard: int | None,
    compression: Compression | None,
    workers: int | None,
    executor: str,
    on_error: OnError,
    stratify: str | None,
    sidecars: Iterable[str],
    keys: str | None,
) -> WriteOptions:
    """Refuse what cannot be meant."""
    _check_choice("floats", floats, ("float32", "float64"))
    _check_choice("compression", compression, (None, "gzip", "zlib"))
    _check_choice("on_error", on_error, ("raise", "skip", "quarantine"))
    _check_choice("executor", executor, ("local",))
    _check_choice("keys", keys, (None, *KEYS))
    sidecars = check_sidecars(sidecars, compression)
    if keys is not None and "label_map" not in sidecars:
        sidecars += ("label_map",)
    _check_count("shard_bytes", shard_bytes, MIN_SHARD_BYTES)
    counts = shards.values() if isinstance(shards, Mapping) else [shards]
    for count in counts:
        if count is not None:
            _check_count("shards", count, 1, MAX_SHARDS)
    if records_per_shard is not None:
        _check_count("records_per_shard", records_per_shard, 1)
        if shards is not None:
            raise ValueError(
                Message(
                    f"expected `shards` or `records_per_shard`, got both: {shards!r} and"
                    f" {records_per_shard!r}",
                    hint="leave one of them out",
                )
            )
    if not isinstance(seed, int):
        raise TypeError(f"expected `seed` to be an integer, got {seed!r}")
    if workers is not None:
        _check_count("workers", workers, 1)
    return WriteOptions(
        schema if isinstance(schema, Schema) else None,
        {} if schema is None or isinstance(schema, Schema) else dict(Schema(schema)),
        floats,
        bool(shuffle),
        int(seed),
        shard_bytes,
        dict(shards) if isinstance(shards, Mapping) else shards,
        records_per_shard,
        compression,
        thread_count(workers),
        on_error,
        stratify,
        sidecars,
        keys,
    )


def _check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if value not in choices:
        listed = ", ".join(map(repr, choices))
        words = [choice for choice in choices if isinstance(choice, str)]
        hint = suggest(str(value).lower(), words)
        raise ValueError(
            Message(f"expected `{name}` to be one of {listed}, got {value!r}", hint=hint)
        )


def _check_count(name: str, value: Any, least: int, most: int | None = None) -> None:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if not is_integer or value < least or (most is not None and value > most):
        up_to = "" if most is None else f" and at most {most:,}"
        raise ValueError(f"expected `{name}` of at least {least:,}{up_to}, got {value!r}")
