import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse

from datum import BytesColumn, Feature, Masked, Ragged, Schema, Sparse
from datum.errors import SourceError
from datum.sources import ColumnTable, IndexedPart, Source


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
