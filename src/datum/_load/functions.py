"""User functions mapped over records and batches, with repeatable random numbers."""

from __future__ import annotations

import hashlib
import inspect
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence
from numpy.typing import NDArray

from datum.columns import BytesColumn, Ragged, Sparse
from datum.errors import Message

__all__ = [
    "FrameworkTools",
    "GlobalGenerator",
    "GlobalRandomness",
    "UserFunction",
    "make_generator",
    "make_seed",
    "record_taker",
    "row_taker",
]


def make_generator(*numbers: int) -> np.random.Generator:
    """Random numbers that are a function of some whole numbers.

    >>> bool(make_generator(1, 2).random() == make_generator(1, 2).random())
    True
    """
    seeds: Any = _Seeds(numbers)
    return np.random.Generator(np.random.PCG64(seeds))


def make_seed(*numbers: int) -> int:
    """A seed of 63 bits, for generators of other packages, that is a function of whole numbers.

    >>> make_seed(1, 2) == make_seed(1, 2) != make_seed(2, 1)
    True
    """
    return int(_Seeds(numbers).generate_state(1, np.uint64)[0]) >> 1


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


@dataclass(frozen=True, slots=True)
class GlobalGenerator:
    """A generator that a whole program shares.

    Attributes:
        get_state: gives its state, as what `==` compares.
        set_state: takes what `get_state` gave.
        seed: starts it anew from a number of 63 bits.
    """

    get_state: Callable[[], Any]
    set_state: Callable[[Any], None]
    seed: Callable[[int], None]


# Functions of this module, so that a loader that goes to another process finds those there.
def _python_state() -> Any:
    return random.getstate()


def _set_python_state(state: Any) -> None:
    random.setstate(state)


def _seed_python(number: int) -> None:
    random.seed(number)


def _numpy_state() -> Any:
    name, keys, *rest = np.random.get_state()  # noqa: NPY002
    return name, tuple(np.asarray(keys).tolist()), *rest


def _set_numpy_state(state: Any) -> None:
    np.random.set_state(state)  # noqa: NPY002


def _seed_numpy(number: int) -> None:
    np.random.seed([number & 0xFFFFFFFF, number >> 32])  # noqa: NPY002


_PYTHON = GlobalGenerator(_python_state, _set_python_state, _seed_python)
_NUMPY = GlobalGenerator(_numpy_state, _set_numpy_state, _seed_numpy)


class GlobalRandomness:
    """The generators that a whole program shares, for functions that draw from these.

    Threads that draw from them at the same time would get numbers by chance, and disturb those of
    the program. So such functions are called by one thread, with the generators seeded for each
    record, and set back after it.

    Args:
        others: those of a framework, beside Python's and NumPy's.

    Attributes:
        is_drawn: whether functions draw from them; None until some were called.
    """

    def __init__(self, *others: GlobalGenerator) -> None:
        self._generators = (_PYTHON, _NUMPY, *others)
        self._was_drawn = False
        self.is_drawn: bool | None = None

    @contextmanager
    def seeded(self, number: int) -> Iterator[None]:
        """Start all of them from a number, and set them back in the end."""
        before = [one.get_state() for one in self._generators]
        try:
            for one in self._generators:
                one.seed(number)
            fresh = self.is_drawn is None and [one.get_state() for one in self._generators]
            yield
            if fresh and fresh != [one.get_state() for one in self._generators]:
                self._was_drawn = True
        finally:
            for one, state in zip(self._generators, before, strict=True):
                one.set_state(state)

    def settle(self) -> None:
        """Take what functions did so far for what they do."""
        self.is_drawn = self._was_drawn


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
