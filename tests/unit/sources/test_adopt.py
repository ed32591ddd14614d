import json
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse

from datum.errors import SourceError
from datum.sources import (
    ArrowTable,
    ColumnTable,
    CsvTable,
    JsonLines,
    JsonText,
    NumpyFile,
    PythonRows,
    as_source,
)


class Own:
    def parts(self):
        return {}


class Dataset:
    def __len__(self):
        return 1

    def __getitem__(self, number):
        return {"x": number}


def rows():
    yield {"x": 1}


KINDS = [
    ({"x": [1, 2]}, ColumnTable),
    (pd.DataFrame({"x": [1]}), ColumnTable),
    (pd.Series([1], name="x"), ColumnTable),
    (pa.table({"x": [1]}), ColumnTable),
    (pa.record_batch({"x": [1]}), ColumnTable),
    (np.zeros((2, 3)), ColumnTable),
    (np.zeros(2, [("a", "i4")]), ColumnTable),
    (scipy.sparse.eye(2, format="csr"), ColumnTable),
    ([{"x": 1}], PythonRows),
    (({"x": 1},), PythonRows),
    (rows(), PythonRows),
    (rows, PythonRows),
    (Dataset(), PythonRows),
    ([], PythonRows),
]


@pytest.mark.parametrize(
    ("source", "kind"), KINDS, ids=[type(source).__name__ for source, _ in KINDS]
)
def test_each_kind_of_data_has_its_source(source, kind):
    found = as_source(source)
    assert type(found) is kind
    assert list(found.parts()) == ["train"]


def test_a_source_is_itself():
    source = Own()
    assert as_source(source) is source


def test_a_table_of_another_library_comes_by_arrow():
    class Frame:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.table({"x": [1, 2]}).__arrow_c_stream__(requested_schema)

    part = as_source(Frame()).parts()["train"]
    assert part.read(np.arange(2)).data["x"].tolist() == [1, 2]


def test_paths_are_looked_at(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "b.csv").write_text("x\n2\n")
    (tmp_path / "a.jsonl").write_text('{"x": 1}\n')
    (tmp_path / "train.json").write_text(json.dumps({"1": {"text": "a"}}))
    pa.parquet.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    np.save(tmp_path / "a.npy", np.arange(3))
    np.savez(tmp_path / "a.npz", x=np.arange(3))
    expected = {
        "a.csv": CsvTable,
        "*.csv": CsvTable,
        "a.jsonl": JsonLines,
        "train.json": JsonText,
        "a.parquet": ArrowTable,
        "*.parquet": ArrowTable,
        "a.npy": NumpyFile,
        "a.npz": NumpyFile,
    }
    for name, kind in expected.items():
        assert type(as_source(str(tmp_path / name))) is kind
    assert type(as_source(tmp_path / "a.csv")) is CsvTable
    part = as_source(str(tmp_path / "*.csv")).parts()["train"]
    assert part.read(np.arange(2)).data["x"].tolist() == [1, 2]


def test_a_pattern_names_files_of_one_kind(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "a.jsonl").write_text('{"x": 1}\n')
    with pytest.raises(SourceError, match=r"expected files of one kind, got .csv, .jsonl"):
        as_source(str(tmp_path / "a.*"))
    for name in ("1.json", "2.json"):
        (tmp_path / name).write_text("[]")
    with pytest.raises(SourceError, match=r"expected one file of .json, got 2"):
        as_source(str(tmp_path / "*.json"))


async def coroutine():
    return []


async def asynchronous():
    yield {"x": 1}


WRONG = [
    (7, "expected something with records, got int"),
    (None, "got NoneType"),
    (b"bytes", "got bytes"),
    ({1, 2}, "got set"),
    (object(), "got object"),
    (np.float64(3), "got float64"),
    (np.array(3), "expected an array of records, got a single value"),
    (Dataset, r"got the class Dataset\nhint: Dataset\(\)"),
    ("no such path", "no such path: expected a file or a folder, got nothing there"),
    ("s3://bucket/key", "expected a path on this computer, got a URL"),
    ("nothing/*.csv", "expected files of this pattern, got none"),
    ({"a": [1], "b": [1, 2]}, "expected columns of one length, got 'a': 1, 'b': 2"),
    ({"a": 1}, "column 'a': expected an array or a list"),
    (asynchronous(), "got the asynchronous async_generator"),
]


@pytest.mark.parametrize(("source", "message"), WRONG, ids=[message for _, message in WRONG])
def test_anything_else_is_refused_by_name(source, message):
    with pytest.raises(SourceError, match=message):
        as_source(source)


def test_a_coroutine_is_refused_and_closed():
    with pytest.raises(SourceError, match="got the asynchronous coroutine"):
        as_source(coroutine())


def test_a_problem_is_told_of_a_path():
    with pytest.raises(SourceError, match="expected a path where problem='text_clf' is given"):
        as_source([{"x": 1}], "text_clf")


def test_a_byte_path_is_refused(tmp_path):
    class Place:
        def __fspath__(self):
            return b"bytes"

    with pytest.raises(SourceError, match="expected a path that is text"):
        as_source(Place())


def test_plain_data_needs_no_other_package(tmp_path):
    code = (
        "import sys; from datum.sources import as_source; as_source([{'x': 1}]).parts();"
        "as_source({'x': __import__('numpy').arange(3)}).parts();"
        "print([name for name in ('pandas', 'pyarrow', 'torch') if name in sys.modules])"
    )
    import subprocess

    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert finished.stdout.strip() == "[]"
