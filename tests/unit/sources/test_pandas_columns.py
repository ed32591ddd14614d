import datetime as dt

import numpy as np
import pandas as pd
import pytest

from datum.errors import SourceError
from datum.sources.object_columns import convert_frame


def column_of(values, **options):
    return convert_frame(pd.DataFrame({"x": pd.Series(values, **options)})).columns["x"]


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float32", "float64", "bool"])
def test_columns_of_numpy_types_keep_them(dtype):
    column = column_of([1, 0, 1], dtype=dtype)
    assert column.dtype == dtype
    assert column.tolist() == [1, 0, 1]


def test_nan_stays_nan_in_columns_of_floats():
    column = column_of([1.5, np.nan])
    assert isinstance(column, np.ndarray)
    assert np.isnan(column[1])


def test_nan_and_none_are_absent_in_columns_of_objects():
    column = column_of(["a", None, np.nan, pd.NA], dtype=object)
    assert column.to_list() == ["a", None, None, None]


@pytest.mark.parametrize("dtype", ["string", "string[pyarrow]", "str"])
def test_texts_of_any_kind_are_texts(dtype):
    assert column_of(["a", None, ""], dtype=dtype).to_list() == ["a", None, ""]


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", "int64[pyarrow]"])
def test_types_with_a_mask_are_masked(dtype):
    column = column_of([1, None, 0], dtype=dtype)
    assert column.to_list() == [1, None, 0]


def test_categories_become_ids_with_names():
    frame = pd.DataFrame({"x": pd.Categorical(["b", None, "a"], categories=["a", "b"])})
    found = convert_frame(frame)
    assert found.columns["x"].to_list() == [1, None, 0]
    assert found.columns["x"].values.dtype == np.int64
    assert found.metadata == {"x": {"class_names": ["a", "b"]}}


def test_categories_that_are_numbers_are_those_numbers():
    found = convert_frame(pd.DataFrame({"x": pd.Categorical([3, 1, 3])}))
    assert found.columns["x"].tolist() == [3, 1, 3]
    assert found.metadata == {}
    missing = convert_frame(pd.DataFrame({"x": pd.Categorical([3, None])}))
    assert missing.columns["x"].to_list() == [3, None]


def test_times_are_those_of_numpy_and_nat_is_absent():
    column = column_of(pd.to_datetime(["2020-01-01", None]))
    assert column.values.dtype.kind == "M"
    assert column.to_list()[1] is None
    assert column.values[0] == np.datetime64("2020-01-01")
    assert column_of(pd.to_timedelta(["1s", "2s"])).dtype.kind == "m"


def test_moments_with_a_zone_are_told_in_utc():
    moments = pd.Series(pd.to_datetime(["2020-07-01 12:00"]).tz_localize("Europe/Paris"))
    assert column_of(moments).astype("datetime64[us]").tolist() == [dt.datetime(2020, 7, 1, 10)]


def test_sparse_columns_are_made_dense():
    assert column_of(pd.arrays.SparseArray([0, 0, 5])).tolist() == [0, 0, 5]


def test_lists_and_dicts_are_looked_through():
    frame = pd.DataFrame({"l": [[1], [2, 3]], "d": [{"a": 1}, None]})
    found = convert_frame(frame)
    assert found.columns["l"].to_list() == [[1], [2, 3]]
    assert found.columns["d/a"].to_list() == [1, None]


def test_the_index_is_taken_if_it_tells_something_or_is_asked_for():
    frame = pd.DataFrame({"x": [1, 2]}, index=["a", "b"])
    assert convert_frame(frame).columns["index"].to_list() == ["a", "b"]
    assert list(convert_frame(frame, index=False).columns) == ["x"]
    numbered = frame.set_axis([7, 3])
    assert list(convert_frame(numbered).columns) == ["x"]
    assert convert_frame(numbered, index=True).columns["index"].tolist() == [7, 3]
    named = frame.rename_axis("id")
    assert list(convert_frame(named).columns) == ["id", "x"]
    assert list(convert_frame(named, index=False).columns) == ["x"]


def test_an_index_of_levels_gives_one_for_each():
    index = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["p", None])
    frame = pd.DataFrame({"x": [1, 2]}, index=index)
    assert list(convert_frame(frame).columns) == ["p", "index_1", "x"]
    assert list(convert_frame(frame, index=False).columns) == ["x"]


def test_names_that_are_no_text_are_made_text():
    frame = pd.DataFrame(np.zeros((1, 2)))
    assert list(convert_frame(frame).columns) == ["0", "1"]
    levels = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")]))
    assert list(convert_frame(levels).columns) == ["a/b", "a/c"]


@pytest.mark.parametrize("columns", [["x", "x"], [0, "0"]])
def test_two_columns_of_one_name_are_refused(columns):
    frame = pd.DataFrame([[1, 2]], columns=columns)
    with pytest.raises(SourceError, match="expected columns of different names"):
        convert_frame(frame)


@pytest.mark.parametrize(
    "values", [pd.period_range("2020", periods=2, freq="M"), pd.interval_range(0, 2)]
)
def test_periods_and_intervals_are_refused_with_a_hint(values):
    with pytest.raises(SourceError, match=r"(?s)column 'x': expected.*"):
        column_of(values)
