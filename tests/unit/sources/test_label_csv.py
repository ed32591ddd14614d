"""Tables of labels."""

import numpy as np
import pytest

from datum import Feature
from datum.errors import SourceError
from datum.sources.labelled_images import feature_of_values, read_label_csv, type_cells


def read(tmp_path, content, needed="filename"):
    path = tmp_path / "train.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_label_csv(path, needed=needed)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1", "-20", "0"], [1, -20, 0]),
        (["1", "", "3"], [1, None, 3]),
        (["1", "2.5"], [1.0, 2.5]),
        (["1e3", ".5", "-2."], [1000.0, 0.5, -2.0]),
        (["1", "nan"], None),
        (["-0", "1"], [-0.0, 1.0]),
        (["01", "2"], ["01", "2"]),
        (["007.5", "2"], ["007.5", "2"]),
        (["cat", "1"], ["cat", "1"]),
        (["nan", "inf"], ["nan", "inf"]),
        (["True", "false", ""], [True, False, None]),
        (["1", "true"], ["1", "true"]),
        ([" 1", "2 "], [1, 2]),
        ([" a", "b "], [" a", "b "]),
        (["9223372036854775807"], [2**63 - 1]),
        (["9223372036854775808", "1"], [2.0**63, 1.0]),
        (["1_000", "2"], ["1_000", "2"]),
        (["٣"], ["٣"]),
        (["", " "], [None, None]),
        (["NA", "1", "null"], [None, 1, None]),
        (["NA", "cat"], ["NA", "cat"]),
        (["NA", ""], ["NA", None]),
        ([], []),
    ],
)
def test_a_column_has_one_type(cells, values):
    found = type_cells(cells)
    if values is None:
        assert found[0] == 1.0
        assert np.isnan(found[1])
        return
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("values", "feature"),
    [
        ([1, 2], Feature("int64")),
        ([1, None], Feature("int64", optional=True)),
        ([0.5, float("nan")], Feature("float64")),
        ([True], Feature("bool")),
        (["a", None], Feature("str", optional=True)),
        ([None], None),
    ],
)
def test_a_column_is_a_feature(values, feature):
    assert feature_of_values(values) == feature


def test_rows_and_lines_are_read(tmp_path):
    table = read(tmp_path, 'filename,label\n\na,1\n"b\nc",2\n')
    assert table.columns == {"filename": ["a", "b\nc"], "label": [1, 2]}
    assert table.lines == [3, 5]
    assert table.faults == {}


def test_file_names_stay_text(tmp_path):
    assert read(tmp_path, "filename,x\n001,1\n2,1\n").columns["filename"] == ["001", "2"]
    assert read(tmp_path, "filename,x\n1,1\n,1\n").columns["filename"] == ["1", None]


def test_spaces_after_commas_are_no_part_of_names(tmp_path):
    table = read(tmp_path, "filename, label_1, label_2\na, 1, 1.5\n")
    assert table.columns == {"filename": ["a"], "label_1": [1], "label_2": [1.5]}


def test_a_column_without_a_name_gets_one(tmp_path):
    assert read(tmp_path, ",filename\n0,a\n").columns == {"column_0": [0], "filename": ["a"]}


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_other_delimiters_are_found(tmp_path, delimiter):
    content = "filename,label\na,1\n".replace(",", delimiter)
    assert read(tmp_path, content).columns == {"filename": ["a"], "label": [1]}


@pytest.mark.parametrize(
    "content",
    ["\ufefffilename,x\nä,é\n".encode(), "filename,x\nä,é\n".encode("cp1252")],
    ids=["utf-8 with a mark", "windows"],
)
def test_encodings_are_found(tmp_path, content):
    assert read(tmp_path, content).columns == {"filename": ["ä"], "x": ["é"]}


def test_bytes_of_no_encoding_are_still_text(tmp_path):
    assert read(tmp_path, b"filename\n\x81\n").columns == {"filename": ["\x81"]}


def test_rows_of_another_length_are_told(tmp_path):
    table = read(tmp_path, "filename,x\na\nb,1\nc,1,2\n")
    assert table.faults == {0: "expected 2 cells, got 1", 2: "expected 2 cells, got 3"}
    assert table.columns["filename"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name,x\n", "expected a column 'filename', got columns 'name', 'x'"),
        ("", "expected a column 'filename', got an empty file"),
        ("filename,x,x\n", "got 'x' twice"),
        ("filename\n" + "a" * 200_000, "line 2: expected CSV, got: field larger"),
    ],
)
def test_tables_that_cannot_be_used_are_refused(tmp_path, content, message):
    with pytest.raises(SourceError, match=message):
        read(tmp_path, content)


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(SourceError, match="gone.csv: expected a file"):
        read_label_csv(tmp_path / "gone.csv", needed="x")
