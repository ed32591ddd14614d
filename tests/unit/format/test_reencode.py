import numpy as np
import pytest

from datum import Feature, Schema, SchemaError
from datum.format import encode, frame, reencode, stores_alike

F = Feature


@pytest.mark.parametrize(
    ("one", "other", "is_alike"),
    [
        (F("int64"), F("int64"), True),
        (F("int64"), F("int64", optional=True), True),
        (F("int8"), F("int64"), True),
        (F("bool"), F("uint64"), True),
        (F("float16"), F("float32"), True),
        (F("int64", (3,)), F("int64", (None,)), True),
        (F("int64", (2, 3)), F("int64", (None, 3)), True),
        (F("float64", (3,)), F("float64", (None,)), True),
        (F("bytes"), F("uint8", (None, None, 3), encoding="image"), True),
        (
            F("uint8", (4, 4, 3), encoding="image"),
            F("uint16", (None, 4, 3), encoding="image"),
            True,
        ),
        (F("int64", (3,), encoding="sparse"), F("int8", (4,), encoding="sparse"), True),
        (F("int64"), F("float64"), False),
        (F("int64"), F("float32"), False),
        (F("float32"), F("float64"), False),
        (F("int64"), F("datetime64[s]"), False),
        (F("datetime64[D]"), F("datetime64[s]"), False),
        (F("int64", (3,)), F("int64", (3,), encoding="raw"), False),
        (F("uint8", (3,), encoding="raw"), F("int16", (3,), encoding="raw"), False),
        (F("int64", (2, 3)), F("int64", (None, None)), False),
        (F("float64", (2, 3)), F("float64", (2, None)), False),
        (F("float64", (None, None)), F("float64", (None, None), encoding="values"), False),
        (F("int64"), F("int64", (1,)), False),
        (F("int64"), F("int64", keys=("k",)), False),
        (F("int64", (None,)), F("int64", (None,), sequence=True), False),
    ],
    ids=repr,
)
def test_what_lies_the_same_in_a_record_is_alike(one, other, is_alike):
    assert stores_alike(Schema({"x": one}), Schema({"x": other})) == is_alike
    assert stores_alike(Schema({"x": other}), Schema({"x": one})) == is_alike


def test_a_feature_more_is_alike_if_records_may_lack_it():
    one = Schema({"x": F("int64")})
    assert stores_alike(one, Schema({"y": F("str", optional=True), "x": F("int64")}))
    assert not stores_alike(one, Schema({"x": F("int64"), "y": F("str")}))
    assert not stores_alike(Schema({"x": F("int64"), "y": F("str", optional=True)}), one)
    steps = F("int64", (None,), sequence=True, optional=True)
    assert not stores_alike(one, Schema({"x": F("int64"), "s": steps}))  # another message


@pytest.mark.parametrize(
    ("one", "other", "values"),
    [
        (F("int64"), F("float64"), [1, -(2**53)]),
        (F("float32", optional=True), F("float64", optional=True), [0.5, None]),
        (F("int64", (2,)), F("float64", (None,)), [[1, 2], [3, 4]]),
        (F("str", (2,)), F("str", (None,)), [["a", "b"], ["c", ""]]),
        (F("str", (2, 1)), F("str", (None, None)), [[["a"], ["b"]]]),
        (F("int64", (None, 2)), F("int64", (None, None)), [[[1, 2]], []]),
        (F("int64", (None, None)), F("float64", (None, None)), [[[1, 2], [3, 4]], [], [[5]]]),
        (F("int64", (2, 2)), F("int64", (2, None), encoding="raw"), [[[1, 2], [3, 4]]]),
        (
            F("float64", (1, None)),
            F("float64", (None, None), encoding="values"),
            [[[0.1, 0.2]], [[0.3]]],
        ),
        (
            F("float64", (1, None), optional=True),
            F("float64", (None, None), encoding="values", optional=True),
            [[[0.1, 0.2]], None],
        ),
        (F("float32", (None,)), F("str", (None, None)), [[], []]),
        (F("float32", (None,), optional=True), F("int64", (None,), optional=True), [[], None]),
        (
            F("datetime64[D]"),
            F("datetime64[us]"),
            [np.datetime64("2020-01-01"), np.datetime64("NaT", "D")],
        ),
        (F("bytes"), F("uint8", (None, None, 3), encoding="image"), [b"a", b"b"]),
    ],
    ids=repr,
)
def test_records_are_as_if_they_had_been_written_so_at_once(one, other, values):
    rows = [{"y": 1} if value is None else {"x": value, "y": 1} for value in values]
    before = Schema({"x": one, "y": F("int64")})
    after = Schema({"x": other, "y": F("int64"), "z": F("str", optional=True)})
    again = reencode(encode(rows, before).records(), before, after)
    assert again.to_bytes() == encode(rows, after).to_bytes()


def test_values_that_would_change_are_refused_by_record():
    before, after = Schema({"x": F("int64")}), Schema({"x": F("float64")})
    records = encode([{"x": 1}, {"x": 2**53 + 1}], before).records()
    with pytest.raises(
        SchemaError, match="record 1, feature 'x': expected float64, got 90"
    ) as caught:
        reencode(records, before, after)
    assert (caught.value.record, caught.value.feature) == (1, "x")


def test_no_records_and_records_of_nothing():
    empty, after = Schema({}), Schema({"x": F("int64", optional=True)})
    assert len(reencode(frame([]).records(), after, after)) == 0
    nothing = encode([{}, {}], empty)
    assert reencode(nothing.records(), empty, after).to_bytes() == nothing.to_bytes()


def test_sparse_values_that_are_absent_stay_so():
    before = Schema({"x": F("int64", (5,), encoding="sparse", optional=True)})
    after = Schema({"x": F("float64", (5,), encoding="sparse", optional=True)})
    rows = [{"x": ([1], [2])}, {}, {"x": ([], [])}]
    again = reencode(encode(rows, before).records(), before, after)
    assert again.to_bytes() == encode(rows, after).to_bytes()


def test_a_feature_cannot_be_dropped():
    before = Schema({"x": F("int64"), "y": F("int64")})
    with pytest.raises(SchemaError, match="feature 'y': expected it in both schemas"):
        reencode(encode([{"x": 1, "y": 2}], before).records(), before, before.select(["x"]))
