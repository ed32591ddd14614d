"""Settings of the paper for reading and writing, and their translation to options of `to_tf`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeAlias

from datum.configs.config_base import (
    CALLABLE,
    FLAG,
    PATH,
    ConfigBase,
    Kind,
    Settings,
    create_config,
    is_whole,
    list_of,
    settings_of,
    whole,
)
from datum.errors import Message, SplitError

__all__ = [
    "ENGINES",
    "BucketConfigs",
    "ConfigBase",
    "DatasetConfigs",
    "Role",
    "TFRReadConfigs",
    "TFRWriteConfigs",
    "create_config",
    "options_for",
]

Role = Literal["train", "val", "test"]

DEFAULT_SEED = 6052020  # the default of the paper's library
AUTOTUNE = -1  # that of tf.data
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
_RECORDS = whole("a number of records", least=0)
_NAMES = list_of("a list of names of features", lambda name: isinstance(name, str))
_SPLITS = Kind(
    "a dict of the options, a dict each, of every split",
    lambda value: (
        isinstance(value, Mapping)
        and all(isinstance(name, str) and isinstance(it, Mapping) for name, it in value.items())
    ),
)
_ENGINE = Kind(" or ".join(map(repr, ENGINES)), lambda value: value in ENGINES)
_OPTIONS = Kind(
    "a tf.data.Options",
    # By name, so that this does not import TensorFlow.
    lambda value: any(
        kind.__name__ == "Options" and kind.__module__.startswith("tensorflow.")
        for kind in type(value).__mro__
    ),
)
# Names of settings end with their role, except for these two.
_BARE = {"drop_remainder_train": "drop_remainder", "deterministic_train": "deterministic"}


@dataclass(kw_only=True, repr=False)
class BucketConfigs(Settings):
    """Buckets of records of similar length, which go into the same batches.

    Attributes:
        bucket_boundaries: Rising lengths where a bucket ends and the next one starts. A record
            whose length is a boundary is in the bucket that starts there.
        bucket_batch_sizes: Batch size of each bucket, one more than there are boundaries.

    >>> BucketConfigs(bucket_boundaries=[10, 20], bucket_batch_sizes=[64, 32]).check()
    Traceback (most recent call last):
    ValueError: BucketConfigs: expected 3 bucket_batch_sizes for 2 bucket_boundaries, got 2
    hint: the last size is that of the lengths from 20 on
    """

    bucket_boundaries: Annotated[Sequence[int], _RISING] = field(default_factory=lambda: [0])
    bucket_batch_sizes: Annotated[Sequence[int], _SIZES] = field(default_factory=lambda: [32, 32])

    def check(self) -> None:
        """Raise unless there is one batch size for each bucket."""
        self.copy()  # checks both, since lists can be changed in place
        buckets, sizes = len(self.bucket_boundaries) + 1, len(self.bucket_batch_sizes)
        if buckets != sizes:
            ends = f"from {self.bucket_boundaries[-1]} on" if self.bucket_boundaries else "all"
            raise ValueError(
                Message(
                    f"BucketConfigs: expected {buckets} bucket_batch_sizes for {buckets - 1} "
                    f"bucket_boundaries, got {sizes}",
                    hint=f"the last size is that of the lengths {ends}",
                )
            )


@dataclass(kw_only=True, repr=False)
class TFRReadConfigs(Settings):
    """Settings of how the files of records are read.

    Attributes:
        experimental_interleave_sort_fn: Function that returns the files in the order to read. Its
            argument is a list of dicts with `filename`, `skip` and `take` (-1: to the end).
        shuffle_reshuffle_each_iteration: Whether the order of shuffled files differs each epoch.
        interleave_cycle_length: Number of files read at the same time; -1 lets Datum choose.
        interleave_block_length: Number of records read from a file before the next file's turn.
        seed: Seed of the order of files; None draws a new one each time.
        options: A `tf.data.Options` for the whole pipeline; None is `tf.data.Options()`.
    """

    experimental_interleave_sort_fn: _Callback = None
    shuffle_reshuffle_each_iteration: _Flag = True
    interleave_cycle_length: Annotated[int, _PARALLEL] = AUTOTUNE
    interleave_block_length: Annotated[int, _COUNT] = 1
    seed: Annotated[int | None, _SEED] = DEFAULT_SEED
    options: Annotated[Any, _OPTIONS] = None


@dataclass(kw_only=True, repr=False)
class DatasetConfigs(Settings):
    """Settings of the `train_fn`, `val_fn` and `test_fn` of a dataset.

    Each call uses the settings of that moment. A name that is none of these raises AttributeError
    (TypeError in the constructor), with the nearest name.

    Attributes:
        buffer_size: Number of records of the window of a shuffle; None lets Datum choose.
        seed: Seed of the shuffle; None draws a new one each time.
        full_dataset: Whether to return a split as one batch of tensors, not as a `tf.data.Dataset`.
        drop_remainder: Whether `train_fn` drops a last batch that is short.
        drop_remainder_val: The same for `val_fn`.
        drop_remainder_test: The same for `test_fn`.
        deterministic: False lets `train_fn` return records in another order where that is faster;
            None takes the value of `read_config.options`, or True without one.
        deterministic_val: The same for `val_fn`.
        deterministic_test: The same for `test_fn`.
        num_parallel_calls: Number of records or batches that are processed at the same time; None
            and -1 let tf.data choose.
        batch_size_train: Records per batch of `train_fn`; None for single records.
        batch_size_val: The same for `val_fn`.
        batch_size_test: The same for `test_fn`.
        echoing: How often `train_fn` repeats each batch; None is once. `post_batching_callback` is
            called for each repetition.
        shuffle_files: Whether a shuffle also changes the order of the files.
        reshuffle_each_iteration: Whether a shuffle differs from epoch to epoch.
        cache: Whether to keep the decoded records of the first epoch for later ones.
        cache_filename: Start of the names of the files of the cache; "" keeps it in memory.
        bucket_op: The buckets, for `bucket_fn`.
        bucket_fn: Function of a record that returns the length that selects its bucket. Batches are
            padded then.
        pre_batching_callback: Function of a record that returns its replacement.
        post_batching_callback: Function of a batch that returns its replacement.
        pre_batching_callback_train: Replaces the general function for `train_fn`.
        post_batching_callback_train: Replaces the general function for `train_fn`.
        pre_batching_callback_val: Replaces the general function for `val_fn`.
        post_batching_callback_val: Replaces the general function for `val_fn`.
        pre_batching_callback_test: Replaces the general function for `test_fn`.
        post_batching_callback_test: Replaces the general function for `test_fn`.
        read_config: How the files are read.
        use_tf_padding: Whether to pad rows with zeros to the longest of their batch.
        use_datum_padding: The same.
        engine: The engine that reads: "graph" is TensorFlow alone, "native" the core of Datum,
            "auto" the one that suits.

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


@dataclass(kw_only=True, repr=False)
class TFRWriteConfigs(Settings):
    """Settings of `datum.export.export_to_tfrecord`.

    Every setting is None until it is set, as an attribute or in the constructor. A name that is
    none of these raises AttributeError (TypeError in the constructor), with the nearest name.

    Attributes:
        generator: Function of the input path that returns a callable. That one takes the keyword
            `split` and the options of the split, and yields `(key, dict)` pairs.
        serializer: Function of a dict that returns a serialized `tf.train.Example`.
        sparse_features: Names of features whose values are written without zeros.
        splits: Options of each split to write, by its name: `num_examples`, and those that
            `export_to_tfrecord` lists for each problem.
        num_train_examples: The `num_examples` of the split `train`.
        num_val_examples: The `num_examples` of the split `val`.
        num_test_examples: The `num_examples` of the split `test`.

    >>> configs = TFRWriteConfigs()
    >>> configs.splits = {"train": {"num_examples": 100}}
    >>> configs.split = {}
    Traceback (most recent call last):
    AttributeError: TFRWriteConfigs has no setting 'split'
    hint: did you mean 'splits'?
    """

    generator: Annotated[Any, CALLABLE] = None
    serializer: Annotated[Any, CALLABLE] = None
    sparse_features: Annotated[Sequence[str] | None, _NAMES] = None
    splits: Annotated[Mapping[str, Mapping[str, Any]] | None, _SPLITS] = None
    num_train_examples: Annotated[int | None, _RECORDS] = None
    num_val_examples: Annotated[int | None, _RECORDS] = None
    num_test_examples: Annotated[int | None, _RECORDS] = None


def options_for(
    configs: DatasetConfigs,
    role: Role,
    *,
    split: str,
    records: int,
    repeat: int | None,
    shuffle: bool | int,
) -> dict[str, Any]:
    """Translate settings to the keywords of `to_tf` for the `<role>_fn` of the paper.

    With `full_dataset` the options are for a dataset of a single element. Raises SplitError if
    `drop_remainder` would leave no batch, and ValueError for settings that contradict each other.

    Args:
        configs: The settings.
        role: Role of the function: "train", "val" or "test".
        split: The split to read, such as "train[:10%]".
        records: Number of records of the split.
        repeat: Number of epochs: None, False and 0 are one, and -1 is no end.
        shuffle: Whether to shuffle, or the number of records of the window.

    >>> configs = DatasetConfigs(echoing=2, cache=True)
    >>> made = options_for(configs, "train", split="train", records=99, repeat=-1, shuffle=True)
    >>> made["batch_size"], made["epochs"], made["echo"], made["cache"]
    (32, None, 2, True)
    """
    if not isinstance(configs, DatasetConfigs):
        raise TypeError(f"dataset_configs: expected a DatasetConfigs, got {configs!r}")
    options: dict[str, Any] = {
        "batch_size": _of_role(configs, "batch_size", role),
        "shuffle": (configs.buffer_size or True) if shuffle is True else shuffle,
        "shuffle_files": configs.shuffle_files,
        "reshuffle": configs.reshuffle_each_iteration,
        "seed": configs.seed,
        "epochs": _count_epochs(repeat, role),
        "map": _callback(configs, "pre_batching_callback", role),
        "batch_map": _callback(configs, "post_batching_callback", role),
        "cache": configs.cache,
        "echo": (configs.echoing or 1) if role == "train" else 1,
        "pad": configs.use_tf_padding or configs.use_datum_padding,
        "drop_remainder": _of_role(configs, "drop_remainder", role),
        "deterministic": _is_deterministic(
            _of_role(configs, "deterministic", role), configs.read_config
        ),
        "num_parallel_calls": None
        if configs.num_parallel_calls == AUTOTUNE
        else configs.num_parallel_calls,
        "read": configs.read_config,
        "engine": configs.engine,
        **_buckets(configs),
    }
    if configs.full_dataset:
        options.update(_as_one_batch(options, role, split, records))
    else:
        _refuse_empty(options, role, split, records)
    if configs.cache and configs.cache_filename:
        options["cache"] = os.fspath(configs.cache_filename)
    return options


def _of_role(configs: DatasetConfigs, name: str, role: Role) -> Any:
    name = f"{name}_{role}"
    return getattr(configs, _BARE.get(name, name))


def _callback(configs: DatasetConfigs, name: str, role: Role) -> Any:
    own = _of_role(configs, name, role)
    return getattr(configs, name) if own is None else own


def _count_epochs(repeat: Any, role: Role) -> int | None:
    """The number of epochs; None, without end, if `repeat` is -1 as in tf.data."""
    if repeat is not None and not isinstance(repeat, bool) and not is_whole(repeat):
        raise TypeError(f"{role}_fn: expected `repeat` to be a number of epochs, got {repeat!r}")
    epochs = int(repeat or 1)
    if epochs < -1:
        raise ValueError(
            Message(
                f"{role}_fn: expected `repeat` to be a number of epochs, got {repeat!r}",
                hint="repeat=-1 has no end",
            )
        )
    return None if epochs == -1 else epochs


def _is_deterministic(setting: bool | None, read: TFRReadConfigs) -> bool:
    if setting is None:
        return read.options is None or read.options.deterministic is not False
    return setting


def _buckets(configs: DatasetConfigs) -> dict[str, Any]:
    if configs.bucket_fn is None:
        return {"bucket_fn": None, "bucket_op": None}
    configs.bucket_op.check()
    # Batches of similar lengths are made to be padded.
    return {"bucket_fn": configs.bucket_fn, "bucket_op": configs.bucket_op, "pad": True}


def _as_one_batch(options: dict[str, Any], role: Role, split: str, records: int) -> dict[str, Any]:
    several = {
        "echoing": options["echo"] != 1,
        "bucket_fn": options["bucket_fn"] is not None,
        "repeat": options["epochs"] != 1,
    }
    for name, is_set in several.items():
        if is_set:
            raise ValueError(
                Message(
                    f"{role}_fn: expected full_dataset, which is one batch, without {name}",
                    hint="dataset_configs.full_dataset = False returns a tf.data.Dataset",
                )
            )
    if not records:
        raise SplitError(
            f"split {split!r}: expected records for full_dataset, got none", where=f"{role}_fn"
        )
    return {"batch_size": records, "drop_remainder": False}


def _refuse_empty(options: dict[str, Any], role: Role, split: str, records: int) -> None:
    size = options["batch_size"]
    is_dropped = options["drop_remainder"] and options["bucket_fn"] is None
    if size is not None and is_dropped and 0 < records < size:
        name = _BARE.get(f"drop_remainder_{role}", f"drop_remainder_{role}")
        raise SplitError(
            f"split {split!r}: expected at least {size} records, one batch, since "
            f"{name} drops short batches, got {records}",
            where=f"{role}_fn",
            hint=f"dataset_configs.batch_size_{role} = {records}, or "
            f"dataset_configs.{name} = False",
        )
