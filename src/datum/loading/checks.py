"""Checks of options, and the words for what is wrong with one."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Iterable
from typing import Any

__all__ = ["check_choice", "check_count", "check_function", "check_kind", "check_known"]


def check_known(option: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse names of features that are not there, and name the nearest that is."""
    known = list(known)
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise ValueError(f"expected `{option}` to name features, got {name!r}\nhint: {hint}")


def check_count(name: str, value: Any, *, least: int, hint: str = "") -> int:
    """Refuse what is no whole number of at least `least`; gives it as a plain one.

    A number of NumPy would overflow when it is counted with, and does not fit into JSON.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise _wrong_kind(name, "a whole number", value) from None
    if isinstance(value, bool) or number < least:
        raise ValueError(f"expected `{name}` of {least} or more, got {value!r}{hint}")
    return number


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse what is none of the choices."""
    if value not in choices:
        expected = " or ".join(map(repr, choices))
        raise ValueError(f"expected `{name}` to be {expected}, got {value!r}")


def check_kind(name: str, value: Any, kinds: Any, expected: str) -> None:
    """Refuse what is of another type."""
    if not isinstance(value, kinds):
        raise _wrong_kind(name, expected, value)


def check_function(name: str, value: Any) -> None:
    """Refuse what is neither None nor can be called."""
    if value is not None and not callable(value):
        raise _wrong_kind(name, "a function", value)


def _wrong_kind(name: str, expected: str, value: Any) -> TypeError:
    return TypeError(f"expected `{name}` to be {expected}, got {value!r}")
