"""Choice of the engine that reads a split, and of the part that this host reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from datum._frameworks.tensorflow.blocks import find_lost
from datum._frameworks.tensorflow.options import SERVICE, Engine, TfOptions
from datum._optional import require
from datum._read.split import Split
from datum.configs import TFRReadConfigs
from datum.errors import Message

__all__ = [
    "EngineChoice",
    "EngineInputs",
    "choose_engine",
    "find_engine_inputs",
    "find_host",
    "has_own_order",
    "part_of",
]

tf: Any = require("tensorflow", purpose="`to_tf`")


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """An engine, and the reason for it in a few words."""

    engine: Literal["graph", "native"]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInputs:
    """Everything that the choice of an engine depends on.

    Attributes:
        only_in_graph: The first option given that only the graph implements; None without one.
        about_graph: The first option given that tunes the graph; None without one.
        is_traced: Whether a tf.function is being traced.
        is_shared: Whether TensorFlow may send the dataset to other processes: those of a cluster
            whose `host` was not given, or of a TPU.
    """

    only_in_graph: str | None = None
    about_graph: str | None = None
    is_traced: bool = False
    is_shared: bool = False


def choose_engine(asked: Engine, inputs: EngineInputs) -> EngineChoice:
    """Return the engine that was asked for, or the one that suits for "auto".

    Raises ValueError for "native" together with an option that only the graph implements.

    >>> choose_engine("auto", EngineInputs())
    EngineChoice(engine='native', reason='Python runs in this process')
    >>> choose_engine("auto", EngineInputs(is_traced=True))
    EngineChoice(engine='graph', reason='within a tf.function')
    """
    if asked == "native" and inputs.only_in_graph is not None:
        raise ValueError(
            Message(
                f"expected no {inputs.only_in_graph} with engine='native', which cannot do that",
                hint="engine='graph', or leave the option out",
            )
        )
    if asked != "auto":
        return EngineChoice(asked, "as asked for")
    if inputs.only_in_graph is not None:
        return EngineChoice("graph", inputs.only_in_graph)
    if inputs.about_graph is not None:
        return EngineChoice("graph", inputs.about_graph)
    if inputs.is_traced:
        return EngineChoice("graph", "within a tf.function")
    if inputs.is_shared:
        return EngineChoice("graph", "other processes may read it")
    return EngineChoice("native", "Python runs in this process")


def find_engine_inputs(options: TfOptions) -> EngineInputs:
    """Collect what the choice depends on, from the options and from TensorFlow."""
    return EngineInputs(
        only_in_graph=_first(_only_in_graph(options)),
        about_graph=_first(_about_graph(options)),
        is_traced=tf.inside_function(),
        is_shared=_is_shared(options.host),
    )


def has_own_order(split: Split, options: TfOptions) -> bool:
    """Whether the options rule out an order that depends on the seed and the epoch alone.

    The paper's settings, the tf.data service and caches in files do, and so does a graph that
    skips damaged records.
    """
    has_options = any(_only_in_graph(options).values()) or not options.is_deterministic
    has_file_seed = _differing(options, ("seed",))["read.seed"]
    is_lossy = options.on_error == "skip" and (
        bool(split.shards.left_out) or len(find_lost(split, warns=False)) > 0
    )
    return has_options or has_file_seed or is_lossy


def _is_shared(host: Any) -> bool:
    if tf.config.list_logical_devices("TPU"):
        return True
    # In a cluster TensorFlow shards a dataset by itself unless `host` was given.
    return host is None and _is_in_cluster()


def _is_in_cluster() -> bool:
    spec = tf.distribute.cluster_resolver.TFConfigClusterResolver().cluster_spec()
    tasks: int = sum(map(spec.num_tasks, spec.jobs))
    return tasks > 1


def _first(options: dict[str, bool]) -> str | None:
    return next((option for option, is_given in options.items() if is_given), None)


def _only_in_graph(options: TfOptions) -> dict[str, bool]:
    """Which of the options that only the graph implements are given, as a user writes them."""
    settings = (
        "experimental_interleave_sort_fn",
        "interleave_cycle_length",
        "interleave_block_length",
        "shuffle_reshuffle_each_iteration",
    )
    return {
        "host='service'": options.is_served,
        "cache=<files>": not isinstance(options.cache, bool),
        "shuffle_files=False": bool(options.shuffle) and not options.shuffle_files,
        **_differing(options, settings),
    }


def _about_graph(options: TfOptions) -> dict[str, bool]:
    """Which of the options that tune the graph are given."""
    given = {"deterministic=False": not options.is_deterministic}
    return given | _differing(options, ("options", "seed"))


def _differing(options: TfOptions, settings: tuple[str, ...]) -> dict[str, bool]:
    read, default = options.read or TFRReadConfigs(), TFRReadConfigs()
    return {f"read.{n}": getattr(read, n) != getattr(default, n) for n in settings}


# Hosts.


def find_host(host: Any) -> tuple[int, int]:
    """Return the index of a host and the number of hosts.

    Args:
        host: A pair, a `tf.distribute.InputContext`, a `tf.distribute.Strategy`, None for a single
            host, or `SERVICE` where the tf.data service distributes the blocks.

    >>> find_host((1, 4))
    (1, 4)
    """
    if host is None or (isinstance(host, str) and host == SERVICE):
        return 0, 1
    if isinstance(host, tf.distribute.InputContext):
        return int(host.input_pipeline_id), int(host.num_input_pipelines)
    if isinstance(host, tf.distribute.Strategy):
        return _place_in_cluster(host.cluster_resolver)
    if isinstance(host, tuple):  # checked with the other options
        return host
    raise TypeError(
        "expected `host` to be (index, count), a tf.distribute.InputContext, a strategy,"
        f" or {SERVICE!r}, got {host!r}"
    )


def _place_in_cluster(resolver: Any) -> tuple[int, int]:
    """Workers count as hosts, and a chief is the first of them; evaluators do not count."""
    spec = resolver.cluster_spec() if resolver is not None else None
    if spec is None or not spec.jobs or resolver.task_type not in ("chief", "worker"):
        return 0, 1
    chiefs = spec.num_tasks("chief") if "chief" in spec.jobs else 0
    workers = spec.num_tasks("worker") if "worker" in spec.jobs else 0
    first = 0 if resolver.task_type == "chief" else chiefs
    return first + int(resolver.task_id), chiefs + workers


def part_of(records: int, host: tuple[int, int]) -> tuple[int, int]:
    """Return where the records of a host start and end.

    Parts differ by one record at most, and together are all records.

    >>> [part_of(10, (index, 4)) for index in range(4)]
    [(0, 2), (2, 5), (5, 7), (7, 10)]
    """
    index, count = host
    return records * index // count, records * (index + 1) // count
