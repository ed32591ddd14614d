"""Operations that TensorFlow's public API lacks: fast steps, plain seeds, cheap checks.

TensorFlow optimises every function of a dataset before its first call. For functions of a few
hundred operations that takes longer than a short pass over the data. It does not touch functions
that are marked to run on one device, and Datum's own run on the CPU anyway. Functions of the user
go through `tf.data.Dataset.map` and the like, which optimise them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from datum._optional import require
from datum.transforms.graph import leave_as_is

__all__ = ["checked", "flat_map", "interleave", "map_each", "random_numbers", "shuffle", "trace"]

tf: Any = require("tensorflow", purpose="`to_tf`")

_ON_ONE_DEVICE = {"experimental_ints_on_device": True}


def trace(function: Callable[..., Any], *specs: Any) -> Any:
    """Trace a function for tensors of these types."""
    traced = tf.function(
        function, input_signature=specs, autograph=False, experimental_attributes=_ON_ONE_DEVICE
    )
    return traced.get_concrete_function()


class _Step(tf.data.Dataset):  # type: ignore[misc]
    """A dataset made of another one with a function.

    Args:
        source: The other dataset; its elements are tensors, or tuples or dicts of them.
        function: Called with the parts of an element, as `tf.data.Dataset.map` does.
        op: The operation of TensorFlow that returns the variant of this dataset.
        settings: Further arguments of `op`.
    """

    def __init__(self, source: Any, function: _Function, op: Any, **settings: Any) -> None:
        self._source = source
        self._function = function  # held here: TensorFlow drops functions without a reference
        flat = tf.nest.flatten(function.spec)
        variant = op(
            input_dataset=tf.data.experimental.to_variant(source),
            other_arguments=function.traced.captured_inputs,
            f=function.traced,
            output_types=[part.dtype for part in flat],
            output_shapes=[part.shape for part in flat],
            **settings,
        )
        super().__init__(variant)

    def _inputs(self) -> list[Any]:
        return [self._source]

    @property
    def element_spec(self) -> Any:
        """The types of the tensors of an element."""
        return self._function.spec


@dataclass(frozen=True, slots=True)
class _Function:
    """A traced function, and the types of its result or of the elements of that dataset."""

    traced: Any
    spec: Any


def _trace_for(source: Any, function: Callable[..., Any]) -> _Function:
    """Trace a function for the elements of a dataset."""
    given, made = source.element_spec, []

    def call(*flat: Any) -> list[Any]:
        element = tf.nest.pack_sequence_as(given, flat)
        result = function(*element) if isinstance(element, tuple) else function(element)
        if isinstance(result, tf.data.Dataset):
            made.append(result.element_spec)
            return [tf.data.experimental.to_variant(result)]
        made.append(tf.nest.map_structure(tf.type_spec_from_value, result))
        return list(tf.nest.flatten(result, expand_composites=True))

    traced = trace(call, *tf.nest.flatten(given))
    return _Function(traced, made[-1])


def map_each(dataset: Any, function: Callable[..., Any], *, parallel: int | None = None) -> Any:
    """Map each element in order, `parallel` of them at once."""
    made = _trace_for(dataset, function)
    if not all(isinstance(spec, tf.TensorSpec) for spec in tf.nest.flatten(made.spec)):
        # Only TensorFlow's own `map` passes ragged and sparse tensors from step to step.
        return dataset.map(leave_as_is(function), num_parallel_calls=parallel, deterministic=True)
    if parallel is None:
        return _Step(dataset, made, tf.raw_ops.MapDataset)
    return _Step(
        dataset,
        made,
        tf.raw_ops.ParallelMapDatasetV2,
        num_parallel_calls=tf.constant(parallel, tf.int64),
        deterministic="true",
    )


def flat_map(dataset: Any, function: Callable[..., Any]) -> Any:
    """The elements of the datasets that the function returns, one dataset after the other."""
    return _Step(dataset, _trace_for(dataset, function), tf.raw_ops.FlatMapDataset)


def interleave(
    dataset: Any, function: Callable[..., Any], *, cycle: int, run: int, parallel: int
) -> Any:
    """Like `flat_map`, but `cycle` datasets are read at once, `run` elements of each in turn."""
    return _Step(
        dataset,
        _trace_for(dataset, function),
        tf.raw_ops.ParallelInterleaveDatasetV4,
        cycle_length=tf.constant(cycle, tf.int64),
        block_length=tf.constant(run, tf.int64),
        buffer_output_elements=tf.constant(tf.data.AUTOTUNE, tf.int64),
        prefetch_input_elements=tf.constant(tf.data.AUTOTUNE, tf.int64),
        num_parallel_calls=tf.constant(parallel, tf.int64),
        deterministic="true",
    )


_SEED_MASK = 0x5EED  # for the second half of a seed: to TensorFlow two zeros are no seed


# tf.data's own `shuffle` and `random` mix the seed of the program, `tf.random.set_seed`, into
# theirs: the order would not be that of the seed given alone. The operations below them do not.
def shuffle(dataset: Any, window: int, *, seed: int, reshuffle: bool) -> Any:
    """Shuffle a dataset within a window, by this seed alone."""
    spec = dataset.element_spec
    flat = tf.nest.flatten(spec, expand_composites=False)
    if not all(isinstance(part, tf.TensorSpec) for part in flat):
        return dataset.shuffle(window, seed=seed, reshuffle_each_iteration=reshuffle)
    variant = tf.raw_ops.ShuffleDatasetV3(
        input_dataset=tf.data.experimental.to_variant(dataset),
        buffer_size=tf.constant(max(1, window), tf.int64),
        seed=tf.constant(seed, tf.int64),
        seed2=tf.constant(seed ^ _SEED_MASK, tf.int64),
        seed_generator=tf.raw_ops.DummySeedGenerator(),
        output_types=[part.dtype for part in flat],
        output_shapes=[part.shape for part in flat],
        reshuffle_each_iteration=reshuffle,
    )
    return tf.data.experimental.from_variant(variant, spec)


def random_numbers(seed: int, *, rerandomize: bool) -> Any:
    """An endless dataset of random numbers by this seed alone; new ones each epoch if wanted."""
    variant = tf.raw_ops.RandomDatasetV2(
        seed=tf.constant(seed, tf.int64),
        seed2=tf.constant(seed ^ _SEED_MASK, tf.int64),
        seed_generator=tf.raw_ops.DummySeedGenerator(),
        output_types=[tf.int64],
        output_shapes=[tf.TensorShape([])],
        rerandomize_each_iteration=rerandomize,
    )
    return tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.int64))


def checked(value: Any, condition: Any, problem: str) -> Any:
    """Return `value`; raise InvalidArgumentError with `problem` unless all of `condition` holds.

    Operations on the result run after the check. TensorFlow escapes quotes in `problem`. The raw
    op is used because `tf.debugging` wraps it in a conditional, ten ops for one.
    """
    assertion = tf.raw_ops.Assert(condition=tf.reduce_all(condition), data=[problem])
    with tf.control_dependencies([] if assertion is None else [assertion]):
        return tf.identity(value)
