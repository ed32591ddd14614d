"""Options of tables in files, through `datum.write` and the sources."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from PIL import Image

import datum
from datum import Feature, SourceError
from datum.sources import ArrowTable, CsvTable, JsonLines


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
        ([{"x": 1}], r"the source is no file but an object of Python \(list\)"),
        (CsvTable(save(tmp_path, "a\n1\n")), "a CsvTable, which takes its options itself"),
    ):
        for call in (lambda *a, **k: datum.write(*a, tmp_path / "out", **k), datum.plan):
            with pytest.raises(SourceError, match=f"{applies} .*{got}"):
                call(source, delimiter=";")


@pytest.mark.parametrize("call", [lambda *a, **k: datum.write(*a, "out", **k), CsvTable])
def test_a_misspelt_option_names_the_nearest(call):
    with pytest.raises(
        TypeError, match="has no option 'delimeter'\nhint: did you mean 'delimiter'"
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
