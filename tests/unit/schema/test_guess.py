import functools
import itertools
import json
import pathlib

import numpy as np
import pytest

from datum import Feature, SchemaError, Sparse
from datum.schema import ImageBytes, ValueGuess, guess_value
from datum.schema.infer import guess_array

PICTURE = Feature("uint8", (None, None, None), encoding="image")


@pytest.mark.parametrize(
    ("value", "feature"),
    [
        (pathlib.Path("a.jpg"), PICTURE),
        (ImageBytes(b"a"), PICTURE),
        ([ImageBytes(b"a")] * 2, Feature("uint8", (2, None, None, None), encoding="image")),
        (np.datetime64("2020-01-01", "h"), Feature("datetime64[h]")),
        ([np.datetime64("NaT", "s"), np.datetime64(1, "ms")], Feature("datetime64[ms]", (2,))),
        (
            Sparse(np.array([[1]]), np.array([0.5]), (4,)),
            Feature("float64", (4,), encoding="sparse"),
        ),
        ([[0.1], [0.2, 0.3]], Feature("float64", (None, None), encoding="values")),
        ([[[0.1, 1.0]], []], Feature("float64", (None, None, 2), encoding="values")),
        ([np.zeros((2, 3)), np.zeros((2, 4))], Feature("float64", (None,) * 3, encoding="values")),
        ([0.5, float(np.uint64(0x7FF8 << 48 | 1).view(np.float64))], Feature("float64", (2,))),
        ([0.5, float("nan")], Feature("float64", (2,))),
    ],
    ids=str,
)
def test_a_value_says_what_holds_it(value, feature):
    assert guess_value(value).to_feature() == feature


def test_pictures_of_pillow_are_of_their_depth():
    pillow = pytest.importorskip("PIL.Image")
    assert guess_value(pillow.new("RGB", (2, 3))).to_feature() == PICTURE
    assert guess_value(pillow.new("I;16", (2, 3))).to_feature().dtype == "uint16"


def test_a_picture_may_come_as_the_bytes_of_its_file():
    picture = guess_value(pathlib.Path("a.jpg"))
    for one, other in ((picture, guess_value(b"a")), (guess_value(b"a"), picture)):
        assert one.merge(other).to_feature() == PICTURE
    for value in ("a", [b"a"], np.zeros((2, 2, 3), np.uint8)):
        with pytest.raises(SchemaError, match="expected .*, got "):
            picture.merge(guess_value(value))


def test_sparse_values_go_with_sparse_ones_of_their_shape():
    small, large = (Sparse(np.array([[1]]), np.array([2]), (n,)) for n in (3, 4))
    halves = Sparse(np.array([[1]]), np.array([0.5]), (3,))
    assert guess_value(small).merge(guess_value(halves)).to_feature() == Feature(
        "float64", (3,), encoding="sparse"
    )
    for other in (large, [1, 2, 3]):
        with pytest.raises(SchemaError, match="expected sparse int64 of shape"):
            guess_value(small).merge(guess_value(other))


@pytest.mark.parametrize(
    "value",
    [
        [Sparse(np.array([[1]]), np.array([2]), (3,))],
        [[pathlib.Path("a.jpg")]],
        np.array(["2020"], "datetime64[Y]"),
        np.datetime64("NaT"),
        np.zeros(2, [("a", int)]),
        None,
    ],
    ids=str,
)
def test_what_no_feature_holds_is_refused(value):
    with pytest.raises(SchemaError, match="expected "):
        guess_value(value)


def test_a_negative_integer_never_joins_uint64():
    guesses = [guess_value(value) for value in (np.uint64(1), -1, 0.5)]
    for order in itertools.permutations(guesses):
        with pytest.raises(SchemaError, match="expected integers from 0 on, as one is of uint64"):
            functools.reduce(ValueGuess.merge, order)


@pytest.mark.parametrize(
    ("value", "absorbed", "not_absorbed"),
    [
        (1, ["bool", "int8", "int64"], ["uint64", "float32", "str"]),
        (np.int16(1), ["bool", "int8", "uint8", "int16"], ["uint16", "int32", "int64"]),
        (np.float32(0.5), ["bool", "int16", "float16", "float32"], ["int64", "float64"]),
        (0.1, ["int64", "float64"], ["uint64", "complex64"]),
        (2**63, ["uint8", "uint64"], ["int8", "int64"]),
        ("a", ["str"], ["bytes", "int64"]),
        ([], [], ["int64", "str"]),
    ],
    ids=str,
)
def test_types_that_another_holds_leave_a_guess_as_it_is(value, absorbed, not_absorbed):
    guess = guess_value(value)
    assert [dtype for dtype in (*absorbed, *not_absorbed) if guess.absorbs(dtype)] == absorbed


def test_an_array_without_items_has_its_dtype():
    assert guess_array(np.zeros((0, 3), np.int8)) == ValueGuess(("int8",), (0, 3))


def test_a_guess_survives_json():
    for value in ([[0.1], []], -5, 2**63, np.zeros(300, np.int8), pathlib.Path("a"), []):
        guess = guess_value(value)
        assert ValueGuess.from_json(json.loads(json.dumps(guess.to_json()))) == guess
    for found in (3, {}, {"dtypes": []}):
        with pytest.raises(SchemaError, match="expected a guess as JSON"):
            ValueGuess.from_json(found)
