import numpy as np
import pytest

from datum import BytesColumn, Masked, Ragged


def test_a_record_without_a_value_is_none():
    masked = Masked(np.array([1, 0, 3]), np.array([True, False, True]))
    assert len(masked) == 3
    assert [masked[i] for i in range(3)] == [1, None, 3]
    assert masked[-2] is None
    assert list(masked) == [1, None, 3]


def test_filled_puts_a_value_where_there_is_none():
    values = np.array([1, 0, 3], np.int16)
    masked = Masked(values, np.array([True, False, True]))
    assert masked.filled(-1).tolist() == [1, -1, 3]
    assert masked.filled(-1).dtype == np.int16
    assert values.tolist() == [1, 0, 3]


def test_filled_works_for_rows_of_values():
    masked = Masked(np.array([[1, 2], [0, 0]]), np.array([True, False]))
    assert masked.filled(9).tolist() == [[1, 2], [9, 9]]


def test_filled_works_for_strings():
    masked = Masked(BytesColumn.from_values(["a", ""]), np.array([True, False]))
    assert masked[1] is None
    assert masked.filled("?").tolist() == ["a", "?"]


@pytest.mark.parametrize("splits", [[0, 1, 3], [0, 2, 4]])
def test_rows_of_differing_length_cannot_be_filled(splits):
    masked = Masked(Ragged(np.arange(splits[-1]), np.array(splits)), np.array([True, False]))
    with pytest.raises(TypeError, match="expected values that make an array, got Ragged"):
        masked.filled(0)


def test_a_ragged_row_without_a_value_is_none():
    masked = Masked(Ragged.from_rows([[1, 2], []]), np.array([True, False]))
    assert masked[0].tolist() == [1, 2]
    assert masked[1] is None


@pytest.mark.parametrize("present", [[True], [True, False, True], [[True, False]]])
def test_present_must_have_an_item_for_each_record(present):
    with pytest.raises(ValueError, match="expected 2 items in `present`, got"):
        Masked(np.array([1, 2]), np.array(present))


def test_present_may_be_a_list():
    assert Masked(np.array([1, 2]), [True, False]).present.dtype == np.bool_


@pytest.mark.parametrize("at", [2, -3])
def test_a_record_outside_is_an_index_error(at):
    with pytest.raises(IndexError):
        Masked(np.array([1, 2]), np.array([True, True]))[at]


def test_repr_counts_what_is_there():
    masked = Masked(np.array([1, 0]), np.array([True, False]))
    assert repr(masked) == "Masked(array([1, 0]), present=1 of 2)"


def test_records_can_be_taken_in_any_order():
    masked = Masked(np.array([1, 0, 3]), np.array([True, False, True]))
    assert masked[np.array([2, 1, 2])].to_list() == [3, None, 3]
