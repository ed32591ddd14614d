"""`--where`: expressions over the features of a record, evaluated safely."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from datum import Schema
from datum.errors import Message, inert, suggest

__all__ = [
    "FUNCTIONS",
    "METHODS",
    "Expression",
    "Value",
    "calculate",
    "call",
    "compare",
    "parse_expression",
    "sign",
    "truth",
]

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

# Number of arguments, and the function.
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
METHODS = ("endswith", "lower", "startswith", "strip", "upper")  # also allowed as methods


def truth(value: Any) -> bool:
    """Return whether a value is true; raise ValueError for an array of several."""
    size = getattr(value, "size", 1)
    if size > 1:
        raise ValueError(Message("several values at once: index them, or use len, min or max"))
    return bool(size) and bool(value)


def compare(operators: Sequence[ast.cmpop], values: Sequence[Value]) -> Value:
    """Make a chain of comparisons; None has no order."""
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
    """Make an arithmetic operation; None for an unsupported operator."""
    apply = _ARITHMETIC.get(kind)
    if apply is None:
        return None

    def result(record: Record) -> Any:
        first, second = left(record), right(record)
        if first is None or second is None:
            return None
        if kind is not ast.Add and isinstance(first, (str, bytes, list)):
            raise TypeError(
                Message(f"{first!r:.50}, which is no number")
            )  # "%" must not format, "*" must not repeat
        if kind is not ast.Add and isinstance(second, (str, bytes, list)):
            raise TypeError(Message(f"{second!r:.50}, which is no number"))
        return apply(first, second)

    return result


def sign(kind: type[ast.unaryop], value: Value) -> Value | None:
    """Make a negation; None for an unsupported operator."""
    if kind is ast.Not:
        return lambda record: not truth(value(record))
    apply = _SIGNS.get(kind)
    if apply is None:
        return None
    return lambda record: None if (found := value(record)) is None else apply(found)


def call(name: str, values: Sequence[Value]) -> Value:
    """Make a call of a function; its result is None if its first argument is None."""
    function = FUNCTIONS[name][1]

    def result(record: Record) -> Any:
        found = [value(record) for value in values]
        return None if found[0] is None else function(*found)

    return result


# A string, which stays, or a feature in backquotes.
_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|`([^`]*)`""", re.DOTALL)
_MAX_CHARACTERS = 10_000


class Expression:
    """A condition on records: call it with a record to get True or False.

    An absent value is None, which is neither less nor greater than anything.
    """

    def __init__(self, text: str, value: Value) -> None:
        self.text = text
        self._value = value

    def __call__(self, record: Mapping[str, Any]) -> bool:
        """Return whether the record satisfies the condition."""
        return truth(self._value(record))

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"


def parse_expression(
    text: str, schema: Schema, metadata: Mapping[str, Mapping[str, Any]] | None = None
) -> Expression:
    """Compile an expression such as "label == 'cat' and score > 0.5".

    Names are features; those that are not Python names go in backquotes, or as
    feature("image/height"). Expressions have numbers, strings and lists, comparisons, `in`, `and`,
    `or` and `not`, arithmetic, indexing, and abs, len, lower, upper, strip, startswith, endswith,
    min, max, sum. Classes may be compared by name if `metadata` has `class_names`. Raises
    ValueError for anything else.

    >>> from datum import Feature, Schema
    >>> wanted = parse_expression(
    ...     "x > 2 and name.startswith('a')",
    ...     Schema({"x": Feature("int64"), "name": Feature("str")}),
    ... )
    >>> wanted({"x": 3, "name": "ant"}), wanted({"x": 3, "name": "bee"})
    (True, False)
    """
    return _Reader(text, schema, metadata or {}).read()


class _Reader:
    """Compiler from syntax nodes to functions of a record."""

    def __init__(
        self, text: str, schema: Schema, metadata: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self._text = text.strip()
        self._schema = schema
        self._metadata = metadata
        self._quoted: dict[str, str] = {}  # backquoted features by their stand-in names

    def read(self) -> Expression:
        if len(self._text) > _MAX_CHARACTERS:
            raise ValueError(
                Message(f"--where: expected at most {_MAX_CHARACTERS:,} characters, got more")
            )
        if not self._text:
            raise ValueError(Message("--where: expected an expression, got nothing"))
        try:
            return Expression(
                self._text, self._value(ast.parse(self._unquoted(), mode="eval").body)
            )
        except SyntaxError as error:
            before = self._text[: max((error.offset or 1) - 1, 0)]
            hint = "compare with ==" if "=" in self._text and "==" not in self._text else ""
            self._fail("an expression", "something else", len(before.encode()), hint)
        except (RecursionError, MemoryError):
            raise ValueError(Message("--where: expected less nesting, got more")) from None

    def _unquoted(self) -> str:
        """Replace backquoted features by names of the same length."""

        def stand_in(found: re.Match[str]) -> str:
            if found[1] is not None:
                return found[0]
            name = f"_{len(self._quoted)}".ljust(len(found[0]), "_")
            self._quoted[name] = found[2]
            return name

        return _QUOTED.sub(stand_in, self._text)

    def _value(self, node: ast.expr) -> Value:
        readers: dict[type[ast.expr], Callable[[Any], Value]] = {
            ast.BinOp: self._arithmetic,
            ast.BoolOp: self._combination,
            ast.Call: self._call,
            ast.Compare: self._comparison,
            ast.Constant: self._constant,
            ast.List: self._list,
            ast.Name: self._name,
            ast.Set: self._list,
            ast.Subscript: self._item,
            ast.Tuple: self._list,
            ast.UnaryOp: self._sign,
        }
        reader = readers.get(type(node))
        if reader is None:
            self._refuse(node)
        return reader(node)

    # Values.

    def _constant(self, node: ast.Constant) -> Value:
        value = node.value
        if not isinstance(value, (bool, int, float, str, bytes, np.datetime64, type(None))):
            self._refuse(node)
        return lambda _: value

    def _list(self, node: ast.List | ast.Tuple | ast.Set) -> Value:
        items = [self._value(item) for item in node.elts]
        return lambda record: [item(record) for item in items]

    def _name(self, node: ast.Name) -> Value:
        return self._feature(self._quoted.get(node.id, node.id), node)

    def _feature(self, name: str, node: ast.expr) -> Value:
        if name not in self._schema:
            hint = suggest(name, self._schema, f"there are {', '.join(self._schema)}")
            if any(name in known and not known.isidentifier() for known in self._schema):
                hint = "put names with other characters in backquotes: `image/height` > 100"
            self._fail("a feature", repr(name), node.col_offset, hint)
        return lambda record: record[name]

    def _item(self, node: ast.Subscript) -> Value:
        value = self._value(node.value)
        if isinstance(node.slice, ast.Slice):
            ends = [node.slice.lower, node.slice.upper, node.slice.step]
            parts = [None if end is None else self._value(end) for end in ends]
            return lambda record: value(record)[
                slice(*(None if part is None else part(record) for part in parts))
            ]
        at = self._value(node.slice)
        return lambda record: value(record)[at(record)]

    # Operations.

    def _combination(self, node: ast.BoolOp) -> Value:
        values = [self._value(value) for value in node.values]
        combine = all if isinstance(node.op, ast.And) else any
        return lambda record: combine(truth(value(record)) for value in values)

    def _sign(self, node: ast.UnaryOp) -> Value:
        return sign(type(node.op), self._value(node.operand)) or self._refuse(node)

    def _arithmetic(self, node: ast.BinOp) -> Value:
        left, right = self._value(node.left), self._value(node.right)
        return calculate(type(node.op), left, right) or self._refuse(node)

    def _comparison(self, node: ast.Compare) -> Value:
        sides = [node.left, *node.comparators]
        neighbours = [sides[1], *sides[:-1]]
        pairs = zip(sides, neighbours, strict=True)
        return compare(node.ops, [self._value(self._renamed(*pair)) for pair in pairs])

    def _call(self, node: ast.Call) -> Value:
        asked = _asked_name(node)
        if asked is not None:
            return self._feature(asked, node.args[0])
        name, arguments = self._called(node)
        if name not in FUNCTIONS or node.keywords:
            known = ", ".join(sorted(FUNCTIONS))
            hint = suggest(name, FUNCTIONS, f"there are {known}", shown=str)
            self._fail("a known function", repr(name), node.col_offset, hint)
        count = FUNCTIONS[name][0]
        if len(arguments) != count:
            what = f"{name} of {count} value{'s' if count > 1 else ''}"
            self._fail(what, f"{len(arguments)}", node.col_offset)
        return call(name, [self._value(argument) for argument in arguments])

    def _called(self, node: ast.Call) -> tuple[str, list[ast.expr]]:
        """Return the name and arguments of a call; a method's object is the first argument."""
        if isinstance(node.func, ast.Name):
            return node.func.id, list(node.args)
        if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            return node.func.attr, [node.func.value, *node.args]
        return self._refuse(node.func)

    # Class names, bytes and times.

    def _renamed(self, side: ast.expr, other: ast.expr) -> ast.expr:
        """Convert a string compared with a feature to the feature's type."""
        name = self._feature_of(other)
        if name is None:
            return side
        if isinstance(side, (ast.List, ast.Tuple, ast.Set)):
            items = [self._renamed(item, other) for item in side.elts]
            return ast.copy_location(ast.List(items, ast.Load()), side)
        if not isinstance(side, ast.Constant) or not isinstance(side.value, str):
            return side
        feature = self._schema[name]
        classes = self._metadata.get(name, {}).get("class_names")
        if feature.dtype == "bytes":
            return ast.copy_location(ast.Constant(side.value.encode()), side)
        if feature.dtype == "str":
            return side
        if feature.dtype.startswith("datetime64"):
            return ast.copy_location(ast.Constant(self._time(side)), side)
        if classes is None:
            what = f"a number to compare {name!r} with, which is {feature.dtype}"
            self._fail(what, repr(side.value), side.col_offset)
        if side.value not in classes:
            hint = suggest(side.value, classes, f"there are {', '.join(classes[:20])}")
            self._fail(f"a class of {name!r}", repr(side.value), side.col_offset, hint)
        return ast.copy_location(ast.Constant(list(classes).index(side.value)), side)

    def _time(self, side: ast.Constant) -> Any:
        try:
            return np.datetime64(str(side.value))
        except ValueError:
            self._fail("a time such as 2020-01-31T12:00", repr(side.value), side.col_offset)

    def _feature_of(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Name):
            name = self._quoted.get(node.id, node.id)
            return name if name in self._schema else None
        if isinstance(node, ast.Subscript):
            return self._feature_of(node.value)
        asked = _asked_name(node)
        return asked if asked in self._schema else None

    # What is not understood.

    def _refuse(self, node: ast.AST) -> NoReturn:
        words = {
            ast.Attribute: "an attribute",
            ast.Lambda: "lambda",
            ast.IfExp: "if ... else",
            ast.JoinedStr: "an f-string",
            ast.NamedExpr: ":=",
            ast.Starred: "*",
        }
        what = words.get(type(node), type(node).__name__)
        text = ast.get_source_segment(self._unquoted(), node) or ""
        column = getattr(node, "col_offset", 0)
        hint = "use comparisons, in, and, or, not, arithmetic, indexing and a few functions"
        self._fail("a plain expression", f"{what}: {text}" if text else what, column, hint)

    def _fail(self, expected: str, got: str, column: int, hint: str = "") -> NoReturn:
        # Columns of nodes count bytes of UTF-8.
        column = len(self._text.encode()[: max(column, 0)].decode(errors="ignore"))
        column = len(inert(self._text[:column]))
        raise ValueError(
            Message(
                f"expected {expected}, got {got}",
                where="--where",
                details=[f"  {self._text}", "  " + " " * column + "^"],
                hint=hint,
            )
        )


def _asked_name(node: ast.expr) -> str | None:
    """Return the name in a call feature("name"), else None."""
    match node:
        case ast.Call(func=ast.Name("feature"), args=[ast.Constant(str(name))], keywords=[]):
            return name
    return None
