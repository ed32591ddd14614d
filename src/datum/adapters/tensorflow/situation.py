"""What decides which engine reads a split: where TensorFlow is, and what is asked of it."""

from __future__ import annotations

import os
from typing import Any

from datum._optional import require
from datum.adapters.tensorflow.blocks import bytes_of
from datum.adapters.tensorflow.engines import Situation
from datum.adapters.tensorflow.hosts import SERVICE, find_host
from datum.adapters.tensorflow.options import TfOptions
from datum.configs import TFRReadConfigs
from datum.reading import Split

__all__ = ["find_situation"]

tf: Any = require("tensorflow", purpose="`to_tf`")


def find_situation(split: Split, options: TfOptions, *, is_by_record: bool) -> Situation:
    """The situation in which the batches of a split are asked for."""
    host = options.host
    is_pair = host is None or isinstance(host, (tuple, list))
    split_bytes = bytes_of(split)
    return Situation(
        only_in_graph=_first(_only_in_graph(options)),
        about_graph=_first(_about_graph(options)),
        is_distributed=not is_pair or tf.distribute.has_strategy() or _is_in_cluster(),
        hosts=find_host(host)[1],
        is_traced=tf.inside_function(),
        is_compressed=any(run.shard.compression is not None for run in split.runs),
        is_indexed=split.shards.writer == "datum",
        is_cached=options.cache is not False,
        is_by_record=is_by_record,
        is_shuffled=options.shuffle is True,
        record_bytes=split_bytes // max(1, len(split)),
        split_bytes=split_bytes,
        memory_bytes=_memory_bytes(),
    )


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


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not told on this system
        return 2**63
