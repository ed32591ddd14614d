"""Memory for arrays that TensorFlow holds for a while, used again once it lets go of them."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ALIGNED_BYTES", "Buffers"]

# TensorFlow takes an array for its own, without a copy, where it starts at a multiple of this.
ALIGNED_BYTES = 64
MAX_FREE = 8  # buffers that wait to be used again: more are never needed at a time


class Buffers:
    """Aligned arrays of int64; what one takes up goes to another when nobody holds it any more.

    New memory costs more than the copy into it: the system has to hand out and clear each page.
    An array must be given on as it is: views of it do not keep it.

    >>> buffers = Buffers()
    >>> buffers.take(4, columns=8).shape
    (4, 8)
    """

    def __init__(self) -> None:
        self._free: list[NDArray[np.uint8]] = []
        self._held: dict[int, weakref.ref[Any]] = {}

    def take(self, rows: int, *, columns: int) -> NDArray[np.int64]:
        """An array of this shape, whose values are arbitrary."""
        size = rows * columns * np.dtype(np.int64).itemsize
        memory = self._find(size)
        number = id(memory)  # of one that is lent
        array = memory[:size].view(np.int64).reshape(rows, columns)
        held, free, most = self._held, self._free, MAX_FREE

        def release(_: Any) -> None:
            held.pop(number, None)
            if len(free) < most:
                free.append(memory)

        held[number] = weakref.ref(array, release)
        return array

    def _find(self, size: int) -> NDArray[np.uint8]:
        try:
            memory = self._free.pop()
        except IndexError:
            return _allocate(size)
        return memory if size <= len(memory) else _allocate(size)


def _allocate(size: int) -> NDArray[np.uint8]:
    size += size // 8  # batches differ: the next may be somewhat larger
    memory = np.empty(size + ALIGNED_BYTES, np.uint8)
    return memory[-memory.ctypes.data % ALIGNED_BYTES :]
