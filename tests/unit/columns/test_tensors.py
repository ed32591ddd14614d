import sys
import warnings

import ml_dtypes
import numpy as np
import pytest
import torch

from datum import MissingDependencyError
from datum.columns import to_tensor

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
