"""Columns of optional features: values, and which records have them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.columns.strings import BytesColumn

__all__ = ["Masked"]


class Masked:
    """A column, and for each record whether it has a value; where not, `values` holds a blank.

    >>> masked = Masked(np.array([1, 0]), np.array([True, False]))
    >>> masked[1] is None
    True
    >>> masked.filled(-1)
    array([ 1, -1])
    """

    __slots__ = ("present", "values")

    def __init__(self, values: Any, present: NDArray[np.bool_]) -> None:
        present = np.asarray(present, np.bool_)
        if present.shape != (len(values),):
            raise ValueError(f"expected {len(values)} items in `present`, got {present.shape}")
        self.values = values
        self.present = present

    def __len__(self) -> int:
        return len(self.present)

    def __getitem__(self, at: int | slice | NDArray[Any]) -> Any:
        if isinstance(at, (slice, np.ndarray)):
            return Masked(self.values[at], self.present[at])
        return self.values[at] if self.present[at] else None

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def to_list(self) -> list[Any]:
        """Make a list of Python values, with None where there is none."""
        values = (
            self.values.tolist() if isinstance(self.values, np.ndarray) else self.values.to_list()
        )
        return [value if there else None for value, there in zip(values, self.present, strict=True)]

    def filled(self, value: Any) -> NDArray[Any]:
        """The values as an array, with `value` where there is none; ragged ones have no array."""
        if not isinstance(self.values, (np.ndarray, BytesColumn)):
            raise TypeError(f"expected values that make an array, got {self.values!r}")
        array = np.array(self.values)
        array[~self.present] = value
        return array

    def __repr__(self) -> str:
        return f"Masked({self.values!r}, present={int(self.present.sum())} of {len(self)})"
