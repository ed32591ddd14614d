"""Lists of dicts, from every kind of source."""

import json

import numpy as np
import pyarrow as pa
import pytest

import datum
from datum import Feature
from datum.errors import SchemaError, SourceError

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
