"""Columns as Arrow arrays."""

import numpy as np
import pyarrow as pa
import pytest

from datum import Feature, Schema
from datum._read.tables import to_arrow, type_of
from datum.format import encode, parse

BF16 = pytest.importorskip("ml_dtypes").bfloat16

CASES = [
    (Feature("bool"), [True, False], pa.bool_(), None),
    (Feature("uint64"), [2**64 - 1, 0], pa.uint64(), None),
    (Feature("float16"), [0.5, 1.5], pa.float16(), None),
    (Feature("bfloat16"), [BF16(0.5), BF16(3)], pa.float32(), [0.5, 3.0]),
    (Feature("float64", (2,)), [[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float64(), 2), None),
    (
        Feature("int8", (2, 1)),
        [[[1], [2]], [[3], [4]]],
        pa.list_(pa.list_(pa.int8(), 1), 2),
        None,
    ),
    (Feature("int64", (None,)), [[], [1, 2]], pa.list_(pa.int64()), None),
    (
        Feature("float32", (None, None)),
        [[[1.0], []], [[2.0, 3.0]]],
        pa.list_(pa.list_(pa.float32())),
        None,
    ),
    (
        Feature("float32", (None, 2)),
        [[], [[1.0, 2.0]]],
        pa.list_(pa.list_(pa.float32(), 2)),
        None,
    ),
    (Feature("str"), ["a", "ä"], pa.string(), None),
    (Feature("bytes", (2,)), [[b"a", b""], [b"\xff", b"b"]], pa.list_(pa.binary(), 2), None),
    (Feature("str", (None,)), [["a"], []], pa.list_(pa.string()), None),
    (Feature("int64", (0,)), [[], []], pa.list_(pa.int64(), 0), None),
    (
        Feature("complex64"),
        [1 + 2j, 0j],
        pa.struct([("real", pa.float32()), ("imag", pa.float32())]),
        [{"real": 1.0, "imag": 2.0}, {"real": 0.0, "imag": 0.0}],
    ),
    (Feature("int64", optional=True), [None, 4], pa.int64(), None),
    (Feature("str", optional=True), [None, "a"], pa.string(), None),
    (Feature("int64", (None,), optional=True), [None, [4]], pa.list_(pa.int64()), None),
    (Feature("float32", (2,), optional=True), [None, [1.0, 2.0]], pa.list_(pa.float32(), 2), None),
    (
        Feature("uint8", (None, 1, None), encoding="raw"),
        [np.ones((2, 1, 2), np.uint8), np.zeros((0, 1, 3), np.uint8)],
        pa.list_(pa.list_(pa.list_(pa.uint8()), 1)),
        [[[[1, 1]], [[1, 1]]], []],
    ),
    (
        Feature("uint8", (None, None), encoding="raw", optional=True),
        [np.ones((2, 1), np.uint8), None],
        pa.list_(pa.list_(pa.uint8())),
        [[[1], [1]], None],
    ),
]


@pytest.mark.parametrize(("feature", "values", "kind", "expected"), CASES, ids=lambda one: str(one))
def test_columns_have_the_type_of_their_feature_and_its_values(feature, values, kind, expected):
    assert type_of(feature) == kind
    schema = Schema({"x": feature})
    rows = [{} if value is None else {"x": value} for value in values]
    array = to_arrow(parse(encode(rows, schema), schema)["x"], feature)
    assert array.type == kind
    array.validate(full=True)
    assert array.to_pylist() == (values if expected is None else expected)


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        ("datetime64[ns]", pa.timestamp("ns")),
        ("datetime64[us]", pa.timestamp("us")),
        ("datetime64[h]", pa.timestamp("s")),
        ("datetime64[D]", pa.date32()),
        ("timedelta64[ms]", pa.duration("ms")),
        ("timedelta64[D]", pa.duration("s")),
    ],
)
def test_times_are_times(dtype, kind):
    feature = Feature(dtype)
    values = np.array([3, -4, np.iinfo(np.int64).min]).view(dtype)
    array = to_arrow(values, feature)
    assert array.type == type_of(feature) == kind
    assert array.null_count == 1
    back = array.to_numpy(zero_copy_only=False)[:2]
    assert (back == values[:2]).all()


def test_sparse_rows_are_indices_and_values():
    feature = Feature("float32", (5,), encoding="sparse")
    schema = Schema({"x": feature})
    rows = [{"x": np.array([0, 0, 2, 0, 1], np.float32)}, {"x": np.zeros(5, np.float32)}]
    from datum import Sparse

    given = [{"x": Sparse(np.argwhere(row["x"]), row["x"][row["x"] != 0], (5,))} for row in rows]
    array = to_arrow(parse(encode(given, schema), schema)["x"], feature)
    assert array.to_pylist() == [
        {"indices": [2, 4], "values": [2.0, 1.0]},
        {"indices": [], "values": []},
    ]
    assert array.type == type_of(feature)


def test_sparse_places_in_two_dimensions_are_pairs():
    feature = Feature("int64", (3, 4), encoding="sparse")
    from datum import Sparse

    column = Sparse(np.array([[0, 1, 2], [1, 0, 3]]), np.array([7, 8]), (2, 3, 4))
    array = to_arrow(column, feature)
    assert array.to_pylist() == [
        {"indices": [[1, 2]], "values": [7]},
        {"indices": [[0, 3]], "values": [8]},
    ]
    assert array.type == type_of(feature)


def test_images_are_their_bytes():
    assert type_of(Feature("uint8", (None, None, 3), encoding="image")) == pa.binary()
