"""`--where`: conditions on the values of records."""

import ast

import numpy as np
import pytest

from datum import Feature, Schema
from datum.cli.where import (
    FUNCTIONS,
    METHODS,
    calculate,
    call,
    compare,
    parse_expression,
    sign,
    truth,
)

SCHEMA = Schema(
    {
        "label": Feature("int64"),
        "score": Feature("float32", optional=True),
        "name": Feature("str"),
        "image/height": Feature("int64"),
        "tags": Feature("str", (None,)),
        "vector": Feature("float32", (3,)),
        "raw": Feature("bytes"),
        "kind": Feature("str"),
        "seen": Feature("datetime64[us]"),
    }
)
METADATA = {
    "label": {"class_names": ["cat", "dog", "bee"]},
    "kind": {"class_names": ["a", "b"]},
}
RECORD = {
    "label": np.int64(1),
    "score": None,
    "name": "Anna",
    "image/height": 100,
    "tags": ["x", "y"],
    "vector": np.array([1.0, 2.0, 3.0]),
    "raw": b"ab",
    "kind": "b",
    "seen": np.datetime64("2020-01-31T12:00", "us"),
}


def ask(text):
    return parse_expression(text, SCHEMA, METADATA)(RECORD)


@pytest.mark.parametrize(
    "text",
    [
        "label == 1",
        "label == 'dog'",
        "feature('label') == 'dog'",
        "  label == 1\n",
        "seen > '2019-12-31'",
        "seen in ['2020-01-31T12:00:00']",
        "name != '`kind`' and '`kind`' == '`' + 'kind' + '`'",
        '"it\'s `name`" != `name`',
        "'dog' == label",
        "label != 'cat'",
        "label in ['cat', 'dog']",
        "label not in ('cat', 'bee')",
        "label in {'dog'}",
        "kind == 'b'",
        "raw == 'ab'",
        "raw in ['ab', 'cd']",
        "score is None",
        "score == None",
        "not score > 0.5",
        "not score",
        "score is None or score > 3",
        "name.lower() == 'anna'",
        "lower(name).startswith('an')",
        "startswith(name, 'An') and endswith(name, 'na')",
        "`image/height` > 50",
        "feature('image/height') * 2 == 200",
        "len(tags) == 2 and 'x' in tags",
        "tags[0] == 'x'",
        "name[1:3] == 'nn'",
        "name[::-1] == 'annA'",
        "2.0 in vector",
        "vector[0] + vector[-1] == 4",
        "max(vector[:2]) == 2 and min(vector) == 1 and sum(vector) == 6",
        "0 < label < 2",
        "abs(-label) == 1",
        "label % 2 == 1",
        "name[0] in 'ABC'",
        "name + '!' == 'Anna!'",
        "-label == -1 and +label == 1",
        "name.strip().upper() == 'ANNA'",
        "True",
        "label",
    ],
)
def test_what_is_true_of_the_record(text):
    assert ask(text) is True


@pytest.mark.parametrize(
    "text", ["label == 0", "score > 0.5", "score < 0.5", "-score > 1", "len(score) > 0", "None"]
)
def test_what_is_not(text):
    assert ask(text) is False


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label = 3", r"expected an expression.*\n  label = 3\n        \^\nhint: compare with =="),
        ("", "expected an expression, got nothing"),
        ("label ==", "expected an expression"),
        (
            "labell == 3",
            r"expected a feature, got 'labell'\n.*\n  \^\nhint: did you mean 'label'\?",
        ),
        ("zzz == 3", "hint: there are label, score"),
        ("image/height > 3", "hint: put names with other characters in backquotes"),
        ("`foo` > 1", "expected a feature, got 'foo'"),
        ("feature('foo') > 1", "expected a feature, got 'foo'"),
        ("'é' == namee", r"\n  'é' == namee\n         \^\n"),
        ("label == 'cta'", r"expected a class of 'label', got 'cta'.*\n.*\n.*did you mean 'cat'"),
        ("label in ['cat', 'dgo']", "did you mean 'dog'"),
        ("__import__('os')", "expected a known function, got '__import__'"),
        ("open('x')", "there are abs, endswith, len"),
        ("lenn(tags)", r"did you mean len\?"),
        ("len(tags, 1)", "expected len of 1 value, got 2"),
        ("name.startswith()", "expected startswith of 2 values, got 1"),
        ("len(x=tags)", "expected a known function"),
        ("feature(1)", "expected a known function, got 'feature'"),
        ("name.__class__", "got an attribute: name.__class__"),
        ("name.format(1)", "got an attribute"),
        ("(lambda: 1)()", "got lambda"),
        ("[x for x in tags]", "ListComp"),
        ("label ** 99", r"BinOp: label \*\* 99"),
        ("label & 1", "BinOp"),
        ("~label", "UnaryOp"),
        ("f'{label}'", "an f-string"),
        ("1 if label else 2", "if ... else"),
        ("(y := 3)", ":="),
        ("[*tags]", r"got \*"),
        ("1j", "Constant: 1j"),
        ("...", "Constant"),
        ("label == 3; 1", "expected an expression"),
        ("import os", "expected an expression"),
        ("a" * 10_001, "expected at most 10,000 characters"),
        ("(" * 500 + "1" + ")" * 500, "expected"),
        ("-" * 5_000 + "1", "expected less nesting"),
        ("not " * 2_000 + "1", "expected less nesting"),
    ],
)
def test_what_is_not_understood_is_named_with_its_place(text, message):
    with pytest.raises(ValueError, match=rf"(?s)--where: .*{message}|--where: {message}"):
        parse_expression(text, SCHEMA, METADATA)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("vector > 2", "several values at once"),
        ("vector", "several values at once"),
        ("name < 3", "not supported"),
        ("tags[7] == 'x'", "out of range"),
        ("name * 3 == 'x'", "which is no number"),
    ],
)
def test_values_that_do_not_go_together_raise_when_a_record_is_asked(text, error):
    with pytest.raises((ValueError, TypeError, IndexError), match=error):
        ask(text)


def test_only_the_features_of_the_expression_are_asked_for():
    asked = []

    class Noting(dict):
        def __getitem__(self, name):
            asked.append(name)
            return super().__getitem__(name)

    parse_expression("label > 5 and name == 'x'", SCHEMA)(Noting(RECORD))
    assert asked == ["label"]  # the rest need not be known


def test_a_repr_shows_the_text():
    assert repr(parse_expression("label", SCHEMA)) == "Expression('label')"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("`image/height` == 'x'", "a number to compare 'image/height' with, which is int64"),
        ("seen > 'noon'", "a time such as 2020-01-31T12:00"),
    ],
)
def test_what_can_never_be_equal_is_told(text, what):
    with pytest.raises(ValueError, match=f"expected {what}, got"):
        ask(text)


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
