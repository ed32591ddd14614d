"""Options of `to_tf`, checked before TensorFlow is loaded."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from datum._load.checks import (
    check_choice,
    check_count,
    check_function,
    check_graph_function,
    check_kind,
    check_known,
)
from datum._load.missing import Missing, check_missing, fill_missing
from datum._load.options import (
    MASK,
    SEED_BITS,
    Cast,
    LoadOptions,
    Remainder,
    Shuffle,
    Supervised,
    check_cast,
    check_presence,
    find_casts,
    owners_of,
    supervised_names,
)
from datum._load.padding import PadOption, check_pad, mask_owners
from datum.configs import BucketConfigs, TFRReadConfigs
from datum.configs.tfr_configs import AUTOTUNE, ENGINES
from datum.errors import Message, suggest
from datum.schema import Schema

__all__ = ["SERVICE", "Engine", "TfOptions", "refuse_mask"]
Engine = Literal["auto", "graph", "native"]
SERVICE = "service"  # the `host` of datasets that the tf.data service distributes
_FLAGS = ("drop_remainder", "reshuffle", "shuffle_files")


@dataclass(frozen=True, slots=True, kw_only=True)
class TfOptions:
    """The keywords of `Dataset.to_tf`, which documents each of them."""

    batch_size: int | None = 32
    shuffle: Shuffle = False
    seed: Any = 0  # an int: None draws one
    epochs: int | None = 1
    columns: Iterable[str] | None = None
    drop_remainder: bool = False
    remainder: Remainder | None = None
    host: Any = None
    engine: Engine = "auto"
    supervised: Supervised | None = None
    missing: Missing = None
    decode: bool | Mapping[str, bool | Callable[[Any], Any]] = True
    cast: Cast = None
    map: Callable[..., Any] | None = None
    batch_map: Callable[..., Any] | None = None
    cache: bool | str | os.PathLike[str] = False
    cache_after: Literal["decode", "map"] = "decode"
    echo: int = 1
    bucket_fn: Callable[[Any], Any] | None = None
    bucket_op: BucketConfigs | None = None
    bucket_by: str | None = None
    pad: PadOption = False
    deterministic: bool | None = None
    prefetch: int | None = None
    on_error: Literal["raise", "skip"] = "raise"
    reshuffle: bool = True
    shuffle_files: bool = True
    num_parallel_calls: int | None = None
    read: TFRReadConfigs | None = None
    is_seed_drawn: bool = field(default=False, init=False)

    @classmethod
    def refuse_unknown(cls, keywords: Iterable[str]) -> None:
        """Raise TypeError for keywords that `to_tf` does not have, with the nearest one."""
        known = [option.name for option in fields(cls) if option.init]
        for name in keywords:
            hint = suggest(name, known, f"there are {', '.join(known)}", shown="`{}`".format)
            if name in ("batch_tokens", "buckets"):
                hint = "`bucket_fn` and `bucket_op` give a batch size for each range of lengths"
            raise TypeError(Message(f"to_tf: got an unknown option `{name}`", hint=hint))

    def __post_init__(self) -> None:
        for name in ("prefetch", "num_parallel_calls"):
            if getattr(self, name) == AUTOTUNE:
                object.__setattr__(self, name, None)
        if self.columns is not None and not isinstance(self.columns, str):
            object.__setattr__(self, "columns", tuple(self.columns))  # read more than once
        self._check_numbers()
        check_choice("engine", self.engine, ENGINES)
        check_choice("on_error", self.on_error, ("raise", "skip"))
        check_choice("cache_after", self.cache_after, ("decode", "map"))
        self._check_remainder()
        for name in _FLAGS:
            check_kind(name, getattr(self, name), bool, "True or False")
        check_kind("deterministic", self.deterministic, (bool, type(None)), "True, False or None")
        expected = "True, False, or a dict by feature"
        check_kind("decode", self.decode, (bool, Mapping), expected)
        check_pad(self.pad)
        check_cast(self.cast)
        check_kind("cache", self.cache, (bool, str, os.PathLike), "True, False, or a file name")
        for name in ("map", "batch_map"):
            check_graph_function(name, getattr(self, name))
        for feature, how in self.decode.items() if isinstance(self.decode, Mapping) else ():
            if callable(how):
                check_graph_function("decode", how, feature=feature)
        check_function("bucket_fn", self.bucket_fn)
        if self.read is not None:
            check_kind("read", self.read, TFRReadConfigs, "a datum.configs.TFRReadConfigs")
        check_missing(self.missing)
        self._check_buckets()
        self.supervised_names()

    @property
    def is_deterministic(self) -> bool:
        """Whether the order is fixed: `deterministic`, or that of `read.options`, or True."""
        if self.deterministic is not None:
            return self.deterministic
        given = self.read.options if self.read is not None else None
        return given is None or given.deterministic is not False

    @property
    def is_served(self) -> bool:
        """Whether the tf.data service distributes the dataset."""
        return isinstance(self.host, str) and self.host == SERVICE

    def _check_numbers(self) -> None:
        hints = {"epochs": "epochs=None has no end"}
        for name in ("batch_size", "epochs", "num_parallel_calls"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name), least=1, hint=hints.get(name, ""))
        check_count("echo", self.echo, least=1)
        if self.prefetch is not None:
            check_count("prefetch", self.prefetch, least=0)
        if isinstance(self.shuffle, str):
            check_choice("shuffle", self.shuffle, ("full", "blocks"))
        elif not isinstance(self.shuffle, bool):
            check_count("shuffle", self.shuffle, least=0)
        if self.seed is None:
            object.__setattr__(self, "is_seed_drawn", True)
            object.__setattr__(self, "seed", secrets.randbits(SEED_BITS))
        check_count("seed", self.seed, least=0)

    def _check_remainder(self) -> None:
        if self.remainder is not None:
            check_choice("remainder", self.remainder, ("keep", "drop", "pad", "wrap"))
            if self.drop_remainder and self.remainder != "drop":
                raise ValueError(
                    f"expected `drop_remainder` or `remainder`, got both: {self.remainder!r}"
                )
            if self.bucket_fn is not None and self.remainder in ("pad", "wrap"):
                raise ValueError(
                    Message(
                        f"expected no remainder={self.remainder!r} with `bucket_fn`, whose"
                        " buckets have sizes of their own",
                        hint="bucket_by='<feature>' has batches of `batch_size`",
                    )
                )
            object.__setattr__(self, "drop_remainder", self.remainder == "drop")

    def remainder_on(self, hosts: int) -> Remainder:
        """How the last records of an epoch are treated with this number of hosts."""
        if self.bucket_fn is not None or (self.batch_size is None and self.drop_remainder):
            return "keep"
        if self.drop_remainder:
            return "drop"
        return self.remainder or ("keep" if hosts == 1 else "wrap")

    def load_options(self, schema: Schema) -> LoadOptions:
        """The options that the order of records depends on, as the other frameworks take them.

        Args:
            schema: The features to read. A record that lacks one of them may be dropped.
        """
        return LoadOptions(
            batch_size=self.batch_size or 1,
            shuffle=self.shuffle,
            seed=self.seed,
            reshuffle=self.reshuffle,
            columns=list(schema),
            missing=self.missing,
            decode=False,  # by the reader, or in the graph
            bucket_by=self.bucket_by,
            on_error=self.on_error,
        )

    def _check_buckets(self) -> None:
        if self.bucket_by is not None:
            check_kind("bucket_by", self.bucket_by, str, "the name of a feature")
            if self.bucket_fn is not None:
                raise ValueError("expected `bucket_by` or `bucket_fn`, got both")
        if self.bucket_fn is None and self.bucket_op is None:
            return
        if self.bucket_fn is None:
            raise ValueError("expected a `bucket_fn` with `bucket_op`, got None")
        if self.bucket_op is None:
            raise ValueError(
                Message(
                    "expected a `bucket_op` with `bucket_fn`, got None",
                    hint="bucket_op=datum.configs.BucketConfigs(bucket_boundaries=[10],"
                    " bucket_batch_sizes=[64, 32])",
                )
            )
        check_kind("bucket_op", self.bucket_op, BucketConfigs, "a datum.configs.BucketConfigs")
        self.bucket_op.check()
        if self.batch_size is None:
            raise ValueError("expected a `batch_size` with `bucket_fn`, got None")

    def supervised_names(self) -> list[str]:
        """The names of all columns in `supervised`."""
        return supervised_names(self.supervised)

    def check_names(self, schema: Schema) -> None:
        """Raise ValueError for names that the dataset does not have."""
        if isinstance(self.decode, Mapping):
            check_known("decode", self.decode, schema)
        if isinstance(self.cast, Mapping):
            check_known("cast", self.cast, schema)
        find_casts(self.cast, schema, self.decode)
        if self.bucket_by is not None:
            check_known("bucket_by", [self.bucket_by], schema)
        if isinstance(self.pad, Mapping) and self.map is None:
            check_known("pad", self.pad, schema)
        if self.map is None and self.batch_map is None:
            columns = owners_of(fill_missing(schema, self.missing)) | mask_owners(self.pad, schema)
            check_known("supervised", self.supervised_names(), columns)
            check_presence(self.supervised_names(), columns)

    def selected(self, schema: Schema) -> Schema:
        """The schema of the features to read: `columns`, or those that the result needs."""
        schema = fill_missing(schema, self.missing)
        if self.columns is not None:
            columns = [self.columns] if isinstance(self.columns, str) else list(self.columns)
            if not columns:
                raise ValueError("expected `columns` to name at least one feature, got none")
            check_known("columns", columns, schema)
            return schema.select(columns)
        has_functions = any((self.map, self.batch_map, self.bucket_fn))
        if self.supervised is None or has_functions:
            return schema
        owners = owners_of(schema) | mask_owners(self.pad, schema)
        return schema.select(dict.fromkeys(owners[name] for name in self.supervised_names()))


def refuse_mask(schema: Schema) -> None:
    """Raise ValueError for a feature with the name of the mask that remainder="pad" adds."""
    if MASK in schema:
        raise ValueError(
            Message(
                f"expected no feature {MASK!r} with remainder='pad', whose mask has that name",
                hint="leave it out with `columns`, or choose another remainder",
            )
        )
