"""Functions applied to records and batches, with seeds for those that take one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._frameworks.tensorflow.ops import random_numbers
from datum._frameworks.tensorflow.options import TfOptions
from datum._optional import require
from datum.transforms.graph import fold_in, leave_as_is

__all__ = [
    "KEPT",
    "NUMBER",
    "SEED",
    "Decoders",
    "ElementCache",
    "apply",
    "chain",
    "check_result",
    "make_cast",
    "make_decoder",
    "takes_seed",
    "with_extra_columns",
]

tf: Any = require("tensorflow", purpose="`to_tf`")

Function = Callable[..., Any]
Decoders = Mapping[str, Function]
# Columns of a record that are no features; no feature has such a name. The seed of the record, its
# number, and whether it was in the cache when it was asked for. If so, its features are those of
# another record.
SEED = "\0seed"
NUMBER = "\0number"
KEPT = "\0kept"
_fold_in = leave_as_is(fold_in)  # called within functions of the user, which AutoGraph rewrites


def apply(dataset: Any, function: Function | None, options: TfOptions) -> Any:
    """Apply a function to each element; one that `takes_seed` gets a new seed each time.

    What such a function draws depends on the seed of `options` alone, however many elements are
    processed at once. An iterator that is restored draws the same again.
    """
    if function is None:
        return dataset
    if takes_seed(function):
        seeds = random_numbers(options.seed, rerandomize=options.reshuffle).batch(
            2, drop_remainder=True
        )
        dataset, function = tf.data.Dataset.zip((dataset, seeds)), _with_seed(function)
    return dataset.map(
        function,
        num_parallel_calls=options.num_parallel_calls or tf.data.AUTOTUNE,
        deterministic=options.is_deterministic,
    )


def takes_seed(function: Function | None) -> bool:
    """Whether a function takes a seed: it has an attribute `takes_seed` that is true."""
    return bool(getattr(function, "takes_seed", False))


def _with_seed(function: Function) -> Function:
    def call(element: Any, seed: Any) -> Any:
        given = element if isinstance(element, tuple) else (element,)
        return function(*given, seed=seed)

    return call


def with_extra_columns(
    function: Function,
    names: Collection[str],
    *,
    keeps: bool,
    cache: ElementCache | None = None,
) -> Function:
    """Make a function of records work on records that have extra columns.

    Args:
        function: Called without the extra columns, and with the seed if it takes one.
        names: Names of the extra columns.
        keeps: Whether the result, a dict, gets the extra columns. Otherwise they come in a pair
            with the result, without the seed. Columns for the cache are always left out.
        cache: Keeps the results. The function is not called for a record that it has.
    """

    def call(record: dict[str, Any]) -> Any:
        extra = {name: record[name] for name in names}
        given = {name: value for name, value in record.items() if name not in extra}
        seed = {"seed": extra[SEED]} if takes_seed(function) else {}
        if cache is None:
            made = function(given, **seed)
        else:
            made = cache.keep(extra[NUMBER], extra[KEPT], lambda: function(given, **seed))
        done = {NUMBER, KEPT} if keeps else {NUMBER, KEPT, SEED}
        rest = {name: value for name, value in extra.items() if name not in done}
        if keeps:
            return {**made, **rest}
        return (made, rest) if rest else made

    return call


def chain(functions: Sequence[Function | None]) -> Function | None:
    """One function that calls several, each with the result of the one before; None for none."""
    called = [function for function in functions if function is not None]
    if len(called) < 2:
        return called[0] if called else None

    def call(record: Any, seed: Any = None) -> Any:
        for function in called:
            record = function(record, seed=seed) if takes_seed(function) else function(record)
        return record

    call.takes_seed = any(map(takes_seed, called))  # type: ignore[attr-defined]
    return call


def make_decoder(decoders: Decoders) -> Function | None:
    """A function of a record that applies the decoder of each feature; None without decoders."""
    if not decoders:
        return None
    seeded = [name for name, decoder in decoders.items() if takes_seed(decoder)]
    called = {name: _by_autograph(decoder) for name, decoder in decoders.items()}

    def decode(record: dict[str, Any], seed: Any = None) -> dict[str, Any]:
        made = dict(record)
        for name, decoder in called.items():
            if name in seeded:
                made[name] = decoder(record[name], seed=_fold_in(seed, seeded.index(name)))
            else:
                made[name] = decoder(record[name])
        return made

    decode.takes_seed = bool(seeded)  # type: ignore[attr-defined]
    return decode


def make_cast(dtypes: Mapping[str, str]) -> Function | None:
    """A function that casts features of a record or a batch to these types; None without any."""
    if not dtypes:
        return None

    @leave_as_is
    def cast(record: dict[str, Any]) -> dict[str, Any]:
        return {
            name: tf.cast(value, dtypes[name]) if name in dtypes else value
            for name, value in record.items()
        }

    return cast


def check_result(option: str, function: Function | None) -> Function | None:
    """Make a function of the user raise ValueError where it returns None."""
    if function is None:
        return None
    converted = _by_autograph(function)

    def call(*given: Any, **seed: Any) -> Any:
        made = converted(*given, **seed)
        if made is None:
            raise ValueError(f"expected `{option}` to return what takes the place, got None")
        return made

    call.takes_seed = takes_seed(function)  # type: ignore[attr-defined]
    return call


def _by_autograph(function: Function) -> Function:
    """Convert conditions and loops of a function into graph operations.

    TensorFlow does so by itself, except within functions that are marked to be left as they are.
    """
    autograph = tf.__internal__.autograph
    converted: Function = autograph.tf_convert(function, autograph.control_status_ctx())
    return converted


class ElementCache:
    """Cache of what decoding, or a function of the user, made of each record.

    It consists of two tables of TensorFlow, so that no Python runs for a record: the parts of each
    element as strings, and the numbers of the records that are there.

    Args:
        spec: The types of the tensors of an element.
    """

    def __init__(self, spec: Any) -> None:
        self._spec = spec
        self._parts = tf.nest.flatten(spec, expand_composites=True)
        blank = tf.constant([""] * len(self._parts))
        table = tf.lookup.experimental.MutableHashTable
        self._elements = table(tf.int64, tf.string, default_value=blank)
        self._known = table(tf.int64, tf.int64, default_value=0)

    def find(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each of these records is in the cache."""
        found: NDArray[np.bool_] = self._known.lookup(tf.constant(numbers)).numpy() > 0
        return found

    def keep(self, number: Any, is_kept: Any, make: Callable[[], Any]) -> Any:
        """Return the element of a record from the cache, or add what `make` returns.

        Args:
            number: Tensor of the number of the record.
            is_kept: Tensor that says whether the record was in the cache when it was asked for.
            make: Makes the element, as part of the graph.
        """

        def restore() -> list[Any]:
            strings = tf.unstack(self._elements.lookup(number), num=len(self._parts))
            return [
                tf.ensure_shape(tf.io.parse_tensor(string, part.dtype), part.shape)
                for string, part in zip(strings, self._parts, strict=True)
            ]

        def add() -> list[Any]:
            made = tf.nest.flatten(make(), expand_composites=True)
            strings = tf.stack([tf.io.serialize_tensor(part) for part in made])
            inserted = self._elements.insert(number, strings)
            with tf.control_dependencies([inserted]):
                known = self._known.insert(number, tf.constant(1, tf.int64))
            with tf.control_dependencies([known]):
                return [tf.identity(part) for part in made]

        # A record that fills up a batch may have been added since it was asked for.
        is_known = tf.logical_or(is_kept, self._known.lookup(number) > 0)
        flat = tf.cond(is_known, restore, add)
        for tensor, part in zip(flat, self._parts, strict=True):
            tensor.set_shape(part.shape)
        return tf.nest.pack_sequence_as(self._spec, flat, expand_composites=True)
