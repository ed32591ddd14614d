import numpy as np
import pytest

from datum import Feature
from datum._core import Fault, RowCollector
from datum.format.row_input import is_collectable, row_feature, skipped_feature
from datum.schema import guess_value


def collect(spec, *values):
    """How many values were taken, and why the next was not."""
    collector = RowCollector([spec], True)
    try:
        collector.collect([{"x": value} for value in values])
    except Fault as fault:
        return collector.rows_done, fault.args[0]
    return collector.rows_done, None


@pytest.mark.parametrize(
    ("feature", "is_native"),
    [
        (Feature("int8"), True),
        (Feature("float64", (None, 3)), True),
        (Feature("uint8", (None, None, 3), encoding="image"), True),
        (Feature("float16"), False),
        (Feature("datetime64[s]"), False),
        (Feature("int64", (None, None)), True),
        (Feature("float64", (None, None), encoding="values"), True),
        (Feature("float64", (None, None)), False),
        (Feature("uint8", (None, None), encoding="raw"), False),
        (Feature("int64", (3,), encoding="sparse"), False),
        (Feature("int64", (None,), sequence=True), False),
    ],
    ids=repr,
)
def test_what_lies_in_lists_or_whole_is_collected_natively(feature, is_native):
    assert is_collectable(feature) == is_native


def test_a_given_feature_takes_what_fits():
    spec = row_feature("x", Feature("float32"))
    assert collect(spec, 0.1, True, 2**24, 7, 2**24 + 1) == (4, "range")
    spec = row_feature("x", Feature("bool"))
    assert collect(spec, True, 0, 1, 2) == (3, "range")
    assert collect(row_feature("x", Feature("bytes")), b"a", bytearray(b"b"), "c") == (2, "type")


def test_a_guessed_feature_takes_only_what_leaves_it_as_it_is():
    for seen, taken, refused in (
        (1, [5, True, -(2**63)], [0.5, "a", [1], 2**63]),
        (np.float32(0.5), [np.float32(1.5), True, np.float16(2)], [0.5, 1]),
        (0.1, [0.5, 3, float("nan")], [1j, "a"]),
        (b"a", [b"b"], ["b"]),
        ([1, 2], [[3, 4], (5, 6)], [[1], [], 1, [1, 0.5]]),
    ):
        guess = guess_value(seen)
        spec = row_feature("x", guess.to_feature(), guess)
        assert collect(spec, *taken) == (len(taken), None)
        for value in refused:
            assert collect(spec, value)[1] in ("type", "range", "shape"), value


def test_a_skipped_feature_may_be_anything():
    assert collect(skipped_feature("x"), 1, "a", object()) == (3, None)
