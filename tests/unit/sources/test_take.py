import numpy as np
import pytest

from datum import BytesColumn, Masked, Ragged, Sparse
from datum.sources.protocol import SparseRows, as_slice, take_rows


def as_list(column):
    if isinstance(column, np.ndarray):
        return column.tolist()
    return column if isinstance(column, list) else column.to_list()


COLUMNS = {
    "numbers": np.array([10, 20, 30, 40]),
    "matrix": np.arange(8.0).reshape(4, 2),
    "texts": BytesColumn.from_values(["a", "", "ccc", "d"]),
    "pairs of texts": BytesColumn(
        b"abcdefgh", np.array([[i, 1] for i in range(8)]), is_text=True, shape=(4, 2)
    ),
    "ragged": Ragged.from_rows([[1], [], [2, 3], [4, 5, 6]]),
    "nested": Ragged.from_rows([[[1], [2, 3]], [], [[]], [[4]]], levels=2),
    "ragged texts": Ragged.from_rows([["a"], ["b", "c"], [], ["d"]]),
    "masked": Masked(np.array([1, 0, 3, 4]), np.array([True, False, True, True])),
    "list": [{"x": 1}, None, "c", 4],
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("numbers", [[0, 1, 2, 3], [1, 2], [3, 0], [2, 2, 1], []])
def test_rows_are_those_of_the_numbers_in_their_order(name, numbers):
    column = COLUMNS[name]
    wanted = [as_list(column)[number] for number in numbers]
    numbers = np.array(numbers, np.int64)
    assert as_list(take_rows(column, numbers)) == wanted
    assert as_list(take_rows(column, numbers, as_slice(numbers))) == wanted


def test_a_run_of_rows_is_a_view():
    column = np.arange(10)
    numbers = np.arange(3, 7)
    taken = take_rows(column, numbers, as_slice(numbers))
    assert np.shares_memory(taken, column)


def test_texts_are_not_copied():
    column = BytesColumn.from_values(["a", "b", "c"])
    assert take_rows(column, np.array([2, 0])).buffer is column.buffer


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([4, 5, 6], slice(4, 7)),
        ([4], slice(4, 5)),
        ([], slice(0, 0)),
        ([4, 6, 5], None),
        ([4, 4, 6], None),
        ([3, 2, 1], None),
        ([-1, 0], None),
    ],
)
def test_only_numbers_one_after_the_other_are_a_slice(numbers, expected):
    assert as_slice(np.array(numbers, np.int64)) == expected


def test_sparse_rows_are_found_whatever_the_order_of_their_values():
    indices = np.array([[2, 1], [0, 3], [2, 0], [0, 1]])
    sparse = Sparse(indices, np.array([1.0, 2.0, 3.0, 4.0]), (3, 4))
    taken = take_rows(SparseRows(sparse), np.array([2, 1, 0, 2]))
    assert taken.to_dense().tolist() == sparse.to_dense()[[2, 1, 0, 2]].tolist()
    assert take_rows(sparse, np.array([1])).to_dense().tolist() == [[0, 0, 0, 0]]


def test_sparse_rows_beyond_the_shape_are_refused():
    with pytest.raises(ValueError, match="expected indices within"):
        SparseRows(Sparse(np.array([[5, 0]]), np.array([1.0]), (3, 4)))
