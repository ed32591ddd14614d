import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum.schema import DTYPES
from datum.schema.feature import FLOATS_ON_WIRE, INTEGERS, STRINGS, TIMES
from datum.schema.infer import common_dtype, is_held, without_held

NUMBERS = [*INTEGERS, "float16", "float32", "float64", "complex64", "complex128"]


def test_two_numbers_are_promoted_as_numpy_does():
    for pair in itertools.product(NUMBERS, repeat=2):
        if "uint64" in pair and any(dtype.startswith("int") for dtype in pair):
            assert common_dtype(pair) == "uint64"  # NumPy would round them to floats
        else:
            assert common_dtype(pair) == np.promote_types(*pair).name


def test_times_take_the_finer_unit_and_do_not_mix():
    assert common_dtype(("datetime64[D]", "datetime64[ms]", "datetime64[s]")) == "datetime64[ms]"
    assert common_dtype(("datetime64[D]", "timedelta64[D]")) is None
    assert common_dtype(("datetime64[D]", "int64")) is None


@pytest.mark.parametrize("dtype", [*STRINGS, "bfloat16"])
def test_some_types_go_with_no_other(dtype):
    for other in DTYPES:
        assert common_dtype((dtype, other)) == (dtype if other == dtype else None)


@given(st.lists(st.sampled_from([*NUMBERS, *TIMES, *STRINGS, *FLOATS_ON_WIRE]), min_size=1))
def test_only_those_that_no_other_holds_matter(dtypes):
    kept = without_held(dtypes)
    assert set(kept) <= set(dtypes)
    assert kept == without_held(reversed(dtypes)) == without_held((*kept, *dtypes))
    assert common_dtype(kept) == common_dtype(tuple(dtypes))


def test_a_type_that_holds_another_holds_its_extremes():
    for dtype, other in itertools.product(NUMBERS[1:9], NUMBERS[1:9]):
        given_range, other_range = np.iinfo(dtype), np.iinfo(other)
        holds = other_range.min <= given_range.min and given_range.max <= other_range.max
        assert is_held(dtype, other) == holds
