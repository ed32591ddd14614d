"""What expressions are made of: comparisons, arithmetic and functions, on values or on none."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["FUNCTIONS", "METHODS", "Value", "calculate", "call", "compare", "sign", "truth"]

Record = Mapping[str, Any]
Value = Callable[[Record], Any]  # of a record

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_NEEDS_VALUES = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn)
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_SIGNS: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}

# How many arguments each takes, and what it does.
FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "abs": (1, abs),
    "endswith": (2, lambda text, end: text.endswith(end)),
    "len": (1, len),
    "lower": (1, lambda text: text.lower()),
    "max": (1, max),
    "min": (1, min),
    "startswith": (2, lambda text, start: text.startswith(start)),
    "strip": (1, lambda text: text.strip()),
    "sum": (1, sum),
    "upper": (1, lambda text: text.upper()),
}
METHODS = ("endswith", "lower", "startswith", "strip", "upper")  # that may stand after a dot


def truth(value: Any) -> bool:
    """Whether a value is true; several at once are neither."""
    size = getattr(value, "size", 1)
    if size > 1:
        raise ValueError("several values at once: index them, or ask for len, min or max")
    return bool(size) and bool(value)


def compare(operators: Sequence[ast.cmpop], values: Sequence[Value]) -> Value:
    """Whether each value stands to the next as an operator says; None is in no order."""
    tests = [(_COMPARISONS[type(one)], isinstance(one, _NEEDS_VALUES)) for one in operators]

    def test(record: Record) -> bool:
        left = values[0](record)
        for (holds, needs_values), value in zip(tests, values[1:], strict=True):
            right = value(record)
            if needs_values and (left is None or right is None):
                return False
            if not truth(holds(left, right)):
                return False
            left = right
        return True

    return test


def calculate(kind: type[ast.operator], left: Value, right: Value) -> Value | None:
    """Two numbers made into one, or two texts joined; None if there is no such operator here."""
    apply = _ARITHMETIC.get(kind)
    if apply is None:
        return None

    def result(record: Record) -> Any:
        first, second = left(record), right(record)
        if first is None or second is None:
            return None
        if kind is not ast.Add and isinstance(first, (str, bytes, list)):
            raise TypeError(f"{first!r:.50}, which is no number")  # nor a pattern, nor repeated
        if kind is not ast.Add and isinstance(second, (str, bytes, list)):
            raise TypeError(f"{second!r:.50}, which is no number")
        return apply(first, second)

    return result


def sign(kind: type[ast.unaryop], value: Value) -> Value | None:
    """A number with a sign, or the opposite of a truth; None if there is no such operator here."""
    if kind is ast.Not:
        return lambda record: not truth(value(record))
    apply = _SIGNS.get(kind)
    if apply is None:
        return None
    return lambda record: None if (found := value(record)) is None else apply(found)


def call(name: str, values: Sequence[Value]) -> Value:
    """What a function makes of values; None of None."""
    function = FUNCTIONS[name][1]

    def result(record: Record) -> Any:
        found = [value(record) for value in values]
        return None if found[0] is None else function(*found)

    return result
