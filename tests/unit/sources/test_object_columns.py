import datetime as dt
import pathlib

import numpy as np
import pytest

from datum import BytesColumn, Masked, Ragged
from datum.errors import SourceError
from datum.sources.arrow_columns import FoundColumns
from datum.sources.object_columns import add_objects


def convert(values, name="x"):
    found = FoundColumns()
    add_objects(name, values, found)
    return found


@pytest.mark.parametrize("values", [["a", "", "é"], [b"a", b"", b"\xff"]])
def test_strings_lie_in_one_buffer(values):
    column = convert(values).columns["x"]
    assert isinstance(column, BytesColumn)
    assert column.to_list() == values
    assert convert([None, *values]).columns["x"].to_list() == [None, *values]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, -2], "int64"),
        ([1, 2**63], "uint64"),
        ([True, False], "bool"),
        ([0.5, 1.5], "float64"),
        ([1, 2.5], "float64"),
        ([np.int16(1), np.int16(2)], "int16"),
        ([[1, 2], [3, 4]], "int64"),
        ([np.zeros(2, np.uint8), np.ones(2, np.uint8)], "uint8"),
    ],
)
def test_numbers_become_an_array_that_holds_them(values, dtype):
    column = convert(values).columns["x"]
    assert column.dtype == dtype
    assert column.tolist() == np.array(values).tolist()
    masked = convert([*values, None]).columns["x"]
    assert isinstance(masked, Masked)
    assert masked.present.tolist() == [True, True, False]
    assert masked.values[:2].tolist() == column.tolist()


@pytest.mark.parametrize(
    "values", [[[1], [2, 3], []], [np.arange(2), np.arange(3), np.arange(0)], [(1, 2), (3,), ()]]
)
def test_lists_of_differing_length_become_ragged(values):
    column = convert(values).columns["x"]
    assert isinstance(column, Ragged)
    assert column.to_list() == [list(row) for row in values]
    masked = convert([None, *values]).columns["x"]
    assert masked.to_list() == [None, *(list(row) for row in values)]


@pytest.mark.parametrize(
    "values",
    [
        [dt.date(2020, 1, 1), None],
        [pathlib.Path("a.jpg"), pathlib.Path("b.jpg")],
        [["a", "b"], ["c"]],
        [[[1], [2, 3]], [[4]]],
    ],
)
def test_what_has_no_simple_array_stays_a_list(values):
    assert convert(values).columns["x"] == values


def test_dicts_become_a_column_for_each_name():
    found = convert([{"a": 1, "b": {"c": "x"}}, None, {"a": 3}])
    assert found.columns["x/a"].to_list() == [1, None, 3]
    assert found.columns["x/b/c"].to_list() == ["x", None, None]


def test_dicts_beside_other_values_are_refused():
    with pytest.raises(
        SourceError, match="column 'x': expected only dicts, or none, got dict, int"
    ):
        convert([{"a": 1}, 2])


@pytest.mark.parametrize("values", [[], [None], [None, None]])
def test_a_column_without_any_value_is_left_out_and_told(values):
    found = convert(values)
    assert found.columns == {}
    assert found.metadata == {"x": {"left_out": "no record has a value"}}


@pytest.mark.parametrize("values", [[1, "a"], [object()], [2**64], [{1, 2}]])
def test_values_that_no_type_holds_name_their_column(values):
    with pytest.raises(SourceError, match="feature 'x'"):
        convert(values)


def test_text_that_utf8_cannot_hold_names_its_record():
    with pytest.raises(SourceError, match="record 1: column 'x': expected text that UTF-8 can"):
        convert(["fine", "\ud800"])


def test_integers_that_a_float_would_round_are_not_rounded():
    values = [2**53 + 1, 0.5]
    assert convert(values).columns["x"] == values


def test_names_that_meet_are_refused():
    found = convert([1], "x/a")
    with pytest.raises(SourceError, match="expected columns of different names, got 'x/a' twice"):
        add_objects("x", [{"a": 1}], found)
