"""Records as JSON lines."""

import json

import numpy as np

from datum import BytesColumn, Feature, Masked, Ragged, Schema, Sparse
from datum._rewrite.export import JsonSplit, json_rows


def only(column, records=2):
    return [row["x"] for row in json_rows({"x": column}, records)]


def test_numbers_and_arrays():
    assert only(np.array([1, 2], np.uint8)) == [1, 2]
    assert only(np.array([[1.5, np.nan], [np.inf, 2]])) == [[1.5, "NaN"], ["Infinity", 2.0]]
    assert only(np.array([-np.inf], np.float16), 1) == ["-Infinity"]
    assert only(np.array([1 + 2j, 3j])) == [[1.0, 2.0], [0.0, 3.0]]


def test_floats_are_told_exactly_so_that_they_come_back_as_they_were():
    (value,) = only(np.array([0.1], np.float32), 1)
    assert np.float32(value) == np.float32(0.1)
    assert value != 0.1


def test_texts_and_bytes():
    assert only(BytesColumn.from_values(["a", "ä"])) == ["a", "ä"]
    assert only(BytesColumn.from_values([b"\xff", b""])) == ["/w==", ""]
    two = BytesColumn(b"ab", np.array([[0, 1], [1, 1]]), shape=(1, 2))
    assert only(two, 1) == [["YQ==", "Yg=="]]


def test_times_are_iso_and_spans_are_counts():
    assert only(np.array(["2020-01-02T03:04:05", "NaT"], "M8[s]")) == ["2020-01-02T03:04:05", None]
    assert only(np.array([90, -1], "m8[s]")) == [90, -1]


def test_ragged_masked_sparse_and_odd_shapes():
    assert only(Ragged(np.array([1, 2, 3]), np.array([0, 2, 3]))) == [[1, 2], [3]]
    words = Ragged(BytesColumn.from_values([b"a"]), np.array([0, 0, 1]))
    assert only(words) == [[], ["YQ=="]]
    assert only(Masked(np.array([1, 0]), np.array([True, False]))) == [1, None]
    sparse = Sparse(np.array([[0, 3], [1, 1]]), np.array([2.0, 4.0]), (2, 5))
    assert only(sparse) == [
        {"indices": [3], "values": [2.0], "shape": [5]},
        {"indices": [1], "values": [4.0], "shape": [5]},
    ]
    tensors = np.empty(2, object)
    tensors[:] = [np.ones((1, 2)), None]
    assert only(tensors) == [[[1.0, 1.0]], None]


def test_lines_are_written_in_the_order_of_the_schema(tmp_path):
    schema = Schema({"b": Feature("str"), "a": Feature("int64")})
    split = JsonSplit(tmp_path / "x.jsonl", schema)
    split.write({"a": np.array([1]), "b": BytesColumn.from_values(["ü\n"])}, 1)
    split.close()
    text = (tmp_path / "x.jsonl").read_text(encoding="utf-8")
    assert text == '{"b": "ü\\n", "a": 1}\n'
    assert json.loads(text) == {"b": "ü\n", "a": 1}
