"""A `tf.data.Dataset` whose elements are arrays that a Python generator yields."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from itertools import count
from typing import Any

import numpy as np

from datum._optional import require
from datum.errors import DatumError

__all__ = ["Handover"]

tf: Any = require("tensorflow", purpose="`to_tf`")

Start = Callable[..., Generator[Sequence[Any], None, None]]


class Handover(tf.data.Dataset):  # type: ignore[misc]
    """Each iterator has a generator of its own, which is closed with the iterator.

    This is `tf.data.Dataset.from_generator` for arrays that are known to fit: without looking at
    each of them, which takes longer than to hand over a batch. What is wrong with the data is a
    tf.errors.InvalidArgumentError with the message of the error.

    Args:
        start: makes the generator of an iterator; it yields one array for each tensor.
        spec: of the tensors.
        given: a tensor whose value `start` is called with, if any.
    """

    def __init__(self, start: Start, spec: tuple[Any, ...], *, given: Any = None) -> None:
        self._spec = spec
        running: dict[int, Generator[Sequence[Any], None, None]] = {}
        numbers = count()

        def begin(*values: Any) -> Any:
            number = next(numbers)
            running[number] = start(*values)
            return np.int64(number)

        def step(number: Any) -> Sequence[Any]:
            try:
                return next(running[int(number)])
            except (DatumError, OSError) as error:
                # TensorFlow tells the kind of an error by its type, and shows where it came from.
                raise ValueError(str(error)) from None

        def end(number: Any) -> Any:
            running.pop(int(number)).close()
            return np.int64(0)

        types = [part.dtype for part in spec]
        number = tf.TensorSpec((), tf.int64)
        passed = [] if given is None else [given]
        signature = [tf.TensorSpec(value.shape, value.dtype) for value in passed]
        # Held here: TensorFlow forgets functions that nobody holds.
        self._functions = (
            _traced(lambda *values: _call(begin, list(values), [number])[0], *signature),
            _traced(lambda given: _call(step, [given], spec), number),
            _traced(lambda given: _call(end, [given], [number])[0], number),
        )
        variant = tf.raw_ops.GeneratorDataset(
            init_func_other_args=passed,
            next_func_other_args=[],
            finalize_func_other_args=[],
            init_func=self._functions[0],
            next_func=self._functions[1],
            finalize_func=self._functions[2],
            output_types=types,
            output_shapes=[part.shape for part in spec],
        )
        super().__init__(variant)

    def _inputs(self) -> list[Any]:
        return []

    @property
    def element_spec(self) -> Any:
        """The types of the tensors of an element."""
        return self._spec


def _traced(function: Callable[..., Any], *signature: Any) -> Any:
    return tf.function(function, autograph=False).get_concrete_function(*signature)


def _call(function: Callable[..., Any], given: list[Any], spec: Sequence[Any]) -> list[Any]:
    """The op that calls Python; it tells no shapes."""
    made = tf.numpy_function(function, given, [part.dtype for part in spec])
    for tensor, part in zip(made, spec, strict=True):
        tensor.set_shape(part.shape)
    return list(made)
