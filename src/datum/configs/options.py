"""The paper's settings as options of `Dataset.to_tf`."""

from __future__ import annotations

import os
from typing import Any, Literal

from datum.configs.reading import AUTOTUNE, DatasetConfigs, TFRReadConfigs
from datum.configs.settings import is_whole
from datum.errors import SplitError

__all__ = ["Role", "options_for"]

Role = Literal["train", "val", "test"]

# Settings of a role have its name at their end; those of training alone may have none.
_BARE = {"drop_remainder_train": "drop_remainder", "deterministic_train": "deterministic"}


def options_for(
    configs: DatasetConfigs,
    role: Role,
    *,
    split: str,
    records: int,
    repeat: int | None,
    shuffle: bool | int,
) -> dict[str, Any]:
    """The keywords with which `to_tf` makes what the `<role>_fn` of the paper is to give.

    `split` is what was asked for, say "train[:10%]", and `records` how many it has. `repeat` is the
    number of epochs: None, False and 0 are one, and -1 is no end. With `full_dataset` the options
    are for a dataset of a single element. SplitError where `drop_remainder` would leave nothing;
    ValueError for settings that contradict each other.

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
    """None, for ever, if `repeat` is -1, as tf.data has it."""
    if repeat is not None and not isinstance(repeat, bool) and not is_whole(repeat):
        raise TypeError(f"{role}_fn: expected `repeat` to be a number of epochs, got {repeat!r}")
    epochs = int(repeat or 1)
    if epochs < -1:
        raise ValueError(
            f"{role}_fn: expected `repeat` to be a number of epochs, got {repeat!r}\n"
            "hint: repeat=-1 has no end"
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
    # Batches of about one length are made in order to be padded.
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
                f"{role}_fn: expected full_dataset, which is one batch, without {name}\n"
                "hint: dataset_configs.full_dataset = False gives a tf.data.Dataset"
            )
    if not records:
        raise SplitError(f"{role}_fn: split {split!r}: expected records for full_dataset, got none")
    return {"batch_size": records, "drop_remainder": False}


def _refuse_empty(options: dict[str, Any], role: Role, split: str, records: int) -> None:
    size = options["batch_size"]
    is_dropped = options["drop_remainder"] and options["bucket_fn"] is None
    if size is not None and is_dropped and 0 < records < size:
        name = _BARE.get(f"drop_remainder_{role}", f"drop_remainder_{role}")
        raise SplitError(
            f"{role}_fn: split {split!r}: expected at least {size} records, one batch, since "
            f"{name} leaves out a batch that is short, got {records}\n"
            f"hint: dataset_configs.batch_size_{role} = {records}, or "
            f"dataset_configs.{name} = False"
        )
