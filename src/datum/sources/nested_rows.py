"""Lists of dicts in rows, such as messages or spans, flattened to a list for each name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

__all__ = ["SAMPLE_RECORDS", "NestedLists", "describe_filled", "holds_dicts"]

SAMPLE_RECORDS = 4096  # from which the names are learnt
_BLANKS: tuple[tuple[type, Any], ...] = (
    (str, ""),
    (bytes, b""),
    (bool, False),
    (int, 0),
    (float, math.nan),
)


@dataclass(slots=True)
class _Shape:
    """The values seen under a name within the dicts of a list.

    Attributes:
        kind: Whether they are values, dicts, or lists of dicts; None until one was seen.
        blank: The value for missing ones; None if there is none.
        inner: The names within dicts.
    """

    kind: Literal["values", "dict", "list"] | None = None
    blank: Any = None
    inner: dict[str, _Shape] = field(default_factory=dict)

    def see(self, value: Any) -> None:
        """Learn from one value."""
        if value is None:
            return
        items = _items(value)
        if isinstance(value, Mapping):
            self.kind = "dict"
            self._see_names(value)
        elif items is not None and any(isinstance(item, Mapping) for item in items):
            self.kind = "list"
            for item in items:
                if isinstance(item, Mapping):
                    self._see_names(item)
        elif self.kind is None:
            self.kind = "values" if items is None or len(items) else None  # [] fits any kind
            self.blank = _blank_of(value)

    def _see_names(self, value: Mapping[Any, Any]) -> None:
        for name, one in value.items():
            self.inner.setdefault(str(name), _Shape()).see(one)


def _items(value: Any) -> Sequence[Any] | None:
    """Return the items of a list that may contain dicts."""
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind == "O" and value.ndim == 1:
        found: list[Any] = value.tolist()
        return found
    return None


def _blank_of(value: Any) -> Any:
    if isinstance(value, (list, tuple, np.ndarray)):
        return []
    return next((blank for kind, blank in _BLANKS if isinstance(value, kind)), None)


def holds_dicts(value: Any) -> bool:
    """Return whether it is a list with a dict in it."""
    items = _items(value)
    return items is not None and any(isinstance(item, Mapping) for item in items)


class NestedLists:
    """Flattens lists of dicts: `[{"role": "a"}, {"role": "b"}]` becomes a list `role`.

    A name that one of the dicts lacks is filled in, so that all lists of a record have the same
    length: "" for a text, 0 for an integer, False, NaN, an empty list. The names are learnt from
    the first records; a name that occurs later is a feature of only the records that have it.

    Attributes:
        names: The features made of lists of dicts: lists of any length.
        filled: The features in which values were filled in.

    >>> nested = NestedLists()
    >>> nested.learn([{"m": [{"a": 1, "b": "x"}, {"a": 2}]}])
    >>> nested.flatten([{"m": [{"a": 1, "b": "x"}, {"a": 2}]}, {"m": []}])
    [{'m/a': [1, 2], 'm/b': ['x', '']}, {'m/a': [], 'm/b': []}]
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.filled: set[str] = set()
        self._shapes: dict[str, _Shape] | None = None

    def learn(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Learn which names contain lists of dicts; only the first call counts."""
        if self._shapes is not None:
            return
        self._shapes = {}
        for row in rows:
            for name, value in row.items():
                is_open = value is None or isinstance(value, (list, tuple, np.ndarray))
                if is_open and isinstance(name, str):
                    with suppress(RecursionError):  # of endless values, which are rejected later
                        self._shapes.setdefault(name, _Shape()).see(value)
        self._shapes = {
            name: shape for name, shape in self._shapes.items() if shape.kind in ("list", None)
        }

    def flatten(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the rows with a list for each name; the same rows if nothing is nested."""
        shapes = self._shapes
        if not shapes or not any(self._is_nested(row, shapes) for row in rows):
            return rows
        return [self._flatten_row(row, shapes) if type(row) is dict else row for row in rows]

    @staticmethod
    def _is_nested(row: Mapping[str, Any], shapes: Mapping[str, _Shape]) -> bool:
        return any(
            name in row and (shape.kind == "list" or holds_dicts(row[name]))
            for name, shape in shapes.items()
        )

    def _flatten_row(self, row: dict[str, Any], shapes: Mapping[str, _Shape]) -> dict[str, Any]:
        flat: dict[str, Any] = {}
        for name, value in row.items():
            shape = shapes.get(name)
            items = None if shape is None else _items(value)
            is_known = shape is not None and shape.kind == "list"
            if is_known and value is None:
                continue
            are_dicts = items is not None and all(isinstance(i, Mapping | None) for i in items)
            if shape is None or items is None or not are_dicts or not (is_known or len(items)):
                flat[name] = value
                continue
            try:
                found = self._unzip(name, items, shape)
            except RecursionError:
                found = {name: list(items)}  # reported when it is written
            if any(one in row or one in flat for one in found):
                flat[name] = value  # reported when it is written
            else:
                flat.update(found)
                self.names.update(found)
        return flat

    def _unzip(self, name: str, items: Sequence[Any], shape: _Shape) -> dict[str, list[Any]]:
        """Return a list for each name in dicts, None where an item has no dict."""
        inner = shape.inner
        seen = dict.fromkeys(str(key) for item in items if item is not None for key in item)
        found: dict[str, list[Any]] = {}
        for key in dict.fromkeys([*inner, *seen]):
            values = [None if item is None else item.get(key) for item in items]
            one = inner.get(key) or _Shape()
            if one.kind is None:
                one = _Shape()
                for value in values:
                    one.see(value)
            found |= self._take_apart(f"{name}/{key}", values, one)
        return found

    def _take_apart(self, name: str, values: list[Any], shape: _Shape) -> dict[str, list[Any]]:
        given = [value for value in values if value is not None]
        if shape.kind == "dict" and all(isinstance(value, Mapping) for value in given):
            return self._unzip(name, values, shape)
        if shape.kind == "list" and all(_items(value) is not None for value in given):
            parts = [self._unzip(name, _items(value) or [], shape) for value in values]
            names = dict.fromkeys(inner for part in parts for inner in part)
            return {inner: [part.get(inner, []) for part in parts] for inner in names}
        if shape.kind is None and not given:
            return {}  # never anything but None
        blank = [] if shape.kind is None else shape.blank
        if len(given) < len(values) and blank is not None:
            self.filled.add(name)
            values = [blank if value is None else value for value in values]
        return {name: values}


def describe_filled(filled: Iterable[str]) -> tuple[str, ...]:
    """Return a remark for each feature in which values were filled in."""
    return tuple(
        f"{name!r}: items of lists that lack it have a blank: '', 0, False, NaN or []"
        for name in sorted(filled)
    )
