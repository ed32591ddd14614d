"""A split as a `tf.data.Dataset` whose position can be saved."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from datum._frameworks.tensorflow.batching import batch_records, pad_batches, select_supervised
from datum._frameworks.tensorflow.engine import (
    EngineChoice,
    choose_engine,
    find_engine_inputs,
    find_host,
    has_own_order,
)
from datum._frameworks.tensorflow.graph import GraphReader
from datum._frameworks.tensorflow.images import decoder_for, find_small, for_each
from datum._frameworks.tensorflow.mapping import (
    SEED,
    Decoders,
    apply,
    chain,
    check_result,
    make_cast,
    make_decoder,
    takes_seed,
    with_extra_columns,
)
from datum._frameworks.tensorflow.native import NativeReader
from datum._frameworks.tensorflow.options import TfOptions
from datum._frameworks.tensorflow.position import Position
from datum._frameworks.tensorflow.readers import Reader, ReadRequest, RecordSteps
from datum._frameworks.tensorflow.windowed import WindowedReader
from datum._load.missing import required_features
from datum._load.options import MASK, check_seed, find_casts
from datum._optional import require
from datum._read.split import Split
from datum.errors import Message, StateError
from datum.format.layout import stand_in
from datum.schema import Feature, Schema
from datum.transforms.graph import leave_as_is

__all__ = ["DatumDataset", "Pipeline", "make_dataset"]

tf: Any = require("tensorflow", purpose="`to_tf`")

Metadata = Mapping[str, Mapping[str, Any]]
_Iterator: Any = type(iter(tf.data.Dataset.range(0)))


def make_dataset(split: Split, options: TfOptions, *, metadata: Metadata) -> DatumDataset:
    """Make the `tf.data.Dataset` of a split that `options` ask for.

    Args:
        split: The records of all hosts.
        options: The options of `to_tf`.
        metadata: What the manifest says of each feature.
    """

    def remake(seed: int) -> Pipeline:
        return _make_pipeline(split, replace(options, seed=seed), metadata)

    pipeline = _make_pipeline(split, options, metadata)
    return DatumDataset(pipeline, remake=remake if options.is_seed_drawn else None)


class DatumDataset(tf.data.Dataset):  # type: ignore[misc]
    """The `tf.data.Dataset` that `to_tf` returns; its position can be saved.

    Each iteration is one pass of `epochs` epochs. It continues with the epochs after those of the
    last iteration, even if that one was interrupted. `state_dict` and `load_state_dict` are those
    of the loaders of other frameworks, and a state of one fits all of them.

    Args:
        pipeline: What the dataset is made of.
        remake: Makes the pipeline of another seed, where the seed was drawn; otherwise None.
    """

    def __init__(
        self, pipeline: Pipeline, *, remake: Callable[[int], Pipeline] | None = None
    ) -> None:
        self._pipeline = pipeline
        self._remake = remake
        self._made = pipeline.make(True)
        super().__init__(tf.data.experimental.to_variant(self._made))

    def _inputs(self) -> list[Any]:
        return [self._made]

    @property
    def element_spec(self) -> Any:
        """The types of the tensors of an element."""
        return self._made.element_spec

    def cardinality(self, name: str | None = None) -> Any:
        """Number of batches of a whole pass, even if the next one resumes within it."""
        if self._pipeline.count is None:
            return super().cardinality()
        return tf.constant(self._pipeline.count, tf.int64, name=name)

    def __iter__(self) -> Any:
        if self._pipeline.position is None or not tf.executing_eagerly():
            return super().__iter__()
        return _CountedIterator(self, self._known_position)

    # Position.

    def _known_position(self) -> Position:
        if self._pipeline.position is None:
            raise StateError(
                "expected a dataset in the order of `seed`, whose position is known",
                where=f"{self!r}",
                hint="leave out bucket_fn, shuffle_files, host='service', deterministic=False"
                " and settings of `read`",
            )
        return self._pipeline.position

    @property
    def remaining(self) -> int | None:
        """Batches left in the current pass, or in the next one before it starts; None: no end."""
        return self._known_position().remaining

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """The position after the last batch that a Python loop took, as values that fit into JSON.

        Args:
            batches: Number of batches taken since the iteration started. Needed where the graph
                iterates, as in `model.fit`, since those batches are not counted.
        """
        return self._known_position().state_dict(batches)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Start the next iteration where a state was taken; StateError if it does not fit.

        With `seed=None` the seed is that of the state from then on. Datasets that were derived
        from this one before, by `map` for example, must be made again.
        """
        pipeline, position = self._pipeline, self._known_position()
        given: Any = state
        seed = given.get("seed") if isinstance(given, Mapping) else None
        if self._remake is not None and type(seed) is int and seed >= 0 and seed != position.seed:
            pipeline = self._remake(seed)
            assert pipeline.position is not None
            position = pipeline.position
        position.load_state_dict(state)
        self._pipeline = pipeline
        # Without a fixed number of elements, since the next pass may be the rest of one.
        self._made = self._pipeline.make(False)
        super().__init__(tf.data.experimental.to_variant(self._made))

    def __repr__(self) -> str:
        choice, kind = self._pipeline.choice, type(self._made).__name__
        engine = f"engine={choice.engine}: {choice.reason}"
        return f"<datum to_tf {engine}; {kind} element_spec={self.element_spec}>"

    __str__ = __repr__


class _CountedIterator(_Iterator):  # type: ignore[misc]
    """The iterator of a dataset, which counts its batches and saves only their number."""

    def __init__(self, dataset: DatumDataset, find_position: Callable[[], Position]) -> None:
        self._owner = dataset
        self._find_position = find_position
        self._position = find_position()
        self._returned = self._position.iterate()
        super().__init__(dataset)

    def __next__(self) -> Any:
        try:
            element = super().__next__()
        except StopIteration:
            self._position.end(self._returned)
            raise
        if tf.executing_eagerly():
            self._returned.batches += 1
        return element

    def get_next(self) -> Any:
        """Return the next element; raise tf.errors.OutOfRangeError at the end."""
        try:
            return self.__next__()
        except StopIteration:
            raise tf.errors.OutOfRangeError(None, None, "End of sequence") from None

    def _serialize_to_tensors(self) -> dict[str, Any]:
        return {"_STATE": tf.constant(json.dumps(self._position.state_dict()))}

    def _restore_from_tensors(self, restored_tensors: dict[str, Any]) -> list[Any]:
        state = np.asarray(restored_tensors["_STATE"]).item()
        self._owner.load_state_dict(json.loads(state))
        self._position = self._find_position()
        self._returned = self._position.iterate()
        self._create_iterator(self._owner)
        return []


# The pipeline of a dataset.


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What a dataset is made of.

    Attributes:
        make: Makes the dataset. The argument says whether its number of elements is fixed.
        choice: The engine that reads, and the reason for it.
        count: Number of batches of a pass; None where it is not known before they are read.
        position: The position of the dataset; None where it cannot be known.
    """

    make: Callable[[bool], Any]
    choice: EngineChoice
    count: int | None = None
    position: Position | None = None


def _make_pipeline(split: Split, options: TfOptions, metadata: Metadata) -> Pipeline:
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
    return Pipeline(make, choice, count, position)


def _make_reader(choice: EngineChoice, request: ReadRequest) -> Reader:
    split, options = request.split, request.options
    if choice.engine == "native":
        return NativeReader(request)
    if required_features(split.schema.select(request.schema), options.missing):
        raise ValueError(
            Message(
                "expected no missing='drop' with engine='graph', which does not know them"
                " beforehand",
                hint="engine='native', or leave such records out for good: `datum reshard --where`",
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
                # Python runs in this process only, and not where the graph was asked for.
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
                f"expected dicts from `map` with remainder='pad', to which {MASK!r} is added, got"
                f" {batches.element_spec[0]}",
                hint="another `remainder`, or tuples from `batch_map`",
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
    # tf.data takes checks within branches for state, and would refuse to save an iterator.
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
