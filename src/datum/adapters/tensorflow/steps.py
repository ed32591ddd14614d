"""Steps of a pipeline whose functions TensorFlow runs as they were traced.

TensorFlow optimizes every function of a dataset before its first call. For functions of a few
hundred operations that takes longer than a short pass over the data. It leaves functions alone
that are marked to run on one device, and Datum's own are for the CPU anyway. Functions of the user
go through `tf.data.Dataset.map` and the like, which optimize them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from datum._optional import require
from datum.transforms.graph import leave_as_is

__all__ = ["flat_map", "interleave", "map_each", "trace"]

tf: Any = require("tensorflow", purpose="`to_tf`")

_ON_ONE_DEVICE = {"experimental_ints_on_device": True}


def trace(function: Callable[..., Any], *specs: Any) -> Any:
    """The function of the graph that `function` makes of tensors like these."""
    traced = tf.function(
        function, input_signature=specs, autograph=False, experimental_attributes=_ON_ONE_DEVICE
    )
    return traced.get_concrete_function()


class _Step(tf.data.Dataset):  # type: ignore[misc]
    """A dataset made of another one with a function.

    Args:
        source: the other dataset; its elements are tensors, or tuples or dicts of them.
        function: given the parts of an element, as `tf.data.Dataset.map` has it.
        op: of TensorFlow that gives the variant of this dataset.
        settings: of `op`.
    """

    def __init__(self, source: Any, function: _Function, op: Any, **settings: Any) -> None:
        self._source = source
        self._function = function  # held here: TensorFlow forgets functions that nobody holds
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
    """A traced function, and the spec of what it returns or the elements of the dataset."""

    traced: Any
    spec: Any


def _trace_for(source: Any, function: Callable[..., Any]) -> _Function:
    """The function that is given the elements of a dataset."""
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
    """What the function makes of each element, in order; `parallel` of them at once."""
    made = _trace_for(dataset, function)
    if not all(isinstance(spec, tf.TensorSpec) for spec in tf.nest.flatten(made.spec)):
        # Only TensorFlow knows how ragged and sparse tensors pass from step to step.
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
    """The elements of the dataset that the function makes of each element."""
    return _Step(dataset, _trace_for(dataset, function), tf.raw_ops.FlatMapDataset)


def interleave(
    dataset: Any, function: Callable[..., Any], *, cycle: int, run: int, parallel: int
) -> Any:
    """As `flat_map`, but `cycle` datasets are read at once, `run` elements of each in turn."""
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
