"""What every function for a TensorFlow graph is made with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from datum._optional import require
from datum.errors import SchemaError, suggest
from datum.transforms.origins import Origin, remember

__all__ = [
    "Record",
    "RecordFunction",
    "apart",
    "check_size",
    "checked",
    "fail",
    "fold_in",
    "leave_as_is",
    "listed",
    "random_seed",
    "take",
    "tensorflow",
]

Record = dict[str, Any]
RecordFunction = Callable[[Record], Record]

_INT32 = 2**31
_MIX = 0x9E3779B1  # odd, and without a pattern: neighbours fall far apart


def tensorflow() -> Any:
    """The package, which only the functions of `datum.transforms` need."""
    return require("tensorflow", purpose="datum.transforms")


def leave_as_is(
    function: Callable[..., Any], *, takes_seed: bool = False, origin: Origin | None = None
) -> Callable[..., Any]:
    """`function`, which AutoGraph is not to rewrite, marked if it takes `seed=` besides.

    `origin` is remembered of what users are given, so that other frameworks can refuse it.
    """
    made: Any = tensorflow().autograph.experimental.do_not_convert(function)
    made.takes_seed = takes_seed
    return made if origin is None else remember(made, origin)


def apart(function: Callable[..., Any], *specs: Any) -> Callable[..., Any]:
    """`function` of tensors as a single operation of the graphs that call it, traced once for all.

    A branch that is not taken costs time for each of its operations; so the rare ones are one.
    """
    tf = tensorflow()
    traced = tf.function(
        function,
        input_signature=specs,
        autograph=False,
        experimental_attributes={"_noinline": True},
    )
    return lambda *values: (function if tf.executing_eagerly() else traced)(*values)


def checked(value: Any, condition: Any, *message: Any) -> Any:
    """`value`, numbers or a string; an error within the graph unless a condition holds."""
    tf = tensorflow()

    def fail_instead() -> Any:
        number = fail(*message)
        is_string = value.dtype == tf.string
        return tf.as_string(number) if is_string else value + tf.cast(number, value.dtype)

    return tf.cond(condition, lambda: value, fail_instead)


def fail(*message: Any) -> Any:
    """A number that is never had: an error with this message, of texts and numbers, comes first.

    Asserting would do, but has an effect besides its result: TensorFlow can then no longer save
    the position of an iterator. Reading a text as a number has none.
    """
    tf = tensorflow()
    parts = [part if isinstance(part, str) else tf.as_string(part) for part in message]
    return tf.strings.to_number(tf.strings.join(parts, separator=" "), tf.int32)


def take(record: Record, name: str, where: str) -> Any:
    """The feature of that name; raises SchemaError if there is none."""
    if not isinstance(record, Mapping):
        raise SchemaError(
            f"expected a record, a dict of features, got {type(record).__name__}",
            where=where,
            hint="functions of records come before a record is made a tuple",
        )
    if name in record:
        return record[name]
    hint = suggest(name, record)
    raise SchemaError(
        f"expected a feature {name!r}, got {', '.join(map(repr, sorted(record)))}",
        where=where,
        hint=hint,
        feature=name,
    )


def check_size(where: str, height: Any, width: Any) -> None:
    """Raises SchemaError unless both are numbers of pixels."""
    for name, value in (("height", height), ("width", width)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise SchemaError(
                f"expected `{name}` as a number of pixels, got {value!r}", where=where
            )


def random_seed(seed: int | None, given: Any) -> Any:
    """Two integers for TensorFlow's stateless functions: drawn, or made from those `given`."""
    tf = tensorflow()
    if given is None:
        return tf.random.uniform([2], -_INT32, _INT32 - 1, tf.int32, seed=seed)
    return fold_in(given, seed or 0)


def fold_in(seed: Any, number: int) -> Any:
    """Another seed for each number, by one operation: TensorFlow mixes seeds well by itself."""
    tf = tensorflow()
    seed = tf.convert_to_tensor(seed)
    return tf.bitwise.bitwise_xor(seed, tf.constant([0, _MIX * (number + 1) % _INT32], seed.dtype))


def listed(names: str | Sequence[str]) -> tuple[str, ...]:
    """Names, of which one may be given without a list."""
    return (names,) if isinstance(names, str) else tuple(names)
