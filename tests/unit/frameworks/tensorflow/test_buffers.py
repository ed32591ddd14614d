import numpy as np
import pytest

from datum.frameworks.tensorflow.transfer import BLOCK_BYTES, MAX_FREE_BUFFERS, Buffers


@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_arrays_are_aligned_and_of_their_shape(rows):
    array = Buffers().take(rows, columns=8)
    assert array.shape == (rows, 8)
    assert array.dtype == np.int64
    assert array.ctypes.data % BLOCK_BYTES == 0


def test_memory_is_used_again_only_once_nobody_holds_it():
    buffers = Buffers()
    held = buffers.take(10, columns=8)
    place = held.ctypes.data
    other = buffers.take(10, columns=8)
    assert other.ctypes.data != place
    del held
    assert buffers.take(10, columns=8).ctypes.data == place


def test_memory_that_is_too_small_is_let_go():
    buffers = Buffers()
    buffers.take(1, columns=8)
    large = buffers.take(1000, columns=8)
    large[:] = 1
    assert large.sum() == 8000


def test_no_more_is_kept_than_is_of_use():
    buffers = Buffers()
    arrays = [buffers.take(1, columns=8) for _ in range(MAX_FREE_BUFFERS + 5)]
    del arrays
    assert len(buffers._free) == MAX_FREE_BUFFERS


def test_arrays_outlive_their_buffers():
    buffers = Buffers()
    array = buffers.take(4, columns=8)
    del buffers
    array[:] = 5
    assert array.sum() == 160
