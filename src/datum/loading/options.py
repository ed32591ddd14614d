"""What can be asked of `to_numpy`, `to_torch` and `to_jax`."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict

from datum.loading.checks import (
    check_choice,
    check_count,
    check_function,
    check_kind,
    check_known,
)
from datum.schema import Feature, Schema

__all__ = ["MASK", "LoadKeywords", "LoadOptions", "Remainder", "Shuffle", "present_name"]

Shuffle = bool | int | Literal["full", "blocks"]
Remainder = Literal["keep", "drop", "pad", "wrap"]
Decode = bool | Mapping[str, bool | Callable[[bytes], Any]]

MASK = "batch_mask"  # the column that tells records from those that only fill up a batch


class LoadKeywords(TypedDict, total=False):
    """The keywords of `to_numpy`, `to_torch` and `to_jax`; `LoadOptions` tells what each is."""

    batch_size: int
    shuffle: Shuffle
    seed: int
    epochs: int | None
    columns: Iterable[str] | None
    drop_remainder: bool
    remainder: Remainder
    host: tuple[int, int] | None
    decode: Decode
    map: Callable[..., Any] | None
    batch_map: Callable[..., Any] | None
    cache: bool
    pad: bool | Mapping[str, Any]
    bucket_by: str | None
    threads: int | None
    prefetch: int | None
    on_error: Literal["raise", "skip"]
    reshuffle: bool


def present_name(name: str, feature: Feature) -> str | None:
    """The column that tells which records have an optional feature; None if there is none.

    >>> present_name("age", Feature("float32", optional=True))
    'age_present'
    """
    has_blanks = feature.optional and feature.default is None and feature.encoding != "sparse"
    return f"{name}_present" if has_blanks else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """What a loader is asked for.

    Attributes:
        batch_size: how many records a batch has on this host.
        shuffle: True or "full" mixes all records of the split; "blocks" mixes runs of neighbours
            and then the records of 64 such runs, which suits slow disks; a number does that with
            so many records at a time. False keeps the order in which records were written.
        seed: of the order, and of random numbers given to `map`.
        epochs: how often the split is gone through in one iteration; None is without end.
        columns: the features to read; all others are left unparsed.
        drop_remainder: the same as remainder="drop".
        remainder: what becomes of the records at the end of an epoch that make no full batch on
            every host: "keep" gives a short batch, an even part to each host, which can be empty;
            "drop" leaves them out; "pad" fills up with other records, and every batch has a
            column `batch_mask` that is False for those; "wrap" fills up with the first records
            of the epoch.
        host: (index, count): this host reads its part of each global batch. None asks the
            framework, where there is one.
        decode: by feature, False to keep the bytes of an image, True to decode a feature of bytes
            that holds one, or a function of the bytes.
        map: called with each record, a dict of values; returns what takes its place. If it has a
            parameter `rng` it gets a generator of random numbers that are the same for any number
            of threads, workers and hosts.
        batch_map: called with each batch, likewise.
        cache: keep what was read and decoded in memory.
        pad: fill up what differs in length, and what is sparse, to dense arrays: True with zeros,
            or by feature the value to fill it with.
        bucket_by: a feature; records of about the same length of it come into the same batch.
        threads: how many work on batches; None is one for each core.
        prefetch: how many batches are made ahead.
        on_error: "skip" leaves out damaged records, and counts them in `report`.
        reshuffle: whether each epoch has another order.
    """

    batch_size: int = 32
    shuffle: Shuffle = False
    seed: int = 0
    epochs: int | None = 1
    columns: Iterable[str] | None = None
    drop_remainder: bool = False
    remainder: Remainder = "keep"
    host: tuple[int, int] | None = None
    decode: Decode = True
    map: Callable[..., Any] | None = None
    batch_map: Callable[..., Any] | None = None
    cache: bool = False
    pad: bool | Mapping[str, Any] = False
    bucket_by: str | None = None
    threads: int | None = None
    prefetch: int | None = None
    on_error: Literal["raise", "skip"] = "raise"
    reshuffle: bool = True

    @classmethod
    def of(cls, keywords: Mapping[str, Any], *, caller: str) -> LoadOptions:
        """The options that keywords give; a misspelt one is a TypeError that names the nearest."""
        known = [field.name for field in fields(cls)]
        for name in keywords:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(known)}"
                raise TypeError(f"{caller}: got an unknown option `{name}`\nhint: {hint}")
        return cls(**keywords)

    def __post_init__(self) -> None:
        self._keep_count("batch_size", least=1)
        if self.epochs is not None:
            self._keep_count("epochs", least=1, hint="\nhint: epochs=None has no end")
        self._keep_count("seed", least=0)
        for name in ("threads", "prefetch"):
            if getattr(self, name) is not None:
                self._keep_count(name, least=1)
        for name in ("drop_remainder", "cache", "reshuffle"):
            check_kind(name, getattr(self, name), bool, "True or False")
        for name in ("decode", "pad"):
            expected = "True, False, or a dict by feature"
            check_kind(name, getattr(self, name), (bool, Mapping), expected)
        for name in ("map", "batch_map"):
            check_function(name, getattr(self, name))
        check_choice("on_error", self.on_error, ("raise", "skip"))
        self._keep_columns()
        self._check_remainder()
        self._check_shuffle()
        self._check_host()

    def _keep_count(self, name: str, *, least: int, hint: str = "") -> None:
        number = check_count(name, getattr(self, name), least=least, hint=hint)
        object.__setattr__(self, name, number)

    def _keep_columns(self) -> None:
        """As a tuple: an iterator could be looked through only once."""
        if self.columns is None:
            return
        check_kind("columns", self.columns, Iterable, "names of features")
        columns = [self.columns] if isinstance(self.columns, str) else self.columns
        object.__setattr__(self, "columns", tuple(columns))

    def _check_remainder(self) -> None:
        check_choice("remainder", self.remainder, ("keep", "drop", "pad", "wrap"))
        if self.drop_remainder:
            if self.remainder not in ("keep", "drop"):
                raise ValueError(
                    f"expected `drop_remainder` or `remainder`, got both: {self.remainder!r}"
                )
            object.__setattr__(self, "remainder", "drop")

    def _check_shuffle(self) -> None:
        if isinstance(self.shuffle, str):
            check_choice("shuffle", self.shuffle, ("full", "blocks"))
        elif not isinstance(self.shuffle, bool):
            if not hasattr(self.shuffle, "__index__"):
                raise TypeError(
                    "expected `shuffle` to be True, False, 'full', 'blocks' or a number of records,"
                    f" got {self.shuffle!r}"
                )
            self._keep_count("shuffle", least=0)

    def _check_host(self) -> None:
        if self.host is None:
            return
        try:
            index, count = host = tuple(operator.index(number) for number in self.host)
        except (TypeError, ValueError):
            raise TypeError(f"expected `host` to be (index, count), got {self.host!r}") from None
        if not 0 <= index < count:
            raise ValueError(f"expected `host` with an index from 0 to its count - 1, got {host!r}")
        object.__setattr__(self, "host", host)

    def selected(self, schema: Schema) -> Schema:
        """The features to be read; names that the schema lacks are refused."""
        if isinstance(self.decode, Mapping):
            check_known("decode", self.decode, schema)
        if self.bucket_by is not None:
            check_known("bucket_by", [self.bucket_by], schema)
        if self.columns is None:
            chosen = schema
        else:
            columns = list(self.columns)
            if not columns:
                raise ValueError("expected `columns` to name at least one feature, got none")
            check_known("columns", columns, schema)
            chosen = schema.select(columns)
        if self.remainder == "pad" and MASK in chosen:
            raise ValueError(
                f"expected no feature {MASK!r} with remainder='pad', whose mask has that name\n"
                "hint: leave it out with `columns`, or choose another remainder"
            )
        return chosen
