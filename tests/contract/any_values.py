"""Hypothesis strategies for rows of any mix of values, and what they must come back as."""

from __future__ import annotations

import datetime as dt
import enum
import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from datum import Feature, Masked, Ragged, Sparse
from datum.schema import numpy_dtype, plain_value
from tests.contract.strategies import NUMBERS, TEXTS, arrays


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2**40


INTEGERS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**24 + 1, 2**53, -(2**53) - 1, 2**63 - 1, -(2**63)]),
    st.integers(-(2**63), 2**63 - 1),
)
FLOATS = st.one_of(
    st.floats(width=32),
    st.floats(),
    st.sampled_from([-0.0, math.inf, -math.inf, math.nan, 0.1, 1e300, 5e-324]),
    # NaNs of every payload, signalling ones among them.
    st.integers(0, 2**51 - 1).map(lambda n: float(np.uint64(0x7FF0 << 48 | n).view(np.float64))),
)
NUMPY_SCALARS = st.sampled_from(NUMBERS).flatmap(
    lambda dtype: arrays(dtype, ()).map(lambda a: a[()])
)
SMALL_ARRAYS = st.tuples(
    st.sampled_from(["bool", "int8", "uint8", "int16", "int64", "float16", "float32", "float64"]),
    st.lists(st.integers(0, 3), min_size=1, max_size=3).map(tuple),
).flatmap(lambda pair: arrays(*pair))
TIMES = st.one_of(
    st.datetimes(),
    st.dates(),
    st.datetimes(timezones=st.just(dt.timezone(dt.timedelta(hours=5, minutes=30)))),
    st.just(np.datetime64("NaT", "s")),
    st.integers(-(2**40), 2**40).map(lambda n: np.datetime64(n, "ms")),
)
SPANS = st.one_of(st.timedeltas(), st.times(), st.just(np.timedelta64("NaT", "us")))


def nested(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Lists of lists that differ in length."""
    return st.lists(st.lists(items, max_size=3), max_size=3)


@st.composite
def sparse_rows(draw: st.DrawFn) -> Sparse:
    places = draw(st.lists(st.integers(0, 5), max_size=4, unique=True))
    dtype = draw(st.sampled_from(["int64", "float32", "float64", "complex64"]))
    values = draw(arrays(dtype, (len(places),)))
    return Sparse(np.array(sorted(places), np.int64).reshape(-1, 1), values, (6,))


# Each gives values that may well go together in one feature, though not all do.
FAMILIES: dict[str, st.SearchStrategy[Any]] = {
    "truths": st.booleans(),
    "integers": INTEGERS,
    "large integers": st.one_of(INTEGERS, st.integers(2**63, 2**64 - 1)),
    "floats": FLOATS,
    "numbers": st.one_of(st.booleans(), st.integers(-9, 9), FLOATS, st.just(Level.HIGH)),
    "complex": st.one_of(st.complex_numbers(), st.floats(), st.integers(0, 9)),
    "scalars of NumPy": NUMPY_SCALARS,
    "scalars of one type": st.shared(st.sampled_from(NUMBERS), key="dtype").flatmap(
        lambda dtype: arrays(dtype, ()).map(lambda array: array[()])
    ),
    "texts": st.one_of(TEXTS, TEXTS.map(np.str_), st.sampled_from(Color)),
    "bytes": st.one_of(
        st.binary(max_size=5), st.binary(max_size=5).map(bytearray), st.just(memoryview(b"m"))
    ),
    "lists": st.lists(st.integers(-9, 9), max_size=4),
    "lists of floats": st.lists(FLOATS, max_size=4),
    "lists of numbers": st.lists(st.one_of(st.integers(-9, 9), FLOATS, st.booleans()), max_size=3),
    "lists of texts": st.one_of(st.lists(TEXTS, max_size=3), st.just(np.array(["a", "ü"]))),
    "nested lists": nested(st.integers(-9, 9)),
    "nested floats": nested(FLOATS),
    "nested texts": nested(TEXTS),
    "arrays": SMALL_ARRAYS,
    "vectors": st.tuples(st.sampled_from(NUMBERS), st.integers(0, 3).map(lambda n: (n,))).flatmap(
        lambda pair: arrays(*pair)
    ),
    "matrices": st.tuples(st.integers(0, 3), st.integers(0, 3)).flatmap(
        lambda shape: arrays("float64", shape)
    ),
    "large arrays": st.sampled_from([2, 256, 257, 300]).map(lambda n: np.arange(n, dtype=np.int16)),
    "times": TIMES,
    "spans": SPANS,
    "lists of times": st.lists(TIMES, max_size=3),
    "sparse": sparse_rows(),
    "odd things": st.one_of(
        st.integers(),
        st.just("\ud800"),
        st.just({1, 2}),
        st.just([None]),
        st.just([1, "a"]),
        st.just(np.longdouble(1)),
        st.just(object()),
    ),
}


@st.composite
def rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Up to six rows; any of them may lack any value, or have None."""
    names = draw(st.lists(st.sampled_from(["a", "b", "ключ", "d/e"]), max_size=3, unique=True))
    families = {name: FAMILIES[draw(st.sampled_from(sorted(FAMILIES)))] for name in names}
    # Mostly every row has every value.
    fill = draw(st.sampled_from([st.just(0), st.integers(0, 4)]))
    made = []
    for _ in range(draw(st.integers(0, 6))):
        row = {}
        for name, family in families.items():
            choice = draw(fill)
            if choice != 3:
                row[name] = None if choice == 4 else draw(family)
        made.append(row)
    return made


def expected(value: Any, feature: Feature) -> Any:
    """What must come back: nested lists, numbers as the bytes they have in the feature's dtype."""
    value = plain_value(value)
    if isinstance(value, Sparse):
        return value.indices.tolist(), expected(value.values, feature)
    if isinstance(value, (list, tuple)):
        return [expected(item, feature) for item in value]
    if feature.is_string:
        return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    return _bits(np.asarray(value), numpy_dtype(feature.dtype))


def found(column: Any, row: int) -> Any:
    """What came back, in the same form."""
    if isinstance(column, Masked):
        return found(column.values, row) if column.present[row] else None
    value = column[row]
    if isinstance(value, Sparse):
        return value.indices.tolist(), found([value.values], 0)
    if isinstance(value, Ragged):
        return [found(value, i) for i in range(len(value))]
    if hasattr(value, "to_list"):
        return value.to_list()
    if isinstance(value, (np.ndarray, np.generic)):
        return _bits(np.asarray(value), value.dtype)
    return value


def _bits(array: Any, dtype: np.dtype[Any]) -> Any:
    if array.ndim:
        return [_bits(item, dtype) for item in array]
    with np.errstate(invalid="ignore", over="ignore"):
        return array.astype(dtype).tobytes()
