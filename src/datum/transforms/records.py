"""Functions of records that select, combine and convert features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from datum.errors import SchemaError
from datum.transforms.graph import (
    Origin,
    Record,
    RecordFunction,
    checked,
    fold_in,
    join_origins,
    leave_as_is,
    listed,
    take,
    takes_seed,
    tensorflow,
)

__all__ = ["cast", "compose", "one_hot", "select", "supervised"]


def compose(*functions: Callable[..., Any]) -> Callable[..., Any]:
    """Return one function that calls all of them, each with the result of the one before.

    It accepts `seed=` if one of them does, and derives a seed for each from it.

    >>> import tensorflow as tf
    >>> prepare = compose(cast("label", "float32"), select("label"))
    >>> prepare({"label": tf.constant(3), "id": tf.constant(7)})
    {'label': <tf.Tensor: shape=(), dtype=float32, numpy=3.0>}
    """
    for function in functions:
        if not callable(function):
            raise SchemaError(f"compose: expected functions, got {function!r}")

    def apply(value: Any, seed: Any = None) -> Any:
        for number, function in enumerate(functions):
            if seed is not None and takes_seed(function):
                value = function(value, seed=fold_in(seed, number))
            else:
                value = function(value)
        return value

    is_random = any(map(takes_seed, functions))
    return leave_as_is(apply, takes_seed=is_random, origin=join_origins("compose", functions))


def select(*names: str) -> RecordFunction:
    """Return a function of records that keeps only the named features. Works on batches too.

    >>> select("label")({"image": 1, "label": 2})
    {'label': 2}
    """

    def apply(record: Record) -> Record:
        return {name: take(record, name, "select") for name in names}

    code = f"record = {{name: record[name] for name in {names!r}}}"
    call = f"select({', '.join(map(repr, names))})"
    return leave_as_is(apply, origin=Origin("select", call, code=(code,), is_for_graphs=False))


def supervised(
    inputs: str | Sequence[str], targets: str | Sequence[str]
) -> Callable[[Record], tuple[Any, Any]]:
    """Return a function that turns a record into the pair of inputs and targets for Keras.

    Each is a feature, or a dict of several. Works on batches too. Use it last: its result is not
    a record.

    >>> supervised("image", "label")({"image": 1, "label": 2, "id": 3})
    (1, 2)
    >>> supervised(["image", "id"], "label")({"image": 1, "label": 2, "id": 3})
    ({'image': 1, 'id': 3}, 2)
    """

    def part(record: Record, names: str | Sequence[str]) -> Any:
        found = {name: take(record, name, "supervised") for name in listed(names)}
        return found[names] if isinstance(names, str) else found

    def written(names: str | Sequence[str]) -> str:
        parts = [f"{name!r}: record[{name!r}]" for name in listed(names)]
        return f"record[{names!r}]" if isinstance(names, str) else f"{{{', '.join(parts)}}}"

    code = f"record = ({written(inputs)}, {written(targets)})"
    call = f"supervised({inputs!r}, {targets!r})"
    return leave_as_is(
        lambda record: (part(record, inputs), part(record, targets)),
        origin=Origin("supervised", call, code=(code,), is_for_graphs=False),
    )


def cast(name: str, dtype: str) -> RecordFunction:
    """Return a function of records that converts a feature to another dtype. Works on batches too.

    Values are converted like in TensorFlow, fractions cut off: see `scale` for images.

    >>> import tensorflow as tf
    >>> cast("label", "int32")({"label": tf.constant(3.0)})["label"].numpy()
    np.int32(3)
    """
    try:
        wanted = tensorflow().as_dtype(dtype)
    except TypeError:
        raise SchemaError(f"cast: expected the name of a dtype, got {dtype!r}") from None

    def apply(record: Record) -> Record:
        return {**record, name: tensorflow().cast(take(record, name, "cast"), wanted)}

    value = f"record[{name!r}].astype({wanted.name!r})"
    return leave_as_is(apply, origin=Origin.of_update("cast", name, value))


def one_hot(name: str, classes: int | Sequence[str], *, dtype: str = "float32") -> RecordFunction:
    """Return a function of records that one-hot encodes a feature.

    `classes` is the number of classes, or their names. A number outside 0 to `classes` - 1 is an
    error within the graph. Works on batches too.

    >>> import tensorflow as tf
    >>> one_hot("label", ["cat", "dog", "owl"])({"label": tf.constant(1)})["label"].numpy()
    array([0., 1., 0.], dtype=float32)
    """
    count = classes if isinstance(classes, int) else len(classes)
    if count < 1:
        raise SchemaError(f"one_hot: expected one class or more, got {classes!r}")

    def apply(record: Record) -> Record:
        tf = tensorflow()
        label = take(record, name, "one_hot")
        if not label.dtype.is_integer:
            raise SchemaError(
                f"one_hot: expected integers in {name!r}, got {label.dtype.name}", feature=name
            )
        is_ragged = isinstance(label, tf.RaggedTensor)
        values = label.flat_values if is_ragged else label
        is_known = tf.reduce_all((values >= 0) & (values < count))
        ends = tf.reduce_min(values), tf.reduce_max(values)
        message = f"one_hot: expected {name} of 0 to {count - 1}, got values from and to:"
        values = checked(values, is_known, message, *ends)
        label = label.with_flat_values(values) if is_ragged else values
        return {**record, name: tf.one_hot(label, count, dtype=dtype)}

    value = f"numpy.eye({count}, dtype={dtype!r})[record[{name!r}]]"
    return leave_as_is(apply, origin=Origin.of_update("one_hot", name, value, "import numpy"))
