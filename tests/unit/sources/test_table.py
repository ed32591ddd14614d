"""Tables of columns."""

import io
import json
import pickle
import zipfile
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse
from PIL import Image
from scipy import sparse as scipy_sparse

import datum
from datum import BytesColumn, Feature, Masked, Ragged, Schema, SourceError, Sparse
from datum.errors import SchemaError
from datum.sources import (
    ArrowTable,
    Block,
    ColumnTable,
    CsvTable,
    IndexedPart,
    JsonLines,
    NumpyFile,
    PartInfo,
    Reject,
    Source,
    table,
)
from datum.sources.table_part import TablePart, fingerprint_of, keys_of, schema_of
from datum.sources.wrap import sparse_source


def part_of(data, **options):
    (part,) = ColumnTable(data, **options).parts().values()
    return part


def values_of(data, **options):
    part = part_of(data, **options)
    columns = part.read(np.arange(len(part))).data
    return {
        name: column.tolist() if isinstance(column, np.ndarray) else column.to_list()
        for name, column in columns.items()
    }


def test_a_table_is_a_source_of_one_split():
    table = ColumnTable({"x": np.arange(3)}, split="all")
    assert isinstance(table, Source)
    assert list(table.parts()) == ["all"]
    assert isinstance(table.parts()["all"], IndexedPart)


EXPECTED = Schema({"i": Feature("int32"), "f": Feature("float64"), "s": Feature("str")})
COLUMNS = {"i": np.array([1, 2], np.int32), "f": np.array([0.5, 0.1]), "s": ["a", "b"]}


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pa.table], ids=["dict", "pandas", "arrow"])
def test_the_same_table_has_the_same_schema_however_it_is_given(make):
    part = part_of(make(COLUMNS))
    assert part.schema == EXPECTED
    assert part.read(np.array([1])).data["s"].to_list() == ["b"]


def test_columns_of_every_kind_are_taken():
    data = {
        "array": np.arange(4).reshape(2, 2),
        "list": [1, None],
        "ragged": Ragged.from_rows([[1], [2, 3]]),
        "sparse": Sparse(np.array([[0, 1]]), np.array([5.0]), (2, 3)),
        "matrix": scipy.sparse.csr_matrix([[0, 1], [2, 0]]),
        "masked": Masked(np.array([1, 0]), np.array([True, False])),
        "numpy's mask": np.ma.array([1, 2], mask=[True, False]),
        "strings": BytesColumn.from_values(["a", "b"]),
        "bytes": np.array([b"a", b"bc"]),
        "texts": np.array([["a", "b"], ["", "é"]]),
        "times": np.array(["2020-01-01", "NaT"], "M8[D]"),
        "big endian": np.array([1, 2], ">i4"),
        "arrow": pa.array([1, None]),
        "chunks": pa.chunked_array([[1], [2]]),
        "series": pd.Series(["x", None]),
        "nullable": pd.array([1, None], "Int64"),
        "range": range(2),
        "tuple": ("p", "q"),
    }
    part = part_of(data)
    assert part.schema["array"] == Feature("int64", (2,))
    assert part.schema["ragged"] == Feature("int64", (None,))
    assert part.schema["matrix"] == Feature("int64", (2,), encoding="sparse")
    assert part.schema["numpy's mask"] == Feature("int64", optional=True)
    assert part.schema["texts"] == Feature("str", (2,))
    assert part.schema["times"] == Feature("datetime64[D]")
    assert part.schema["big endian"] == Feature("int32")
    found = values_of(data)
    assert found["array"] == [[0, 1], [2, 3]]
    assert found["list"] == found["arrow"] == found["nullable"] == [1, None]
    assert found["sparse"] == [[0, 5, 0], [0, 0, 0]]
    assert found["matrix"] == [[0, 1], [2, 0]]
    assert found["numpy's mask"] == [None, 2]
    assert found["bytes"] == [b"a", b"bc"]
    assert found["texts"] == [["a", "b"], ["", "é"]]
    assert found["big endian"] == [1, 2]
    assert found["chunks"] == [1, 2]
    assert found["series"] == ["x", None]
    assert found["range"] == [0, 1]
    assert found["tuple"] == ["p", "q"]


def test_numpy_columns_are_not_copied():
    column = np.arange(10)
    part = part_of({"x": column})
    assert np.shares_memory(part.read(np.arange(4)).data["x"], column)


def test_structured_columns_are_flattened():
    column = np.array([(1, 2.0), (3, 4.0)], [("a", "i4"), ("b", "f4")])
    assert values_of({"x": column}) == {"x/a": [1, 3], "x/b": [2.0, 4.0]}


def test_a_tensor_is_an_array():
    class Tensor:
        shape = (2,)

        def __len__(self):
            return 2

        def detach(self):
            return self

        def cpu(self):
            return self

        def __array__(self, dtype=None, copy=None):
            return np.array([1.5, 2.5], np.float32)

    assert part_of({"x": Tensor()}).schema["x"] == Feature("float32")


def test_a_key_names_the_records_and_stays():
    part = part_of({"id": ["a", "b"], "x": [1, 2]}, key="id")
    assert part.read(np.array([1])).keys == ["b"]
    assert "id" in part.schema
    with pytest.raises(SourceError, match="expected a key among id, x, got 'name'"):
        part_of({"id": ["a"], "x": [1]}, key="name")


def test_categories_can_be_keys():
    frame = pd.DataFrame({"id": pd.Categorical(["b", "a"])})
    assert part_of(frame, key="id").keys == ["b", "a"]


def test_columns_of_differing_length_are_named():
    with pytest.raises(SourceError, match="expected columns of one length, got 'a': 1, 'b': 2"):
        part_of({"a": [1], "b": np.zeros(2)})


@pytest.mark.parametrize("column", [3, "text", b"bytes", np.float64(1), {"a": 1}, None])
def test_a_single_value_is_no_column(column):
    with pytest.raises(SourceError, match="column 'x': expected an array or a list"):
        part_of({"x": column})


@pytest.mark.parametrize(
    "column", [np.zeros(2, np.longdouble), np.zeros(2, "V8")], ids=["longdouble", "void"]
)
def test_types_that_records_cannot_hold_are_refused(column):
    with pytest.raises(SourceError, match=r"column 'x': expected an array of numbers"):
        part_of({"x": column})


@pytest.mark.parametrize("data", [{}, 5, [1, 2]])
def test_what_is_no_table_is_refused(data):
    with pytest.raises(SourceError, match="expected a"):
        part_of(data)


def test_names_that_are_no_text_are_refused():
    with pytest.raises(SourceError, match="expected names of columns that are str, got 1"):
        part_of({1: [1]})


def test_a_table_of_no_rows_has_none():
    part = part_of({"x": np.empty(0, np.int16), "s": []})
    assert len(part) == 0
    assert part.schema["x"] == Feature("int16")
    assert len(part.read(np.arange(0))) == 0


def test_the_fingerprint_tells_whether_the_data_is_the_same():
    first, same = part_of({"x": [1, 2]}), part_of({"x": [1, 2]})
    assert first.fingerprint == same.fingerprint is not None
    assert part_of({"x": [1, 3]}).fingerprint != first.fingerprint


def make_part(**options):
    return TablePart(
        {"x": np.array([0, 10, 20]), "s": BytesColumn.from_values(["a", "b", "c"])}, **options
    )


def test_it_is_a_part_that_is_read_by_numbers():
    part = make_part()
    assert isinstance(part, IndexedPart)
    assert len(part) == 3
    block = part.read(np.array([2, 0]))
    assert block.data["x"].tolist() == [20, 0]
    assert block.data["s"].to_list() == ["c", "a"]
    assert block.numbers.tolist() == [2, 0]
    assert block.keys is None
    assert block.rejects == []


def test_the_schema_is_that_of_the_columns():
    assert make_part().schema == Schema({"x": Feature("int64"), "s": Feature("str")})


def test_a_schema_that_is_given_is_taken():
    schema = Schema({"x": Feature("int32"), "s": Feature("str")})
    assert make_part(schema=schema).schema == schema


def test_keys_go_with_their_records():
    part = make_part(keys=["k0", "k1", "k2"])
    assert part.read(np.array([2, 1])).keys == ["k2", "k1"]


def test_rejects_keep_the_numbers_of_the_others():
    rejects = [Reject(3, None, "f", "bad"), Reject(1, None, "f", "worse")]
    part = make_part(rejects=rejects, keys=["k0", "k2", "k4"])
    assert len(part) == 5
    block = part.read(np.arange(5))
    assert block.numbers.tolist() == [0, 2, 4]
    assert block.data["x"].tolist() == [0, 10, 20]
    assert block.keys == ["k0", "k2", "k4"]
    assert [reject.record for reject in block.rejects] == [1, 3]
    shuffled = part.read(np.array([4, 3, 0]))
    assert shuffled.numbers.tolist() == [4, 0]
    assert shuffled.data["x"].tolist() == [20, 0]
    assert [reject.reason for reject in shuffled.rejects] == ["bad"]
    assert len(set(part.keys)) == 5


@pytest.mark.parametrize("numbers", [[3], [-1]])
def test_numbers_beyond_the_records_are_refused(numbers):
    with pytest.raises(IndexError):
        make_part().read(np.array(numbers))


def test_a_table_without_columns_may_have_rejects_only():
    part = TablePart({}, rejects=[Reject(0, None, "", "bad")], rows=0)
    block = part.read(np.array([0]))
    assert len(part) == 1
    assert len(block) == 0
    assert len(block.rejects) == 1


def test_sparse_columns_come_back_sparse():
    part = TablePart({"x": Sparse(np.array([[1, 0], [0, 2]]), np.array([5, 7]), (2, 3))})
    assert part.schema["x"] == Feature("int64", (3,), encoding="sparse")
    assert part.read(np.array([1, 0])).data["x"].to_dense().tolist() == [[5, 0, 0], [0, 0, 7]]


CHANGES = {
    "a value": {"x": np.array([1, 2, 4])},
    "a name": {"y": np.array([1, 2, 3])},
    "a type": {"x": np.array([1, 2, 3], np.uint64)},
    "a shape": {"x": np.array([[1], [2], [3]])},
    "a mask": {"x": Masked(np.array([1, 2, 3]), np.array([True, True, False]))},
    "a kind": {"x": Ragged(np.array([1, 2, 3]), np.array([0, 1, 2, 3]))},
    "text": {"x": BytesColumn.from_values(["1", "2", "3"])},
    "bytes": {"x": BytesColumn.from_values([b"1", b"2", b"3"])},
}


def test_the_fingerprint_changes_with_the_data_and_only_then():
    same = [fingerprint_of({"x": np.array([1, 2, 3])}) for _ in range(2)]
    assert same[0] == same[1]
    found = {name: fingerprint_of(columns) for name, columns in CHANGES.items()}
    assert len({*found.values(), same[0]}) == len(found) + 1
    assert fingerprint_of({"x": np.arange(6)[::2]}) == fingerprint_of({"x": np.array([0, 2, 4])})


def test_objects_have_no_fingerprint():
    assert fingerprint_of({"x": [object()]}) is None


def test_keys_are_texts_or_integers():
    assert keys_of("id", np.array([3, 4])) == ["3", "4"]
    assert keys_of("id", BytesColumn.from_values(["a", "b"])) == ["a", "b"]
    with pytest.raises(SourceError, match="column 'id': expected texts or integers as keys"):
        keys_of("id", np.array([0.5]))
    with pytest.raises(SourceError, match="record 1: expected a key in column 'id', got none"):
        keys_of("id", Masked(np.array([3, 0]), np.array([True, False])))


def test_values_that_no_type_holds_are_an_error_of_the_source():
    with pytest.raises(SourceError, match="feature 'x'"):
        schema_of({"x": [1, "a"]})


def write(tmp_path, source, **options):
    """What becomes of a source, and the report."""
    report = datum.write(source, tmp_path / "out", shuffle=False, progress=False, **options)
    return list(datum.load(tmp_path / "out")["train"]), report


def save(tmp_path, text, name="a.csv"):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# Which row has the names.
@pytest.mark.parametrize(
    "text",
    [
        "5.1,3.5,setosa\n4.9,3.0,setosa\n6.1,2.9,virginica\n",
        "1,2\n3,4\n5,6\n",
        "1,2,3\n4,5,6\n7,8,9\n",
        "39, State-gov, 77516\n50, Private, 83311\n",
        "p,x,s\ne,x,s\np,y,s\ne,y,s\n",
        "2019,5\n2020,6\n2018,7\n",
        "Bob,1987,2005\nAnn,1990,2001\nCarl,1985,2010\n",
        "7\n8\n9\n",
        "1,true\n2,false\n",
        "1,,x\n2,3,y\n,4,z\n",
    ],
)
def test_a_first_row_of_data_is_a_record(tmp_path, text):
    rows, report = write(tmp_path, save(tmp_path, text))
    assert len(rows) == text.count("\n")
    assert set(rows[-1]) == {f"column_{n + 1}" for n in range(text.split("\n")[0].count(",") + 1)}
    (note,) = report.notes
    assert "no header found" in note
    assert "header=True" in note


@pytest.mark.parametrize(
    ("text", "is_noted"),
    [
        ("a,b\n1,2\n", False),
        ("country,1990,1991\nFrance,58.2,58.6\nChad,6.0,6.1\n", True),
        ("country,2019\nFrance,67\nChad,16\n", True),
        ("store,2019,2020\nA,1500,2500\nB,2100,1800\n", True),
        ("0,1,2\n0.5,3,9\n1.5,4,8\n", True),
        (",x\n0,5\n1,6\n", False),
        ("text,label\nso it goes,b\nand so on,a\n", False),
        ("price\n1\n#DIV/0!\n3\n", False),
        ("2020 was bad,x1!\nit was,y\n", True),
    ],
)
def test_a_first_row_of_names_is_a_header(tmp_path, text, is_noted):
    rows, report = write(tmp_path, save(tmp_path, text))
    assert len(rows) == text.count("\n") - 1
    assert any("header=False" in note for note in report.notes) == is_noted


def test_header_and_names_decide(tmp_path):
    path = save(tmp_path, "1,2\n3,4\n")
    assert write(tmp_path, path, header=True, overwrite=True)[0] == [{"1": 3, "2": 4}]
    rows, report = write(tmp_path, path, header=False, overwrite=True)
    assert rows == [{"column_1": 1, "column_2": 2}, {"column_1": 3, "column_2": 4}]
    assert report.notes == ()
    rows, report = write(tmp_path, path, names=["x", "y"], overwrite=True)
    assert rows == [{"x": 1, "y": 2}, {"x": 3, "y": 4}]
    assert report.notes == ()
    with_header = save(tmp_path, "a,b\n1,2\n")
    assert write(tmp_path, with_header, names=["x", "y"], overwrite=True)[0] == [{"x": 1, "y": 2}]
    with pytest.raises(SourceError, match="expected `names` for 2 columns, got 1"):
        write(tmp_path, path, names=["x"], overwrite=True)


def test_a_large_headerless_file_keeps_its_first_record(tmp_path, monkeypatch):
    monkeypatch.setattr("datum.sources.csv.MAX_MEMORY_BYTES", 10)
    path = save(tmp_path, "".join(f"{n},{n / 2}\n" for n in range(1, 2000)))
    rows, _ = write(tmp_path, path)
    assert [row["column_1"] for row in rows] == list(range(1, 2000))


# What cells and lines are.
def test_marks_of_cells_lines_and_numbers(tmp_path):
    text = "made by hand\n\n# a 'quote\" in a comment\nn;x;y\n#1;2;3\na;1,5;-999\nb;2;7\n"
    path = save(tmp_path, text)
    rows, report = write(
        tmp_path,
        path,
        skip_rows=2,
        comment="#",
        delimiter=";",
        decimal=",",
        null_values=["-999"],
        rename={"n": "name"},
        columns=["y", "n", "x"],
    )
    assert rows == [{"y": None, "name": "a", "x": 1.5}, {"y": 7, "name": "b", "x": 2.0}]
    assert list(datum.load(tmp_path / "out").schema) == ["y", "name", "x"]
    assert report.notes == ()


def test_lines_are_counted_through_skipped_ones_and_comments(tmp_path):
    path = save(tmp_path, 'x\n#\na,b\n1,"2\n2"\n# c\n3\n', "a.csv")
    with pytest.raises(SourceError, match=r"a.csv, line 7: record 1: expected 2 cells, got 1"):
        write(tmp_path, path, skip_rows=1, comment="#")


def test_skipping_all_lines_leaves_nothing(tmp_path):
    with pytest.raises(SourceError, match="got an empty file after 9 lines"):
        write(tmp_path, save(tmp_path, "a,b\n1,2"), skip_rows=9)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"delimiter": ";;"}, "expected `delimiter` to be one character"),
        ({"delimiter": ",", "decimal": ","}, "expected different characters"),
        ({"decimal": "·"}, "expected `decimal`"),
        ({"skip_rows": -1}, "expected `skip_rows`"),
        ({"header": "yes"}, "expected `header` to be True, False"),
        ({"columns": "all"}, "expected `columns` to be a list of names, or"),
        ({"columns": []}, "expected `columns`"),
        ({"columns": ["z"]}, r"expected a column 'z'\nhint: there are a, b"),
        ({"rename": {"z": "y"}}, "`rename`: expected a column 'z'"),
        ({"rename": {"a": "b"}}, "got 'b' twice"),
        ({"null_values": "NA"}, "expected `null_values` to be a list"),
        ({"encoding": "latin-99"}, "expected an encoding that Python knows"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(tmp_path, options, match):
    with pytest.raises(SourceError, match=match):
        write(tmp_path, save(tmp_path, "a,b\n1,2\n"), **options)


# Options and what they apply to.
def test_an_option_of_another_kind_of_source_is_an_error(tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        Image.new("RGB", (4, 4)).save(tmp_path / "photos" / name / "1.png")
    np.save(tmp_path / "a.npy", np.arange(3))
    pa.parquet.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    lines = save(tmp_path, '{"x": 1}\n', "a.jsonl")
    applies = "`delimiter` applies to CSV files;"
    for source, got in (
        (tmp_path / "photos", "photos is a folder of images"),
        (tmp_path / "a.npy", "a.npy is a file of NumPy arrays"),
        (tmp_path / "a.parquet", "a.parquet holds Parquet"),
        (lines, "a.jsonl holds JSON Lines"),
        ([{"x": 1}], r"the source is not a file but a Python object \(list\)"),
        (CsvTable(save(tmp_path, "a\n1\n")), "a CsvTable, which has options of its own"),
    ):
        for call in (lambda *a, **k: datum.write(*a, tmp_path / "out", **k), datum.plan):
            with pytest.raises(SourceError, match=f"{applies} .*{got}"):
                call(source, delimiter=";")


@pytest.mark.parametrize("call", [lambda *a, **k: datum.write(*a, "out", **k), CsvTable])
def test_a_misspelt_option_names_the_nearest(call):
    with pytest.raises(
        TypeError, match="got an unknown option `delimeter`\nhint: did you mean `delimiter`"
    ):
        call("a.csv", delimeter=";")


def test_options_go_to_every_split(tmp_path):
    paths = {name: save(tmp_path, "a;b\n1,5;2\n", f"{name}.csv") for name in ("train", "test")}
    datum.write(paths, tmp_path / "out", delimiter=";", decimal=",")
    found = datum.load(tmp_path / "out")
    assert [found[name][0]["a"] for name in ("train", "test")] == [1.5, 1.5]


def test_sources_take_their_options_themselves(tmp_path):
    table = CsvTable(save(tmp_path, "a|b\n1|2\n"), delimiter="|", rename={"a": "c"}, key="a")
    assert write(tmp_path, table)[0] == [{"c": 1, "b": 2}]


def test_json_and_parquet_take_columns_and_new_names(tmp_path):
    rows = [{"a": 1, "b": "x", "c": 2}, {"a": 3, "b": "é", "c": 4}]
    pa.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    save(tmp_path, lines.encode("utf-16"), "a.jsonl")
    save(tmp_path, json.dumps(rows, ensure_ascii=False).encode("cp1252"), "a.json")
    expected = [{"B": "x", "a": 1}, {"B": "é", "a": 3}]
    options = {"columns": ["b", "a"], "rename": {"b": "B"}, "overwrite": True}
    assert write(tmp_path, tmp_path / "a.parquet", **options)[0] == expected
    assert write(tmp_path, tmp_path / "a.jsonl", encoding="utf-16", **options)[0] == expected
    assert write(tmp_path, tmp_path / "a.json", encoding="cp1252", **options)[0] == expected
    for name in ("a.parquet", "a.jsonl", "a.json"):
        coded = {"a.jsonl": {"encoding": "utf-16"}, "a.json": {"encoding": "cp1252"}}.get(name, {})
        with pytest.raises(SourceError, match="expected a column 'bb'\nhint: did you mean 'b'"):
            write(tmp_path, tmp_path / name, columns=["bb"], overwrite=True, **coded)


# Files whose headers differ.
def save_days(tmp_path, suffix=".csv"):
    rows = [
        [{"a": 1, "b": 2}],
        [{"a": 3, "b": 4}],
        [{"a": 5, "c": "x"}],
        [{"b": 6, "a": 7}],
        [{"a": 8, "b": 9, "d": 0.5}],
    ]
    for number, some in enumerate(rows):
        path = tmp_path / "days" / f"{number}{suffix}"
        path.parent.mkdir(exist_ok=True)
        if suffix == ".parquet":
            pa.parquet.write_table(pa.Table.from_pylist(some), path)
        else:
            path.write_text(",".join(some[0]) + "\n" + ",".join(map(str, some[0].values())) + "\n")
    return tmp_path / "days"


@pytest.mark.parametrize("large", [10**9, 0])
def test_differing_headers_are_refused_by_write_and_plan(tmp_path, monkeypatch, large):
    monkeypatch.setattr("datum._write.preview.LARGE_BYTES", large)
    folder = save_days(tmp_path)
    for call in (lambda source: datum.write(source, tmp_path / "out"), datum.plan):
        with pytest.raises(SourceError) as caught:
            call(folder)
        message = str(caught.value)
        assert "3 headers in 5 files" in message
        assert f"{folder / '0.csv'} and 2 more: a, b\n" in message
        assert f"{folder / '2.csv'}: lacks b; also has c\n" in message
        assert f"{folder / '4.csv'}: also has d\n" in message
        assert "hint: columns='union'" in message


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("max_bytes", [10**9, 1])
def test_columns_that_differ_are_united_or_intersected(tmp_path, monkeypatch, suffix, max_bytes):
    monkeypatch.setattr("datum.sources.csv.MAX_MEMORY_BYTES", max_bytes)
    monkeypatch.setattr("datum.sources.arrow.MAX_MEMORY_BYTES", max_bytes)
    folder = save_days(tmp_path, suffix)
    if suffix == ".parquet":  # in Parquet the order of columns is a difference, too
        (folder / "3.parquet").unlink()
    rows, _ = write(tmp_path, folder, columns="union")
    assert [row["a"] for row in rows if row["a"] != 7] == [1, 3, 5, 8]
    assert [row["b"] for row in rows if row["a"] != 7] == [2, 4, None, 9]
    assert [row["c"] for row in rows][2] == "x"
    assert [row["d"] for row in rows][-1] == 0.5
    rows, _ = write(tmp_path, folder, columns="intersection", overwrite=True)
    assert [row for row in rows if row["a"] != 7] == [{"a": a} for a in (1, 3, 5, 8)]
    rows, _ = write(tmp_path, folder, columns=["a"], overwrite=True)
    assert len(rows) == len(list(folder.iterdir()))


def test_the_plan_of_large_files_has_all_columns(tmp_path, monkeypatch):
    monkeypatch.setattr("datum._write.preview.LARGE_BYTES", 0)
    plan = datum.plan(save_days(tmp_path), columns="union")
    assert sorted(plan.schema) == ["a", "b", "c", "d"]
    assert plan.schema["a"] == Feature("int64")
    assert plan.schema["c"] == Feature("str", optional=True)


def test_a_file_of_no_split_beside_splits_is_refused(tmp_path):
    for name, text in (
        ("train", "id,x,y\n1,2,3\n"),
        ("test", "id,x\n4,5\n"),
        ("sample_submission", "id,y\n4,0\n"),
    ):
        save(tmp_path, text, f"kaggle/{name}.csv")
    for call in (lambda source: datum.write(source, tmp_path / "out"), datum.plan):
        with pytest.raises(SourceError, match=r"got sample_submission.csv\nhint: .*'test': '"):
            call(tmp_path / "kaggle")
    paths = {name: tmp_path / "kaggle" / f"{name}.csv" for name in ("train", "test")}
    datum.write(paths, tmp_path / "out")
    assert datum.load(tmp_path / "out").schema["y"] == Feature("int64", optional=True)
    rows, _ = write(tmp_path, tmp_path / "kaggle", columns="union", overwrite=True)
    assert len(rows) == 3


def test_splits_of_other_columns_have_types_of_their_own(tmp_path):
    save(tmp_path, "x,y\n1,a\n", "d/train.csv")
    save(tmp_path, "x\n2.5\n", "d/test.csv")
    datum.write(tmp_path / "d", tmp_path / "out")
    assert datum.load(tmp_path / "out").schema["y"] == Feature("str", optional=True)


# Encodings.
@pytest.mark.parametrize(
    ("encoding", "said"), [("cp1252", "Windows-1252"), ("mac_roman", "Mac Roman")]
)
@pytest.mark.parametrize(
    "names",
    [
        ["Chloë Sevigny", "Freddy Rodríguez", "Alexander Skarsgård"],
        ["don\u2019t", "\u201cquoted\u201d \u2013 or not"],
        ["Köln", "Straße", "Ärger"],
        ["São Paulo", "El Niño", "garçon"],
    ],
)
def test_a_guessed_encoding_is_right_and_reported(tmp_path, encoding, said, names):
    path = save(tmp_path, ("id,name\n" + "".join(f"1,{n}\n" for n in names)).encode(encoding))
    rows, report = write(tmp_path, path)
    assert [row["name"] for row in rows] == names
    (note,) = report.notes
    assert note == f"{path}: not UTF-8; read as {said} ({encoding}); `encoding` overrides"
    assert datum.plan(path).warnings[:1] == (note,)
    rows, report = write(tmp_path, path, encoding=encoding, overwrite=True)
    assert [row["name"] for row in rows] == names
    assert report.notes == ()


def test_classes_of_sources_keep_their_checks(tmp_path):
    pa.parquet.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match="expected `rename` to be a dict"):
        ArrowTable(tmp_path / "a.parquet", rename=["x"])
    with pytest.raises(SourceError, match="list of names as `columns` of JsonLines"):
        JsonLines(save(tmp_path, "{}", "a.jsonl"), columns="union")


def write_cells(tmp_path, cells, feature, **options):
    path = tmp_path / "a.csv"
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells]
    path.write_text("n,x\n" + "".join(f"{n},{cell}\n" for n, cell in enumerate(quoted)))
    options = {"schema": {"x": feature}, "progress": False, "shuffle": False, **options}
    report = datum.write(path, tmp_path / "out", overwrite=True, **options)
    return [row["x"] for row in datum.load(tmp_path / "out")["train"]], report


@pytest.mark.parametrize(
    ("dtype", "cells", "expected"),
    [
        ("str", ["01234", "1", "NA", "true"], ["01234", "1", "NA", "true"]),
        ("bytes", ["01", "é"], [b"01", "é".encode()]),
        ("int64", ["007", "+5", " 3 ", "4.0", "-0"], [7, 5, 3, 4, 0]),
        ("int8", ["-128", "127"], [-128, 127]),
        ("uint64", ["18446744073709551615", "0"], [2**64 - 1, 0]),
        ("float64", ["1", "01.5", "+.5", "1e3", "9007199254740993"], [1, 1.5, 0.5, 1000, 2.0**53]),
        ("float32", ["1", "0.1", "-inf"], [1, np.float32(0.1), -np.inf]),
        ("bool", ["yes", "N", "1", "0", "TRUE"], [True, False, True, False, True]),
        ("datetime64[D]", ["2024-02-29", " 1999-12-31"], ["2024-02-29", "1999-12-31"]),
        ("datetime64[s]", ["2024-02-29T01:02:03+01:00"], ["2024-02-29T00:02:03"]),
        ("datetime64[ms]", ["2024-02-29 01:02:03.5Z"], ["2024-02-29T01:02:03.500"]),
        ("datetime64[ns]", ["2024-02-29 01:02:03.123456789"], ["2024-02-29T01:02:03.123456789"]),
        ("timedelta64[s]", ["90"], [np.timedelta64(90, "s")]),
    ],
)
@pytest.mark.parametrize("max_bytes", [10**9, 1])
def test_cells_are_read_as_asked(tmp_path, monkeypatch, dtype, cells, expected, max_bytes):
    monkeypatch.setattr("datum.sources.csv.MAX_MEMORY_BYTES", max_bytes)
    found, report = write_cells(tmp_path, cells, Feature(dtype))
    if dtype.startswith("datetime"):
        expected = [np.datetime64(text) for text in expected]
    assert found == expected
    assert report.notes == ()
    assert datum.load(tmp_path / "out").schema["x"].dtype == dtype


@pytest.mark.parametrize(
    ("dtype", "cell"),
    [
        ("float32", "#DIV/0!"),
        ("float64", "--"),
        ("float64", "1,5"),
        ("float64", "1e999"),
        ("float32", "1e300"),
        ("int64", "1.5"),
        ("int64", "9223372036854775808"),
        ("int8", "128"),
        ("uint8", "-1"),
        ("uint64", "-1"),
        ("bool", "maybe"),
        ("datetime64[D]", "31.12.1999"),
        ("datetime64[D]", "2024-02-30"),
        ("datetime64[D]", "2024-02-28T12:00"),
        ("float64", ""),
    ],
)
@pytest.mark.parametrize("max_bytes", [10**9, 1])
def test_other_cells_are_bad_records_by_file_line_and_column(
    tmp_path, monkeypatch, dtype, cell, max_bytes
):
    monkeypatch.setattr("datum.sources.csv.MAX_MEMORY_BYTES", max_bytes)
    good = "2024-02-29" if dtype.startswith("datetime") else "1"
    cells = [good] * 5 + [cell] + [good] * 5 + [cell]
    got = "a value, got an empty cell" if not cell else dtype
    match = rf"a.csv, line 7: record 5: column 'x': expected {got}".replace("[", r"\[")
    with pytest.raises(SourceError, match=match):
        write_cells(tmp_path, cells, Feature(dtype), shuffle=True)
    found, report = write_cells(tmp_path, cells, Feature(dtype), on_error="quarantine")
    assert len(found) == 10
    assert report.quarantined == {"train": 2}
    lines = (tmp_path / "out" / "quarantine.jsonl").read_text().splitlines()
    assert [json.loads(line)["where"][-7:] for line in lines] == [" line 7", "line 13"]
    assert all("column 'x'" in json.loads(line)["reason"] for line in lines)


def test_the_first_bad_line_is_that_of_the_file(tmp_path):
    path = tmp_path / "a.csv"
    rows = ["1,2"] * 3000
    rows[2000], rows[700], rows[1500] = "1", "x,2", "y,2"
    path.write_text("a,b\n" + "\n".join(rows) + "\n")
    for seed in range(3):
        with pytest.raises(SourceError, match=r"line 702: record 700: column 'a': .* got 'x'"):
            datum.write(path, tmp_path / "out", schema={"a": Feature("int64")}, seed=seed)
    lines = [json.dumps({"a": 1})] * 3000
    lines[2000], lines[700] = "{", '{"a": "x"}'
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"a.jsonl, line 701: record 700: .*'a': expected"):
        datum.write(tmp_path / "a.jsonl", tmp_path / "out")


def test_lines_are_right_after_quotes_and_line_ends_within_cells(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b'a,b\r\n1,"x ""y""\r\n""z"""\r\n2,"""\n\n\n"""\r\nbad,c\r\n')
    with pytest.raises(SourceError, match=r"line 8: record 2: column 'a': .* got 'bad'"):
        datum.write(path, tmp_path / "out", schema={"a": Feature("int64"), "b": Feature("str")})


def test_optional_features_take_empty_cells(tmp_path):
    found, _ = write_cells(tmp_path, ["1", "", "NA"], Feature("float32", optional=True))
    assert found == [1.0, None, None]
    found, _ = write_cells(tmp_path, ["1", ""], Feature("int64", default=-1))
    assert found == [1, -1]


def test_a_nearly_numeric_column_says_why_it_is_text(tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"{n / 2},{n}" for n in range(50_000)]
    rows[41_201] = "#DIV/0!,1"
    path.write_text("price,n\n" + "\n".join(rows) + "\n")
    report = datum.write(path, tmp_path / "out")
    (note,) = report.notes
    assert note.startswith(f"column 'price' is text, not numbers: {path}, line 41,203: '#DIV/0!';")
    assert note in str(report)
    assert note in datum.plan(path).warnings
    path.write_text("a,b,c\n1,true,9007199254740993\n2,1,0.5\nx,x,1\n")
    notes = datum.write(path, tmp_path / "out", overwrite=True).notes
    assert notes[0].startswith("column 'a' is text, not numbers: ")
    assert "line 4: 'x'" in notes[1]
    assert notes[2] == "column 'c' is text, as it has fractions beside integers beyond 2^53"


@pytest.mark.parametrize(
    ("cell", "advice"),
    [
        ("--", "a `schema` that makes it a number rejects those rows"),
        ("+5", "a `schema` that makes it a number reads those, too"),
        ('"1,5"', "decimal=',' reads it as a number"),
    ],
)
def test_the_note_says_how_a_column_could_be_numbers(tmp_path, cell, advice):
    path = tmp_path / "a.csv"
    path.write_text(f"x,n\n1,1\n2,2\n{cell},3\n")
    (note,) = datum.write(path, tmp_path / "out").notes
    assert note.endswith(advice)


def test_codes_with_leading_zeros_are_text_without_a_note(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("zip\n99999\n12345\n01234\n55555\n")
    assert datum.write(path, tmp_path / "out").notes == ()
    assert datum.load(tmp_path / "out").schema["zip"] == Feature("str")


def test_a_complete_schema_guides_too(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("zip,x\n01234,1\n1,2\n")
    schema = datum.Schema({"zip": Feature("str"), "x": Feature("float32")})
    datum.write(path, tmp_path / "out", schema=schema, shuffle=False)
    found = datum.load(tmp_path / "out")
    assert found.schema == schema
    assert list(found["train"]) == [{"zip": "01234", "x": 1.0}, {"zip": "1", "x": 2.0}]


def test_texts_of_json_are_read_as_asked(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [
        {"day": "2024-01-02", "x": "1.5", "in": {"n": "7"}, "many": ["1", "2"], "zip": "01"},
        {"day": "2024-01-03", "x": 2, "in": {"n": 8}, "many": [], "zip": "1"},
        {"day": "2024-01-04", "x": "--", "in": {"n": 9}, "many": [3], "zip": "2"},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    schema = {
        "day": Feature("datetime64[D]"),
        "x": Feature("float32"),
        "in/n": Feature("int32"),
        "many": Feature("int64", (None,)),
        "zip": Feature("str"),
    }
    with pytest.raises(SourceError, match=r"a.jsonl, line 3: record 2: feature 'x': .* got '--'"):
        datum.write(path, tmp_path / "out", schema=schema)
    (tmp_path / "a.json").write_text(json.dumps(rows, indent=1))
    for source, line in ((path, 3), (tmp_path / "a.json", 23)):
        datum.write(
            source,
            tmp_path / "out",
            schema=schema,
            on_error="quarantine",
            shuffle=False,
            overwrite=True,
        )
        found = list(datum.load(tmp_path / "out")["train"])
        assert [row["day"] for row in found] == [np.datetime64(f"2024-01-0{n}") for n in (2, 3)]
        assert [row["x"] for row in found] == [1.5, 2.0]
        assert [row["in/n"] for row in found] == [7, 8]
        assert [row["many"].tolist() for row in found] == [[1, 2], []]
        bad = json.loads((tmp_path / "out" / "quarantine.jsonl").read_text())
        assert bad["where"].endswith(f", line {line}")


def test_a_feature_that_an_encoder_makes_is_not_read_as_it(tmp_path):
    sklearn = pytest.importorskip("sklearn.preprocessing")
    path = tmp_path / "a.csv"
    path.write_text("kind,x\na,1\nb,2\na,3\n")
    datum.write(path, tmp_path / "out", encoders={"kind": sklearn.LabelEncoder()}, shuffle=False)
    assert [row["kind"] for row in datum.load(tmp_path / "out")["train"]] == [0, 1, 0]


def test_the_arrays_of_an_npz_file_are_columns(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.arange(6).reshape(3, 2), label=np.array(["a", "b", "c"]))
    part = NumpyFile(path, key="label", split="all").parts()["all"]
    assert part.schema == Schema({"x": Feature("int64", (2,)), "label": Feature("str")})
    block = part.read(np.array([2]))
    assert block.data["x"].tolist() == [[4, 5]]
    assert block.keys == ["c"]


def test_an_npy_file_is_a_column_or_one_for_each_field(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(3.0))
    assert list(NumpyFile(path).parts()["train"].schema) == ["x"]
    np.save(path, np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]))
    part = NumpyFile(path).parts()["train"]
    assert part.schema == Schema({"a": Feature("int32"), "b": Feature("float64")})


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("it was unpickled",))


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_pickled_objects_are_never_unpickled(tmp_path, name):
    path = tmp_path / name
    objects = np.array([Evil()], object)
    if name == "a.npy":
        np.save(path, objects)
    else:
        np.savez(path, x=objects)
    with pytest.raises(SourceError, match=rf"(?s){name}: expected NumPy arrays.*hint: save"):
        NumpyFile(path).parts()


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04 cut off", pickle.dumps(Evil())])
def test_files_of_something_else_are_refused(tmp_path, content):
    path = tmp_path / "a.npy"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"a.npy: expected NumPy arrays"):
        NumpyFile(path).parts()


def test_one_file_is_a_source(tmp_path):
    for name in ("a.npy", "b.npy"):
        np.save(tmp_path / name, np.arange(3))
    with pytest.raises(SourceError, match="expected one file, got 2"):
        NumpyFile(str(tmp_path / "*.npy"))


def test_an_archive_that_inflates_far_beyond_its_size_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "FREE_BYTES", 2**20)
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.zeros(2**22, np.uint8))
    size = path.stat().st_size
    told = rf"a\.npz: {size:,} bytes that inflate to 4,194,\d\d\d exceed the limit of 1,048,576"
    with pytest.raises(SourceError, match=told) as caught:
        NumpyFile(path).parts()
    hint = str(caught.value).partition("hint: ")[2].removesuffix(" reads them")
    assert len(eval(hint, {"datum": datum}).parts()["train"]) == 2**22
    with pytest.raises(SourceError, match="exceed the limit of 100"):
        NumpyFile(path, max_bytes=100).parts()


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_a_header_that_claims_more_than_memory_is_an_error_of_the_file(tmp_path, name):
    header = {"descr": "<f8", "fortran_order": False, "shape": (2**59,)}
    array = io.BytesIO()
    np.lib.format.write_array_header_1_0(array, header)
    path = tmp_path / name
    path.write_bytes(array.getvalue())
    if name == "a.npz":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", array.getvalue())
    with pytest.raises(SourceError, match=rf"{name}: "):
        NumpyFile(path).parts()


@dataclass
class Streamed(PartInfo):
    made: list
    schema: Schema | None = None
    metadata: dict = field(default_factory=dict)
    fingerprint: None = None
    is_repeatable: bool = True

    def blocks(self):
        yield from self.made


@dataclass
class Indexed:
    rows: list
    schema: Schema | None = None
    metadata: dict = field(default_factory=dict)
    fingerprint: None = None
    keys: None = None
    stored_bytes: None = None
    is_slow_python: bool = False

    def __len__(self):
        return len(self.rows)

    def read(self, numbers):
        return Block([self.rows[n] for n in numbers], numbers)


@dataclass
class Parts:
    by_split: dict

    def parts(self):
        return self.by_split


def rows_source(*rows, **options):
    block = Block(list(rows), np.arange(len(rows)))
    return Parts({"train": Streamed([block], **options)})


def read_rows(source, split="train"):
    return [row for block in source.parts()[split].blocks() for row in block.data]


def test_vectors_become_their_values_that_are_not_zero():
    given = rows_source({"x": [0, 3, 0, 4], "n": 1}, {"x": [0, 0, 0, 0], "n": 2})
    source, features = sparse_source(given, ["x"])
    assert features == {"x": Feature("int64", (4,), encoding="sparse")}
    first, second = read_rows(source)
    assert isinstance(first["x"], Sparse)
    assert first["x"].indices.tolist() == [[1], [3]]
    assert first["x"].values.tolist() == [3, 4]
    assert second["x"].to_list() == [0, 0, 0, 0]
    assert [first["n"], second["n"]] == [1, 2]


def test_the_type_is_that_of_all_records_of_all_splits():
    given = Parts(
        {
            "train": Streamed([Block([{"x": [0, 1]}], np.arange(1))]),
            "val": Indexed([{"x": [0.5, 0]}, {"x": np.array([0.1, 0])}]),
        }
    )
    source, features = sparse_source(given, ["x"])
    assert features["x"] == Feature("float64", (2,), encoding="sparse")
    assert read_rows(source)[0]["x"].values.dtype == np.float64
    assert source.parts()["val"].read(np.array([1])).data[0]["x"].values.tolist() == [0.1]


def test_arrays_of_any_rank_become_sparse():
    source, features = sparse_source(rows_source({"x": np.eye(3, dtype=np.int32)}), ["x"])
    assert features["x"] == Feature("int32", (3, 3), encoding="sparse")
    assert read_rows(source)[0]["x"].indices.tolist() == [[0, 0], [1, 1], [2, 2]]


def test_a_negative_zero_and_nan_are_values():
    source, _ = sparse_source(rows_source({"x": [0.0, -0.0, float("nan")]}), ["x"])
    found = read_rows(source)[0]["x"]
    assert found.indices.tolist() == [[1], [2]]
    assert np.signbit(found.values[0])


def test_columns_become_sparse_columns():
    columns = {
        "x": np.array([[0, 1], [2, 0]]),
        "m": Masked(np.array([[0, 1], [0, 0]]), np.array([True, False])),
        "l": [[0, 5], None],
    }
    given = Parts({"train": Streamed([Block(columns, np.arange(2))])})
    source, features = sparse_source(given, ["x", "m", "l"])
    (block,) = source.parts()["train"].blocks()
    assert block.data["x"].to_list() == [[0, 1], [2, 0]]
    assert isinstance(block.data["m"].values, Sparse)
    assert block.data["m"].present.tolist() == [True, False]
    assert block.data["l"][0].to_list() == [0, 5]
    assert block.data["l"][1] is None
    assert features["m"].optional
    assert features["l"].optional
    assert not features["x"].optional


def test_what_is_sparse_or_absent_already_stays_so():
    row = scipy_sparse.csr_array(np.array([[0, 7]]))
    given = rows_source({"x": Sparse(np.array([[1]]), np.array([3]), (2,))}, {"x": None}, {})
    source, features = sparse_source(given, ["x"])
    assert features["x"] == Feature("int64", (2,), encoding="sparse", optional=True)
    assert read_rows(source)[1:] == [{"x": None}, {}]
    source, _ = sparse_source(rows_source({"x": row}), ["x"])
    assert read_rows(source)[0]["x"] is row


def test_lists_of_differing_length_stay_as_they_are():
    given = rows_source({"x": [1, 0]}, {"x": [1]})
    source, features = sparse_source(given, ["x"])
    assert source is given
    assert features == {}
    columns = {"x": Ragged(np.arange(3), np.array([0, 1, 3]))}
    given = Parts({"train": Streamed([Block(columns, np.arange(2))])})
    assert sparse_source(given, ["x"]) == (given, {})


def test_a_schema_that_is_known_is_believed():
    schema = Schema({"x": Feature("int64", (2,)), "boxes": Feature("float32", (None,))})
    given = rows_source({"x": [0, 1], "boxes": [0.5]}, schema=schema, is_repeatable=False)
    source, features = sparse_source(given, ["x", "boxes"])
    assert features == {"x": Feature("int64", (2,), encoding="sparse")}
    part = source.parts()["train"]
    assert part.schema["x"] == features["x"]
    assert part.schema["boxes"] == schema["boxes"]


@pytest.mark.parametrize("value", [3, "text"])
def test_what_is_no_list_is_refused(value):
    with pytest.raises(SchemaError, match="feature 'x': expected lists or arrays"):
        sparse_source(rows_source({"x": value}), ["x"])


def test_lists_of_texts_stay_as_they_are():
    given = rows_source({"x": ["a", "b"]})
    assert sparse_source(given, ["x"]) == (given, {})


def test_a_misspelt_name_is_told_the_nearest():
    given = rows_source({"words": [0, 1], "n": 1})
    with pytest.raises(SchemaError, match="got 'word'\nhint: did you mean 'words'"):
        sparse_source(given, ["word"])
    with pytest.raises(SchemaError, match="got 'q'\nhint: there are n, words"):
        sparse_source(given, ["q"])


def test_an_iterator_that_can_be_read_once_says_what_to_pass_instead():
    with pytest.raises(SourceError, match="(?s)split 'train': .*read twice.*hint: pass a function"):
        sparse_source(rows_source({"x": [0, 1]}, is_repeatable=False), ["x"])


def test_a_value_that_does_not_fit_is_left_for_the_writer_to_name():
    schema = Schema({"x": Feature("int64", (2,))})
    source, _ = sparse_source(rows_source({"x": "no numbers"}, schema=schema), ["x"])
    assert read_rows(source) == [{"x": "no numbers"}]


def test_the_change_can_be_sent_to_another_process():
    source, _ = sparse_source(Parts({"train": Indexed([{"x": [0, 1]}])}), ["x"])
    part = pickle.loads(pickle.dumps(source.parts()["train"]))
    assert part.read(np.array([0])).data[0]["x"].to_list() == [0, 1]
