import numpy as np
import pytest

from datum import Feature, Masked, Schema, SchemaError
from datum.format.encode import collect, collect_guessing
from datum.schema import SchemaGuess


def guess(data, known=None):
    return collect_guessing(data, known or SchemaGuess(), {})


def test_columns_of_every_kind_are_guessed_together():
    found = guess(
        {
            "typed": np.array([1, 2], np.int8),
            "list": [1, None],
            "objects": np.array(["a", None], object),
            "masked": Masked(np.array(["a", "b"]), np.array([True, False])),
            "nothing": [None, None],
        }
    )
    assert dict(found.schema) == {
        "list": Feature("int64", optional=True),
        "objects": Feature("str", optional=True),
        "masked": Feature("str", optional=True),
        "typed": Feature("int8"),
    }
    assert found.count == 2
    assert set(found.sources) == set(found.schema)


def test_the_guess_given_stays_as_it_was():
    known = SchemaGuess()
    known.add_rows([{"x": 1}])
    found = guess({"x": np.array([0.5])}, known)
    assert known.to_schema() == Schema({"x": Feature("int64")})
    assert found.guess is not None
    assert found.guess.to_schema() == found.schema == Schema({"x": Feature("float64")})


def test_columns_that_others_have_are_optional():
    known = SchemaGuess()
    known.add_rows([{"x": 1, "y": 1}])
    assert guess({"x": [2]}, known).schema["y"] == Feature("int64", optional=True)


def test_whatever_makes_an_array_is_a_column():
    pandas = pytest.importorskip("pandas")
    found = guess({"x": pandas.Series([1, 2]), "y": pandas.Series(["a", "b"], dtype=object)})
    assert dict(found.schema) == {"y": Feature("str"), "x": Feature("int64")}


@pytest.mark.parametrize("schema", [None, Schema({"x": Feature("int64")})])
@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"x": np.ma.masked_array([1], [True])}, "feature 'x': expected a column without a mask"),
        ({"x": [1], "y": [1, 2]}, "expected columns of one length, got {'x': 1, 'y': 2}"),
        ({"x": 3}, "feature 'x': expected a column, got <class 'int'>"),
        ({"x": "ab"}, "feature 'x': expected a column, got <class 'str'>"),
    ],
    ids=str,
)
def test_what_is_no_column_is_refused(columns, problem, schema):
    with pytest.raises(SchemaError, match=problem):
        guess(columns) if schema is None else collect(columns, schema)


def test_two_features_that_would_lie_under_one_key_are_refused():
    with pytest.raises(SchemaError, match="both lie under the key 'x_lengths_1'"):
        guess([{"x": [[1], [2, 3]], "x_lengths_1": 1}])


def test_text_that_is_not_utf8_is_refused():
    from datum import BytesColumn

    slices = np.array([[0, 1], [1, 2]])
    column = BytesColumn(b"a\xff\xfe", slices, is_text=True)
    with pytest.raises(
        SchemaError, match="record 1, feature 'x': expected text in UTF-8"
    ) as caught:
        guess({"x": column})
    assert (caught.value.record, caught.value.feature) == (1, "x")
