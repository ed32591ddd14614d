import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum.schema import DTYPES, InexactError, as_array, cast_exactly, numpy_dtype
from datum.schema.feature import STRINGS, TIMES

NUMBERS = [dtype for dtype in DTYPES if dtype not in (*STRINGS, *TIMES)]
INTEGERS = [dtype for dtype in NUMBERS if "int" in dtype]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_an_array_of_the_dtype_is_not_copied(dtype):
    array = np.zeros(3, numpy_dtype(dtype))
    assert np.shares_memory(cast_exactly(array, dtype), array)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_strided_and_byte_swapped_arrays_are_made_plain(dtype):
    wanted = numpy_dtype(dtype)
    array = np.arange(2).astype(wanted).repeat(2)[::2]
    swapped = array.astype(wanted.newbyteorder(">"))
    for given_array in (array, swapped, np.asfortranarray(np.stack([array, array]))):
        cast = cast_exactly(given_array, dtype)
        assert cast.dtype == wanted
        assert cast.flags.c_contiguous
        assert cast.dtype.isnative
        assert np.array_equal(cast, given_array.astype(wanted))


@pytest.mark.parametrize("given_dtype", INTEGERS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_go_where_they_fit(given_dtype, dtype):
    given_range, wanted_range = np.iinfo(given_dtype), np.iinfo(dtype)
    for value in (0, 1, given_range.min, given_range.max, wanted_range.max, wanted_range.min):
        if not given_range.min <= value <= given_range.max:
            continue
        array = np.array([0, value], given_dtype)
        if wanted_range.min <= value <= wanted_range.max:
            assert cast_exactly(array, dtype).tolist() == [0, value]
        else:
            with pytest.raises(InexactError, match=f"^{value}$") as caught:
                cast_exactly(array, dtype)
            assert caught.value.position == 1


def test_times_change_their_unit_where_nothing_is_lost():
    days = np.array(["2020-02-29", "NaT", "1600-01-01"], "datetime64[D]")
    for dtype in ("datetime64[h]", "datetime64[us]"):
        cast = cast_exactly(days, dtype)
        assert cast.dtype == dtype
        assert cast_exactly(cast, "datetime64[D]").tolist() == days.tolist()
    with pytest.raises(InexactError, match="^1600-01-01$") as caught:
        cast_exactly(days, "datetime64[ns]")
    assert caught.value.position == 2
    with pytest.raises(InexactError, match="^61 seconds$"):
        cast_exactly(np.array([60, 61], "timedelta64[s]"), "timedelta64[m]")


@pytest.mark.parametrize("given_array", [np.array([1]), np.array([1], "timedelta64[s]")])
def test_only_dates_are_dates(given_array):
    with pytest.raises(InexactError, match="values$"):
        cast_exactly(given_array, "datetime64[s]")


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from(["float16", "float32", "float64"]))
def test_integers_go_into_floats_only_unchanged(value, dtype):
    with np.errstate(over="ignore"):
        is_exact = (
            np.isfinite(np.dtype(dtype).type(value)) and int(np.dtype(dtype).type(value)) == value
        )
    if is_exact:
        assert int(cast_exactly(np.array([value]), dtype)[0]) == value
    else:
        with pytest.raises(InexactError, match=f"^{value}$"):
            cast_exactly(np.array([value]), dtype)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (2**53 + 1, "float64"),
        (2**63 - 1, "float64"),
        (2**24 + 1, "float32"),
        (2049, "float16"),
        (257, "bfloat16"),
        (2**24 + 1, "complex64"),
        (2**53 + 1, "complex128"),
    ],
)
def test_the_first_integers_that_floats_miss_are_refused(value, dtype):
    for sign in (1, -1):
        with pytest.raises(InexactError):
            cast_exactly(np.array([sign * value]), dtype)


@pytest.mark.parametrize(
    ("value", "dtype"), [(2**30, "float32"), (4096, "float16"), (512, "bfloat16")]
)
def test_large_integers_that_floats_hold_are_taken(value, dtype):
    assert float(cast_exactly(np.array([value]), dtype)[0]) == value


@pytest.mark.parametrize(
    ("value", "given_dtype", "dtype"),
    [
        (1e300, "float64", "float32"),
        (70000.0, "float32", "float16"),
        (1e39, "float64", "bfloat16"),
        (1e300, "complex128", "complex64"),
        (1e300, "float64", "complex64"),
        (1e300j, "complex128", "complex64"),
    ],
)
def test_a_float_is_not_rounded_to_infinity(value, given_dtype, dtype):
    with pytest.raises(InexactError) as caught:
        cast_exactly(np.array([0, value], given_dtype), dtype)
    assert caught.value.position == 1


def test_a_float_may_be_rounded():
    assert cast_exactly(np.array([0.1]), "float32").tolist() == [np.float32(0.1)]
    assert cast_exactly(np.array([1e-300]), "float32").tolist() == [0.0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_nan_infinity_and_negative_zero_pass(dtype):
    cast = cast_exactly(np.array([np.nan, np.inf, -np.inf, -0.0]), dtype)
    assert np.isnan(cast[0])
    assert np.isinf(cast[1:3]).all()
    assert np.signbit(cast[3].real)


@pytest.mark.parametrize(
    ("given_dtype", "dtype"),
    [
        ("float64", "int64"),
        ("float32", "bool"),
        ("complex64", "float64"),
        ("complex64", "int8"),
        ("U3", "int64"),
        ("S3", "float32"),
        ("O", "int64"),
        ("datetime64[s]", "int64"),
    ],
)
def test_another_kind_of_number_is_refused_by_name(given_dtype, dtype):
    array = np.zeros(2, given_dtype)
    with pytest.raises(InexactError, match=array.dtype.name.split("[")[0].rstrip("0123456789")):
        cast_exactly(array, dtype)


def test_ones_and_zeros_are_taken_as_bools():
    assert cast_exactly(np.array([0, 1]), "bool").tolist() == [False, True]
    with pytest.raises(InexactError, match="^2$"):
        cast_exactly(np.array([0, 1, 2]), "bool")


def test_bools_are_taken_as_numbers():
    for dtype in NUMBERS:
        assert np.array_equal(cast_exactly(np.array([True, False]), dtype), [1, 0])


def test_no_values_can_be_cast():
    assert cast_exactly(np.empty((0, 3)), "float32").shape == (0, 3)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (3, "uint8", 3),
        ([1, 2], "float32", [1, 2]),
        ([[1, 2], [3, 4]], "int16", [[1, 2], [3, 4]]),
        ([], "int64", []),
        ([[], []], "int64", [[], []]),
        ([2**63, 1], "uint64", [2**63, 1]),
        ([2**64 - 1, 0], "uint64", [2**64 - 1, 0]),
        ([-1, 1], "int64", [-1, 1]),
        (np.float32(0.5), "float64", 0.5),
        ((1, 2), "complex64", [1, 2]),
    ],
)
def test_lists_and_scalars_become_arrays_of_the_dtype(value, dtype, expected):
    array = as_array(value, dtype)
    assert array.dtype == numpy_dtype(dtype)
    assert array.tolist() == expected


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (300, "uint8"),
        (2**64, "uint64"),
        ([1, 2**64], "uint64"),
        ([2**63, -1], "uint64"),
        ([1, 2.5], "int64"),
        ([1, None], "int64"),
        ([1, None], "float32"),
        ("1", "int64"),
        (["1", 2], "float32"),
        ([2**53 + 1], "float64"),
        ([2**53 + 1, 0.5], "float64"),
        (np.empty(0), "int64"),
        (np.array([1, 2], object), "int64"),
    ],
)
def test_lists_and_scalars_that_the_dtype_cannot_hold_are_refused(value, dtype):
    with pytest.raises(InexactError):
        as_array(value, dtype)
