"""Columns of Python objects, of pandas and of rows within rows."""

import datetime as dt
import json
import pathlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import datum
from datum import BytesColumn, Feature, Masked, Ragged
from datum.errors import SchemaError, SourceError
from datum.sources.arrow_columns import ConvertedColumns
from datum.sources.object_columns import add_objects, convert_frame


def convert(values, name="x"):
    found = ConvertedColumns()
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
    with pytest.raises(SourceError, match="column 'x': expected only dicts or None, got dict, int"):
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
    with pytest.raises(SourceError, match="record 1: column 'x': expected text that UTF-8"):
        convert(["fine", "\ud800"])


def test_integers_that_a_float_would_round_are_not_rounded():
    values = [2**53 + 1, 0.5]
    assert convert(values).columns["x"] == values


def test_names_that_meet_are_refused():
    found = convert([1], "x/a")
    with pytest.raises(SourceError, match="expected columns of different names, got 'x/a' twice"):
        add_objects("x", [{"a": 1}], found)


ROWS = [
    {"id": 0, "messages": [{"role": "user", "content": "hi"}, {"role": "model"}]},
    {"id": 1, "messages": []},
    {"id": 2, "messages": None},
    {"id": 3, "messages": [{"role": "user", "content": "no", "score": 0.5}]},
]
KINDS = ["rows", "function", "jsonl", "json", "columns", "frame", "arrow", "parquet"]


def as_source(kind, rows, folder):
    """The same rows, given in another way."""
    columns = {name: [row.get(name) for row in rows] for name in rows[0]}
    if kind == "frame":
        return pytest.importorskip("pandas").DataFrame(columns)
    if kind == "parquet":
        import pyarrow.parquet

        pyarrow.parquet.write_table(pa.Table.from_pylist(rows), folder / "a.parquet")
        return folder / "a.parquet"
    (folder / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "a.json").write_text(json.dumps(rows))
    return {
        "rows": rows,
        "function": lambda: iter(rows),
        "jsonl": folder / "a.jsonl",
        "json": folder / "a.json",
        "columns": columns,
        "arrow": pa.Table.from_pylist(rows),
    }[kind]


def written(kind, rows, folder):
    source = as_source(kind, rows, folder)
    report = datum.write(source, folder / "out", shuffle=False, progress=False)
    ds = datum.load(folder / "out")
    found = [
        {name: np.asarray(v).tolist() if v is not None else v for name, v in row.items()}
        for row in ds["train"]
    ]
    return report, ds.schema, found


@pytest.mark.parametrize("kind", KINDS)
def test_every_source_gives_the_same_features(tmp_path, kind):
    report, schema, found = written(kind, ROWS, tmp_path)
    assert (
        dict(schema)
        == {
            "id": Feature("int64"),
            "messages/role": Feature("str", (None,), optional=True),
            "messages/content": Feature("str", (None,), optional=True),
            "messages/score": Feature("float64", (None,), encoding="raw", optional=True),
        }
        or schema["messages/score"].dtype == "float32"
    )
    assert [row["messages/role"] for row in found] == [["user", "model"], [], None, ["user"]]
    assert [row["messages/content"] for row in found] == [["hi", ""], [], None, ["no"]]
    assert np.isnan(found[0]["messages/score"]).all()
    assert found[3]["messages/score"] == [0.5]
    assert any("'messages/content': items of lists that lack it" in note for note in report.notes)


@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_one_length_are_of_any_length(tmp_path, kind):
    rows = [{"spans": [{"start": n, "label": "x"}, {"start": 9, "label": "y"}]} for n in range(3)]
    report, schema, found = written(kind, rows, tmp_path)
    assert dict(schema) == {
        "spans/start": Feature("int64", (None,)),
        "spans/label": Feature("str", (None,)),
    }
    assert found[2] == {"spans/start": [2, 9], "spans/label": ["x", "y"]}
    assert not report.notes


@pytest.mark.parametrize("kind", KINDS)
def test_dicts_and_lists_within_are_taken_apart_too(tmp_path, kind):
    rows = [
        {
            "turns": [
                {"by": {"name": "a"}, "calls": [{"f": "x"}, {"f": "y"}], "words": ["p", "q"]},
                {"by": {"name": "b"}, "calls": []},
            ]
        },
        {"turns": [{"by": {"name": "c"}, "calls": [{"f": "z"}], "words": []}]},
    ]
    source = as_source(kind, rows, tmp_path)
    datum.write(source, tmp_path / "out", shuffle=False, progress=False)
    ds = datum.load(tmp_path / "out")
    assert dict(ds.schema) == {
        "turns/by/name": Feature("str", (None,)),
        "turns/calls/f": Feature("str", (None, None)),
        "turns/words": Feature("str", (None, None)),
    }
    first, second = ds["train"]
    assert first == {
        "turns/by/name": ["a", "b"],
        "turns/calls/f": [["x", "y"], []],
        "turns/words": [["p", "q"], []],
    }
    assert second["turns/calls/f"] == [["z"]]


@pytest.mark.parametrize("kind", ["rows", "function", "jsonl", "json"])
def test_a_plan_gives_the_same_schema(tmp_path, kind):
    plan = datum.plan(as_source(kind, ROWS, tmp_path))
    assert plan.schema["messages/role"] == Feature("str", (None,), optional=True)
    assert any("'messages/content'" in note for note in plan.notes)
    rows = [{"spans": [{"start": n}]} for n in range(3)]
    plan = datum.plan(as_source(kind, rows, tmp_path))
    assert dict(plan.schema) == {"spans/start": Feature("int64", (None,))}


def test_a_name_that_comes_late_is_one_of_those_records(tmp_path):
    rows = [{"m": [{"a": 1}]}] * 5000 + [{"m": [{"a": 2, "b": 3}]}]
    datum.write(lambda: iter(rows), tmp_path / "out", shuffle=False, progress=False)
    ds = datum.load(tmp_path / "out")
    assert ds.schema["m/b"] == Feature("int64", (None,), optional=True)
    assert ds["train"][0]["m/b"] is None
    assert ds["train"][5000]["m/b"].tolist() == [3]


def test_dicts_that_come_after_empty_lists_are_found(tmp_path):
    rows = [{"m": []}] * 5000 + [{"m": [{"a": 2}]}]
    datum.write(lambda: iter(rows), tmp_path / "stream", shuffle=False, progress=False)
    found = datum.load(tmp_path / "stream")["train"][5000]
    assert found["m/a"].tolist() == [2]
    datum.write(rows, tmp_path / "out", shuffle=False, progress=False)
    assert datum.load(tmp_path / "out").schema["m/a"] == Feature("int64", (None,))


@pytest.mark.parametrize("value", [[{"a": 1}, 5], [[{"a": 1}], "x"]])
def test_lists_of_dicts_and_others_are_refused(tmp_path, value):
    for source in ([{"m": value}], {"m": [value]}):
        with pytest.raises((SchemaError, SourceError), match="m"):
            datum.write(source, tmp_path / "out", progress=False)


def test_a_name_that_the_row_has_as_well_is_refused(tmp_path):
    with pytest.raises(SchemaError, match="no name that the row has as well"):
        datum.write([{"m": [{"a": 1}], "m/a": 5}], tmp_path / "out", progress=False)


def test_rows_are_not_changed(tmp_path):
    rows = [{"m": [{"a": 1}, {"b": 2}]}]
    datum.write(rows, tmp_path / "out", progress=False)
    assert rows == [{"m": [{"a": 1}, {"b": 2}]}]


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
