import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from datum import BytesColumn, Ragged

ROWS = [[1, 2], [], [3]]


def test_rows_come_back_as_they_went_in():
    ragged = Ragged.from_rows(ROWS)
    assert ragged.to_list() == ROWS
    assert len(ragged) == 3
    assert ragged.shape == (3, None)
    assert ragged.row_splits.tolist() == [0, 2, 2, 3]
    assert ragged.row_lengths.tolist() == [2, 0, 1]


def test_rows_may_be_arrays_with_inner_dimensions():
    ragged = Ragged.from_rows([np.ones((2, 3), np.int16), np.zeros((1, 3), np.int16)])
    assert ragged.shape == (2, None, 3)
    assert ragged.dtype == np.int16
    assert ragged[0].shape == (2, 3)
    assert ragged.to_list() == [[[1, 1, 1], [1, 1, 1]], [[0, 0, 0]]]


def test_the_dtype_can_be_chosen():
    assert Ragged.from_rows(ROWS, dtype=np.uint8).dtype == np.uint8
    assert Ragged.from_rows([], dtype=np.uint8).dtype == np.uint8
    assert Ragged.from_rows([[]], dtype=np.uint8).dtype == np.uint8


@pytest.mark.parametrize("words", [[["a", "b"], [], ["ü"]], [[b"a"], [], [b"\xff", b""]]])
def test_rows_of_strings(words):
    ragged = Ragged.from_rows(words)
    assert isinstance(ragged.values, BytesColumn)
    assert ragged.to_list() == words
    assert ragged.dtype == object
    assert ragged[0].to_list() == words[0]


def test_rows_may_be_ragged_in_turn():
    rows = [[[1], [2, 3]], [], [[]]]
    ragged = Ragged.from_rows(rows, levels=2)
    assert ragged.to_list() == rows
    assert ragged.shape == (3, None, None)
    assert isinstance(ragged[0], Ragged)
    assert ragged[0].to_list() == [[1], [2, 3]]
    assert ragged.dtype == ragged.values.values.dtype


@given(
    st.lists(st.lists(st.lists(st.integers(-9, 9), max_size=3), max_size=3), max_size=4),
    st.integers(-5, 5),
    st.integers(-5, 5),
)
def test_slices_are_those_of_a_list(rows, first, last):
    ragged = Ragged.from_rows(rows, levels=2, dtype=np.int64)
    assert ragged.to_list() == rows
    assert ragged[first:last].to_list() == rows[first:last]
    assert [row.to_list() for row in ragged] == rows


def test_a_slice_with_a_step_is_refused():
    with pytest.raises(ValueError, match="expected a slice with step 1, got slice"):
        Ragged.from_rows(ROWS)[::2]


def test_negative_positions_count_from_the_end():
    ragged = Ragged.from_rows(ROWS)
    assert ragged[-1].tolist() == [3]
    assert ragged[-3].tolist() == [1, 2]


@pytest.mark.parametrize("at", [3, -4])
def test_a_row_outside_is_an_index_error(at):
    with pytest.raises(IndexError, match=f"row {at} of 3"):
        Ragged.from_rows(ROWS)[at]


def test_no_row_of_an_empty_column():
    with pytest.raises(IndexError, match="row 0 of 0"):
        Ragged.from_rows([])[0]


@pytest.mark.parametrize(
    "row_splits",
    [[], [[0, 3]], [0, 4], [0, 2, 1, 3], [1, 3], [-1, 3], [0, -1, 3], [3, 0]],
    ids=str,
)
def test_row_splits_must_rise_from_0_to_the_number_of_values(row_splits):
    with pytest.raises(ValueError, match="expected `row_splits` to rise from 0 to the number"):
        Ragged(np.arange(3), np.array(row_splits, np.int64))


def test_padding_fills_up_to_the_longest_row():
    assert Ragged.from_rows(ROWS).to_padded().tolist() == [[1, 2], [0, 0], [3, 0]]


def test_padding_has_a_fill_and_a_length():
    ragged = Ragged.from_rows(ROWS)
    assert ragged.to_padded(fill=-1, length=3).tolist() == [[1, 2, -1], [-1, -1, -1], [3, -1, -1]]
    assert ragged.to_padded(length=1).tolist() == [[1], [0], [3]]
    assert ragged.to_padded(length=0).shape == (3, 0)


def test_padding_keeps_dtype_and_inner_dimensions():
    dense = Ragged.from_rows([np.ones((1, 2), np.float16), np.ones((2, 2), np.float16)]).to_padded()
    assert dense.dtype == np.float16
    assert dense.tolist() == [[[1, 1], [0, 0]], [[1, 1], [1, 1]]]


def test_padding_works_through_every_level():
    ragged = Ragged.from_rows([[[1], [2, 3]], [], [[]]], levels=2)
    expected = [[[1, 9], [2, 3]], [[9, 9], [9, 9]], [[9, 9], [9, 9]]]
    assert ragged.to_padded(fill=9).tolist() == expected


def test_padding_of_strings():
    padded = Ragged.from_rows([["a", "b"], ["c"]]).to_padded(fill="")
    assert padded.tolist() == [["a", "b"], ["c", ""]]


def test_padding_of_nothing():
    assert Ragged.from_rows([], dtype=np.int8).to_padded().shape == (0, 0)
    assert Ragged.from_rows([[], []], dtype=np.int8).to_padded().shape == (2, 0)


def test_values_are_not_copied():
    values = np.arange(3)
    assert Ragged(values, np.array([0, 3])).values is values
    assert np.shares_memory(Ragged(values, np.array([0, 3]))[0], values)


def test_repr_shows_dtype_and_shape():
    assert repr(Ragged.from_rows(ROWS)) == "Ragged(int64, shape=(3, None))"


def test_rows_can_be_taken_in_any_order():
    rows = [[1, 2], [], [3], [4, 5, 6]]
    ragged = Ragged.from_rows(rows)
    assert ragged[np.array([3, 0, 0, 1])].to_list() == [[4, 5, 6], [1, 2], [1, 2], []]
    assert ragged[np.array([True, False, True, False])].to_list() == [[1, 2], [3]]
    assert ragged[np.array([], np.int64)].to_list() == []
    nested = Ragged.from_rows([[["a"], []], [], [["b", "c"]]], levels=2)
    assert nested[np.array([2, 0])].to_list() == [[["b", "c"]], [["a"], []]]


@pytest.mark.parametrize("dtype", ["int64", "uint16", "float32", "bool"])
def test_one_ragged_level_makes_a_nested_tensor_in_the_same_memory(dtype):
    values = np.arange(5).astype(dtype)
    nested = Ragged(values, np.array([0, 2, 2, 5])).to_torch()
    assert nested.layout == torch.jagged
    assert nested.values().data_ptr() == values.ctypes.data
    assert [row.tolist() for row in nested.unbind()] == Ragged(values, [0, 2, 2, 5]).to_list()


def test_rows_of_vectors_make_a_nested_tensor():
    nested = Ragged(np.arange(10.0).reshape(5, 2), np.array([0, 2, 5])).to_torch()
    assert [tuple(row.shape) for row in nested.unbind()] == [(2, 2), (3, 2)]


def test_no_rows_make_a_nested_tensor_of_none():
    assert Ragged(np.zeros(0, np.float32), np.array([0])).to_torch().size(0) == 0


def test_more_ragged_levels_stay_ragged_over_a_tensor():
    rows = [[[1.0], []], [], [[2.0, 3.0]]]
    ragged = Ragged.from_rows(rows, dtype=np.float32, levels=2).to_torch()
    assert isinstance(ragged, Ragged)
    assert isinstance(ragged.values.values, torch.Tensor)
    assert repr(ragged) == "Ragged(torch.float32, shape=(3, None, None))"
    assert ragged.to_list() == rows
    assert ragged[2].to_list() == [[2.0, 3.0]]
    assert ragged.to_padded().tolist() == Ragged.from_rows(rows, levels=2).to_padded().tolist()


@pytest.mark.parametrize("rows", [[["a", "b"], []], [[b"a"]], [[["a"], []], []]])
def test_ragged_strings_make_nested_lists(rows):
    levels = 2 if isinstance(rows[0][0], list) else 1
    assert Ragged.from_rows(rows, levels=levels).to_torch() == rows
