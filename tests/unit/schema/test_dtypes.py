import sys

import numpy as np
import pytest

from datum import MissingDependencyError
from datum.schema import DTYPES, numpy_dtype


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in ("bytes", "str", "bfloat16")])
def test_a_numeric_dtype_is_numpys_of_the_same_name(dtype):
    assert numpy_dtype(dtype) == np.dtype(dtype)
    assert numpy_dtype(dtype).name == dtype


@pytest.mark.parametrize("dtype", ["bytes", "str"])
def test_strings_are_objects(dtype):
    assert numpy_dtype(dtype) == np.dtype(object)


def test_bfloat16_is_that_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert numpy_dtype("bfloat16") == np.dtype(ml_dtypes.bfloat16)


def test_bfloat16_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(MissingDependencyError, match="bfloat16 needs the package `ml_dtypes`"):
        numpy_dtype("bfloat16")


def test_every_dtype_of_numpy_that_records_can_hold_is_there():
    assert set(DTYPES) == {
        "bool",
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
        *("bytes", "str"),
        *(
            f"{kind}64[{unit}]"
            for kind in ("datetime", "timedelta")
            for unit in ("D", "h", "m", "s", "ms", "us", "ns")
        ),
    }
