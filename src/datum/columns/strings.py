"""Byte strings and texts that stay where they were read until somebody asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from datum import _core

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Buffer

__all__ = ["BytesColumn"]


class BytesColumn:
    """Byte strings in one buffer, made into `bytes` (or `str`, for text) only when asked.

    `shape` is that of the column: `(n,)`, or more for features that hold several strings.

    >>> column = BytesColumn.from_values([b"cat", b"", b"dog"])
    >>> column[2]
    b'dog'
    >>> column.to_numpy()
    array([b'cat', b'', b'dog'], dtype=object)
    """

    __slots__ = ("_buffer", "_slices", "is_text", "shape")

    def __init__(
        self,
        buffer: Buffer | NDArray[Any],
        slices: NDArray[np.int64],
        *,
        is_text: bool = False,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        """Take the strings at `slices`, pairs of start and length, of `buffer`."""
        self._buffer = buffer
        self._slices = slices.reshape(-1, 2)
        self.is_text = is_text
        self.shape = (len(self._slices),) if shape is None else shape

    @classmethod
    def from_values(cls, values: Iterable[bytes | str]) -> BytesColumn:
        """Copy strings, all `bytes` or all `str`, into one buffer."""
        items = list(values)
        is_text = bool(items) and isinstance(items[0], str)
        if any(isinstance(item, str) != is_text for item in items):
            raise TypeError("expected all bytes or all str, got both")
        encoded = [item.encode() if isinstance(item, str) else item for item in items]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        starts = np.cumsum(lengths) - lengths
        return cls(b"".join(encoded), np.stack([starts, lengths], axis=1), is_text=is_text)

    @property
    def buffer(self) -> Buffer | NDArray[Any]:
        """The memory that the strings lie in."""
        return self._buffer

    @property
    def slices(self) -> NDArray[np.int64]:
        """Start and length of each string in `buffer`, a row each."""
        return self._slices

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many bytes each string has, in the shape of the column."""
        return self._slices[:, 1].reshape(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice | NDArray[Any]) -> BytesColumn: ...
    def __getitem__(self, at: int | slice | NDArray[Any]) -> Any:
        slices = self._slices.reshape(*self.shape, 2)
        if isinstance(at, np.ndarray) and at.dtype.kind in "iu":
            slices = slices.take(at, axis=0)  # faster than with brackets
            return BytesColumn(self._buffer, slices, is_text=self.is_text, shape=slices.shape[:-1])
        slices = slices[at]
        if slices.ndim > 1:
            return BytesColumn(
                self._buffer, slices.copy(), is_text=self.is_text, shape=slices.shape[:-1]
            )
        return _core.take_strings(self._buffer, np.ascontiguousarray(slices), self.is_text)[0]

    def __iter__(self) -> Iterator[Any]:
        if len(self.shape) == 1:
            yield from self._take()
        else:
            for i in range(len(self)):
                yield self[i]

    def _take(self) -> list[Any]:
        flat = np.ascontiguousarray(self._slices).reshape(-1)
        return _core.take_strings(self._buffer, flat, self.is_text)

    def to_numpy(self) -> NDArray[np.object_]:
        """Make an object array of `bytes` or `str`."""
        array = np.empty(len(self._slices), dtype=object)
        array[:] = self._take()
        return array.reshape(self.shape)

    def to_list(self) -> list[Any]:
        """Make a list of `bytes` or `str`, nested as `shape` tells."""
        if len(self.shape) == 1:
            return self._take()
        nested: list[Any] = self.to_numpy().tolist()
        return nested

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("strings cannot be made into an array without copying")
        array = self.to_numpy()
        return array if dtype is None else array.astype(dtype)

    def __repr__(self) -> str:
        kind = "str" if self.is_text else "bytes"
        first = f", first={self._first_shortened()}" if len(self._slices) else ""
        return f"BytesColumn({kind}, shape={self.shape}{first})"

    def _first_shortened(self) -> str:
        start, length = self._slices[0].tolist()
        place = np.array([start, min(length, 24)])
        value: Any = _core.take_strings(self._buffer, place, False)[0]
        shown = value.decode(errors="replace") if self.is_text else value
        return repr(shown) + ("..." if length > 24 else "")
