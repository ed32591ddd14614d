"""Options of public functions: declared once in a dataclass, shown, checked and suggested.

A dataclass declares the options of a function: the type and default of each in its field, its
help in the docstring's `Attributes:`, its check in `__post_init__`. Signatures, docstrings, flags
of the command line and settings in TOML are derived from it. The first sentence of a help text
stands alone: the command line shows no more.
"""

from __future__ import annotations

import functools
import inspect
import operator
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import Field, dataclass, fields
from typing import Any, ParamSpec, TypeVar, get_type_hints

from datum.errors import Message, Option, Text, suggest

__all__ = [
    "DeclaredOption",
    "check_choice",
    "check_count",
    "check_kind",
    "check_known",
    "fields_of",
    "help_of",
    "is_default",
    "lists_options",
    "names_nearest_option",
    "options_of",
    "refuse_unknown",
    "thread_count",
    "wrong_kind",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_P = ParamSpec("_P")
_R = TypeVar("_R")


def fields_of(declared: Any) -> dict[str, Field[Any]]:
    """The fields that are options, by name."""
    return {option.name: option for option in fields(declared) if option.init}


def is_default(declared: Any, name: str, value: Any) -> bool:
    """Whether a value is the default of an option."""
    default = fields_of(declared)[name].default
    return type(value) is type(default) and bool(value == default)


def help_of(declared: Any) -> dict[str, str]:
    """The help text of each option, one line each, from the docstring's `Attributes:`."""
    return {name: " ".join(words.split()) for name, words in _documented(declared).items()}


def _documented(declared: Any) -> dict[str, str]:
    """The text of each option in the docstrings of a dataclass and of those it extends."""
    found: dict[str, str] = {}
    for one in reversed(declared.__mro__):
        text = inspect.cleandoc(one.__doc__ or "").partition("Attributes:\n")[2]
        found |= re.findall(r"^    (\w+): (.*(?:\n        .*)*)", text, re.MULTILINE)
    return {name: found[name] for name in fields_of(declared) if name in found}


def lists_options(*declared: Any, keywords: Any) -> Callable[[_Function], _Function]:
    """Show each option of a function that takes `**options` in its signature and docstring.

    Args:
        declared: The dataclasses that declare the options.
        keywords: The TypedDict by which editors know them.
    """

    def decorate(function: _Function) -> _Function:
        own = inspect.signature(function)
        given = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        options = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=option.default,
                annotation=keywords.__annotations__[name].__forward_arg__,
            )
            for one in declared
            for name, option in fields_of(one).items()
        ]
        documented: Any = function
        documented.__signature__ = own.replace(parameters=[*given, *options])
        documented.__options__ = declared
        texts = [pair for one in declared for pair in _documented(one).items()]
        text = "\n".join(f"    {name}: {words}" for name, words in texts)
        lines = inspect.cleandoc(function.__doc__ or "").splitlines()
        listed = [text if line.strip().startswith("options:") else line for line in lines]
        documented.__doc__ = "\n".join(listed)
        return function

    return decorate


@dataclass(frozen=True, slots=True)
class DeclaredOption:
    """An option of a public function.

    Attributes:
        kind: Its type.
        default: Its default.
        help: Its help text, on one line.
    """

    kind: Any
    default: Any
    help: str


def options_of(function: Any) -> dict[str, DeclaredOption]:
    """The options of a function that `lists_options` decorates, by name."""
    found: dict[str, DeclaredOption] = {}
    for declared in function.__options__:
        kinds, texts = get_type_hints(declared), help_of(declared)
        for name, option in fields_of(declared).items():
            found[name] = DeclaredOption(kinds[name], option.default, texts[name])
    return found


def refuse_unknown(names: Iterable[str], known: Iterable[str], *, caller: str) -> None:
    """Raise TypeError for the first name that is no option, with the nearest one."""
    known = list(known)
    for name in names:
        if name not in known:
            within = [one for one in known if one in name or name in one]
            listed = f"there are {', '.join(known)}"
            otherwise = suggest(name, within, listed, shown="`{}`".format, cutoff=0)
            hint = suggest(name, known, otherwise, shown="`{}`".format)
            raise TypeError(Message(f"{caller}: got an unknown option `{name}`", hint=hint))


def names_nearest_option(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let a function that lists its own options name the nearest one to a misspelt one."""
    known = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def checked(*args: _P.args, **options: _P.kwargs) -> _R:
        refuse_unknown(options, known, caller=function.__name__)
        return function(*args, **options)

    return checked


def check_count(
    name: str, value: Any, *, least: int, most: int | None = None, hint: str = ""
) -> int:
    """Return a whole number from `least` to `most` as an `int`; refuse anything else.

    A NumPy number would overflow in arithmetic, and does not fit into JSON.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise wrong_kind(name, "a whole number", value) from None
    option = Option(name)
    if isinstance(value, bool) or number < least:
        problem = Text("expected ", option, f" of {least:,} or more, got {value!r}")
        raise ValueError(Message(problem, hint=hint))
    if most is not None and number > most:
        problem = Text("expected ", option, f" of at most {most:,}, got {value!r}")
        raise ValueError(Message(problem, hint=hint))
    return number


def thread_count(threads: Any) -> int:
    """Return `threads`, or by default one for each core this process may use."""
    if threads is None:
        affinity = getattr(os, "sched_getaffinity", None)
        return len(affinity(0)) if affinity else os.cpu_count() or 1
    return check_count("threads", threads, least=1)


def check_choice(name: str, value: Any, choices: Iterable[Any]) -> None:
    """Refuse a value that is none of the choices."""
    choices = list(choices)
    if value not in choices:
        words = [choice for choice in choices if isinstance(choice, str)]
        expected = " or ".join(map(repr, choices))
        problem = Text("expected ", Option(name), f" to be {expected}, got {value!r}")
        raise ValueError(Message(problem, hint=suggest(str(value).lower(), words)))


def check_kind(name: str, value: Any, kinds: Any, expected: str) -> None:
    """Refuse a value of another type."""
    if not isinstance(value, kinds):
        raise wrong_kind(name, expected, value)


def check_known(option: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse names of features that are not there, and name the nearest that is."""
    known = list(known)
    for name in names:
        if name not in known:
            hint = suggest(name, known, f"there are {', '.join(known)}")
            raise ValueError(
                Message(f"expected `{option}` to name features, got {name!r}", hint=hint)
            )


def wrong_kind(name: str, expected: str, value: Any) -> TypeError:
    """The error for an option of another type."""
    return TypeError(Message(Text("expected ", Option(name), f" to be {expected}, got {value!r}")))
