"""A `tf.data.Dataset` that tells how it is made."""

from __future__ import annotations

from typing import Any

from datum._optional import require
from datum.adapters.tensorflow.engines import Choice

__all__ = ["DatumDataset"]

tf: Any = require("tensorflow", purpose="`to_tf`")


class DatumDataset(tf.data.Dataset):  # type: ignore[misc]
    """What `to_tf` gives: a dataset like the one it is made of, but for its `repr`.

    Args:
        made: the dataset.
        choice: the engine that it reads with, and why.
    """

    def __init__(self, made: Any, choice: Choice) -> None:
        self._made = made
        self._choice = choice
        super().__init__(tf.data.experimental.to_variant(made))

    def _inputs(self) -> list[Any]:
        return [self._made]

    @property
    def element_spec(self) -> Any:
        """The types of the tensors of an element."""
        return self._made.element_spec

    def __repr__(self) -> str:
        choice, kind = self._choice, type(self._made).__name__
        engine = f"engine={choice.engine}: {choice.reason}"
        return f"<datum to_tf {engine}; {kind} element_spec={self.element_spec}>"

    __str__ = __repr__
