"""Options of `to_tf`, checked before TensorFlow is imported."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from datum._load.functions import check_function, check_graph_function
from datum._load.options import LoadOptions, Remainder, SharedKeywords
from datum._options import (
    check_choice,
    check_count,
    check_kind,
    check_known,
    fields_of,
    refuse_unknown,
)
from datum.configs import BucketConfigs, TFRReadConfigs
from datum.configs.tfr_configs import AUTOTUNE, ENGINES
from datum.errors import Message
from datum.schema import Schema

__all__ = ["SERVICE", "Engine", "TfKeywords", "TfOptions"]

Engine = Literal["auto", "graph", "native"]
SERVICE = "service"  # the `host` of datasets that the tf.data service distributes


class TfKeywords(SharedKeywords, total=False):
    """The keywords of `to_tf`; `TfOptions` documents each of them."""

    host: Any
    cache: bool | str | os.PathLike[str]
    engine: Engine
    echo: int
    bucket_fn: Callable[[Any], Any] | None
    bucket_op: BucketConfigs | None
    deterministic: bool | None
    shuffle_files: bool
    num_parallel_calls: int | None
    read: TFRReadConfigs | None


@dataclass(frozen=True, kw_only=True)
class TfOptions(LoadOptions):
    """Options of `to_tf`: those of every loader, and some that only tf.data has.

    Attributes:
        batch_size: Number of records in a batch on this host. None returns single records.
        host: Part of each global batch that this host reads: (index, count), a
            tf.distribute.InputContext or a tf.distribute.Strategy. "service" lets the tf.data
            service distribute the records; the number of batches and their order are then
            unknown.
        decode: False keeps images encoded. A dict does that by feature: False to keep the bytes,
            True to decode a feature of bytes that holds an image, or a function of the bytes; see
            `datum.transforms`.
        map: Function of each record, a dict of tensors, which returns the new record. TensorFlow
            traces it into a graph.
        batch_map: Function of each batch, likewise.
        cache: Keep decoded records: True in memory, a file name in files whose names start with
            it.
        bucket_by: Name of a feature. Records of about the same length of it share a batch. The
            lengths of all records are read once, when the dataset is made.
        prefetch: Number of batches made ahead. None and `tf.data.AUTOTUNE` let tf.data choose.
        on_error: "skip" leaves out damaged records, with a warning that lists them. The whole
            split is read and checked before the first batch. "raise" raises.
        engine: "native" reads with the native core, within this process only. "graph" reads with
            TensorFlow's own operations. "auto" is "native" if that is possible; `repr` of the
            dataset shows the choice and the reason.
        echo: Number of times that each batch is returned.
        bucket_fn: Function that returns the length of a record. Records of about the same length
            share a batch.
        bucket_op: Bounds of these lengths, and the batch size of each bucket.
        deterministic: False returns records in any order if that is faster. None takes the
            value of `read.options`, or else True.
        shuffle_files: Whether a shuffle also mixes blocks from the whole split.
        num_parallel_calls: Number of records or batches processed at once. None and
            `tf.data.AUTOTUNE` let tf.data choose.
        read: Further settings of how files are read.
    """

    host: Any = None
    cache: bool | str | os.PathLike[str] = False  # type: ignore[assignment]  # or a file name
    engine: Engine = "auto"
    echo: int = 1
    bucket_fn: Callable[[Any], Any] | None = None
    bucket_op: BucketConfigs | None = None
    deterministic: bool | None = None
    shuffle_files: bool = True
    num_parallel_calls: int | None = None
    read: TFRReadConfigs | None = None
    # Options of the other loaders that `to_tf` lacks.
    threads: int | None = field(default=None, init=False)
    batch_tokens: int | None = field(default=None, init=False)
    buckets: Iterable[int] | None = field(default=None, init=False)

    @classmethod
    def of(cls, keywords: Mapping[str, Any], *, caller: str) -> Self:
        """The options of some keywords; a misspelt one raises TypeError with the nearest name."""
        for name in ("batch_tokens", "buckets"):
            if name in keywords:
                hint = "`bucket_fn` and `bucket_op` set a batch size for each range of lengths"
                raise TypeError(Message(f"{caller}: got an unknown option `{name}`", hint=hint))
        refuse_unknown(keywords, fields_of(cls), caller=caller)
        return cls(**keywords)

    def __post_init__(self) -> None:
        for name in ("prefetch", "num_parallel_calls"):
            if getattr(self, name) == AUTOTUNE:
                object.__setattr__(self, name, None)
        super().__post_init__()
        check_choice("engine", self.engine, ENGINES)
        check_count("echo", self.echo, least=1)
        if self.num_parallel_calls is not None:
            check_count("num_parallel_calls", self.num_parallel_calls, least=1)
        check_kind("shuffle_files", self.shuffle_files, bool, "True or False")
        check_kind("deterministic", self.deterministic, (bool, type(None)), "True, False or None")
        if self.read is not None:
            check_kind("read", self.read, TFRReadConfigs, "a datum.configs.TFRReadConfigs")
        self._check_bucket_sizes()

    @property
    def is_deterministic(self) -> bool:
        """Whether the order is fixed: `deterministic`, or that of `read.options`, or True."""
        if self.deterministic is not None:
            return self.deterministic
        chosen = self.read.options if self.read is not None else None
        return chosen is None or chosen.deterministic is not False

    @property
    def is_served(self) -> bool:
        """Whether the tf.data service distributes the dataset."""
        return isinstance(self.host, str) and self.host == SERVICE

    # The shared options that mean more here.

    def _keep_prefetch(self) -> None:
        if self.prefetch is not None:
            self._keep_count("prefetch", least=0)

    def _check_cache(self) -> None:
        check_kind("cache", self.cache, (bool, str, os.PathLike), "True, False, or a file name")

    def _check_functions(self, check: Callable[..., None]) -> None:  # noqa: ARG002
        super()._check_functions(check_graph_function)
        if self.bucket_fn is not None:
            check_function("bucket_fn", self.bucket_fn)

    def _check_host(self) -> None:
        # `find_host` checks what only TensorFlow knows.
        if isinstance(self.host, Iterable) and not self.is_served:
            super()._check_host()

    def _refuse_what_needs_batches(self) -> None:
        """Accept all options: `batch_map` is called with single records, which need no padding."""

    def remainder_on(self, hosts: int) -> Remainder:
        """The treatment of the last records of an epoch with this number of hosts."""
        if self.bucket_fn is not None or (self.batch_size is None and self.remainder == "drop"):
            return "keep"
        return super().remainder_on(hosts)

    def selected(self, schema: Schema) -> Schema:
        """The schema of the features to read; ValueError for names that the dataset lacks."""
        if isinstance(self.pad, Mapping) and self.map is None:
            check_known("pad", self.pad, schema)
        return super().selected(schema)

    def _chosen(self, schema: Schema) -> Schema:
        if self.columns is None and self.bucket_fn is not None:  # which may use any feature
            return schema
        return super()._chosen(schema)

    def _check_bucket_sizes(self) -> None:
        if self.bucket_fn is None:
            if self.bucket_op is not None:
                raise ValueError("expected a `bucket_fn` with `bucket_op`, got None")
            return
        if self.bucket_by is not None:
            raise ValueError("expected `bucket_by` or `bucket_fn`, got both")
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
        if self.remainder in ("pad", "wrap"):
            raise ValueError(
                Message(
                    f"expected no remainder={self.remainder!r} with `bucket_fn`, whose"
                    " buckets have their own batch sizes",
                    hint="bucket_by='<feature>' has batches of `batch_size`",
                )
            )

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
