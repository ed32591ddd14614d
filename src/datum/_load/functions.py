"""Functions of the user: checks, calls with repeatable random numbers, rows to call them with."""

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

from datum._options import wrong_kind
from datum.columns import BytesColumn, Ragged, Sparse
from datum.errors import Message
from datum.transforms.graph import Origin, find_factory, find_origin, numpy_code

__all__ = [
    "FrameworkTools",
    "GlobalGenerator",
    "GlobalRandomness",
    "UserFunction",
    "check_function",
    "check_graph_function",
    "check_numpy_function",
    "like_tuple",
    "make_generator",
    "make_seed",
    "record_taker",
    "refuse_generator",
    "row_taker",
]

_GIVEN = {"map": "a record", "batch_map": "a batch", "decode": "the bytes of an image"}
_GENERATORS = (np.random.Generator, np.random.RandomState)


# Checks of options.


def check_function(name: str, value: Any) -> None:
    """Raise TypeError unless the value is None or callable."""
    if value is not None and not callable(value):
        raise wrong_kind(name, "a function", value)


def check_numpy_function(option: str, function: Any, *, feature: str = "image") -> None:
    """Raise TypeError for a `map`, `batch_map` or `decode` that cannot work on NumPy arrays.

    Such functions are those that `datum.transforms` makes for TensorFlow's graphs, and those that
    cannot be called with one value, and `rng` if there is such a parameter.

    Args:
        option: "map", "batch_map" or "decode".
        function: The function of the user.
        feature: The feature that the function decodes, for `decode`.
    """
    check_function(option, function)
    factory, origin = find_factory(function), find_origin(function)
    if factory is not None:
        raise TypeError(
            Message(
                f"expected `{option}` to work on NumPy arrays, got datum.transforms.{factory},"
                " which makes functions for TensorFlow's `to_tf`",
                hint="use a function of your own: map=lambda record: {**record, 'more': 1}",
            )
        )
    if origin is not None and origin.is_for_graphs:
        raise TypeError(
            Message(
                f"expected `{option}` to work on NumPy arrays, got datum.transforms.{origin.name},"
                " which works on the tensors of TensorFlow's `to_tf`",
                hint=_numpy_hint(option, origin, feature),
            )
        )
    _check_argument(option, origin, feature)
    _check_parameters(option, function)


def refuse_generator(option: str, function: Any) -> None:
    """Raise TypeError for a function that needs a `torch.Generator`, which only `to_torch` has."""
    for parameter in _parameters(function):
        if parameter.name == "generator" and parameter.default is parameter.empty:
            raise TypeError(
                Message(
                    f"expected `{option}` without a parameter `generator`, which only `to_torch`"
                    f" passes, got {_described(function)}",
                    hint="name the parameter `rng` to get a NumPy generator",
                )
            )


def check_graph_function(option: str, function: Any, *, feature: str = "image") -> None:
    """Raise TypeError for a `map`, `batch_map` or `decode` that TensorFlow cannot call.

    Such functions take a generator of random numbers, which only the other frameworks pass, or are
    those that `datum.transforms` has for another option.
    """
    check_function(option, function)
    factory = find_factory(function)
    if factory is not None:
        options = ", ".join(map(_without_type, inspect.signature(function).parameters.values()))
        raise TypeError(
            Message(
                f"expected `{option}` to be a function of {_GIVEN[option]}, got"
                f" datum.transforms.{factory}, which makes one",
                hint=f"call it with its options: datum.transforms.{factory}({options})",
            )
        )
    _check_argument(option, find_origin(function), feature)
    for parameter in _parameters(function):
        is_given = parameter.default is not parameter.empty
        is_frozen = is_given and isinstance(parameter.default, _GENERATORS)
        if parameter.name in ("rng", "generator") and (is_frozen or not is_given):
            reason = (
                "would draw only once, when TensorFlow traces it"
                if is_frozen
                else "gets no random numbers here, unlike in `to_numpy`, `to_torch` and `to_jax`"
            )
            raise TypeError(
                Message(
                    f"expected `{option}` without a parameter `{parameter.name}`, got"
                    f" {_described(function)}, which {reason}",
                    hint="draw within the graph:"
                    " map=lambda record: {**record, 'chance': tf.random.uniform([])}; or use"
                    " datum.transforms.random_crop and random_flip, which follow the `seed`",
                )
            )


def _numpy_hint(option: str, origin: Origin, feature: str) -> list[str]:
    """The code to write instead, in lines."""
    if not origin.code:
        return [f"decode={{{feature!r}: True}}, which is the default for images, decodes them"]
    place = "map" if origin.is_single or option == "decode" else option
    start = "images come decoded; " if origin.takes == "image" else ""
    code = numpy_code(origin, feature).splitlines()
    return [f"{start}the same with NumPy, for {place}=prepare:", *(f"  {line}" for line in code)]


def _check_argument(option: str, origin: Origin | None, feature: str) -> None:
    """Raise TypeError for a function of records as a decoder, and the other way round."""
    if origin is None or (origin.takes == "image") == (option == "decode"):
        return
    call = f"datum.transforms.{origin.call or origin.name + '(...)'}"
    place = f"decode={{{feature!r}: {call}}}" if origin.takes == "image" else f"map={call}"
    argument = "the bytes of an image" if origin.takes == "image" else "a record"
    raise TypeError(
        Message(
            f"expected `{option}` to be a function of {_GIVEN[option]}, got"
            f" datum.transforms.{origin.name}, which takes {argument}",
            hint=place,
        )
    )


def _check_parameters(option: str, function: Any) -> None:
    """Raise TypeError for a function that cannot be called with one value, and `rng`."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions written in C
        return
    names = list(signature.parameters)
    given = () if option == "decode" else ("rng", "generator")
    try:
        signature.bind(None, **{name: None for name in given if name in names})
    except TypeError as error:
        alone = "" if option == "decode" else ", and of `rng` if it draws random numbers"
        if option == "decode" and "rng" in names:
            hint = "draw in `map`, which gets an `rng`"
        else:
            hint = "functools.partial sets the other arguments of a function"
        raise TypeError(
            Message(
                f"expected `{option}` to be a function of {_GIVEN[option]}{alone}, got"
                f" {_described(function)}: {error}",
                hint=hint,
            )
        ) from None


def _parameters(function: Any) -> list[inspect.Parameter]:
    """The parameters of a function; none if they are not known."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some functions written in C
        return []


def _described(function: Any) -> str:
    """The name and the parameters of a function."""
    name = getattr(function, "__name__", type(function).__name__)
    return f"{name}({', '.join(map(_without_type, _parameters(function)))})"


def _without_type(parameter: inspect.Parameter) -> str:
    return str(parameter.replace(annotation=inspect.Parameter.empty))


# Random numbers.


def make_generator(*numbers: int) -> np.random.Generator:
    """A random generator that is seeded with whole numbers.

    >>> bool(make_generator(1, 2).random() == make_generator(1, 2).random())
    True
    """
    seeds: Any = _Seeds(numbers)
    return np.random.Generator(np.random.PCG64(seeds))


def make_seed(*numbers: int) -> int:
    """A seed of 63 bits for generators of other packages, derived from whole numbers.

    >>> make_seed(1, 2) == make_seed(1, 2) != make_seed(2, 1)
    True
    """
    return int(_Seeds(numbers).generate_state(1, np.uint64)[0]) >> 1


class _Seeds(ISpawnableSeedSequence):
    """Seeds of NumPy's generators, from a hash: a `SeedSequence` takes four times as long."""

    def __init__(self, numbers: tuple[int, ...]) -> None:
        self._numbers = numbers
        self._children = 0

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        """A number of words for NumPy."""
        words = np.dtype(dtype)
        count = n_words * words.itemsize
        digest = hashlib.shake_128(repr(self._numbers).encode()).digest(count)
        return np.frombuffer(digest, words.newbyteorder("<")).astype(words)

    def spawn(self, n_children: int) -> list[Any]:
        """Seeds that are independent of this one and of each other."""
        first = self._children
        self._children += n_children
        return [_Seeds((*self._numbers, first + child)) for child in range(n_children)]


@dataclass(frozen=True, slots=True)
class GlobalGenerator:
    """A generator that a whole program shares.

    Attributes:
        get_state: Returns the state of the generator, which can be compared with `==`.
        set_state: Restores a state.
        seed: Seeds the generator with a number of 63 bits.
    """

    get_state: Callable[[], Any]
    set_state: Callable[[Any], None]
    seed: Callable[[int], None]


# Functions of this module, so that a loader sent to another process uses the generators there.
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
    """The generators that a whole program shares, for functions that draw from them.

    Threads that draw at the same time would get arbitrary numbers, and disturb those of the
    program. So such functions are called by one thread, with the generators seeded for each record
    and restored after it.

    Args:
        others: Generators of a framework, besides those of Python and NumPy.

    Attributes:
        is_drawn: Whether functions draw from them; None until some were called.
    """

    def __init__(self, *others: GlobalGenerator) -> None:
        self._generators = (_PYTHON, _NUMPY, *others)
        self._was_drawn = False
        self.is_drawn: bool | None = None

    @contextmanager
    def seeded(self, number: int) -> Iterator[None]:
        """Seed all generators, and restore their states at the end."""
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
        """Set `is_drawn` by the calls so far."""
        self.is_drawn = self._was_drawn


_STAGES = {"map": 0, "batch_map": 1}


@dataclass(frozen=True, slots=True)
class FrameworkTools:
    """Support of a framework for functions of the user.

    Attributes:
        stack: Makes one tensor of values that are tensors of one shape; returns None for others.
        make_generator: Makes a generator of the framework, seeded with a number of 63 bits.
        generators: Global generators of the framework.
    """

    stack: Callable[[Sequence[Any]], Any]
    make_generator: Callable[[int], Any]
    generators: tuple[GlobalGenerator, ...] = ()


class UserFunction:
    """The option `map` or `batch_map`: a function of a record or a batch, which returns a new one.

    A function with a parameter `rng` gets a `numpy.random.Generator` that depends on the seed, the
    epoch and the position alone: its numbers are the same for any number of threads, workers and
    hosts, and after a resume. A parameter `generator` gets a generator of the framework in the same
    way. Several threads call a function at once. Functions that spend most of their time outside
    Python (NumPy, OpenCV, Pillow) run in parallel; for pure Python, which holds the interpreter's
    lock, use the workers of a PyTorch DataLoader.

    Args:
        option: "map" or "batch_map".
        function: The function of the user.
        seed: Seed of its random numbers.
        tools: Support of the framework; None for NumPy.
        randomness: The generators of the program, from which the function may draw.
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
        """Whether it may draw from global generators, since it takes no generator."""
        return not self._takes_rng and self._make_generator is None

    def __call__(self, given: Any, *, epoch: int, position: int) -> Any:
        """Call the function with the record or batch at a position of an epoch."""
        place = (self._seed, _STAGES[self._option], epoch, position)
        if self._randomness is None or self._randomness.is_drawn is False:
            made = self._function(given, **self._random_numbers(place))
        else:
            with self._randomness.seeded(make_seed(*place)):
                made = self._function(given)
        if made is None:
            raise ValueError(
                Message(
                    f"expected `{self._option}` to return the new value, got None",
                    hint="a function that changes its argument in place must return it too",
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
    except (TypeError, ValueError):  # some functions written in C
        return False


def row_taker(column: Any) -> Callable[[int], Any]:
    """Make a function that returns the value of one row of a column, as a view if possible.

    Rows of a `Ragged` are arrays, object arrays of strings, or `Ragged` if they are nested more
    deeply. Rows of a `Sparse` are `Sparse`.
    """
    if isinstance(column, Ragged):
        is_text = isinstance(column.values, BytesColumn)
        return (lambda row: column[row].to_numpy()) if is_text else column.__getitem__
    if isinstance(column, Sparse):
        return _sparse_taker(column)
    taker: Callable[[int], Any] = column.__getitem__
    return taker


def record_taker(batch: Any) -> Callable[[int], Any]:
    """Make a function that returns one record of a batch, in the dicts and tuples of the batch.

    >>> record_taker({"x": np.arange(3), "name": ["a", "b", "c"]})(1)
    {'x': np.int64(1), 'name': 'b'}
    """
    if isinstance(batch, dict):
        named = {name: record_taker(column) for name, column in batch.items()}
        return lambda row: {name: take(row) for name, take in named.items()}
    if isinstance(batch, tuple):
        parts = [record_taker(column) for column in batch]
        return lambda row: like_tuple(batch, [take(row) for take in parts])
    return row_taker(batch)


def like_tuple(example: tuple[Any, ...], parts: Sequence[Any]) -> tuple[Any, ...]:
    """A tuple of these parts; a named tuple if the example is one."""
    return type(example)(*parts) if hasattr(example, "_fields") else tuple(parts)


def _sparse_taker(column: Sparse) -> Callable[[int], Sparse]:
    """Find all rows at once: `Sparse` itself would search all values for each row."""
    ends = np.searchsorted(column.indices[:, 0], np.arange(len(column) + 1)).tolist()

    def take(row: int) -> Sparse:
        here = slice(ends[row], ends[row + 1])
        values: Any = column.values[here]
        return Sparse(column.indices[here, 1:], values, column.dense_shape[1:])

    return take
