import gc
import weakref

import numpy as np
import pytest

from datum import BytesColumn

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


def test_negative_positions_count_from_the_end():
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
    with pytest.raises(ValueError, match="cannot be made into an array without copying"):
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
