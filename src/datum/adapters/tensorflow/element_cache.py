"""Records kept in memory as the graph made them, by their numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._optional import require

__all__ = ["KEPT", "NUMBER", "ElementCache"]

tf: Any = require("tensorflow", purpose="`to_tf`")

# Columns of a record that are no features: its number, and whether it was kept when it was asked
# for. Then the other columns are those of any record.
NUMBER = "\0number"
KEPT = "\0kept"


class ElementCache:
    """What decoding, or a function of the user, made of each record: called once for each.

    It lies in two tables of TensorFlow, so no Python runs for a record: the parts of each element
    as strings, and which records are there.

    Args:
        spec: of an element.
    """

    def __init__(self, spec: Any) -> None:
        self._spec = spec
        self._parts = tf.nest.flatten(spec, expand_composites=True)
        blank = tf.constant([""] * len(self._parts))
        table = tf.lookup.experimental.MutableHashTable
        self._elements = table(tf.int64, tf.string, default_value=blank)
        self._known = table(tf.int64, tf.int64, default_value=0)

    def find(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these records are kept."""
        found: NDArray[np.bool_] = self._known.lookup(tf.constant(numbers)).numpy() > 0
        return found

    def keep(self, number: Any, is_kept: Any, make: Callable[[], Any]) -> Any:
        """The element of a record, within the graph: what was kept, or what `make` gives."""

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

        # One that came before in this epoch, to fill up a batch, was not yet kept when asked for.
        is_known = tf.logical_or(is_kept, self._known.lookup(number) > 0)
        flat = tf.cond(is_known, restore, add)
        for tensor, part in zip(flat, self._parts, strict=True):
            tensor.set_shape(part.shape)
        return tf.nest.pack_sequence_as(self._spec, flat, expand_composites=True)
