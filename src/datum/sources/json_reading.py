"""JSON as strictly as data needs it: no name twice, no NaN unless allowed, no endless depth."""

from __future__ import annotations

import json
import math
from typing import Any

__all__ = ["JsonError", "make_decoder"]


class JsonError(ValueError):
    """What is wrong with a JSON text, apart from its syntax."""


def make_decoder(*, allow_nan: bool) -> json.JSONDecoder:
    """A decoder that raises ValueError (JsonError, or json.JSONDecodeError with its position).

    Too deep a nesting raises RecursionError.
    """
    constant = float if allow_nan else _refuse_constant
    number = float if allow_nan else _finite
    return json.JSONDecoder(object_pairs_hook=_unique, parse_constant=constant, parse_float=number)


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse_constant(text)


def _refuse_constant(text: str) -> Any:
    raise JsonError(
        f"expected a number of JSON, got {text}\nhint: allow_nan=True takes NaN and inf"
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise JsonError(f"expected each name once, got {twice!r} twice")
    return found
