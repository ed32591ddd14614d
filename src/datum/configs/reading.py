"""The paper's settings of reading."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Any, TypeAlias

from datum.configs.settings import (
    CALLABLE,
    FLAG,
    PATH,
    Kind,
    Settings,
    is_whole,
    list_of,
    settings_of,
    whole,
)

__all__ = ["ENGINES", "BucketConfigs", "DatasetConfigs", "TFRReadConfigs"]

DEFAULT_SEED = 6052020  # that of the paper's library
AUTOTUNE = -1  # as tf.data has it
ENGINES = ("auto", "graph", "native")

_Callback: TypeAlias = Annotated[Callable[..., Any] | None, CALLABLE]
_Flag: TypeAlias = Annotated[bool, FLAG]

_LENGTHS = list_of("a list of whole numbers", is_whole)
_RISING = Kind(
    "a list of whole numbers, each more than the one before",
    lambda value: _LENGTHS.fits(value) and all(one < next_ for one, next_ in pairwise(value)),
)
_SIZES = list_of("a list of whole numbers from 1", lambda size: is_whole(size) and size >= 1)
_BATCH = whole("a number of records from 1, or None for single records", least=1, also=[None])
_COUNT = whole("a whole number from 1", least=1)
_PARALLEL = whole("a whole number from 1, or -1 to let tf.data choose", least=1, also=[AUTOTUNE])
_SEED = Kind(
    "a whole number from 0 to 2**63 - 1, or None for another order each time",
    lambda value: value is None or (is_whole(value) and 0 <= value < 2**63),
)
_ENGINE = Kind(" or ".join(map(repr, ENGINES)), lambda value: value in ENGINES)
_OPTIONS = Kind(
    "a tf.data.Options",
    # By its names, as TensorFlow is not to be imported for this.
    lambda value: any(
        kind.__name__ == "Options" and kind.__module__.startswith("tensorflow.")
        for kind in type(value).__mro__
    ),
)


@dataclass(kw_only=True, repr=False)
class BucketConfigs(Settings):
    """How records are put into batches with others of about their length.

    Attributes:
        bucket_boundaries: lengths at which a bucket ends and the next begins, rising. A record
            whose length is a boundary is in the bucket that begins there.
        bucket_batch_sizes: the batch size of each bucket: one more than there are boundaries.

    >>> BucketConfigs(bucket_boundaries=[10, 20], bucket_batch_sizes=[64, 32]).check()
    Traceback (most recent call last):
    ValueError: BucketConfigs: expected 3 bucket_batch_sizes for 2 bucket_boundaries, got 2
    hint: the last size is that of the lengths from 20 on
    """

    bucket_boundaries: Annotated[Sequence[int], _RISING] = field(default_factory=lambda: [0])
    bucket_batch_sizes: Annotated[Sequence[int], _SIZES] = field(default_factory=lambda: [32, 32])

    def check(self) -> None:
        """Raise unless there is one batch size for each bucket."""
        self.copy()  # checks both, for lists can be changed in place
        buckets, sizes = len(self.bucket_boundaries) + 1, len(self.bucket_batch_sizes)
        if buckets != sizes:
            ends = f"from {self.bucket_boundaries[-1]} on" if self.bucket_boundaries else "all"
            raise ValueError(
                f"BucketConfigs: expected {buckets} bucket_batch_sizes for {buckets - 1} "
                f"bucket_boundaries, got {sizes}\nhint: the last size is that of the lengths {ends}"
            )


@dataclass(kw_only=True, repr=False)
class TFRReadConfigs(Settings):
    """How the files of records are read.

    Attributes:
        experimental_interleave_sort_fn: called with the list of the files that will be read, a
            dict each with `filename`, `skip` and `take` (-1: to the end), it returns that list in
            the order in which they are to be read.
        shuffle_reshuffle_each_iteration: shuffled files come in another order each epoch.
        interleave_cycle_length: how many files are read at the same time; -1 lets Datum choose.
        interleave_block_length: how many records are taken from a file before the next file's turn.
        seed: of the order of files; None gives another each time.
        options: a `tf.data.Options` for the whole pipeline; None is `tf.data.Options()`.
    """

    experimental_interleave_sort_fn: _Callback = None
    shuffle_reshuffle_each_iteration: _Flag = True
    interleave_cycle_length: Annotated[int, _PARALLEL] = AUTOTUNE
    interleave_block_length: Annotated[int, _COUNT] = 1
    seed: Annotated[int | None, _SEED] = DEFAULT_SEED
    options: Annotated[Any, _OPTIONS] = None


@dataclass(kw_only=True, repr=False)
class DatasetConfigs(Settings):
    """What `train_fn`, `val_fn` and `test_fn` of a dataset make.

    The next call of them uses what was set before it. A name that is none of these raises
    AttributeError (TypeError in the constructor) and names the nearest.

    Attributes:
        buffer_size: of how many records a shuffle draws the next; None lets Datum choose.
        seed: of the order of shuffled records; None gives another each time.
        full_dataset: return a split as one batch of tensors, not as a `tf.data.Dataset`.
        drop_remainder: leave out a last batch that is short; for `train_fn`.
        drop_remainder_val: the same for `val_fn`.
        drop_remainder_test: the same for `test_fn`.
        deterministic: False lets records come in another order than asked for, where that is
            faster; None is what `read_config.options` say, else True. For `train_fn`.
        deterministic_val: the same for `val_fn`.
        deterministic_test: the same for `test_fn`.
        num_parallel_calls: how many records or batches are worked on at the same time; None and -1
            let tf.data choose.
        batch_size_train: the records of a batch; None gives single records. For `train_fn`.
        batch_size_val: the same for `val_fn`.
        batch_size_test: the same for `test_fn`.
        echoing: how often `train_fn` gives each batch; None is once. `post_batching_callback` is
            called for each echo.
        shuffle_files: a shuffle also mixes the order of the files.
        reshuffle_each_iteration: a shuffle gives another order each epoch.
        cache: keep what was read and decoded in the first epoch for those that follow.
        cache_filename: what the names of the files of the cache begin with; "" keeps it in memory.
        bucket_op: the buckets, if there is a `bucket_fn`.
        bucket_fn: called with a record, it gives the length that chooses its bucket. Batches are
            padded then.
        pre_batching_callback: called with each record, it returns what takes its place.
        post_batching_callback: called with each batch, it returns what takes its place.
        pre_batching_callback_train: instead of the general one, for `train_fn`.
        post_batching_callback_train: instead of the general one, for `train_fn`.
        pre_batching_callback_val: instead of the general one, for `val_fn`.
        post_batching_callback_val: instead of the general one, for `val_fn`.
        pre_batching_callback_test: instead of the general one, for `test_fn`.
        post_batching_callback_test: instead of the general one, for `test_fn`.
        read_config: how the files are read.
        use_tf_padding: fill what is shorter than the longest of its batch with zeros.
        use_datum_padding: the same.
        engine: what reads: "graph" is TensorFlow alone, "native" the core of Datum, "auto" the one
            that suits.

    >>> configs = DatasetConfigs(batch_size_train=64)
    >>> configs.bucket_op.bucket_boundaries = [10]
    >>> configs
    DatasetConfigs(batch_size_train=64, bucket_op=BucketConfigs(bucket_boundaries=[10]))
    >>> configs.pre_batch_callback = len
    Traceback (most recent call last):
    AttributeError: DatasetConfigs has no setting 'pre_batch_callback'
    hint: did you mean 'pre_batching_callback'?
    """

    buffer_size: Annotated[int | None, _COUNT] = None
    seed: Annotated[int | None, _SEED] = DEFAULT_SEED
    full_dataset: _Flag = False
    drop_remainder: _Flag = True
    drop_remainder_val: _Flag = False
    drop_remainder_test: _Flag = False
    deterministic: Annotated[bool | None, FLAG] = None
    deterministic_val: Annotated[bool | None, FLAG] = None
    deterministic_test: Annotated[bool | None, FLAG] = None
    num_parallel_calls: Annotated[int | None, _PARALLEL] = None
    batch_size_train: Annotated[int | None, _BATCH] = 32
    batch_size_val: Annotated[int | None, _BATCH] = 32
    batch_size_test: Annotated[int | None, _BATCH] = 32
    echoing: Annotated[int | None, _COUNT] = None
    shuffle_files: _Flag = True
    reshuffle_each_iteration: _Flag = True
    cache: _Flag = False
    cache_filename: Annotated[str | os.PathLike[str], PATH] = ""
    bucket_op: Annotated[BucketConfigs, settings_of(BucketConfigs)] = field(
        default_factory=BucketConfigs
    )
    bucket_fn: _Callback = None
    pre_batching_callback: _Callback = None
    post_batching_callback: _Callback = None
    pre_batching_callback_train: _Callback = None
    post_batching_callback_train: _Callback = None
    pre_batching_callback_val: _Callback = None
    post_batching_callback_val: _Callback = None
    pre_batching_callback_test: _Callback = None
    post_batching_callback_test: _Callback = None
    read_config: Annotated[TFRReadConfigs, settings_of(TFRReadConfigs)] = field(
        default_factory=TFRReadConfigs
    )
    use_tf_padding: _Flag = False
    use_datum_padding: _Flag = False
    engine: Annotated[str, _ENGINE] = "auto"
