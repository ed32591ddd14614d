"""Checks of the options of loaders."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import numpy as np

from datum._options import wrong_kind
from datum.errors import Message, suggest
from datum.transforms.graph import Origin, find_factory, find_origin, numpy_code

__all__ = [
    "check_function",
    "check_graph_function",
    "check_known",
    "check_numpy_function",
    "refuse_generator",
]

_GIVEN = {"map": "a record", "batch_map": "a batch", "decode": "the bytes of an image"}
_GENERATORS = (np.random.Generator, np.random.RandomState)


def check_known(option: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse names of features that are not there, and name the nearest that is."""
    known = list(known)
    for name in names:
        if name not in known:
            hint = suggest(name, known, f"there are {', '.join(known)}")
            raise ValueError(
                Message(f"expected `{option}` to name features, got {name!r}", hint=hint)
            )


def check_function(name: str, value: Any) -> None:
    """Refuse what is neither None nor can be called."""
    if value is not None and not callable(value):
        raise wrong_kind(name, "a function", value)


def check_numpy_function(option: str, function: Any, *, feature: str = "image") -> None:
    """Refuse a `map`, `batch_map` or `decode` that cannot work on NumPy arrays.

    That is what `datum.transforms` makes for TensorFlow's graphs, and what cannot be called with
    one value, and with `rng` if it has such a parameter.

    Args:
        option: "map", "batch_map" or "decode".
        function: What was given; None passes.
        feature: The feature that `decode` gives the function for.
    """
    check_function(option, function)
    if function is None:
        return
    factory, origin = find_factory(function), find_origin(function)
    if factory is not None:
        raise TypeError(
            Message(
                f"expected `{option}` to work on NumPy arrays, got datum.transforms.{factory},"
                " which makes functions for TensorFlow's `to_tf`",
                hint="give a function of your own, as map=lambda record: {**record, 'more': 1}",
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
    _check_taken(option, origin, feature)
    _check_parameters(option, function)


def refuse_generator(option: str, function: Any) -> None:
    """Refuse a function that needs a `torch.Generator`, which only `to_torch` gives."""
    for parameter in _parameters(function) if function is not None else ():
        if parameter.name == "generator" and parameter.default is parameter.empty:
            raise TypeError(
                Message(
                    f"expected `{option}` without a parameter `generator`, which only `to_torch`"
                    f" gives, got {_described(function)}",
                    hint="a NumPy generator is given to the parameter `rng`: name it so",
                )
            )


def check_graph_function(option: str, function: Any, *, feature: str = "image") -> None:
    """Refuse a `map`, `batch_map` or `decode` that TensorFlow cannot call as it is meant.

    That is what takes a generator of random numbers, which only the other frameworks give, and
    what `datum.transforms` has for another option.
    """
    check_function(option, function)
    if function is None:
        return
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
    _check_taken(option, find_origin(function), feature)
    for parameter in _parameters(function):
        is_given = parameter.default is not parameter.empty
        is_frozen = is_given and isinstance(parameter.default, _GENERATORS)
        if parameter.name in ("rng", "generator") and (is_frozen or not is_given):
            reason = (
                "would draw only once, when TensorFlow traces it"
                if is_frozen
                else "is given no random numbers: that `to_numpy`, `to_torch` and `to_jax` do"
            )
            raise TypeError(
                Message(
                    f"expected `{option}` without a parameter `{parameter.name}`, got"
                    f" {_described(function)}, which {reason}",
                    hint="draw within the graph:"
                    " map=lambda record: {**record, 'chance': tf.random.uniform([])}; what"
                    " datum.transforms.random_crop and random_flip draw follows from the `seed`",
                )
            )


def _numpy_hint(option: str, origin: Origin, feature: str) -> list[str]:
    """What to write instead, as lines of code."""
    if not origin.code:
        return [f"decode={{{feature!r}: True}}, which is the default for images, decodes them"]
    place = "map" if origin.is_single or option == "decode" else option
    start = "images come decoded; " if origin.takes == "image" else ""
    code = numpy_code(origin, feature).splitlines()
    return [f"{start}the same with NumPy, for {place}=prepare:", *(f"  {line}" for line in code)]


def _check_taken(option: str, origin: Origin | None, feature: str) -> None:
    """Refuse a function of records as a decoder, and a decoder as a function of records."""
    if origin is None or (origin.takes == "image") == (option == "decode"):
        return
    call = f"datum.transforms.{origin.call or origin.name + '(...)'}"
    place = f"decode={{{feature!r}: {call}}}" if origin.takes == "image" else f"map={call}"
    taken = "the bytes of an image" if origin.takes == "image" else "a record"
    raise TypeError(
        Message(
            f"expected `{option}` to be a function of {_GIVEN[option]}, got"
            f" datum.transforms.{origin.name}, which takes {taken}",
            hint=place,
        )
    )


def _check_parameters(option: str, function: Any) -> None:
    """Refuse what cannot be called with one value, and `rng`."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of some functions written in C
        return
    names = list(signature.parameters)
    given = () if option == "decode" else ("rng", "generator")
    try:
        signature.bind(None, **{name: None for name in given if name in names})
    except TypeError as error:
        alone = "" if option == "decode" else ", and of `rng` if it draws random numbers"
        if option == "decode" and "rng" in names:
            hint = "draw in `map`, whose functions get an `rng`"
        else:
            hint = "functools.partial gives a function its other arguments"
        raise TypeError(
            Message(
                f"expected `{option}` to be a function of {_GIVEN[option]}{alone}, got"
                f" {_described(function)}: {error}",
                hint=hint,
            )
        ) from None


def _parameters(function: Any) -> list[inspect.Parameter]:
    """What a function takes; nothing where that is not known."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # of some functions written in C
        return []


def _described(function: Any) -> str:
    """The name of a function, with what it takes."""
    name = getattr(function, "__name__", type(function).__name__)
    return f"{name}({', '.join(map(_without_type, _parameters(function)))})"


def _without_type(parameter: inspect.Parameter) -> str:
    return str(parameter.replace(annotation=inspect.Parameter.empty))
