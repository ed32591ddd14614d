"""Functions of the user, given each record or each batch, with random numbers if they take them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from datum.columns import BytesColumn, Ragged, Sparse
from datum.errors import Message
from datum.loading.randomness import (
    GlobalGenerator,
    GlobalRandomness,
    make_generator,
    make_seed,
)

__all__ = ["FrameworkTools", "UserFunction", "record_taker", "row_taker"]

_STAGES = {"map": 0, "batch_map": 1}


@dataclass(frozen=True, slots=True)
class FrameworkTools:
    """What a framework has for functions of the user.

    Attributes:
        stack: one tensor of values that are all tensors of one shape; None for any others.
        make_generator: a generator of the framework's own, seeded with a number of 63 bits.
        generators: those that its functions draw from by themselves.
    """

    stack: Callable[[Sequence[Any]], Any]
    make_generator: Callable[[int], Any]
    generators: tuple[GlobalGenerator, ...] = ()


class UserFunction:
    """The option `map` or `batch_map`: called with a record or a batch, gives what takes its place.

    A function with a parameter `rng` gets a `numpy.random.Generator` that depends on nothing but
    the seed, the epoch and the position: its numbers are the same for any number of threads,
    workers and hosts, and after a resume. One with a parameter `generator` gets a generator of the
    framework, likewise. Functions are called by several threads at once. Those that leave Python
    for most of their work (NumPy, OpenCV, Pillow) run in parallel; pure Python holds the
    interpreter's lock, and for it the workers of a PyTorch DataLoader are the remedy.

    Args:
        option: which of the two it is.
        function: what the user gave.
        seed: of its random numbers.
        tools: of the framework that the loader is for.
        randomness: the generators of the program, where a function may draw from these.
    """

    def __init__(
        self,
        option: Literal["map", "batch_map"],
        function: Callable[..., Any],
        *,
        seed: int,
        tools: FrameworkTools | None = None,
        randomness: GlobalRandomness | None = None,
    ) -> None:
        self._option = option
        self._function = function
        self._seed = seed
        self._takes_rng = _takes(function, "rng")
        self._make_generator: Callable[[int], Any] | None = None
        if tools is not None and _takes(function, "generator"):
            self._make_generator = tools.make_generator
        self._randomness = randomness if self.may_draw else None

    @property
    def may_draw(self) -> bool:
        """Whether it may draw from generators of the program, since it takes none of its own."""
        return not self._takes_rng and self._make_generator is None

    def __call__(self, given: Any, *, epoch: int, position: int) -> Any:
        """The result for what lies at a position of an epoch."""
        place = (self._seed, _STAGES[self._option], epoch, position)
        if self._randomness is None or self._randomness.is_drawn is False:
            made = self._function(given, **self._random_numbers(place))
        else:
            with self._randomness.seeded(make_seed(*place)):
                made = self._function(given)
        if made is None:
            raise ValueError(
                Message(
                    f"expected `{self._option}` to return what takes the place, got None",
                    hint="a function that changes what it was given must return it, too",
                )
            )
        return made

    def _random_numbers(self, place: tuple[int, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self._takes_rng:
            found["rng"] = make_generator(*place)
        if self._make_generator is not None:
            found["generator"] = self._make_generator(make_seed(*place))
        return found


def _takes(function: Callable[..., Any], name: str) -> bool:
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):  # of some functions written in C
        return False


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
