"""A split as a `tf.data.Dataset`, read by one engine or the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from datum._optional import require
from datum.adapters.tensorflow.batching import batch_records, pad_batches, select_supervised
from datum.adapters.tensorflow.described import DatumDataset, Pipeline
from datum.adapters.tensorflow.engines import choose_engine
from datum.adapters.tensorflow.graph_reader import GraphReader
from datum.adapters.tensorflow.hosts import SERVICE, find_host
from datum.adapters.tensorflow.mapping import (
    SEED,
    Decoders,
    apply,
    casting,
    check_result,
    decoding,
    in_turn,
    takes_seed,
    with_asides,
)
from datum.adapters.tensorflow.native_reader import NativeReader
from datum.adapters.tensorflow.options import TfOptions
from datum.adapters.tensorflow.ordered_reader import OrderedGraphReader
from datum.adapters.tensorflow.pictures import decoder_for, for_each
from datum.adapters.tensorflow.readers import Reader
from datum.adapters.tensorflow.situation import find_situation, has_own_order
from datum.adapters.tensorflow.small_images import find_small
from datum.format.layout import stand_in
from datum.loading.casting import find_casts
from datum.loading.missing import required_features
from datum.loading.options import MASK, check_seed
from datum.reading import Split
from datum.schema import Feature, Schema
from datum.transforms.graph import leave_as_is

__all__ = ["make_dataset"]

tf: Any = require("tensorflow", purpose="`to_tf`")


def make_dataset(
    split: Split, options: TfOptions, *, metadata: Mapping[str, Mapping[str, Any]]
) -> DatumDataset:
    """The `tf.data.Dataset` that `options` ask for, of a split of a dataset with this metadata."""
    remake = partial(_remake, split, options, metadata) if options.is_seed_drawn else None
    return DatumDataset(_make_pipeline(split, options, metadata), remake=remake)


def _remake(
    split: Split, options: TfOptions, metadata: Mapping[str, Mapping[str, Any]], seed: int
) -> Pipeline:
    return _make_pipeline(split, replace(options, seed=seed), metadata)


def _make_pipeline(
    split: Split, options: TfOptions, metadata: Mapping[str, Mapping[str, Any]]
) -> Pipeline:
    options.check_names(split.schema)
    host = find_host(options.host)
    check_seed(options.is_seed_drawn, hosts=host[1])
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
    cast = casting(find_casts(options.cast, split.schema, options.decode))
    if is_by_record:
        batches = _by_record(reader, decoders, cast, options)
    else:
        batches = apply(reader.batches(), cast, options)
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
    return Pipeline(make, choice, count, position)


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
        if not how:
            continue
        image = None if callable(how) else _as_image(name, feature)
        decoder: Any = how
        if image is not None:
            decoder = decoder_for(
                image.single_image,
                name=name,
                formats=metadata.get(name, {}).get("formats", ()),
                # Python runs in this process only, and not where the graph alone was asked for.
                natively=options.engine != "graph" and options.host != SERVICE,
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


def _by_record(
    reader: Reader, decoders: Decoders, cast: Callable[..., Any] | None, options: TfOptions
) -> Any:
    """Batches of records that were worked on one by one, many at a time, of all epochs."""
    asked = options.decode if isinstance(options.decode, Mapping) else {}
    theirs = {name: decoder for name, decoder in decoders.items() if callable(asked.get(name))}
    ours = {name: decoder for name, decoder in decoders.items() if name not in theirs}
    decode = decoding(ours)
    first = None if decode is None else leave_as_is(decode)
    later = [in_turn([decoding(theirs), cast]), check_result("map", options.map)]
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
        # Rewriting the pipeline takes longer than it saves: there is nothing to fuse.
        chosen.experimental_optimization.apply_default_optimizations = False
    sharding = tf.data.experimental.AutoShardPolicy
    chosen.experimental_distribute.auto_shard_policy = sharding.DATA if is_alone else sharding.OFF
    given = options.read.options if options.read is not None else None
    chosen = chosen if given is None else chosen.merge(given)
    chosen.deterministic = options.is_deterministic
    return chosen
