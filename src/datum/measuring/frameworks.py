"""Which frameworks are here: named, imported without their chatter, or told to be missing."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from datum._optional import require
from datum.errors import Message, MissingDependencyError, suggest

__all__ = ["FRAMEWORKS", "choose_frameworks", "find_version", "quiet"]

FRAMEWORKS = {"numpy": "numpy", "torch": "torch", "jax": "jax", "tf": "tensorflow"}
_ALIASES = {"np": "numpy", "pytorch": "torch", "tensorflow": "tf"}
_SILENCE = {"TF_CPP_MIN_LOG_LEVEL": "3"}


def choose_frameworks(asked: Iterable[str] | str | None) -> list[str] | None:
    """Checked names, in the order of `FRAMEWORKS`; None for all that are installed.

    >>> choose_frameworks(["tensorflow", "torch"])
    ['torch', 'tf']
    """
    if asked is None or asked == "all":
        return None
    names = asked.split(",") if isinstance(asked, str) else list(asked)
    chosen = []
    for name in (str(name).strip().lower() for name in names):
        known = _ALIASES.get(name, name)
        if known not in FRAMEWORKS:
            hint = suggest(name, [*FRAMEWORKS, *_ALIASES], f"there are {', '.join(FRAMEWORKS)}")
            raise ValueError(Message(f"expected `frameworks` to be known, got {name!r}", hint=hint))
        chosen.append(known)
    return [name for name in FRAMEWORKS if name in chosen]


def find_version(name: str, *, is_needed: bool = False) -> str | None:
    """Import a framework; None if it is not installed, or MissingDependencyError if `is_needed`."""
    try:
        module: Any = require(FRAMEWORKS[name], purpose=f"measuring {name}")
    except MissingDependencyError:
        if is_needed:
            raise
        return None
    return str(getattr(module, "__version__", "unknown"))


@contextmanager
def quiet() -> Iterator[None]:
    """Keep frameworks from telling of the machine, of forks and of prototypes while they run."""
    added = {name: value for name, value in _SILENCE.items() if name not in os.environ}
    os.environ.update(added)
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
        for name in added:
            os.environ.pop(name, None)
