"""A split as a `tf.data.Dataset` whose every step runs in the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from datum._optional import require
from datum.adapters.tensorflow.batching import batch_records, pad_batches, select_supervised
from datum.adapters.tensorflow.caching import Cache
from datum.adapters.tensorflow.hosts import SERVICE, find_host, part_of
from datum.adapters.tensorflow.mapping import Decoders, apply, check_result, decoding
from datum.adapters.tensorflow.options import TfOptions
from datum.adapters.tensorflow.parsing import GraphParser
from datum.adapters.tensorflow.pictures import decoder_for
from datum.adapters.tensorflow.plan import Plan, make_plan
from datum.adapters.tensorflow.records import read_chunks, refuse_marks, shuffle, shuffle_chunks
from datum.reading import Split
from datum.schema import Feature, Schema
from datum.transforms.graph import leave_as_is

__all__ = ["make_dataset"]

tf: Any = require("tensorflow", purpose="`to_tf`")

PARSED_RECORDS = 64  # together, where records are then worked on one by one
PARSED_LARGE_RECORDS = 8


def make_dataset(
    split: Split, options: TfOptions, *, metadata: Mapping[str, Mapping[str, Any]]
) -> Any:
    """The `tf.data.Dataset` that `options` ask for, of a split of a dataset with this metadata."""
    options.check_names(split.schema)
    host = find_host(options.host)
    if host[1] > 1:
        start, stop = part_of(len(split), host)
        split = split[start:stop]
    schema = options.selected(split.schema)
    is_trusted = split.shards.writer == "datum"
    decoders = _find_decoders(schema, options, metadata if is_trusted else {})
    is_by_record = bool(decoders or options.map or options.bucket_fn or options.batch_size is None)
    plan = make_plan(split, options, is_cached=options.cache is not False)
    cache = Cache(options.cache, split, schema, plan)
    parser = GraphParser(schema, is_trusted=is_trusted)
    if is_by_record:
        batches = _by_record(plan, parser, cache, decoders, options)
    else:
        batches = _in_bulk(plan, parser, cache, options)
    batches = _finish(batches, plan.table.records, options)
    chosen = _tf_options(options, is_alone=host[1] == 1, is_by_record=is_by_record)
    return batches.with_options(chosen)


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
            formats = metadata.get(name, {}).get("formats", ())
            decoders[name] = decoder_for(_as_image(name, feature), formats=formats)
    return decoders


def _as_image(name: str, feature: Feature) -> Feature:
    if feature.encoding == "image":
        return feature
    if not feature.is_string or feature.shape:
        raise ValueError(f"expected `decode` of a feature that holds an image, got {name!r}")
    return Feature("uint8", (None, None, 3), encoding="image")


# Records that nothing is done to one by one.


def _in_bulk(plan: Plan, parser: GraphParser, cache: Cache, options: TfOptions) -> Any:
    """Batches parsed as such: no op runs for each record."""
    chunks = read_chunks(plan.table, plan.reading, _mixed_at_reading(plan, options))
    if plan.shuffling is not None:
        if options.cache is not False:
            chunks = _shuffle_cached(cache.keep(chunks, plan.reading.chunk), plan, options)
        chunks = shuffle_chunks(chunks, plan.shuffling, deterministic=options.is_deterministic)
    chunks = chunks.rebatch(options.batch_size, drop_remainder=options.drop_remainder)
    batches = apply(chunks, _parsing(parser), options)
    batches = pad_batches(batches, options)
    if options.cache is False or plan.shuffling is not None:
        return batches
    return cache.keep(batches, options.batch_size, options.drop_remainder, options.pad)


def _parsing(parser: GraphParser) -> Callable[[Any], dict[str, Any]]:
    return leave_as_is(lambda records: parser.parse(refuse_marks(records)))


def _shuffle_cached(chunks: Any, plan: Plan, options: TfOptions) -> Any:
    """Chunks in another order: all of them, if they are in memory anyway."""
    assert plan.shuffling is not None
    count = plan.table.records if options.cache is True else plan.shuffling.window
    buffered = -(-count // plan.reading.chunk) + len(plan.table.blocks)  # short ones, too
    seed = plan.shuffling.seed if plan.shuffling.block_seed is None else plan.shuffling.block_seed
    return shuffle(chunks, buffered, seed=seed, reshuffle=plan.shuffling.reshuffle)


def _mixed_at_reading(plan: Plan, options: TfOptions) -> Any:
    return None if options.cache is not False else plan.shuffling


# Records that are decoded or changed one by one.


def _by_record(
    plan: Plan, parser: GraphParser, cache: Cache, decoders: Decoders, options: TfOptions
) -> Any:
    """Batches of records that were worked on one by one, many at a time."""
    asked = options.decode if isinstance(options.decode, Mapping) else {}
    theirs = {name: decoder for name, decoder in decoders.items() if callable(asked.get(name))}
    ours = {name: decoder for name, decoder in decoders.items() if name not in theirs}
    records = _read_records(plan, parser, options)
    decode = decoding(ours)
    records = apply(records, leave_as_is(decode) if decode else None, options)
    if options.cache is not False:
        # Functions of the user come after it: they may give another result each time.
        records = cache.keep(records, sorted(ours))
        if plan.shuffling is not None:
            window = plan.table.records if options.cache is True else plan.shuffling.window
            records = _shuffle_records(records, max(window, plan.shuffling.window), plan)
    records = apply(records, decoding(theirs), options)
    records = apply(records, check_result("map", options.map), options)
    if any(isinstance(s, tf.RaggedTensorSpec) and not s.ragged_rank for s in _specs(records)):
        records = apply(records, leave_as_is(dict), options)  # dense, as the elements are
    if options.batch_size is None:
        return records
    return pad_batches(batch_records(records, options), options)


def _specs(dataset: Any) -> list[Any]:
    return list(tf.nest.flatten(dataset.element_spec))


def _read_records(plan: Plan, parser: GraphParser, options: TfOptions) -> Any:
    """Parsed records, one by one, mixed unless a cache comes first."""
    shuffling = _mixed_at_reading(plan, options)
    chunks = read_chunks(plan.table, plan.reading, shuffling)
    if plan.has_large_records:
        if shuffling is not None:
            records = _shuffle_records(chunks.unbatch(), shuffling.window, plan)
            chunks = records.batch(PARSED_LARGE_RECORDS)
    elif shuffling is not None:
        chunks = shuffle_chunks(chunks, shuffling, deterministic=options.is_deterministic)
        chunks = chunks.rebatch(PARSED_RECORDS)
    return _unbatch(apply(chunks, _parsing(parser), options))


def _unbatch(batches: Any) -> Any:
    """Single records. Columns without values make TensorFlow's own `unbatch` crash."""
    hollow = {
        name: spec
        for name, spec in batches.element_spec.items()
        if isinstance(spec, tf.TensorSpec) and 0 in spec.shape[1:]
    }
    if not hollow:
        return batches.unbatch()

    def hide(batch: dict[str, Any]) -> dict[str, Any]:
        return {n: tf.zeros(tf.shape(c)[:1]) if n in hollow else c for n, c in batch.items()}

    def restore(record: dict[str, Any]) -> dict[str, Any]:
        empty = {name: tf.zeros(spec.shape[1:], spec.dtype) for name, spec in hollow.items()}
        return {**record, **empty}

    return batches.map(leave_as_is(hide)).unbatch().map(leave_as_is(restore))


def _shuffle_records(records: Any, window: int, plan: Plan) -> Any:
    assert plan.shuffling is not None
    return shuffle(records, window, seed=plan.shuffling.seed, reshuffle=plan.shuffling.reshuffle)


# What comes after batches.


def _finish(batches: Any, records: int, options: TfOptions) -> Any:
    if options.echo > 1:
        batches = batches.flat_map(
            lambda *batch: tf.data.Dataset.from_tensors(
                batch[0] if len(batch) == 1 else batch
            ).repeat(options.echo)
        )
    if options.epochs != 1:
        batches = batches.repeat(options.epochs)
    batches = apply(batches, check_result("batch_map", options.batch_map), options)
    batches = select_supervised(batches, options)
    count = _count(records, options)
    if count is not None:
        batches = batches.apply(tf.data.experimental.assert_cardinality(count))
    return batches.prefetch(tf.data.AUTOTUNE if options.prefetch is None else options.prefetch)


def _count(records: int, options: TfOptions) -> int | None:
    """How many batches there will be; None where only reading them tells."""
    if options.bucket_fn is not None or options.host == SERVICE:  # a worker gives some of them
        return None
    if options.batch_size is None:
        per_epoch = records
    else:
        short = 0 if options.drop_remainder else options.batch_size - 1
        per_epoch = (records + short) // options.batch_size
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
