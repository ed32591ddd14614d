"""Functions given each record or batch, many at a time, with a seed for those that take one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from datum._optional import require
from datum.adapters.tensorflow.element_cache import KEPT, NUMBER, ElementCache
from datum.adapters.tensorflow.options import TfOptions
from datum.adapters.tensorflow.records import random_numbers
from datum.transforms.graph import fold_in, leave_as_is

__all__ = [
    "SEED",
    "Decoders",
    "apply",
    "casting",
    "check_result",
    "decoding",
    "in_turn",
    "takes_seed",
    "with_asides",
]

tf: Any = require("tensorflow", purpose="`to_tf`")

Function = Callable[..., Any]
Decoders = Mapping[str, Function]

SEED = "\0seed"  # the column of a record that has its seed: no feature has such a name

_fold_in = leave_as_is(fold_in)  # within functions that AutoGraph rewrites, for those of the user


def apply(dataset: Any, function: Function | None, options: TfOptions) -> Any:
    """Each element given to a function; one that `takes_seed` gets another for each of them.

    What such a function draws then follows from the seed of `options` alone, however many are
    worked on at once, and an iterator that is restored draws as it would have.
    """
    if function is None:
        return dataset
    if takes_seed(function):
        seeds = random_numbers(options.seed, rerandomize=options.reshuffle).batch(
            2, drop_remainder=True
        )
        dataset, function = tf.data.Dataset.zip((dataset, seeds)), _unpacking(function)
    return dataset.map(
        function,
        num_parallel_calls=options.num_parallel_calls or tf.data.AUTOTUNE,
        deterministic=options.is_deterministic,
    )


def takes_seed(function: Function | None) -> bool:
    """Whether a function is to be given a seed for what it draws."""
    return bool(getattr(function, "takes_seed", False))


def _unpacking(function: Function) -> Function:
    def call(element: Any, seed: Any) -> Any:
        given = element if isinstance(element, tuple) else (element,)
        return function(*given, seed=seed)

    return call


def with_asides(
    function: Function,
    asides: Collection[str],
    *,
    keeps: bool,
    cache: ElementCache | None = None,
) -> Function:
    """A function of records, for those that come with columns which are none of theirs.

    It gets the seed from there, if it takes one, and is not called for what a cache has. With
    `keeps` these columns are among those of the dict that it gives; otherwise in a pair with its
    result, all but the seed. What only the cache needs is left out.
    """

    def call(record: dict[str, Any]) -> Any:
        beside = {name: record[name] for name in asides}
        given = {name: value for name, value in record.items() if name not in beside}
        seed = {"seed": beside[SEED]} if takes_seed(function) else {}
        if cache is None:
            made = function(given, **seed)
        else:
            made = cache.keep(beside[NUMBER], beside[KEPT], lambda: function(given, **seed))
        done = {NUMBER, KEPT} if keeps else {NUMBER, KEPT, SEED}
        rest = {name: value for name, value in beside.items() if name not in done}
        if keeps:
            return {**made, **rest}
        return (made, rest) if rest else made

    return call


def in_turn(functions: Sequence[Function | None]) -> Function | None:
    """One function of several, each given what the last one made; None without any."""
    called = [function for function in functions if function is not None]
    if len(called) < 2:
        return called[0] if called else None

    def call(record: Any, seed: Any = None) -> Any:
        for function in called:
            record = function(record, seed=seed) if takes_seed(function) else function(record)
        return record

    call.takes_seed = any(map(takes_seed, called))  # type: ignore[attr-defined]
    return call


def decoding(decoders: Decoders) -> Function | None:
    """What decodes each feature that has a decoder, and leaves the others; None without any."""
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


def casting(dtypes: Mapping[str, str]) -> Function | None:
    """What casts features of records, or of batches, to these types; None without any."""
    if not dtypes:
        return None

    @leave_as_is
    def cast(record: dict[str, Any]) -> dict[str, Any]:
        return {
            name: tf.cast(value, dtypes[name]) if name in dtypes else value
            for name, value in record.items()
        }

    return cast


def _by_autograph(function: Function) -> Function:
    """A function whose conditions and loops become part of the graph.

    TensorFlow does that by itself, but not within functions that are left as they are.
    """
    autograph = tf.__internal__.autograph
    converted: Function = autograph.tf_convert(function, autograph.control_status_ctx())
    return converted


def check_result(option: str, function: Function | None) -> Function | None:
    """A function of the user, which must not forget its result."""
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
