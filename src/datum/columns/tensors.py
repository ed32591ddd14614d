"""NumPy arrays as PyTorch tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._optional import require

__all__ = ["to_tensor"]

OF_A_PACKAGE = 2  # what `isbuiltin` says of types that a package adds to NumPy, as ml_dtypes does


def to_tensor(array: NDArray[Any]) -> Any:
    """A tensor in the memory of an array; a copy where that is read-only or laid out oddly.

    Times become int64, the counts of their unit; NaT is the smallest. The types of `ml_dtypes`
    become those of the same name.

    >>> to_tensor(np.array(["1970-01-03"], "datetime64[D]"))
    tensor([2])
    """
    torch = require("torch", purpose="a tensor")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind in "mM":
        array = array.view(np.int64)
    # A tensor has no way to say that it must not be written to.
    if not array.flags.writeable or any(step < 0 for step in array.strides):
        array = array.copy()
    name = array.dtype.name
    if array.dtype.isbuiltin == OF_A_PACKAGE and hasattr(torch, name):
        return torch.from_numpy(array.view(f"u{array.dtype.itemsize}")).view(getattr(torch, name))
    return torch.from_numpy(array)
