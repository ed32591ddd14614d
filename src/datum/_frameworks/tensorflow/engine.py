"""The dataset that `to_tf` returns: its engine is chosen, and its pipeline put together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from datum._frameworks.tensorflow.blocks import find_lost
from datum._frameworks.tensorflow.dataset import DatumDataset, TfPipeline
from datum._frameworks.tensorflow.graph import GraphReader
from datum._frameworks.tensorflow.image_decoders import decoder_for, find_small, for_each
from datum._frameworks.tensorflow.native import NativeReader
from datum._frameworks.tensorflow.options import SERVICE, Engine, TfOptions
from datum._frameworks.tensorflow.readers import Reader, ReadRequest, RecordSteps
from datum._frameworks.tensorflow.steps import (
    SEED,
    Decoders,
    apply,
    batch_records,
    chain,
    check_result,
    make_cast,
    make_decoder,
    pad_batches,
    select_supervised,
    with_extra_columns,
)
from datum._frameworks.tensorflow.windowed import WindowedReader
from datum._load.missing import required_features
from datum._load.options import MASK, check_seed, find_casts
from datum._optional import require
from datum._read.split import Split
from datum.configs import TFRReadConfigs
from datum.errors import Message
from datum.format.layout import stand_in
from datum.schema import Feature, Schema
from datum.transforms.graph import leave_as_is, takes_seed

__all__ = [
    "EngineChoice",
    "EngineInputs",
    "choose_engine",
    "find_engine_inputs",
    "find_host",
    "has_own_order",
    "make_dataset",
]

tf: Any = require("tensorflow", purpose="`to_tf`")

Metadata = Mapping[str, Mapping[str, Any]]


def make_dataset(split: Split, options: TfOptions, *, metadata: Metadata) -> DatumDataset:
    """Make the `tf.data.Dataset` of a split.

    Args:
        split: The records of all hosts.
        options: The options of `to_tf`.
        metadata: Metadata of each feature.
    """

    def remake(seed: int) -> TfPipeline:
        return _make_pipeline(split, replace(options, seed=seed), metadata)

    pipeline = _make_pipeline(split, options, metadata)
    return DatumDataset(pipeline, remake=remake if options.is_seed_drawn else None)


def _make_pipeline(split: Split, options: TfOptions, metadata: Metadata) -> TfPipeline:
    request = ReadRequest(
        split=split,
        schema=options.selected(split.schema),
        options=options,
        host=find_host(options.host),
    )
    check_seed(options.is_seed_drawn, hosts=request.host[1])
    known = metadata if request.is_trusted else {}
    decoders = _find_decoders(request.schema, options, known)
    choice = choose_engine(options.engine, find_engine_inputs(options))
    if choice.engine == "native":
        small = find_small(request.schema, options, known)
        decoders = {name: decoder for name, decoder in decoders.items() if name not in small}
        request = replace(request, decoded=small)
    is_seeded = any(map(takes_seed, [*decoders.values(), options.map]))
    reader = _make_reader(choice, replace(request, needs_seeds=is_seeded))
    # Images, functions and buckets need single records.
    is_by_record = bool(decoders or options.map or options.bucket_fn or options.batch_size is None)
    cast = make_cast(find_casts(options.cast, split.schema, options.decode))
    if is_by_record:
        batches = _process_records(reader, decoders, cast, options)
    else:
        batches = apply(reader.batches(), cast, options)
    batches = _process_batches(batches, options)
    chosen = _tf_options(options, is_alone=request.host[1] == 1, is_by_record=is_by_record)
    count = _count_batches(reader.batches_per_epoch, options)
    ahead = tf.data.AUTOTUNE if options.prefetch is None else options.prefetch

    def make(has_fixed_count: bool) -> Any:
        made = batches
        if has_fixed_count and count is not None:
            made = made.apply(tf.data.experimental.assert_cardinality(count))
        return made.prefetch(ahead).with_options(chosen)

    position = None if options.bucket_fn is not None else reader.position
    description = f"engine={choice.engine}: {choice.reason}"
    return TfPipeline(make, description, count, position, split.shards)


def _make_reader(choice: EngineChoice, request: ReadRequest) -> Reader:
    split, options = request.split, request.options
    if choice.engine == "native":
        return NativeReader(request)
    if required_features(split.schema.select(request.schema), options.missing):
        raise ValueError(
            Message(
                "expected no missing='drop' with engine='graph', which does not know such records"
                " beforehand",
                hint="engine='native', or drop such records for good with `datum reshard --where`",
            )
        )
    if options.bucket_by is not None:
        raise ValueError(
            Message(
                "expected no `bucket_by` with engine='graph', which does not know lengths"
                " beforehand",
                hint="engine='native', or bucket_fn and bucket_op",
            )
        )
    if options.shuffle == "shards":
        raise ValueError(
            Message(
                "expected another `shuffle` than 'shards' with engine='graph', which mixes blocks",
                hint="engine='native', or shuffle='blocks'",
            )
        )
    split.shards.hold_all(split.runs)  # the graph reads plain files
    return WindowedReader(request) if has_own_order(split, options) else GraphReader(request)


def _find_decoders(schema: Schema, options: TfOptions, metadata: Metadata) -> Decoders:
    """The decoder of each feature that has one."""
    if options.decode is False:
        return {}
    asked = options.decode if isinstance(options.decode, Mapping) else {}
    decoders: dict[str, Callable[[Any], Any]] = {}
    for name, feature in schema.items():
        how = asked.get(name, feature.encoding == "image")
        if not how:
            continue
        image = None if callable(how) else _as_image(name, feature)
        decoder: Any = how
        if image is not None:
            decoder = decoder_for(
                image.single_image,
                name=name,
                formats=metadata.get(name, {}).get("formats", ()),
                # Python runs in this process only, and not if the user chose the graph.
                natively=options.engine != "graph" and not options.is_served,
            )
        is_list = bool(stand_in(feature).shape)
        decoders[name] = for_each(decoder, image) if is_list else decoder
    return decoders


def _as_image(name: str, feature: Feature) -> Feature:
    if feature.encoding == "image":
        return feature
    if not feature.is_string or len(feature.shape) > 1:
        raise ValueError(f"expected `decode` of a feature that holds an image, got {name!r}")
    shape = (*feature.shape, None, None, 3)
    return Feature("uint8", shape, encoding="image", optional=feature.optional)


def _process_records(
    reader: Reader, decoders: Decoders, cast: Callable[..., Any] | None, options: TfOptions
) -> Any:
    """Batches of records that were processed one by one, many at a time, of all epochs."""
    asked = options.decode if isinstance(options.decode, Mapping) else {}
    theirs = {name: decoder for name, decoder in decoders.items() if callable(asked.get(name))}
    ours = {name: decoder for name, decoder in decoders.items() if name not in theirs}
    decode = make_decoder(ours)
    first = None if decode is None else leave_as_is(decode)
    convert = chain([make_decoder(theirs), cast])
    map_record = check_result("map", options.map)
    # Functions of the user run after the cache unless asked otherwise: results may differ.
    keeps_mapped = options.cache is not False and options.cache_after == "map"
    keeps_mapped = keeps_mapped and (convert is not None or map_record is not None)
    if keeps_mapped:
        first = chain([first, convert, map_record])

    def finish(records: Any) -> Any:
        extra = reader.extra_columns
        if not keeps_mapped:
            records = _apply_with_extra(records, convert, extra, options, keeps=True)
            last = leave_as_is(dict) if map_record is None and extra else map_record
            records = _apply_with_extra(records, last, extra, options, keeps=False)
        specs = tf.nest.flatten(records.element_spec)
        if any(isinstance(s, tf.RaggedTensorSpec) and not s.ragged_rank for s in specs):
            records = apply(records, leave_as_is(_same), options)  # dense, as the elements are
        if options.batch_size is None:
            return _add_extra(records, extra)
        batches = batch_records(records, options, is_full=reader.has_full_batches)
        return pad_batches(_add_extra(batches, extra), options)

    form = (sorted(decoders), "mapped") if keeps_mapped else (sorted(ours),)
    steps = RecordSteps(decode=first, finish=finish, is_last=keeps_mapped, kept_form=form)
    return reader.records(steps)


def _same(*element: Any) -> Any:
    return element[0] if len(element) == 1 else element


def _apply_with_extra(
    records: Any, function: Any, extra: Collection[str], options: TfOptions, *, keeps: bool
) -> Any:
    if function is None or not extra:
        return apply(records, function, options)
    return apply(records, with_extra_columns(function, extra, keeps=keeps), options)


def _add_extra(batches: Any, extra: Collection[str]) -> Any:
    """Add the extra columns, which come in a pair with each dict, to the dict."""
    if not set(extra) - {SEED}:
        return batches
    if not isinstance(batches.element_spec[0], dict):
        raise ValueError(
            Message(
                f"expected dicts from `map`, since remainder='pad' adds a column {MASK!r}, got"
                f" {batches.element_spec[0]}",
                hint="choose another `remainder`, or return tuples from `batch_map`",
            )
        )
    return batches.map(leave_as_is(lambda batch, added: {**batch, **added}))


def _process_batches(batches: Any, options: TfOptions) -> Any:
    """Batches repeated, mapped, and reduced to inputs and targets."""
    if options.echo > 1:
        batches = batches.flat_map(
            lambda *batch: tf.data.Dataset.from_tensors(_same(*batch)).repeat(options.echo)
        )
    batches = apply(batches, check_result("batch_map", options.batch_map), options)
    return select_supervised(batches, options)


def _count_batches(per_epoch: int, options: TfOptions) -> int | None:
    """Number of batches of a pass; None where it is not known before they are read."""
    if options.bucket_fn is not None or options.is_served:  # each worker reads some of them
        return None
    per_epoch *= options.echo
    if options.epochs is None:
        return int(tf.data.INFINITE_CARDINALITY) if per_epoch else 0
    return per_epoch * options.epochs


def _tf_options(options: TfOptions, *, is_alone: bool, is_by_record: bool) -> Any:
    chosen = tf.data.Options()
    # tf.data mistakes checks within branches for state, and would not save an iterator.
    policies = tf.data.experimental.ExternalStatePolicy
    chosen.experimental_external_state_policy = policies.IGNORE
    if not is_by_record:
        # The tuner tracks every record that a file returns: the best of five shuffled passes was a
        # tenth faster without it, though medians hardly differed. Without it every step may use
        # all cores.
        chosen.autotune.enabled = False
        # Rewriting the pipeline takes longer than it saves: there is nothing to fuse.
        chosen.experimental_optimization.apply_default_optimizations = False
    sharding = tf.data.experimental.AutoShardPolicy
    chosen.experimental_distribute.auto_shard_policy = sharding.DATA if is_alone else sharding.OFF
    given = options.read.options if options.read is not None else None
    chosen = chosen if given is None else chosen.merge(given)
    chosen.deterministic = options.is_deterministic
    return chosen


# The engine.


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
    """Return the engine that the user chose, or for "auto" the one that suits.

    Raises ValueError for "native" together with an option that only the graph implements.

    >>> choose_engine("auto", EngineInputs())
    EngineChoice(engine='native', reason='Python runs in this process')
    >>> choose_engine("auto", EngineInputs(is_traced=True))
    EngineChoice(engine='graph', reason='within a tf.function')
    """
    if asked == "native" and inputs.only_in_graph is not None:
        raise ValueError(
            Message(
                f"expected no {inputs.only_in_graph} with engine='native', which does not support"
                " it",
                hint="engine='graph', or omit the option",
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
    """Collect the inputs of the choice from the options and from TensorFlow."""
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
    """The options that only the graph implements, as a user writes them; True if given."""
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
    """The options that tune the graph; True if given."""
    given = {"deterministic=False": not options.is_deterministic}
    return given | _differing(options, ("options", "seed"))


def _differing(options: TfOptions, settings: tuple[str, ...]) -> dict[str, bool]:
    if options.read is None:
        return {f"read.{name}": False for name in settings}
    default = TFRReadConfigs()
    return {f"read.{n}": getattr(options.read, n) != getattr(default, n) for n in settings}


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
