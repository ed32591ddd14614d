import pickle
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy import sparse as scipy_sparse

from datum.columns import Masked, Ragged, Sparse
from datum.errors import SchemaError, SourceError
from datum.schema import Feature, Schema
from datum.sources import Block, PartInfo
from datum.sources.wrap import sparse_source


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
