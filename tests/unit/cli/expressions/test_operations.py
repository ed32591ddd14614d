"""What expressions are made of."""

import ast

import numpy as np
import pytest

from datum.cli.where import (
    FUNCTIONS,
    METHODS,
    calculate,
    call,
    compare,
    sign,
    truth,
)


def value(found):
    return lambda record: found


def operators(text):
    return ast.parse(text, mode="eval").body.ops


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("a == b", [1, 1], True),
        ("a == b", [None, None], True),
        ("a != b", [1, None], True),
        ("a < b", [1, 2], True),
        ("a < b", [None, 2], False),
        ("a >= b", [2, None], False),
        ("a < b < c", [1, 2, 3], True),
        ("a < b < c", [1, 3, 2], False),
        ("a in b", [1, [1, 2]], True),
        ("a in b", [1, np.array([1, 2])], True),
        ("a not in b", [3, [1, 2]], True),
        ("a not in b", [3, None], False),
        ("a is b", [None, None], True),
        ("a is not b", [1, None], True),
    ],
)
def test_values_are_compared_as_in_python_but_none_is_in_no_order(text, values, expected):
    assert compare(operators(text), list(map(value, values)))({}) is expected


def test_several_values_at_once_are_neither_true_nor_false():
    with pytest.raises(ValueError, match="several values at once"):
        truth(np.array([1, 2]))
    assert truth(np.array([1])) is True
    assert truth(np.array([])) is False
    with pytest.raises(ValueError, match="several values at once"):
        compare(operators("a > b"), [value(np.array([1, 2])), value(1)])({})


@pytest.mark.parametrize(
    ("kind", "left", "right", "expected"),
    [
        (ast.Add, 1, 2, 3),
        (ast.Add, "a", "b", "ab"),
        (ast.Sub, 1, 2, -1),
        (ast.Mult, 2, 3, 6),
        (ast.Div, 1, 2, 0.5),
        (ast.FloorDiv, 7, 2, 3),
        (ast.Mod, 7, 4, 3),
        (ast.Add, None, 2, None),
    ],
)
def test_arithmetic(kind, left, right, expected):
    assert calculate(kind, value(left), value(right))({}) == expected


@pytest.mark.parametrize(("left", "right"), [("a", 10**9), (10**9, "a"), (["a"], 9), ("%d", 5)])
def test_what_is_no_number_is_neither_repeated_nor_filled_in(left, right):
    for kind in (ast.Mult, ast.Mod):
        with pytest.raises(TypeError, match="which is no number"):
            calculate(kind, value(left), value(right))({})


def test_operators_that_are_not_there_are_none():
    assert calculate(ast.Pow, value(2), value(3)) is None
    assert sign(ast.Invert, value(2)) is None


def test_signs_and_not():
    assert sign(ast.USub, value(2))({}) == -2
    assert sign(ast.UAdd, value(2))({}) == 2
    assert sign(ast.USub, value(None))({}) is None
    assert sign(ast.Not, value(None))({}) is True


def test_functions_of_none_are_none():
    arguments = {name: [value(None)] * count for name, (count, _) in FUNCTIONS.items()}
    assert {call(name, given)({}) for name, given in arguments.items()} == {None}
    assert set(METHODS) <= set(FUNCTIONS)


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("abs", [-3], 3),
        ("len", ["abc"], 3),
        ("lower", ["AbC"], "abc"),
        ("upper", ["AbC"], "ABC"),
        ("strip", [" a "], "a"),
        ("startswith", ["abc", "ab"], True),
        ("endswith", ["abc", "ab"], False),
        ("max", [[1, 3, 2]], 3),
        ("min", [np.array([4, 2])], 2),
        ("sum", [[1, 2]], 3),
    ],
)
def test_functions(name, values, expected):
    assert call(name, list(map(value, values)))({}) == expected
