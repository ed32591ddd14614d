"""Functions of the user, given each record or each batch, with random numbers if they take them."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence
from numpy.typing import NDArray

from datum.columns import BytesColumn, Ragged, Sparse

__all__ = ["UserFunction", "make_generator", "record_taker", "row_taker"]

_STAGES = {"map": 0, "batch_map": 1}


class UserFunction:
    """The option `map` or `batch_map`: called with a record or a batch, gives what takes its place.

    A function with a parameter `rng` gets a `numpy.random.Generator` that depends on nothing but
    the seed, the epoch and the position: its numbers are the same for any number of threads,
    workers and hosts, and after a resume. Functions are called by several threads at once. Those
    that leave Python for most of their work (NumPy, OpenCV, Pillow) run in parallel; pure Python
    holds the interpreter's lock, and for it the workers of a PyTorch DataLoader are the remedy.
    """

    def __init__(
        self, option: Literal["map", "batch_map"], function: Callable[..., Any], *, seed: int
    ) -> None:
        self._option = option
        self._function = function
        self._seed = seed
        self._takes_rng = _takes_rng(function)

    def __call__(self, given: Any, *, epoch: int, position: int) -> Any:
        """The result for what lies at a position of an epoch."""
        if self._takes_rng:
            rng = make_generator(self._seed, _STAGES[self._option], epoch, position)
            made = self._function(given, rng=rng)
        else:
            made = self._function(given)
        if made is None:
            raise ValueError(
                f"expected `{self._option}` to return what takes the place, got None\n"
                "hint: a function that changes what it was given must return it, too"
            )
        return made


def _takes_rng(function: Callable[..., Any]) -> bool:
    try:
        return "rng" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # of some functions written in C
        return False


def make_generator(*numbers: int) -> np.random.Generator:
    """Random numbers that are a function of some whole numbers.

    >>> bool(make_generator(1, 2).random() == make_generator(1, 2).random())
    True
    """
    seeds: Any = _Seeds(numbers)
    return np.random.Generator(np.random.PCG64(seeds))


class _Seeds(ISpawnableSeedSequence):
    """What NumPy's generators start from, by a hash: a `SeedSequence` takes four times as long."""

    def __init__(self, numbers: tuple[int, ...]) -> None:
        self._numbers = numbers
        self._children = 0

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        """So many words, as NumPy asks for them."""
        words = np.dtype(dtype)
        count = n_words * words.itemsize
        digest = hashlib.shake_128(repr(self._numbers).encode()).digest(count)
        return np.frombuffer(digest, words.newbyteorder("<")).astype(words)

    def spawn(self, n_children: int) -> list[Any]:
        """Others that are unlike it and each other."""
        first = self._children
        self._children += n_children
        return [_Seeds((*self._numbers, first + child)) for child in range(n_children)]


def row_taker(column: Any) -> Callable[[int], Any]:
    """What gives the value of one record of a column, as a view of it where that can be.

    Ragged rows are arrays, or `Ragged` where they are ragged more than once; of strings they are
    object arrays. Sparse rows are `Sparse`.
    """
    if isinstance(column, Ragged):
        is_text = isinstance(column.values, BytesColumn)
        return (lambda row: column[row].to_numpy()) if is_text else column.__getitem__
    if isinstance(column, Sparse):
        return _sparse_taker(column)
    taker: Callable[[int], Any] = column.__getitem__
    return taker


def record_taker(batch: Any) -> Callable[[int], Any]:
    """What gives one record of a batch: of its dicts and tuples, the value of each column.

    >>> record_taker({"x": np.arange(3), "name": ["a", "b", "c"]})(1)
    {'x': np.int64(1), 'name': 'b'}
    """
    if isinstance(batch, dict):
        named = {name: record_taker(column) for name, column in batch.items()}
        return lambda row: {name: take(row) for name, take in named.items()}
    if isinstance(batch, tuple):
        parts = [record_taker(column) for column in batch]
        if hasattr(batch, "_fields"):
            return lambda row: type(batch)(*(take(row) for take in parts))
        return lambda row: tuple(take(row) for take in parts)
    return row_taker(batch)


def _sparse_taker(column: Sparse) -> Callable[[int], Sparse]:
    """Rows found by their place: `Sparse` itself would look through all values for each."""
    ends = np.searchsorted(column.indices[:, 0], np.arange(len(column) + 1)).tolist()

    def take(row: int) -> Sparse:
        here = slice(ends[row], ends[row + 1])
        values: Any = column.values[here]
        return Sparse(column.indices[here, 1:], values, column.dense_shape[1:])

    return take
