"""How a batch goes from a DataLoader's worker to the program: all its tensors in one memory.

PyTorch sends every tensor by itself, as a file in shared memory: a table of twenty columns spends
most of its time on that. And it takes more than a second to get ready for nested tensors, which
each worker would need anew. So columns are put together where they arrive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from datum._optional import require
from datum.adapters.torch.tensors import replace_columns, to_tensors
from datum.columns import Ragged, Sparse
from datum.columns.tensors import to_tensor

__all__ = ["to_shipped"]

torch: Any = require("torch", purpose="`to_torch`")

ALIGNMENT = 64  # bytes: a line of the processor's cache, and more than any element has
# So many bytes go through the pipe with the rest of the batch; for more, shared memory is quicker.
MAX_PIPED_BYTES = 1 << 20


def to_shipped(batch: Any) -> Any:
    """Make what is equal to that of `to_tensors` when it arrives in another process.

    Until then what is ragged or sparse is a `Ragged` or `Sparse` over tensors.
    """
    shipped = replace_columns(batch, _to_shipped)
    return _ShippedBatch(shipped) if isinstance(shipped, dict) else shipped


def _to_shipped(column: Any) -> Any:
    values: Any = getattr(column, "values", None)
    if isinstance(values, np.ndarray):
        if isinstance(column, Ragged):
            return _ShippedRagged(to_tensor(values), column.row_splits)
        if isinstance(column, Sparse):
            return _ShippedSparse(column.indices, to_tensor(values), column.dense_shape)
    tensor = to_tensors(column)
    is_grown = isinstance(tensor, torch.Tensor) and not tensor.is_leaf
    return tensor.detach() if is_grown else tensor  # no other process could go back through it


class _ShippedRagged(Ragged):
    """Rows of numbers that arrive as a nested tensor."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrive_ragged, (self.values, to_tensor(self.row_splits))


class _ShippedSparse(Sparse):
    """Numbers that arrive as a sparse tensor."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrive_sparse, (to_tensor(self.indices), self.values, self.dense_shape)


class _ShippedBatch(dict[Any, Any]):
    """Columns that arrive as a plain dict."""

    __slots__ = ()

    def __copy__(self) -> _ShippedBatch:
        return _ShippedBatch(self)  # DataLoader makes one before it is sent

    def __reduce__(self) -> tuple[Any, ...]:
        packing = _Packing()
        columns = replace_columns(self, packing.place)
        return _arrive_batch, (columns, packing.fill())


@dataclass(frozen=True, slots=True)
class _Slot:
    """Where a tensor lies in the memory of its batch."""

    start: int
    stop: int
    dtype: Any
    shape: tuple[int, ...]

    def view(self, memory: Any) -> Any:
        return memory[self.start : self.stop].view(self.dtype).view(self.shape)


@dataclass(frozen=True, slots=True)
class _Parts:
    """A column of several tensors, and what puts it together."""

    make: Any
    parts: tuple[Any, ...]


class _Packing:
    """Finds room for tensors, one after the other."""

    def __init__(self) -> None:
        self._tensors: list[tuple[_Slot, Any]] = []
        self._end = 0

    def place(self, column: Any) -> Any:
        """What stands for a column until it arrives; the column itself if it holds no tensor."""
        if isinstance(column, (_ShippedRagged, _ShippedSparse)):
            make, parts = column.__reduce__()
            return _Parts(make, tuple(self.place(part) for part in parts))
        if type(column) is not torch.Tensor or not _is_plain(column):
            return column
        start = -(-self._end // ALIGNMENT) * ALIGNMENT
        self._end = start + column.nbytes
        slot = _Slot(start, self._end, column.dtype, tuple(column.shape))
        self._tensors.append((slot, column))
        return slot

    def fill(self) -> Any:
        """The memory that all of them were copied into: bytes, or a tensor of bytes."""
        is_piped = self._end <= MAX_PIPED_BYTES
        memory: Any = (
            bytearray(self._end) if is_piped else torch.empty(self._end, dtype=torch.uint8)
        )
        whole = _as_tensor(memory)
        for slot, tensor in self._tensors:
            slot.view(whole).copy_(tensor)
        return memory


def _as_tensor(memory: Any) -> Any:
    if not len(memory):
        return torch.empty(0, dtype=torch.uint8)  # `frombuffer` takes no empty one
    is_bytes = isinstance(memory, bytearray)
    return torch.frombuffer(memory, dtype=torch.uint8) if is_bytes else memory


def _is_plain(tensor: Any) -> bool:
    is_dense = tensor.layout == torch.strided and tensor.device.type == "cpu"
    return is_dense and not tensor.requires_grad


def _arrive_batch(columns: dict[Any, Any], memory: Any) -> dict[Any, Any]:
    whole = _as_tensor(memory)

    def arrive(column: Any) -> Any:
        if isinstance(column, _Slot):
            return column.view(whole)
        if isinstance(column, _Parts):
            return column.make(*(arrive(part) for part in column.parts))
        return column

    arrived: dict[Any, Any] = replace_columns(columns, arrive)
    return arrived


def _arrive_ragged(values: Any, row_splits: Any) -> Any:
    return Ragged(values, row_splits.numpy()).to_torch()


def _arrive_sparse(indices: Any, values: Any, dense_shape: tuple[int, ...]) -> Any:
    return Sparse(indices.numpy(), values, dense_shape).to_torch()
