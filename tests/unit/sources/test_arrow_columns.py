import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pytest

from datum import Masked, Ragged
from datum.errors import SourceError
from datum.sources.arrow_columns import combine, convert_table


def convert(array, type=None):
    column = pa.chunked_array([pa.array(array, type)]) if isinstance(array, list) else array
    return convert_table(pa.table({"x": column}))


def values_of(column):
    return column.tolist() if isinstance(column, np.ndarray) else column.to_list()


PLAIN = [
    ([1, -2, 3], pa.int8(), "int8"),
    ([1, 2, 2**64 - 1], pa.uint64(), "uint64"),
    ([0.5, 1.5], pa.float16(), "float16"),
    ([0.5, float("inf")], pa.float32(), "float32"),
    ([0.1], pa.float64(), "float64"),
    ([True, False, True], pa.bool_(), "bool"),
]


@pytest.mark.parametrize(("values", "type", "dtype"), PLAIN)
def test_numbers_keep_their_type(values, type, dtype):
    column = convert(values, type).columns["x"]
    assert column.dtype.name == dtype
    assert column.tolist() == pytest.approx(values)


def test_numbers_are_views_of_arrows_memory():
    array = pa.array(np.arange(100))
    column = convert(pa.chunked_array([array])).columns["x"]
    assert column.ctypes.data == array.buffers()[1].address


TEXTS = [
    (["a", "", "é"], pa.string()),
    (["a", "", "é"], pa.large_string()),
    (["a", "", "a text that does not fit into a view"], pa.string_view()),
    ([b"a", b"\xff"], pa.binary()),
    ([b"a", b"\xff"], pa.large_binary()),
    ([b"ab", b"cd"], pa.binary(2)),
]


@pytest.mark.parametrize(("values", "type"), TEXTS)
def test_texts_and_bytes_stay_what_they_are(values, type):
    column = convert([*values, None], type).columns["x"]
    assert column.to_list() == [*values, None]
    assert column.values.is_text == isinstance(values[0], str)
    assert convert(values, type).columns["x"].to_list() == values


def test_a_slice_of_texts_begins_where_it_should():
    array = pa.array(["a", None, "ccc", "dd"]).slice(1, 3)
    assert convert(pa.chunked_array([array])).columns["x"].to_list() == [None, "ccc", "dd"]


def test_no_texts_at_all_are_a_column_too():
    assert convert([], pa.string()).columns["x"].to_list() == []
    assert convert([None, ""], pa.string()).columns["x"].to_list() == [None, ""]


TIMES = [
    ([dt.datetime(2020, 1, 2, 3, 4, 5, 6)], pa.timestamp("us"), "datetime64[us]"),
    ([dt.datetime(2020, 1, 2, 3)], pa.timestamp("s"), "datetime64[s]"),
    ([dt.date(2020, 2, 29)], pa.date32(), "datetime64[D]"),
    ([dt.date(2020, 2, 29)], pa.date64(), "datetime64[ms]"),
    ([dt.timedelta(seconds=5)], pa.duration("ms"), "timedelta64[ms]"),
    ([dt.time(1, 2, 3)], pa.time32("s"), "timedelta64[s]"),
    ([dt.time(1, 2, 3, 4)], pa.time64("us"), "timedelta64[us]"),
]


@pytest.mark.parametrize(("values", "type", "dtype"), TIMES)
def test_times_become_those_of_numpy(values, type, dtype):
    column = convert([*values, None], type).columns["x"]
    assert column.values.dtype == dtype
    assert column.present.tolist() == [True, False]
    number = pa.array(values, type).cast(pa.int32() if type.bit_width == 32 else pa.int64())
    assert column.values[:1].view(np.int64)[0] == number[0].as_py()


def test_moments_with_a_zone_are_told_in_utc():
    noon = dt.datetime(2020, 7, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    column = convert([noon], pa.timestamp("us", "Europe/Paris")).columns["x"]
    assert column.tolist() == [dt.datetime(2020, 7, 1, 10)]


LISTS = [
    ([[1], [], [2, 3]], pa.list_(pa.int16())),
    ([[1], [], [2, 3]], pa.large_list(pa.float64())),
    ([["a"], ["b", "c"], []], pa.list_(pa.string())),
    ([[[1], [2, 3]], [], [[]]], pa.list_(pa.list_(pa.int64()))),
    ([[[1, 2]], [], [[3, 4], [5, 6]]], pa.list_(pa.list_(pa.int64(), 2))),
    ([[1], [], [2, 3]], pa.list_view(pa.int64())),
]


@pytest.mark.parametrize(("values", "type"), LISTS)
def test_lists_become_ragged(values, type):
    column = convert(values, type).columns["x"]
    assert isinstance(column, Ragged)
    assert column.to_list() == values
    masked = convert([None, *values], type).columns["x"]
    assert masked.to_list() == [None, *values]
    assert len(masked.values.values) == len(column.values)


FIXED = [
    ([[1, 2], [3, 4]], pa.list_(pa.int32(), 2), (2, 2)),
    ([["a", "b"], ["", "d"]], pa.list_(pa.string(), 2), (2, 2)),
    ([[[1, 2], [3, 4]]], pa.list_(pa.list_(pa.int8(), 2), 2), (1, 2, 2)),
]


@pytest.mark.parametrize(("values", "type", "shape"), FIXED)
def test_lists_of_one_size_become_dimensions(values, type, shape):
    column = convert(values, type).columns["x"]
    assert column.shape == shape
    assert values_of(column) == values
    masked = convert([None, *values], type).columns["x"]
    assert masked.to_list() == [None, *values]


def test_lists_of_one_size_that_hold_ragged_ones_are_ragged():
    values = [[[1], [2, 3]], [[], [4]]]
    column = convert(values, pa.list_(pa.list_(pa.int64()), 2)).columns["x"]
    assert column.to_list() == values


def test_a_null_within_a_list_names_its_record():
    with pytest.raises(SourceError, match="record 1: column 'x': expected a list without nulls"):
        convert([[1], [2, None], [3]], pa.list_(pa.int64()))


def test_a_dictionary_of_texts_becomes_ids_with_names():
    array = pa.array(["b", "a", None, "b"]).dictionary_encode()
    found = convert(pa.chunked_array([array]))
    assert found.columns["x"].to_list() == [0, 1, None, 0]
    assert found.columns["x"].values.dtype == np.int64
    assert found.metadata == {"x": {"class_names": ["b", "a"]}}


def test_chunks_with_dictionaries_of_their_own_get_common_ids():
    chunks = [pa.array(texts).dictionary_encode() for texts in (["a", "b"], ["b", "c"])]
    found = convert(pa.chunked_array(chunks))
    names = found.metadata["x"]["class_names"]
    assert [names[at] for at in found.columns["x"]] == ["a", "b", "b", "c"]


@pytest.mark.parametrize("values", [[3, 1, 3], [None, 1.5, 1.5]])
def test_a_dictionary_of_numbers_is_as_good_as_its_values(values):
    found = convert(pa.chunked_array([pa.array(values).dictionary_encode()]))
    assert values_of(found.columns["x"]) == values
    assert found.metadata == {}


def test_structs_are_flattened():
    rows = [{"a": 1, "b": {"c": "x"}}, None, {"a": 3, "b": None}]
    found = convert(rows, pa.struct({"a": pa.int64(), "b": pa.struct({"c": pa.string()})}))
    assert found.columns["x/a"].to_list() == [1, None, 3]
    assert found.columns["x/b/c"].to_list() == ["x", None, None]


def test_lists_of_structs_become_a_list_for_each_field():
    rows = [[{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], [], None]
    found = convert(rows, pa.list_(pa.struct({"a": pa.int64(), "b": pa.string()})))
    assert found.columns["x/a"].to_list() == [[1, 2], [], None]
    assert found.columns["x/b"].to_list() == [["x", "y"], [], None]


def test_a_column_of_nulls_is_left_out_and_told():
    found = convert_table(pa.table({"x": pa.nulls(2), "y": [1, 2]}))
    assert list(found.columns) == ["y"]
    assert found.metadata == {"x": {"left_out": "no record has a value"}}


def test_a_typed_column_without_any_value_stays():
    column = convert([None, None], pa.int32()).columns["x"]
    assert isinstance(column, Masked)
    assert column.values.dtype == np.int32
    assert not column.present.any()


@pytest.mark.parametrize(
    ("values", "type", "hint"),
    [
        ([decimal.Decimal("1.5")], pa.decimal128(5, 2), "schema="),
        ([[("a", 1)]], pa.map_(pa.string(), pa.int64()), "make it a struct"),
    ],
)
def test_other_types_are_refused_with_a_way_out(values, type, hint):
    with pytest.raises(SourceError, match=rf"(?s)column 'x': expected .*hint: {hint}"):
        convert(values, type)


def test_run_ends_are_unpacked():
    array = pa.RunEndEncodedArray.from_arrays([2, 3], [7, 9])
    assert convert(pa.chunked_array([array])).columns["x"].tolist() == [7, 7, 9]


def test_tensors_of_one_shape_keep_it():
    tensors = np.arange(12).reshape(2, 3, 2)
    array = pa.FixedShapeTensorArray.from_numpy_ndarray(tensors)
    assert convert(pa.chunked_array([array])).columns["x"].tolist() == tensors.tolist()


def test_names_that_meet_are_refused():
    with pytest.raises(SourceError, match="expected columns of different names, got 'x' twice"):
        convert_table(pa.table([[1], [2]], names=["x", "x"]))
    table = pa.table({"x": [{"a": 1}], "x/a": [2]})
    with pytest.raises(SourceError, match="got 'x/a' twice"):
        convert_table(table)


def test_chunks_are_joined_and_record_batches_taken():
    assert combine(pa.chunked_array([[1], [2, 3]])).to_pylist() == [1, 2, 3]
    assert len(combine(pa.chunked_array([], pa.string()))) == 0
    batch = pa.record_batch({"x": [1, 2]})
    assert convert_table(batch).columns["x"].tolist() == [1, 2]
