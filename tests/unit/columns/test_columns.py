"""Columns of a batch."""

import gc
import sys
import warnings
import weakref

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from datum import BytesColumn, Masked, MissingDependencyError, Ragged, Sparse
from datum.columns import to_tensor


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
    with pytest.raises(TypeError, match="expected values that form an array, got Ragged"):
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
    with pytest.raises(ValueError, match="expected `row_splits` to increase from 0 to the number"):
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


INDICES = np.array([[0, 1], [1, 2]])


def test_the_dense_array_has_the_values_at_their_indices():
    sparse = Sparse(INDICES, np.array([5, 7], np.int8), (2, 3))
    assert len(sparse) == 2
    assert sparse.to_dense().dtype == np.int8
    assert sparse.to_dense().tolist() == [[0, 5, 0], [0, 0, 7]]


def test_more_dimensions():
    dense = Sparse(np.array([[1, 0, 2]]), np.array([3.0]), (2, 2, 3)).to_dense()
    assert dense.shape == (2, 2, 3)
    assert dense[1, 0, 2] == 3
    assert dense.sum() == 3


def test_no_values_at_all():
    sparse = Sparse(np.empty((0, 2), np.int64), np.empty(0, np.float32), (2, 3))
    assert sparse.to_dense().tolist() == [[0, 0, 0], [0, 0, 0]]


def test_where_an_index_occurs_twice_the_last_value_stands():
    sparse = Sparse(np.array([[0], [0]]), np.array([1, 2]), (1,))
    assert sparse.to_dense().tolist() == [2]


@pytest.mark.parametrize(("words", "blank"), [(["a", "b"], ""), ([b"a", b"b"], b"")])
def test_strings_are_filled_up_with_empty_ones(words, blank):
    dense = Sparse(INDICES, BytesColumn.from_values(words), (2, 3)).to_dense()
    assert dense.tolist() == [[blank, words[0], blank], [blank, blank, words[1]]]


@pytest.mark.parametrize("indices", [[[0, 1]], [[0], [1]], [0, 1], [[0, 1, 2], [0, 1, 2]]])
def test_indices_must_have_a_row_for_each_value_and_a_column_for_each_dimension(indices):
    with pytest.raises(ValueError, match=r"expected `indices` of shape \(2, 2\), one row for each"):
        Sparse(np.array(indices), np.array([5.0, 7.0]), (2, 3))


def test_to_scipy_makes_the_same_matrix():
    pytest.importorskip("scipy.sparse", exc_type=ImportError)
    sparse = Sparse(INDICES, np.array([5.0, 7.0]), (2, 3))
    matrix = sparse.to_scipy()
    assert matrix.shape == (2, 3)
    assert matrix.format == "csr"
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
    assert matrix.toarray().tolist() == sparse.to_dense().tolist()


def test_to_scipy_sums_what_occurs_twice():
    pytest.importorskip("scipy.sparse", exc_type=ImportError)
    sparse = Sparse(np.array([[0, 1], [0, 1]]), np.array([1, 2]), (1, 2))
    assert sparse.to_scipy().toarray().tolist() == [[0, 3]]


def test_to_scipy_needs_numbers_in_two_dimensions():
    row = Sparse(np.array([[0]]), np.array([1]), (1,))
    words = Sparse(INDICES, BytesColumn.from_values(["a", "b"]), (2, 3))
    for sparse in (row, words):
        with pytest.raises(ValueError, match="expected numbers in two dimensions, got Sparse"):
            sparse.to_scipy()


def test_to_scipy_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(MissingDependencyError, match=r"Sparse.to_scipy needs the package `scipy`"):
        Sparse(INDICES, np.array([5.0, 7.0]), (2, 3)).to_scipy()


def test_repr_shows_shape_and_number_of_values():
    assert repr(Sparse(INDICES, np.array([5.0, 7.0]), (2, 3))) == "Sparse(shape=(2, 3), values=2)"


def test_sparse_rows_can_be_taken_in_any_order():
    dense = np.array([[0, 1, 0], [2, 0, 3], [0, 0, 0], [4, 5, 6]])
    indices = np.argwhere(dense)[::-1]  # of any order themselves
    sparse = Sparse(indices, dense[tuple(indices.T)], dense.shape)
    for at in (np.array([3, 1, 1, 2]), slice(1, 3), slice(None), np.array([True, False] * 2)):
        assert sparse[at].to_dense().tolist() == dense[at].tolist()
    assert len(sparse[np.array([], np.int64)]) == 0


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_numbers_make_a_sparse_tensor(dtype):
    sparse = Sparse(INDICES, np.array([1, 1]).astype(dtype), (2, 3))
    tensor = sparse.to_torch()
    assert tensor.layout == torch.sparse_coo
    assert tensor.shape == (2, 3)
    assert tensor.to_dense().tolist() == sparse.to_dense().tolist()


def test_no_values_make_an_empty_sparse_tensor():
    tensor = Sparse(np.zeros((0, 2)), np.zeros(0, np.float32), (2, 3)).to_torch()
    assert tensor.to_dense().tolist() == [[0, 0, 0], [0, 0, 0]]


def test_an_index_outside_makes_no_tensor():
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        Sparse(np.array([[0, 3]]), np.array([1.0]), (2, 3)).to_torch()


def test_strings_make_no_tensor():
    strings = Sparse(np.array([[0]]), BytesColumn.from_values(["a"]), (2,))
    with pytest.raises(ValueError, match="expected numbers, got strings"):
        strings.to_torch()


WORDS = [b"cat", b"", b"\xff\x00", b"dog"]


def square() -> BytesColumn:
    """Two by two strings."""
    flat = BytesColumn.from_values(WORDS)
    return BytesColumn(flat.buffer, flat.slices, shape=(2, 2))


def test_values_come_back_as_they_went_in():
    column = BytesColumn.from_values(WORDS)
    assert column.to_list() == WORDS
    assert list(column) == WORDS
    assert [column[i] for i in range(len(column))] == WORDS
    assert column.shape == (4,)
    assert not column.is_text


def test_text_comes_back_as_str():
    column = BytesColumn.from_values(["", "grün", "日本", "🦆", "\x00"])
    assert column.is_text
    assert column.to_list() == ["", "grün", "日本", "🦆", "\x00"]
    assert column.lengths.tolist() == [0, 5, 6, 4, 1]  # bytes, not characters


def test_a_column_of_nothing_is_empty():
    column = BytesColumn.from_values([])
    assert len(column) == 0
    assert column.to_list() == []
    assert column.to_numpy().shape == (0,)
    assert repr(column) == "BytesColumn(bytes, shape=(0,))"


def test_bytes_and_str_do_not_mix():
    with pytest.raises(TypeError, match="expected all bytes or all str, got both"):
        BytesColumn.from_values([b"a", "b"])
    with pytest.raises(TypeError, match="expected all bytes or all str, got both"):
        BytesColumn.from_values(["a", b"b"])


def test_a_lone_surrogate_is_refused():
    with pytest.raises(ValueError, match="surrogates not allowed"):
        BytesColumn.from_values(["\ud800"])


def test_negative_positions_of_strings_count_from_the_end():
    column = BytesColumn.from_values(WORDS)
    assert column[-1] == b"dog"
    assert column[-4] == b"cat"


@pytest.mark.parametrize("at", [4, -5])
def test_a_position_outside_is_an_index_error(at):
    with pytest.raises(IndexError):
        BytesColumn.from_values(WORDS)[at]


@pytest.mark.parametrize(
    "at",
    [slice(1, 3), slice(None, None, -1), np.array([3, 0]), np.array([True, False, True, True])],
)
def test_a_part_is_taken_as_numpy_takes_it(at):
    part = BytesColumn.from_values(WORDS)[at]
    assert isinstance(part, BytesColumn)
    assert part.to_list() == np.array(WORDS, dtype=object)[at].tolist()


def test_a_part_lies_in_the_same_buffer():
    column = BytesColumn.from_values(WORDS)
    assert column[1:].buffer is column.buffer


def test_a_part_of_text_is_text():
    assert BytesColumn.from_values(["a", "b"])[1:].is_text


def test_several_strings_a_record_keep_their_shape():
    column = square()
    assert len(column) == 2
    assert column[0].to_list() == [b"cat", b""]
    assert column[1, 0] == b"\xff\x00"
    assert [row.to_list() for row in column] == [[b"cat", b""], [b"\xff\x00", b"dog"]]
    assert column.to_list() == [[b"cat", b""], [b"\xff\x00", b"dog"]]
    assert column.lengths.tolist() == [[3, 0], [2, 3]]


def test_a_column_of_no_strings_a_record_has_its_rows():
    column = BytesColumn(b"", np.empty((0, 2), np.int64), shape=(3, 0))
    assert len(column) == 3
    assert column.to_list() == [[], [], []]


def test_to_numpy_makes_an_object_array_of_the_shape():
    array = square().to_numpy()
    assert array.dtype == object
    assert array.tolist() == [[b"cat", b""], [b"\xff\x00", b"dog"]]


def test_numpy_takes_a_column_for_an_array():
    column = BytesColumn.from_values([b"cat", b"dog"])
    assert np.asarray(column).dtype == object
    assert np.asarray(column, dtype="S3").tolist() == [b"cat", b"dog"]
    assert np.array(column, dtype="S2").tolist() == [b"ca", b"do"]


def test_an_array_without_a_copy_is_refused():
    with pytest.raises(ValueError, match="cannot be converted to an array without copying"):
        BytesColumn.from_values([b"a"]).__array__(copy=False)


@pytest.mark.parametrize("slices", [[[2, 5]], [[-1, 1]], [[0, -1]], [[7, 0]]])
def test_slices_outside_the_buffer_are_refused_when_asked_for(slices):
    column = BytesColumn(b"abcdef", np.array(slices))
    with pytest.raises(IndexError, match="outside the buffer"):
        column.to_list()


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview, lambda b: np.frombuffer(b, "u1")])
def test_any_buffer_can_hold_the_strings(make):
    column = BytesColumn(make(b"xxcatxx"), np.array([[2, 3]]))
    assert column.to_list() == [b"cat"]


def test_slices_may_be_strided():
    slices = np.array([[0, 1], [9, 9], [1, 2], [9, 9]])[::2]
    assert BytesColumn(b"abc", slices).to_list() == [b"a", b"bc"]


def test_strings_outlive_everything_but_the_column():
    class Memory(np.ndarray):
        """An array that can be watched."""

    memory = np.frombuffer(b"catdog", np.uint8).view(Memory)
    watch = weakref.ref(memory)
    part = BytesColumn(memory, np.array([[0, 3], [3, 3]]))[1:]
    del memory
    gc.collect()
    assert watch() is not None
    assert part.to_list() == [b"dog"]
    del part
    gc.collect()
    assert watch() is None


def test_repr_shows_kind_shape_and_the_first():
    assert repr(BytesColumn.from_values(["a", "b"])) == "BytesColumn(str, shape=(2,), first='a')"
    assert repr(square()) == "BytesColumn(bytes, shape=(2, 2), first=b'cat')"


def test_repr_shortens_a_long_string():
    assert repr(BytesColumn.from_values([b"a" * 10_000])).endswith("first=b'" + "a" * 24 + "'...)")


def test_repr_of_text_that_is_not_utf8_does_not_fail():
    column = BytesColumn(b"\xff\xfe", np.array([[0, 2]]), is_text=True)
    assert repr(column).startswith("BytesColumn(str, shape=(1,)")


NUMBERS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS += ["float16", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers_keep_their_type_and_their_memory(dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    tensor = to_tensor(array)
    assert tensor.dtype == getattr(torch, dtype)
    assert tensor.data_ptr() == array.ctypes.data
    assert tensor.tolist() == array.tolist()


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_types_of_ml_dtypes_become_those_of_the_same_name(dtype):
    array = np.array([[0.5, -2.0, 1.0]], getattr(ml_dtypes, dtype))
    tensor = to_tensor(array)
    assert tensor.dtype == getattr(torch, dtype)
    assert tensor.shape == (1, 3)
    assert tensor.data_ptr() == array.ctypes.data
    assert tensor.float().tolist() == [[0.5, -2.0, 1.0]]


@pytest.mark.parametrize("dtype", ["datetime64[D]", "datetime64[ns]", "timedelta64[ms]"])
def test_times_become_counts_of_their_unit(dtype):
    array = np.array([0, 3, "NaT"], dtype)
    tensor = to_tensor(array)
    assert tensor.dtype == torch.int64
    assert tensor.tolist() == [0, 3, torch.iinfo(torch.int64).min]
    assert tensor.data_ptr() == array.ctypes.data


def test_what_is_read_only_is_copied_without_a_warning():
    array = np.arange(3)
    array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tensor = to_tensor(array)
    tensor[0] = 9
    assert array.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6)[::-1],
        np.arange(6).reshape(2, 3)[:, ::-2],
        np.arange(6, dtype=">i4"),
        np.arange(6, dtype=">i8").view(">M8[s]"),
        np.arange(6).reshape(2, 3).T,
        np.broadcast_to(np.arange(3), (2, 3)),
        np.array(5),
        np.zeros((0, 3), np.float32),
        np.array([1.0, 2.0, 3.0], ml_dtypes.bfloat16)[::-1],
        np.arange(6, dtype=np.uint8)[::2].view(ml_dtypes.float8_e5m2),
    ],
    ids=str,
)
def test_odd_layouts_hold_the_same(array):
    tensor = to_tensor(array)
    assert tensor.shape == array.shape
    assert tensor.double().tolist() == array.astype(np.float64).tolist()


def test_what_no_tensor_holds_is_refused():
    with pytest.raises(TypeError, match="can't convert np.ndarray"):
        to_tensor(np.array([1.0], np.longdouble))
    with pytest.raises(TypeError, match="can't convert np.ndarray"):
        to_tensor(np.zeros(2, [("a", "i4")]))


def test_without_pytorch_the_message_tells_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match="pip install torch"):
        to_tensor(np.arange(3))
