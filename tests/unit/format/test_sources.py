import re

import numpy as np
import pytest

from datum import BytesColumn, Feature, Masked, Ragged, SchemaError, Sparse, _core
from datum.format import encode, parse
from datum.format.column_input import make_sources

COLUMNS = {
    "array": (Feature("int64", (2,)), np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    "other dtype": (Feature("int64"), np.array([1, 2], np.int8), [1, 2]),
    "strided": (Feature("int64"), np.array([1, 9, 2, 9])[::2], [1, 2]),
    "big-endian": (Feature("float32"), np.array([1.5, 2.5], ">f8"), [1.5, 2.5]),
    "bools": (Feature("bool"), np.array([True, False]), [True, False]),
    "strings": (Feature("str"), BytesColumn.from_values(["a", "ü"]), ["a", "ü"]),
    "strings of numpy": (Feature("str"), np.array(["a", "ü"]), ["a", "ü"]),
    "bytes of numpy": (Feature("bytes"), np.array([b"a", b"bc"]), [b"a", b"bc"]),
    "objects": (Feature("bytes"), np.array([b"a", b"bc"], object), [b"a", b"bc"]),
    "ragged": (Feature("int64", (None,)), Ragged.from_rows([[1], [2, 3]]), [[1], [2, 3]]),
    "dense for ragged": (Feature("int64", (None,)), np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    "dense for nested": (
        Feature("int64", (None, None)),
        np.arange(8).reshape(2, 2, 2),
        np.arange(8).reshape(2, 2, 2).tolist(),
    ),
    "list": (Feature("float64"), [1.5, 2.5], [1.5, 2.5]),
    "tuple": (Feature("float64"), (1.5, 2.5), [1.5, 2.5]),
    "list of ints": (Feature("int64"), [1, 2], [1, 2]),
    "shaped": (
        Feature("float64", (1, None)),
        [np.ones((1, 1)), np.ones((1, 3))],
        [[[1]], [[1] * 3]],
    ),
    "sparse": (
        Feature("float32", (3,), encoding="sparse"),
        Sparse(np.array([[1, 2], [0, 1]]), np.array([7.0, 5.0]), (2, 3)),
        [([1], [5.0]), ([2], [7.0])],
    ),
    "masked": (
        Feature("int64", optional=True),
        Masked(np.array([1, 99]), np.array([True, False])),
        [1, None],
    ),
    "masked ragged": (
        Feature("str", (None,), optional=True),
        Masked(Ragged.from_rows([["a"], ["gone"]]), np.array([True, False])),
        [["a"], None],
    ),
}


@pytest.mark.parametrize(("feature", "column", "rows"), COLUMNS.values(), ids=COLUMNS)
def test_a_column_in_any_form_writes_what_its_rows_write(feature, column, rows):
    from_rows = encode([{"x": row} for row in rows], {"x": feature})
    assert encode({"x": column}, {"x": feature}).to_bytes() == from_rows.to_bytes()


def test_a_scipy_matrix_writes_what_its_rows_write():
    sparse = pytest.importorskip("scipy.sparse", exc_type=ImportError)
    feature = Feature("float32", (3,), encoding="sparse")
    matrix = sparse.csr_array(np.array([[0, 5, 0], [0, 0, 7]], np.float32))
    from_rows = encode([{"x": ([1], [5.0])}, {"x": ([2], [7.0])}], {"x": feature})
    assert encode({"x": matrix}, {"x": feature}).to_bytes() == from_rows.to_bytes()
    assert encode({"x": matrix}).to_bytes() == from_rows.to_bytes()


def test_values_that_occur_twice_in_a_scipy_matrix_are_summed():
    sparse = pytest.importorskip("scipy.sparse", exc_type=ImportError)
    matrix = sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 3))
    feature = Feature("float32", (3,), encoding="sparse")
    assert parse(encode({"x": matrix}, {"x": feature}), {"x": feature})[
        "x"
    ].to_dense().tolist() == [[0, 3, 0]]


def test_sources_are_one_for_each_key():
    rows = [[[1], [2, 3]], []]
    sources = make_sources("x", Feature("int64", (None, None)), rows, 2)
    assert len(sources) == 2
    assert all(isinstance(source, _core.ColumnInput) for source in sources)


@pytest.mark.parametrize(
    ("feature", "column", "message"),
    [
        (
            Feature("int64"),
            Masked(np.array([1, 2]), np.array([True, False])),
            "record 1, feature 'x': expected a value, got none\nhint: mark the feature optional",
        ),
        (
            Feature("int64"),
            np.zeros((2, 1), int),
            "feature 'x': expected shape (2,), got ndarray of shape (2, 1)",
        ),
        (Feature("int64", (3,)), np.zeros((2, 2), int), "feature 'x': expected shape (2, 3), got"),
        (Feature("uint8"), np.array([1, 300]), "record 1, feature 'x': expected uint8, got 300"),
        (Feature("uint8"), np.array([1, -1]), "record 1, feature 'x': expected uint8, got -1"),
        (
            Feature("float32"),
            np.array([1, 1e300]),
            "record 1, feature 'x': expected float32, got",
        ),
        (Feature("int64"), np.array([1.5, 2]), "record 0, feature 'x': expected int64, got"),
        (Feature("str"), BytesColumn.from_values([b"a", b"b"]), "expected str, got bytes"),
        (Feature("bytes"), BytesColumn.from_values(["a", "b"]), "expected bytes, got str"),
        (
            Feature("int64", (None,)),
            Ragged(Ragged.from_rows([[1], [2]]), np.array([0, 1, 2])),
            "feature 'x': expected 2 rows, ragged in 1 dimension(s), got Ragged",
        ),
        (
            Feature("uint8", (None,)),
            Ragged.from_rows([[1, 2], [3, 300]]),
            "record 1, feature 'x': expected uint8, got 300",
        ),
        (
            Feature("uint8", (None, None)),
            Ragged.from_rows([[[1], [2]], [[], [300]]], levels=2),
            "record 1, feature 'x': expected uint8, got 300",
        ),
        (
            Feature("float32", (3,), encoding="sparse"),
            Sparse(np.array([[0, 1]]), np.array([5.0]), (2, 4)),
            "feature 'x': expected a Sparse of shape (2, 3), got Sparse",
        ),
        (
            Feature("float32", (3,), encoding="sparse"),
            Sparse(np.array([[0, 1], [1, 3]]), np.array([5.0, 6.0]), (2, 3)),
            "record 1, feature 'x': expected indices within (2, 3), got [1, 3]",
        ),
        (
            Feature("uint8", (3,), encoding="sparse"),
            Sparse(np.array([[1, 1], [0, 2]]), np.array([300, 1]), (2, 3)),
            "record 1, feature 'x': expected uint8, got 300",
        ),
        (
            Feature("float32", (3,), encoding="sparse"),
            np.zeros((2, 3)),
            "feature 'x': expected a Sparse of shape (2, 3), got ndarray of shape (2, 3)",
        ),
        (
            Feature("float64", (None, 1, None)),
            [np.ones((1, 1, 1)), np.ones((1, 2, 1))],
            "record 1, feature 'x': expected shape (None, 1, None), got ",
        ),
        (
            Feature("int16", (None, None), encoding="raw"),
            [np.ones((1, 1), int), np.full((1, 1), 99_999)],
            "record 1, feature 'x': expected int16, got 99999",
        ),
    ],
    ids=repr,
)
def test_a_column_that_does_not_fit_is_refused(feature, column, message):
    with pytest.raises(SchemaError, match=re.escape(message)):
        make_sources("x", feature, column, 2)


def test_a_column_of_another_length_is_refused():
    tensors = [np.ones((1, 1)), np.ones((1, 1))]
    with pytest.raises(SchemaError, match="^feature 'x': expected 3 rows, got 2$"):
        make_sources("x", Feature("float64", (None, None)), tensors, 3)
    with pytest.raises(SchemaError, match="^feature 'x': expected shape .3,., got ndarray"):
        make_sources("x", Feature("int64"), np.array([1, 2]), 3)


def test_numbers_are_no_strings():
    with pytest.raises(SchemaError, match="^feature 'x': expected str, got ndarray of shape"):
        make_sources("x", Feature("str"), np.array([1, 2]), 2)


def test_masked_columns_without_gaps_fit_features_that_must_be_there():
    masked = Masked(np.array([1, 2]), np.array([True, True]))
    expected = encode({"x": np.array([1, 2])}, {"x": Feature("int64")}).to_bytes()
    assert encode({"x": masked}, {"x": Feature("int64")}).to_bytes() == expected
