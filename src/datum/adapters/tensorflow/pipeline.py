"""A split as a `tf.data.Dataset`, read by one engine or the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from datum._optional import require
from datum.adapters.tensorflow.batching import batch_records, pad_batches, select_supervised
from datum.adapters.tensorflow.described import DatumDataset
from datum.adapters.tensorflow.engines import choose_engine
from datum.adapters.tensorflow.graph_reader import GraphReader
from datum.adapters.tensorflow.hosts import SERVICE, find_host
from datum.adapters.tensorflow.mapping import (
    SEED,
    Decoders,
    apply,
    check_result,
    decoding,
    in_turn,
    takes_seed,
    with_asides,
)
from datum.adapters.tensorflow.native_reader import NativeReader
from datum.adapters.tensorflow.options import TfOptions
from datum.adapters.tensorflow.ordered_reader import OrderedGraphReader
from datum.adapters.tensorflow.pictures import decoder_for
from datum.adapters.tensorflow.position import Position
from datum.adapters.tensorflow.situation import find_situation, has_own_order
from datum.adapters.tensorflow.small_images import find_small
from datum.loading.missing import required_features
from datum.loading.options import MASK, check_seed
from datum.reading import Split
from datum.schema import Feature, Schema
from datum.transforms.graph import leave_as_is

__all__ = ["make_dataset"]

tf: Any = require("tensorflow", purpose="`to_tf`")


class Reader(Protocol):
    """What gives the records of a split to the steps that all engines share."""

    asides: tuple[str, ...]

    @property
    def position(self) -> Position | None:
        """Where the dataset has come to; None where that cannot be told."""

    @property
    def is_full(self) -> bool:
        """Whether there is no short batch."""

    @property
    def batches_per_epoch(self) -> int:
        """How many batches an epoch has on this host, or records if there are none."""

    def batches(self) -> Any:
        """Batches of all epochs, those that differ in length padded where asked."""

    def read(
        self,
        finish: Callable[[Any], Any],
        decode: Callable[..., Any] | None,
        *form: Any,
        is_last: bool = False,
    ) -> Any:
        """The records of all epochs, decoded one by one; `finish` is given those of an epoch.

        What `decode` made is what a cache keeps, and `form` tells what it depends on. `is_last`
        if it gives what goes into batches, and no function that takes a record follows.
        """


def make_dataset(
    split: Split, options: TfOptions, *, metadata: Mapping[str, Mapping[str, Any]]
) -> DatumDataset:
    """The `tf.data.Dataset` that `options` ask for, of a split of a dataset with this metadata."""
    options.check_names(split.schema)
    host = find_host(options.host)
    check_seed(options.seed is None, hosts=host[1])
    schema = options.selected(split.schema)
    is_trusted = split.shards.writer == "datum"
    known = metadata if is_trusted else {}
    decoders = _find_decoders(schema, options, known)
    choice = choose_engine(options.engine, find_situation(options))
    reader: Reader
    if choice.engine == "native":
        small = find_small(schema, options, known)
        decoders = {name: decoder for name, decoder in decoders.items() if name not in small}
        seeded = any(map(takes_seed, [*decoders.values(), options.map]))
        reader = NativeReader(split, schema, options, host=host, decoded=small, needs_seeds=seeded)
    elif required_features(split.schema.select(schema), options.missing):
        raise ValueError(
            "expected no missing='drop' with engine='graph', which cannot look at them before"
            "\nhint: engine='native', or leave such records out for good: `datum reshard --where`"
        )
    elif options.bucket_by is not None:
        raise ValueError(
            "expected no `bucket_by` with engine='graph', which cannot look at lengths beforehand\n"
            "hint: engine='native', or bucket_fn and bucket_op"
        )
    elif has_own_order(split, options):
        reader = GraphReader(split, schema, options, host=host)
    else:
        seeded = any(map(takes_seed, [*decoders.values(), options.map]))
        reader = OrderedGraphReader(split, schema, options, host=host, needs_seeds=seeded)
    is_by_record = _is_by_record(options, decoders)
    batches = _by_record(reader, decoders, options) if is_by_record else reader.batches()
    batches = _finish(batches, options)
    chosen = _tf_options(options, is_alone=host[1] == 1, is_by_record=is_by_record)
    count = _count(reader.batches_per_epoch, options)
    ahead = tf.data.AUTOTUNE if options.prefetch is None else options.prefetch

    def make(is_whole: bool) -> Any:
        made = batches
        if is_whole and count is not None:
            made = made.apply(tf.data.experimental.assert_cardinality(count))
        return made.prefetch(ahead).with_options(chosen)

    position = None if options.bucket_fn is not None else reader.position
    return DatumDataset(make, choice, count=count, position=position)


def _is_by_record(options: TfOptions, decoders: Decoders) -> bool:
    """Whether there is work on single records: images, functions, buckets."""
    return bool(decoders or options.map or options.bucket_fn or options.batch_size is None)


def _find_decoders(
    schema: Schema, options: TfOptions, metadata: Mapping[str, Mapping[str, Any]]
) -> Decoders:
    """What decodes each feature that is to be decoded."""
    if options.decode is False:
        return {}
    asked = options.decode if isinstance(options.decode, Mapping) else {}
    decoders: dict[str, Callable[[Any], Any]] = {}
    for name, feature in schema.items():
        how = asked.get(name, feature.encoding == "image")
        if callable(how):
            decoders[name] = how
        elif how:
            decoders[name] = decoder_for(
                _as_image(name, feature),
                name=name,
                formats=metadata.get(name, {}).get("formats", ()),
                # Python runs in this process only, and not where the graph alone was asked for.
                natively=options.engine != "graph" and options.host != SERVICE,
            )
    return decoders


def _as_image(name: str, feature: Feature) -> Feature:
    if feature.encoding == "image":
        return feature
    if not feature.is_string or feature.shape:
        raise ValueError(f"expected `decode` of a feature that holds an image, got {name!r}")
    return Feature("uint8", (None, None, 3), encoding="image", optional=feature.optional)


def _by_record(reader: Reader, decoders: Decoders, options: TfOptions) -> Any:
    """Batches of records that were worked on one by one, many at a time, of all epochs."""
    asked = options.decode if isinstance(options.decode, Mapping) else {}
    theirs = {name: decoder for name, decoder in decoders.items() if callable(asked.get(name))}
    ours = {name: decoder for name, decoder in decoders.items() if name not in theirs}
    decode = decoding(ours)
    first = None if decode is None else leave_as_is(decode)
    later = [decoding(theirs), check_result("map", options.map)]
    # Functions of the user come after a cache, if not asked otherwise: results may differ.
    is_kept = options.cache is not False and options.cache_after == "map" and any(later)
    if is_kept:
        first = in_turn([first, *later])

    def finish(records: Any) -> Any:
        asides = reader.asides
        if not is_kept:
            records = _apply_beside(records, later[0], asides, options, keeps=True)
            mapped = later[1]
            if mapped is None and asides:
                mapped = leave_as_is(dict)
            records = _apply_beside(records, mapped, asides, options, keeps=False)
        if any(isinstance(s, tf.RaggedTensorSpec) and not s.ragged_rank for s in _specs(records)):
            records = apply(records, leave_as_is(_same), options)  # dense, as the elements are
        if options.batch_size is None:
            return _add_beside(records, asides)
        batches = batch_records(records, options, is_full=reader.is_full)
        return pad_batches(_add_beside(batches, asides), options)

    form = [sorted(decoders), "mapped"] if is_kept else [sorted(ours)]
    return reader.read(finish, first, *form, is_last=is_kept)


def _same(*element: Any) -> Any:
    return element[0] if len(element) == 1 else element


def _apply_beside(
    records: Any, function: Any, asides: Collection[str], options: TfOptions, *, keeps: bool
) -> Any:
    """Records given to a function, those of a reader with other columns beside them, too."""
    if function is None or not asides:
        return apply(records, function, options)
    return apply(records, with_asides(function, asides, keeps=keeps), options)


def _add_beside(batches: Any, asides: Collection[str]) -> Any:
    """Dicts with the columns that were kept beside them."""
    if not set(asides) - {SEED}:
        return batches
    if not isinstance(batches.element_spec[0], dict):
        raise ValueError(
            f"expected dicts from `map` with remainder='pad', to which {MASK!r} is added, got"
            f" {batches.element_spec[0]}\nhint: another `remainder`, or tuples from `batch_map`"
        )
    return batches.map(leave_as_is(lambda batch, beside: {**batch, **beside}))


def _specs(dataset: Any) -> list[Any]:
    return list(tf.nest.flatten(dataset.element_spec))


def _finish(batches: Any, options: TfOptions) -> Any:
    if options.echo > 1:
        batches = batches.flat_map(
            lambda *batch: tf.data.Dataset.from_tensors(
                batch[0] if len(batch) == 1 else batch
            ).repeat(options.echo)
        )
    batches = apply(batches, check_result("batch_map", options.batch_map), options)
    return select_supervised(batches, options)


def _count(per_epoch: int, options: TfOptions) -> int | None:
    """How many batches there will be; None where only reading them tells."""
    if options.bucket_fn is not None or options.host == SERVICE:  # a worker gives some of them
        return None
    per_epoch *= options.echo
    if options.epochs is None:
        return int(tf.data.INFINITE_CARDINALITY) if per_epoch else 0
    return per_epoch * options.epochs


def _tf_options(options: TfOptions, *, is_alone: bool, is_by_record: bool) -> Any:
    chosen = tf.data.Options()
    # Checks within branches look like state to tf.data, which would not save an iterator then.
    policies = tf.data.experimental.ExternalStatePolicy
    chosen.experimental_external_state_policy = policies.IGNORE
    if not is_by_record:
        # The tuner keeps an account of every record that a file gives: the best of five shuffled
        # passes was a tenth faster without it, though medians hardly differed. Without it every
        # step may use all cores.
        chosen.autotune.enabled = False
    sharding = tf.data.experimental.AutoShardPolicy
    chosen.experimental_distribute.auto_shard_policy = sharding.DATA if is_alone else sharding.OFF
    given = options.read.options if options.read is not None else None
    chosen = chosen if given is None else chosen.merge(given)
    chosen.deterministic = options.is_deterministic
    return chosen
