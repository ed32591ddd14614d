"""Strict JSON of manifests: unique names, finite 64-bit numbers, bounded size and depth."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from datum.errors import ManifestError
from datum.schema import is_encodable

__all__ = [
    "MAX_BYTES",
    "check_size",
    "describe",
    "join_path",
    "parse_json",
    "plain_value",
    "restore_floats",
    "stored_value",
]

MAX_DEPTH = 64  # deeper than anybody nests by hand, and far from the interpreter's limit
MAX_BYTES = 256 * 2**20  # room for a million shards, or a vocabulary of millions
MAX_VALUES = 2**23  # a value of two bytes of text takes about a hundred once parsed
FLOAT_KEY = "$float"  # JSON has no infinities and NaN: {"$float": "nan"}

_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_MIN_INTEGER, _MAX_INTEGER = -(2**63), 2**64 - 1
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class _Refused:
    """A placeholder for content that JSON or some parsers allow and manifests do not."""

    problem: str


def parse_json(data: bytes) -> Any:
    """Parse a text in UTF-8; raise ManifestError with the path of the first fault."""
    if not data:
        raise ManifestError("expected JSON, got an empty file")
    check_size(data)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ManifestError(f"byte {error.start}: expected UTF-8, got other bytes") from None
    if text.startswith("\ufeff"):
        raise ManifestError("byte 0: expected JSON, got a byte order mark")
    return _parse(text)


def check_size(data: bytes) -> None:
    """Raise ManifestError for a text that is too large, or would be once parsed."""
    if len(data) > MAX_BYTES:
        raise ManifestError(f"$: expected at most {MAX_BYTES} bytes, got {len(data)}")
    if data.count(b",") + data.count(b"[") + data.count(b"{") > MAX_VALUES:
        raise ManifestError(f"$: expected at most {MAX_VALUES} values, got more")


def _parse(text: str) -> Any:
    has_refused = False

    def refuse(problem: str) -> _Refused:
        nonlocal has_refused
        has_refused = True
        return _Refused(problem)

    def to_float(number: str) -> Any:
        value = float(number)
        return value if math.isfinite(value) else refuse(f"expected a finite number, got {number}")

    def to_integer(number: str) -> Any:
        if len(number) <= 20 and _MIN_INTEGER <= int(number) <= _MAX_INTEGER:
            return int(number)
        return refuse(f"expected an integer of 64 bits, got {number:.30}")

    def to_object(pairs: list[tuple[str, Any]]) -> Any:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        times = Counter(name for name, _ in pairs)
        twice = next(name for name in found if times[name] > 1)
        return refuse(f"expected each name once, got {twice[:100]!r} twice")

    try:
        value = json.loads(
            text,
            object_pairs_hook=to_object,
            parse_float=to_float,
            parse_int=to_integer,
            parse_constant=lambda name: refuse(f"expected a finite number, got {name}"),
        )
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ManifestError(f"expected JSON: {error.msg.lower()}", where=place) from None
    except RecursionError:
        raise ManifestError("$: expected less nesting, got too deep a value") from None
    if has_refused or _SURROGATE.search(text):
        _raise_refused(value)
    return value


def _raise_refused(value: Any) -> None:
    """Raise ManifestError for the first refused value or invalid text, with its path."""
    left: list[Iterator[tuple[str, Any]]] = [iter([("$", value)])]
    while left:
        path, found = next(left[-1], (None, None))
        if path is None:
            left.pop()
        elif isinstance(found, _Refused):
            raise ManifestError(found.problem, where=path)
        elif isinstance(found, str):
            _check_text(found, path)
        elif isinstance(found, (dict, list)):
            left.append(_members(found, path))


def _members(value: dict[str, Any] | list[Any], path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        yield from ((f"{path}[{i}]", item) for i, item in enumerate(value))
        return
    for name, item in value.items():
        _check_text(name, path)
        yield join_path(path, name), item


def _check_text(text: str, path: str) -> None:
    if not text.isascii() and not is_encodable(text):
        raise ManifestError(f"expected text that UTF-8 can encode, got {text[:100]!r}", where=path)


def plain_value(value: Any, path: str) -> Any:
    """Return a JSON copy of `value` with sorted names; raise ManifestError if that is impossible.

    Floats that are not finite are kept; tuples and NumPy arrays become lists.

    >>> plain_value({"b": (1, 2), "a": None, "c": np.float32(0.5)}, "$")
    {'a': None, 'b': [1, 2], 'c': 0.5}
    """
    return _plain(value, path, 0)


def _plain(value: Any, path: str, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ManifestError(f"expected at most {MAX_DEPTH} levels of nesting, got more", where=path)
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        return _plain_object(value, path, depth)
    if type(value) is str:
        _check_text(value, path)
    elif type(value) is int:
        if not _MIN_INTEGER <= value <= _MAX_INTEGER:
            raise ManifestError("expected an integer of 64 bits, got a larger one", where=path)
    elif value is not None and type(value) not in (bool, float):
        raise ManifestError(f"expected a JSON value, got {describe(value)}", where=path)
    return value


def _plain_object(value: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
    for name in value:
        if type(name) is not str:
            raise ManifestError(f"expected names that are text, got {describe(name)}", where=path)
        _check_text(name, path)
    if FLOAT_KEY in value:
        raise ManifestError(
            f"expected another name, got {FLOAT_KEY!r}: it marks numbers", where=path
        )
    return {name: _plain(value[name], join_path(path, name), depth + 1) for name in sorted(value)}


def stored_value(value: Any) -> Any:
    """Return a plain value as it is stored, with floats that are not finite as objects.

    >>> stored_value([1.5, float("-inf")])
    [1.5, {'$float': '-inf'}]
    """
    if isinstance(value, float) and not math.isfinite(value):
        return {FLOAT_KEY: repr(value)}
    if isinstance(value, list):
        return [stored_value(item) for item in value]
    if isinstance(value, dict):
        return {name: stored_value(item) for name, item in value.items()}
    return value


def restore_floats(value: Any, path: str) -> Any:
    """Undo `stored_value`; changes `value` itself, as it may be large."""
    return _restore(value, path, 0)


def _restore(value: Any, path: str, depth: int) -> Any:
    if not isinstance(value, (dict, list)):
        return value
    if depth > MAX_DEPTH:
        raise ManifestError(f"expected at most {MAX_DEPTH} levels of nesting, got more", where=path)
    if isinstance(value, list):
        for i, item in enumerate(value):
            value[i] = _restore(item, f"{path}[{i}]", depth + 1)
        return value
    if FLOAT_KEY in value:
        name = value[FLOAT_KEY]
        if len(value) == 1 and isinstance(name, str) and name in _NOT_FINITE:
            return _NOT_FINITE[name]
        got = describe(name)
        raise ManifestError(f"expected nan, inf or -inf as {FLOAT_KEY}, got {got}", where=path)
    for name, item in value.items():
        value[name] = _restore(item, join_path(path, name), depth + 1)
    return value


def join_path(path: str, name: str) -> str:
    """Return the path of a member of an object.

    >>> join_path("$.splits", "train"), join_path("$", "odd name")
    ('$.splits.train', "$['odd name']")
    """
    is_plain = len(name) <= 100 and _PLAIN_KEY.fullmatch(name)
    return f"{path}.{name}" if is_plain else f"{path}[{name[:100]!r}]"


def describe(value: Any) -> str:
    """Describe a value in a few words, for messages.

    >>> describe([1, 2]), describe("x"), describe(None), describe(True)
    ('a list', "'x'", 'null', 'true')
    """
    if isinstance(value, str):
        return repr(value[:100])
    if isinstance(value, (bool, float)):
        return repr(value).lower()
    if isinstance(value, int):
        return repr(value) if abs(value) < 2**100 else "a huge number"
    kinds = {dict: "an object", list: "a list", type(None): "null"}
    return kinds.get(type(value)) or type(value).__name__
