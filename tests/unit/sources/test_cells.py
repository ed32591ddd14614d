"""A schema says how cells of CSV and texts of JSON are read."""

import json

import numpy as np
import pytest

import datum
from datum import Feature, SourceError


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
        ("--", "a `schema` that makes it a number makes bad records of those"),
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
