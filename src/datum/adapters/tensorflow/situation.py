"""What decides which engine reads a split: where TensorFlow is, and what is asked of it."""

from __future__ import annotations

from typing import Any

from datum._optional import require
from datum.adapters.tensorflow.damage import find_lost
from datum.adapters.tensorflow.engines import Situation
from datum.adapters.tensorflow.hosts import SERVICE
from datum.adapters.tensorflow.options import TfOptions
from datum.configs import TFRReadConfigs
from datum.reading import Split

__all__ = ["find_situation", "has_own_order"]

tf: Any = require("tensorflow", purpose="`to_tf`")


def find_situation(options: TfOptions) -> Situation:
    """The situation in which batches are asked for."""
    return Situation(
        only_in_graph=_first(_only_in_graph(options)),
        about_graph=_first(_about_graph(options)),
        is_traced=tf.inside_function(),
        is_shared=_is_shared(options.host),
    )


def has_own_order(split: Split, options: TfOptions) -> bool:
    """Whether options ask for an order that is no function of the seed and the epoch alone.

    That is of the settings of the paper, the tf.data service, caches in files, and where damaged
    records are left out.
    """
    has_options = any(_only_in_graph(options).values()) or not options.is_deterministic
    reads_apart = _differing(options, ("seed",))["read.seed"]
    is_lossy = options.on_error == "skip" and (
        bool(split.shards.left_out) or len(find_lost(split, warns=False)) > 0
    )
    return has_options or reads_apart or is_lossy


def _is_shared(host: Any) -> bool:
    """Whether TensorFlow may give the dataset to other processes.

    It does so with one that is not told its host: in a cluster it would cut it up by itself.
    """
    if tf.config.list_logical_devices("TPU"):
        return True
    return host is None and _is_in_cluster()


def _is_in_cluster() -> bool:
    """Whether this process is one of several that TensorFlow was told of."""
    spec = tf.distribute.cluster_resolver.TFConfigClusterResolver().cluster_spec()
    tasks: int = sum(map(spec.num_tasks, spec.jobs))
    return tasks > 1


def _first(options: dict[str, bool]) -> str | None:
    return next((option for option, is_given in options.items() if is_given), None)


def _only_in_graph(options: TfOptions) -> dict[str, bool]:
    """Whether options are given that nothing but the graph can do, by how one would write them."""
    settings = (
        "experimental_interleave_sort_fn",
        "interleave_cycle_length",
        "interleave_block_length",
        "shuffle_reshuffle_each_iteration",
    )
    return {
        "host='service'": isinstance(options.host, str) and options.host == SERVICE,
        "cache=<files>": not isinstance(options.cache, bool),
        "shuffle_files=False": bool(options.shuffle) and not options.shuffle_files,
        **_differing(options, settings),
    }


def _about_graph(options: TfOptions) -> dict[str, bool]:
    """The same for options that are about how the graph works."""
    given = {"deterministic=False": not options.is_deterministic}
    return given | _differing(options, ("options", "seed"))


def _differing(options: TfOptions, settings: tuple[str, ...]) -> dict[str, bool]:
    read, default = options.read or TFRReadConfigs(), TFRReadConfigs()
    return {f"read.{n}": getattr(read, n) != getattr(default, n) for n in settings}
