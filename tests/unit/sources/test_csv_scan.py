import gzip

import numpy as np
import pytest

from datum import Feature, Schema
from datum.errors import SourceError
from datum.sources.csv import CsvScan, CsvWish
from datum.sources.csv_text import CsvFile, CsvSettings

SETTINGS = CsvSettings(blank=("", "NA"))


def scan(tmp_path, *texts, max_bytes=10_000, key=None, columns="same", suffix=""):
    files = []
    for number, text in enumerate(texts):
        path = tmp_path / f"{number}.csv{suffix}"
        content = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(content) if suffix else content)
        files.append(CsvFile(path, SETTINGS))
    found = CsvScan(files, CsvWish(key, columns, {}))
    found.run(max_bytes=max_bytes)
    return found, files


def values_of(found, files):
    pieces = [(file, piece) for file in files for piece in found.kept[file]]
    return {
        name: column.tolist() if isinstance(column, np.ndarray) else column.to_list()
        for name, column in found.take_block(pieces, 0).data.items()
    }


def type_of(tmp_path, *cells):
    found, _ = scan(tmp_path, "x,y\n" + "".join(f"{cell},0\n" for cell in cells))
    return found.schema.get("x")


@pytest.mark.parametrize("cells", [["1", "-2", "0"], ["9223372036854775807"], ["5", ""]])
def test_integers_as_python_writes_them_are_int64(tmp_path, cells):
    assert type_of(tmp_path, *cells).dtype == "int64"


@pytest.mark.parametrize(
    "cells",
    [["0.5"], ["1", "2.5"], ["1e5"], [".5", "5."], ["-0"], ["nan"], ["1", "NaN"], ["-inf", "1"]],
)
def test_numbers_with_a_point_or_an_exponent_are_float64(tmp_path, cells):
    assert type_of(tmp_path, *cells) == Feature("float64")


@pytest.mark.parametrize(
    "cells",
    [
        ["01"],
        ["+1"],
        ["1", "02"],
        ["9223372036854775808"],
        ["9007199254740993", "0.5"],  # as a float it would be another number
        ["1e999"],
        ["0x10"],
        ["1_000"],
        [" 1"],
        ["1", "x"],
        ["true", "1"],
        ["NA", "x"],
        ["NA", "NA"],
        ["00.5"],
        ["T"],
        ["-"],
        ["."],
        ["1e"],
        ['"a""b"'],
    ],
)
def test_what_a_number_would_change_is_text(tmp_path, cells):
    assert type_of(tmp_path, *cells) == Feature("str")


@pytest.mark.parametrize("cells", [["true", "false"], ["True", "False"], ["TRUE"]])
def test_truth_values_are_bool(tmp_path, cells):
    assert type_of(tmp_path, *cells) == Feature("bool")


def test_empty_cells_and_blanks_of_numbers_are_absent(tmp_path):
    found, files = scan(tmp_path, "i,f,b,s\n1,NA,true,NA\n,0.5,NA,\n")
    assert found.schema == Schema(
        {
            "i": Feature("int64", optional=True),
            "f": Feature("float64", optional=True),
            "b": Feature("bool", optional=True),
            "s": Feature("str", optional=True),
        }
    )
    assert values_of(found, files) == {
        "i": [1, None],
        "f": [None, 0.5],
        "b": [True, None],
        "s": ["NA", None],
    }


def test_types_are_told_over_all_files(tmp_path):
    found, files = scan(tmp_path, "a,b,c\n1,2,x\n", "c,a,b\n,3.5,02\n", "a,b,c\n4,5,z\n")
    assert {name: feature.dtype for name, feature in found.schema.items()} == {
        "a": "float64",
        "b": "str",
        "c": "str",
    }
    assert values_of(found, files) == {
        "a": [1.0, 3.5, 4.0],
        "b": ["2", "02", "5"],
        "c": ["x", None, "z"],
    }


def test_many_rows_change_their_type_together(tmp_path):
    text = "x,y\n" + "12345,0.5\n" * 100_000 + "last,7\n"
    found, files = scan(tmp_path, text, max_bytes=10**7)
    values = values_of(found, files)
    assert values["x"] == ["12345"] * 100_000 + ["last"]
    assert values["y"] == [0.5] * 100_000 + [7.0]


def test_a_column_without_a_value_is_left_out_and_told(tmp_path):
    found, _ = scan(tmp_path, "a,b\n1,\n2,\n")
    assert list(found.schema) == ["a"]
    assert found.metadata == {"b": {"left_out": "no record has a value"}}


def test_files_of_other_columns_are_refused(tmp_path):
    with pytest.raises(SourceError, match=r"(?s)0.csv: a, b\n.*1.csv: lacks b\nhint: columns='un"):
        scan(tmp_path, "a,b\n1,2\n", "a\n1\n")


def test_columns_are_taken_by_name_and_the_key_with_them(tmp_path):
    found, _ = scan(tmp_path, "a,b,c\n1,2,3\n", columns=["c", "b"], key="a")
    assert list(found.schema) == ["c", "b"]
    assert set(found.seen) == {"a", "b", "c"}
    with pytest.raises(
        SourceError, match=r"expected a column 'colour'\nhint: did you mean 'color'"
    ):
        scan(tmp_path, "color,b\n1,2\n", columns=["colour"])


def test_text_beyond_the_limit_is_not_kept(tmp_path):
    found, _ = scan(tmp_path, "a\n" + "1\n" * 1000, max_bytes=100)
    assert not found.is_kept
    assert found.schema == Schema({"a": Feature("int64")})


def test_a_packed_file_that_is_larger_than_it_seemed_is_not_kept(tmp_path):
    found, _ = scan(tmp_path, "a\n" + "1\n" * 100_000, max_bytes=10_000, suffix=".gz")
    assert not found.is_kept
    assert found.kept == {}


def test_the_encoding_is_told_of_columns_of_text(tmp_path):
    found, files = scan(tmp_path, "a,b\n1,café\n".encode("cp1252"))
    assert values_of(found, files) == {"a": [1], "b": ["café"]}
    assert found.metadata == {"b": {"encoding": "cp1252"}}


def test_the_fingerprint_changes_with_the_text(tmp_path):
    first, files = scan(tmp_path, "a\n1\n")
    before = first.fingerprint(files)
    again, files = scan(tmp_path, "a\n1\n")
    assert again.fingerprint(files) == before
    other, files = scan(tmp_path, "a\n2\n")
    assert other.fingerprint(files) != before
