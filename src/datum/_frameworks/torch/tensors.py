"""Batches of tensors, and their transfer from workers of a DataLoader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from datum._load.functions import FrameworkTools, GlobalGenerator, like_tuple
from datum._optional import require
from datum.columns import BytesColumn, Ragged, Sparse, to_tensor

__all__ = ["TOOLS", "replace_columns", "to_own_tensors", "to_pinned", "to_shipped", "to_tensors"]

torch: Any = require("torch", purpose="`to_torch`")

ALIGNMENT = 64  # bytes: a cache line of the processor, and more than any element needs
MAX_PIPED_BYTES = 1 << 20  # smaller batches go through the pipe; shared memory is faster for larger


def to_tensors(batch: Any) -> Any:
    """Convert the arrays of a batch, also those in its dicts, tuples and lists, to tensors.

    Strings become lists. A `Ragged` of numbers becomes a nested tensor, or a `Ragged` over a tensor
    where it has several ragged levels; a `Sparse` of numbers becomes a sparse tensor. Everything
    else stays as it is.
    """
    return replace_columns(batch, _to_tensor)


def _to_tensor(column: Any) -> Any:
    if isinstance(column, np.generic):  # from a single record
        column = np.asarray(column)
    if isinstance(column, np.ndarray):
        return column.tolist() if column.dtype.kind in "OSU" else to_tensor(column)
    if isinstance(column, BytesColumn):
        return column.to_list()
    if isinstance(column, Sparse) and isinstance(column.values, BytesColumn):
        return column
    return column.to_torch() if isinstance(column, (Ragged, Sparse)) else column


def to_own_tensors(record: Any) -> Any:
    """Convert a record to tensors of their own memory, since sending one sends all its memory."""
    return replace_columns(record, lambda value: _to_tensor(_copy_of(value)))


def _copy_of(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def to_pinned(batch: Any) -> Any:
    """Copy the tensors of a batch into memory that a GPU copies from by itself."""
    return replace_columns(batch, _to_pinned)


def _to_pinned(column: Any) -> Any:
    if isinstance(column, Ragged):
        return Ragged(_to_pinned(column.values), column.row_splits)
    return column.pin_memory() if isinstance(column, torch.Tensor) else column


def replace_columns(batch: Any, make: Callable[[Any], Any]) -> Any:
    """Rebuild dicts, tuples and lists with the result of `make` for each value in them."""
    if isinstance(batch, dict):
        return {name: replace_columns(column, make) for name, column in batch.items()}
    if isinstance(batch, tuple):
        return like_tuple(batch, [replace_columns(part, make) for part in batch])
    if isinstance(batch, list):
        return [replace_columns(part, make) for part in batch]
    return make(batch)


# Batches sent between processes.


def to_shipped(batch: Any) -> Any:
    """Convert a batch to one that equals `to_tensors(batch)` once another process receives it.

    PyTorch sends every tensor by itself, as a file in shared memory: a table of twenty columns
    spends most of its time on that. And it takes more than a second to prepare nested tensors,
    which each new worker would need. So all tensors are sent in one block of memory, and ragged and
    sparse columns stay `Ragged` and `Sparse` until they arrive.
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
    return tensor.detach() if is_grown else tensor  # gradients stop at the process


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
        return _ShippedBatch(self)  # DataLoader copies a batch before it sends it

    def __reduce__(self) -> tuple[Any, ...]:
        packing = _Packing()
        columns = replace_columns(self, packing.place)
        return _arrive_batch, (columns, packing.fill())


@dataclass(frozen=True, slots=True)
class _Slot:
    """The position of a tensor in the memory of its batch."""

    start: int
    stop: int
    dtype: Any
    shape: tuple[int, ...]

    def view(self, memory: Any) -> Any:
        return memory[self.start : self.stop].view(self.dtype).view(self.shape)


@dataclass(frozen=True, slots=True)
class _Parts:
    """A column of several tensors, and the function that joins them."""

    make: Any
    parts: tuple[Any, ...]


class _Packing:
    """Allocates the tensors of a batch one after the other in one block of memory."""

    def __init__(self) -> None:
        self._tensors: list[tuple[_Slot, Any]] = []
        self._end = 0

    def place(self, column: Any) -> Any:
        """Return a placeholder of a column, or the column itself if it has no tensors."""
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
        """Copy all tensors into one block of memory: bytes, or a tensor of bytes."""
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
        return torch.empty(0, dtype=torch.uint8)  # `frombuffer` refuses an empty buffer
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


# Tools for functions of the user.


def _stack(values: Sequence[Any]) -> Any:
    """One tensor made by `torch.stack`: of any dtype and device, with gradients."""
    first = values[0]
    if not isinstance(first, torch.Tensor):
        return None
    if any(not isinstance(v, torch.Tensor) or v.shape != first.shape for v in values):
        return None
    return torch.stack(list(values))


def _make_generator(seed: int) -> Any:
    return torch.Generator().manual_seed(seed)


# States as bytes, which can be compared. Only that of the CPU: seeding another starts its device.
def _get_state() -> bytes:
    state: bytes = torch.default_generator.get_state().numpy().tobytes()
    return state


def _set_state(state: bytes) -> None:
    torch.default_generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))


def _seed(number: int) -> None:
    torch.default_generator.manual_seed(number)


TOOLS = FrameworkTools(_stack, _make_generator, (GlobalGenerator(_get_state, _set_state, _seed),))
