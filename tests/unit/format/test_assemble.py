import numpy as np
import pytest

from datum import BytesColumn, Feature, Masked, Ragged, Sparse
from datum.format.framing import Records
from datum.format.layout import lower
from datum.format.parse import RowError, Stored, assemble


def integers(*rows: list[int]) -> Stored:
    """A variable stored column of int64, as the core hands it over."""
    splits = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return np.array([n for row in rows for n in row], np.int64), splits, None, None


def make(feature: Feature, *parts: Stored, rows: int = 2) -> object:
    records = Records.of([b""] * rows)
    return assemble(feature, lower("x", feature), list(parts), records)


def test_row_lengths_cut_values_into_nested_rows() -> None:
    column = make(Feature("int64", (None, None)), integers([1, 2], [3]), integers([0, 2], [1]))
    assert isinstance(column, Ragged)
    assert column.to_list() == [[[], [1, 2]], [[3]]]


@pytest.mark.parametrize(
    ("lengths", "row"), [(([2], [2]), 1), (([-1, 3], [1]), 0), (([2], [2**62]), 1)]
)
def test_row_lengths_that_do_not_fit_the_values_name_their_row(
    lengths: tuple[list[int], list[int]], row: int
) -> None:
    with pytest.raises(RowError, match="expected row lengths") as caught:
        make(Feature("int64", (None, None)), integers([1, 2], [3]), integers(*lengths))
    assert caught.value.row == row


def test_raw_tensors_take_the_shape_that_lies_beside_them() -> None:
    raw = np.array([1, 2, 3, 4], np.uint8), np.array([0, 2, 4]), None, None
    column = make(Feature("uint8", (None, None), encoding="raw"), raw, integers([1, 2], [2, 1]))
    assert isinstance(column, np.ndarray)
    assert [tensor.tolist() for tensor in column] == [[[1, 2]], [[3], [4]]]


def test_a_shape_of_another_size_names_its_row() -> None:
    raw = np.array([1, 2, 3, 4], np.uint8), np.array([0, 2, 4]), None, None
    feature = Feature("uint8", (None, None), encoding="raw")
    with pytest.raises(RowError, match="of 2 items") as caught:
        make(feature, raw, integers([1, 2], [2, 2]))
    assert caught.value.row == 1


def test_sparse_values_are_put_in_the_order_of_their_indices() -> None:
    feature = Feature("int64", (5,), encoding="sparse")
    column = make(feature, integers([10, 20], [30]), integers([4, 1], [0]))
    assert isinstance(column, Sparse)
    assert column.indices.tolist() == [[0, 1], [0, 4], [1, 0]]
    assert column.values.tolist() == [20, 10, 30]


@pytest.mark.parametrize(
    ("indices", "message", "row"),
    [(([1], [0]), "one a value", 0), (([1, 2], [5]), "within", 1), (([1, 2], [-1]), "within", 1)],
)
def test_indices_that_do_not_fit_name_their_row(
    indices: tuple[list[int], list[int]], message: str, row: int
) -> None:
    with pytest.raises(RowError, match=message) as caught:
        make(
            Feature("int64", (5,), encoding="sparse"), integers([10, 20], [30]), integers(*indices)
        )
    assert caught.value.row == row


def test_an_optional_column_is_masked_unless_it_has_a_default() -> None:
    values = np.array([7, 9]), None, None, np.array([True, False])
    masked = make(Feature("int64", optional=True), values)
    assert isinstance(masked, Masked)
    assert masked.to_list() == [7, None]
    assert isinstance(make(Feature("int64", default=9), values), np.ndarray)


def test_a_default_fills_strings() -> None:
    slices = np.array([0, 0, 0, 0]), None, None, np.array([True, False])
    column = make(Feature("str", default="none"), slices)
    assert isinstance(column, BytesColumn)
    assert column.to_list() == ["", "none"]


def test_an_image_comes_as_the_bytes_of_its_file() -> None:
    feature = Feature("uint16", (None, None, 3), encoding="image")
    column = make(feature, (np.array([0, 0]), None, None, None), rows=1)
    assert isinstance(column, BytesColumn)
    assert column.to_list() == [b""]


def test_integers_of_a_time_come_with_its_unit() -> None:
    feature = Feature("timedelta64[ms]", (2,))
    column = make(feature, (np.array([1, 2]), None, None, None), rows=1)
    assert isinstance(column, np.ndarray)
    assert column.dtype == "timedelta64[ms]"
    assert column.astype(np.int64).tolist() == [[1, 2]]


def test_a_raw_truth_value_other_than_0_and_1_names_its_row() -> None:
    raw = np.array([0, 1, 2, 0], np.uint8), None, None, None
    with pytest.raises(RowError, match="expected bool, got byte 2") as caught:
        make(Feature("bool", (2,), encoding="raw"), raw)
    assert caught.value.row == 1
