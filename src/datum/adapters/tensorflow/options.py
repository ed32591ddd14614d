"""What can be asked of `to_tf`, checked before TensorFlow is loaded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from datum.adapters.tensorflow.engines import Engine
from datum.configs import BucketConfigs, TFRReadConfigs
from datum.configs.reading import AUTOTUNE, ENGINES
from datum.loading.checks import (
    check_choice,
    check_count,
    check_function,
    check_graph_function,
    check_kind,
    check_known,
)
from datum.loading.missing import Missing, check_missing, fill_missing
from datum.loading.options import owners_of
from datum.loading.padding import PadOption, check_pad, mask_owners
from datum.loading.supervised import Names, Supervised, check_presence, supervised_names
from datum.schema import Schema

__all__ = ["Names", "TfOptions"]

_FLAGS = ("drop_remainder", "reshuffle", "shuffle_files")


@dataclass(frozen=True, slots=True, kw_only=True)
class TfOptions:
    """The keywords of `Dataset.to_tf`; its documentation tells what each is."""

    batch_size: int | None = 32
    shuffle: bool | int = False
    seed: int | None = 0
    epochs: int | None = 1
    columns: Iterable[str] | None = None
    drop_remainder: bool = False
    host: Any = None
    engine: Engine = "auto"
    supervised: Supervised | None = None
    missing: Missing = None
    decode: bool | Mapping[str, bool | Callable[[Any], Any]] = True
    map: Callable[..., Any] | None = None
    batch_map: Callable[..., Any] | None = None
    cache: bool | str | os.PathLike[str] = False
    echo: int = 1
    bucket_fn: Callable[[Any], Any] | None = None
    bucket_op: BucketConfigs | None = None
    pad: PadOption = False
    deterministic: bool | None = None
    prefetch: int | None = None
    on_error: Literal["raise", "skip"] = "raise"
    reshuffle: bool = True
    shuffle_files: bool = True
    num_parallel_calls: int | None = None
    read: TFRReadConfigs | None = None

    def __post_init__(self) -> None:
        for name in ("prefetch", "num_parallel_calls"):
            if getattr(self, name) == AUTOTUNE:
                object.__setattr__(self, name, None)
        self._check_numbers()
        check_choice("engine", self.engine, ENGINES)
        check_choice("on_error", self.on_error, ("raise", "skip"))
        for name in _FLAGS:
            check_kind(name, getattr(self, name), bool, "True or False")
        check_kind("deterministic", self.deterministic, (bool, type(None)), "True, False or None")
        expected = "True, False, or a dict by feature"
        check_kind("decode", self.decode, (bool, Mapping), expected)
        check_pad(self.pad)
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
        """What was asked for here, or in the options of tf.data; else True."""
        if self.deterministic is not None:
            return self.deterministic
        given = self.read.options if self.read is not None else None
        return given is None or given.deterministic is not False

    def _check_numbers(self) -> None:
        hints = {"epochs": "\nhint: epochs=None has no end"}
        for name in ("batch_size", "epochs", "num_parallel_calls"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name), least=1, hint=hints.get(name, ""))
        check_count("echo", self.echo, least=1)
        if self.prefetch is not None:
            check_count("prefetch", self.prefetch, least=0)
        if not isinstance(self.shuffle, bool):
            check_count("shuffle", self.shuffle, least=0)
        if self.seed is not None:
            check_count("seed", self.seed, least=0)

    def _check_buckets(self) -> None:
        if self.bucket_fn is None and self.bucket_op is None:
            return
        if self.bucket_fn is None:
            raise ValueError("expected a `bucket_fn` with `bucket_op`, got None")
        if self.bucket_op is None:
            raise ValueError(
                "expected a `bucket_op` with `bucket_fn`, got None\nhint: bucket_op="
                "datum.configs.BucketConfigs(bucket_boundaries=[10], bucket_batch_sizes=[64, 32])"
            )
        check_kind("bucket_op", self.bucket_op, BucketConfigs, "a datum.configs.BucketConfigs")
        self.bucket_op.check()
        if self.batch_size is None:
            raise ValueError("expected a `batch_size` with `bucket_fn`, got None")

    def supervised_names(self) -> list[str]:
        """All columns that `supervised` names."""
        return supervised_names(self.supervised)

    def check_names(self, schema: Schema) -> None:
        """Refuse names that the dataset does not have."""
        if isinstance(self.decode, Mapping):
            check_known("decode", self.decode, schema)
        if isinstance(self.pad, Mapping) and self.map is None:
            check_known("pad", self.pad, schema)
        if self.map is None and self.batch_map is None:
            columns = owners_of(fill_missing(schema, self.missing)) | mask_owners(self.pad, schema)
            check_known("supervised", self.supervised_names(), columns)
            check_presence(self.supervised_names(), columns)

    def selected(self, schema: Schema) -> Schema:
        """The features to be read, as they are parsed: `columns`, or what the result is made of."""
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
