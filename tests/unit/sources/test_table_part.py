import numpy as np
import pytest

from datum import BytesColumn, Feature, Masked, Ragged, Schema, Sparse
from datum.errors import SourceError
from datum.sources import IndexedPart, Reject
from datum.sources.table_part import TablePart, fingerprint_of, keys_of, schema_of


def make_part(**options):
    return TablePart(
        {"x": np.array([0, 10, 20]), "s": BytesColumn.from_values(["a", "b", "c"])}, **options
    )


def test_it_is_a_part_that_is_read_by_numbers():
    part = make_part()
    assert isinstance(part, IndexedPart)
    assert len(part) == 3
    block = part.read(np.array([2, 0]))
    assert block.data["x"].tolist() == [20, 0]
    assert block.data["s"].to_list() == ["c", "a"]
    assert block.numbers.tolist() == [2, 0]
    assert block.keys is None
    assert block.rejects == []


def test_the_schema_is_that_of_the_columns():
    assert make_part().schema == Schema({"x": Feature("int64"), "s": Feature("str")})


def test_a_schema_that_is_given_is_taken():
    schema = Schema({"x": Feature("int32"), "s": Feature("str")})
    assert make_part(schema=schema).schema == schema


def test_keys_go_with_their_records():
    part = make_part(keys=["k0", "k1", "k2"])
    assert part.read(np.array([2, 1])).keys == ["k2", "k1"]


def test_rejects_keep_the_numbers_of_the_others():
    rejects = [Reject(3, None, "f", "bad"), Reject(1, None, "f", "worse")]
    part = make_part(rejects=rejects, keys=["k0", "k2", "k4"])
    assert len(part) == 5
    block = part.read(np.arange(5))
    assert block.numbers.tolist() == [0, 2, 4]
    assert block.data["x"].tolist() == [0, 10, 20]
    assert block.keys == ["k0", "k2", "k4"]
    assert [reject.record for reject in block.rejects] == [1, 3]
    shuffled = part.read(np.array([4, 3, 0]))
    assert shuffled.numbers.tolist() == [4, 0]
    assert shuffled.data["x"].tolist() == [20, 0]
    assert [reject.reason for reject in shuffled.rejects] == ["bad"]
    assert len(set(part.keys)) == 5


@pytest.mark.parametrize("numbers", [[3], [-1]])
def test_numbers_beyond_the_records_are_refused(numbers):
    with pytest.raises(IndexError):
        make_part().read(np.array(numbers))


def test_a_table_without_columns_may_have_rejects_only():
    part = TablePart({}, rejects=[Reject(0, None, "", "bad")], rows=0)
    block = part.read(np.array([0]))
    assert len(part) == 1
    assert len(block) == 0
    assert len(block.rejects) == 1


def test_sparse_columns_come_back_sparse():
    part = TablePart({"x": Sparse(np.array([[1, 0], [0, 2]]), np.array([5, 7]), (2, 3))})
    assert part.schema["x"] == Feature("int64", (3,), encoding="sparse")
    assert part.read(np.array([1, 0])).data["x"].to_dense().tolist() == [[5, 0, 0], [0, 0, 7]]


CHANGES = {
    "a value": {"x": np.array([1, 2, 4])},
    "a name": {"y": np.array([1, 2, 3])},
    "a type": {"x": np.array([1, 2, 3], np.uint64)},
    "a shape": {"x": np.array([[1], [2], [3]])},
    "a mask": {"x": Masked(np.array([1, 2, 3]), np.array([True, True, False]))},
    "a kind": {"x": Ragged(np.array([1, 2, 3]), np.array([0, 1, 2, 3]))},
    "text": {"x": BytesColumn.from_values(["1", "2", "3"])},
    "bytes": {"x": BytesColumn.from_values([b"1", b"2", b"3"])},
}


def test_the_fingerprint_changes_with_the_data_and_only_then():
    same = [fingerprint_of({"x": np.array([1, 2, 3])}) for _ in range(2)]
    assert same[0] == same[1]
    found = {name: fingerprint_of(columns) for name, columns in CHANGES.items()}
    assert len({*found.values(), same[0]}) == len(found) + 1
    assert fingerprint_of({"x": np.arange(6)[::2]}) == fingerprint_of({"x": np.array([0, 2, 4])})


def test_objects_have_no_fingerprint():
    assert fingerprint_of({"x": [object()]}) is None


def test_keys_are_texts_or_integers():
    assert keys_of("id", np.array([3, 4])) == ["3", "4"]
    assert keys_of("id", BytesColumn.from_values(["a", "b"])) == ["a", "b"]
    with pytest.raises(SourceError, match="column 'id': expected texts or integers as keys"):
        keys_of("id", np.array([0.5]))
    with pytest.raises(SourceError, match="record 1: expected a key in column 'id', got none"):
        keys_of("id", Masked(np.array([3, 0]), np.array([True, False])))


def test_values_that_no_type_holds_are_an_error_of_the_source():
    with pytest.raises(SourceError, match="feature 'x'"):
        schema_of({"x": [1, "a"]})
