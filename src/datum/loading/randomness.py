"""Random numbers that follow from a record's place, also those of a program's own generators."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence
from numpy.typing import NDArray

__all__ = ["GlobalGenerator", "GlobalRandomness", "make_generator", "make_seed"]


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
