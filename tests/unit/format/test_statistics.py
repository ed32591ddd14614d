"""Statistics of features in a manifest."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum import Feature, Masked, Ragged, Schema, SchemaError, Sparse
from datum.format.encode import collect, collect_guessing
from datum.format.statistics import (
    MAX_COUNTED_BYTES,
    MAX_DISTINCT,
    Counts,
    FeatureStatistics,
    Range,
    Statistics,
    summarize,
)
from datum.schema import SchemaGuess, numpy_dtype
from datum.schema.feature import INTEGERS


def of_numbers(*values):
    finite = [value for value in values if math.isfinite(value)]
    return Range(
        len(finite),
        min(finite, default=None),
        max(finite, default=None),
        sum(finite),
        sum(math.isnan(value) for value in values),
        sum(math.isinf(value) for value in values),
    )


def through_json(found):
    return type(found).from_json(json.loads(json.dumps(found.to_json(), allow_nan=False)))


def test_ranges_merge_to_that_of_all():
    one, other = of_numbers(1, 5), of_numbers(-2, math.nan, math.inf)
    merged = one.merge(other)
    assert merged == of_numbers(1, 5, -2, math.nan, math.inf)
    assert merged.mean == 4 / 3
    assert one.merge(Range()) == Range().merge(one) == one


def test_a_range_survives_json():
    for values in ((), (1, 2), (0.1, 2.5), (math.nan,), (2**63, 2**64)):
        assert through_json(of_numbers(*values)) == of_numbers(*values)


def test_a_sum_beyond_floats_has_no_mean():
    found = Range(2, 1e308, 1e308, math.inf)
    assert found.mean is None
    assert found.to_json()["mean"] is None
    assert through_json(found) == found


def test_counts_are_exact_until_there_are_too_many():
    one, other = Counts({"a": 2, "b": 1}), Counts({"b": 5, "c": 5})
    merged = one.merge(other)
    assert merged == Counts({"a": 2, "b": 6, "c": 5})
    assert merged.most_frequent(2) == [("b", 6), ("c", 5)]
    most = Counts(dict.fromkeys(range(MAX_DISTINCT), 1))
    assert Counts({}).merge(most) == most
    assert one.merge(most) == Counts({}, MAX_DISTINCT)
    assert Counts({}, MAX_DISTINCT).merge(one) == Counts({}, MAX_DISTINCT)
    assert Counts({}, 1000).to_json() == {"distinct": "more than 1000"}


def test_equally_frequent_values_come_in_their_order():
    assert Counts({3: 1, 1: 1, 2: 1}).most_frequent() == [(1, 1), (2, 1), (3, 1)]


def test_truth_values_that_met_integers_are_integers():
    assert Counts({True: 2, False: 1}).to_json()["most_frequent"] == [[True, 2], [False, 1]]
    merged = Counts({True: 2, False: 1}).merge(Counts({7: 5}))
    assert json.dumps(merged.to_json()["most_frequent"]) == "[[7, 5], [1, 2], [0, 1]]"


def test_counts_that_were_cut_for_json_are_no_longer_exact():
    few, many = (Counts(dict.fromkeys(range(count), 1)) for count in (20, 21))
    assert through_json(few) == few
    cut = through_json(many)
    assert len(cut.values) == 20
    assert cut.merge(few) == Counts({}, 20)
    assert through_json(Counts({}, 1000)) == Counts({}, 1000)


def test_features_that_one_part_lacks_are_missing_there():
    one = Statistics(2, {"x": FeatureStatistics(2, numbers=of_numbers(1, 2))})
    other = Statistics(3, {"y": FeatureStatistics(1, 2, bytes=of_numbers(4))})
    merged = one.merge(other)
    assert merged.records == 5
    assert merged.features["x"] == FeatureStatistics(2, 3, numbers=of_numbers(1, 2))
    assert merged.features["y"] == FeatureStatistics(1, 4, bytes=of_numbers(4))
    assert Statistics().merge(one) == one
    assert through_json(merged) == merged


def test_what_only_one_part_knows_is_dropped():
    integers = FeatureStatistics(1, numbers=of_numbers(1), counts=Counts({1: 1}))
    floats = FeatureStatistics(1, numbers=of_numbers(0.5))
    assert integers.merge(floats) == FeatureStatistics(2, numbers=of_numbers(1, 0.5))


@pytest.mark.parametrize(
    "found", [None, [], {}, {"records": 1}, {"records": 1, "features": {"x": {}}}], ids=str
)
def test_other_json_is_refused(found):
    with pytest.raises(SchemaError, match="expected statistics as JSON"):
        Statistics.from_json(found)


def statistics_of(data, schema=None, *, threads=1, uncounted=()):
    if schema is None:
        found = collect_guessing(data, SchemaGuess(), {})
    else:
        found = collect(data, Schema(schema))
    return summarize(found, uncounted=uncounted, threads=threads)


def column(values, feature=None):
    rows = [{} if value is None else {"x": value} for value in values]
    return statistics_of(rows, feature and {"x": feature}).features["x"]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("encoding", ["values", "raw"])
def test_integers_are_summed_up_exactly(dtype, encoding):
    low, high = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    values = np.array([[high, low], [high, high], [low, 1]], dtype)
    found = column(list(values), Feature(dtype, (2,), encoding=encoding))
    assert found.numbers == Range(6, low, high, 3 * high + 2 * low + 1)
    assert found.lengths == Range(3, 2, 2, 6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("encoding", ["values", "raw"])
def test_floats_are_told_from_what_is_no_number(dtype, encoding):
    if dtype == "float64" and encoding == "values":
        return
    values = np.array([1.5, -2.5, math.nan, math.inf, -math.inf, 0.25]).astype(numpy_dtype(dtype))
    found = column(list(values.reshape(2, 3)), Feature(dtype, (3,), encoding=encoding))
    assert found.numbers == Range(3, -2.5, 1.5, -0.75, nan=1, infinite=2)


@given(st.lists(st.floats(width=32), max_size=1500), st.sampled_from(["float32", "float64"]))
def test_many_floats_are_what_numpy_says(values, dtype):
    array = np.array(values, dtype)
    found = column([array], Feature(dtype, (None,)))
    finite = array[np.isfinite(array)].astype(np.float64)
    if not len(array):
        assert found.numbers is None
        return
    assert found.numbers.count == len(finite)
    assert found.numbers.nan == np.isnan(array).sum()
    assert found.numbers.infinite == np.isinf(array).sum()
    if len(finite):
        assert (found.numbers.lowest, found.numbers.highest) == (finite.min(), finite.max())
        assert found.numbers.total == pytest.approx(
            finite.sum(), rel=1e-9, abs=1e-30 + abs(finite).max() * 1e-9
        )


def test_numbers_that_are_not_there_do_not_count():
    found = column([3, None, 5, None, -1])
    assert (found.present, found.missing) == (3, 2)
    assert found.numbers == Range(3, -1, 5, 7)
    assert found.counts == Counts({3: 1, 5: 1, -1: 1})


def test_rows_that_are_masked_do_not_count_whatever_they_hold():
    ragged = Ragged(np.array([1, 2, 90, 3]), np.array([0, 2, 3, 4]))
    present = np.array([True, False, True])
    found = statistics_of({"x": Masked(ragged, present)}).features["x"]
    assert (found.lengths, found.numbers) == (Range(2, 1, 2, 3), Range(3, 1, 3, 6))


def test_lists_are_measured():
    found = column([[1, 2, 3], [], None, [4]])
    assert found.lengths == Range(3, 0, 3, 4)
    assert found.numbers == Range(4, 1, 4, 10)
    assert found.counts is None


def test_strings_are_measured_in_bytes():
    found = column(["aé", "", "aé", None])
    assert found.bytes == Range(3, 0, 3, 6)
    assert found.counts == Counts({"aé": 2, "": 1})
    listed = column([["a", "bb"], []])
    assert (listed.bytes, listed.lengths) == (Range(2, 1, 2, 3), Range(2, 0, 2, 2))
    assert listed.counts is None
    assert column([b"a", b"bb"]).counts is None
    picture = column([b"abc"], Feature("uint8", (None, None, 3), encoding="image"))
    assert (picture.bytes, picture.numbers, picture.lengths) == (Range(1, 3, 3, 3), None, None)


def test_truth_values_and_large_integers_are_counted_as_what_they_are():
    (values,) = (column([True, False, True]).counts.values,)
    assert [(value, count) for value, count in values.items()] == [(True, 2), (False, 1)]
    assert all(isinstance(value, bool) for value in values)
    assert column([2**64 - 1, 5]).counts == Counts({2**64 - 1: 1, 5: 1})


def test_counts_end_where_values_are_too_many():
    assert len(column(list(range(MAX_DISTINCT))).counts.values) == MAX_DISTINCT
    assert column(list(range(MAX_DISTINCT + 1))).counts == Counts({}, MAX_DISTINCT)
    assert column([str(n) for n in range(MAX_DISTINCT + 1)]).counts == Counts({}, MAX_DISTINCT)
    found = statistics_of([{"x": 1}], uncounted={"x"}).features["x"]
    assert found.counts == Counts({}, MAX_DISTINCT)


def test_long_texts_are_not_counted():
    assert column(["a" * MAX_COUNTED_BYTES, "b"]).counts is not None
    assert column(["a" * (MAX_COUNTED_BYTES + 1), "b"]).counts is None


def test_times_are_told_in_their_unit():
    found = column([np.datetime64(5, "s"), np.datetime64("NaT", "s"), np.datetime64(-3, "s")])
    assert found.numbers == Range(2, -3, 5, 2, nan=1)


def test_nested_rows_are_measured_at_the_outermost():
    found = column([[[1], [2, 3]], [], [[4]]])
    assert found.lengths == Range(3, 0, 2, 3)
    assert found.numbers == Range(4, 1, 4, 10)


def test_tensors_and_sparse_values():
    found = column([np.ones((2, 3)), np.ones((1, 4))])
    assert (found.numbers.count, found.lengths) == (10, None)
    found = column([Sparse(np.array([[1], [3]]), np.array([2, 7]), (5,)), None])
    assert (found.numbers, found.lengths) == (Range(2, 2, 7, 9), Range(1, 2, 2, 2))
    assert column([1j, 2]).numbers is None


def test_sequences_are_measured_in_steps():
    schema = {"x": Feature("int64", (None, None), sequence=True)}
    found = statistics_of([{"x": [[1], [], [2, 3]]}, {"x": []}], schema).features["x"]
    assert (found.lengths, found.numbers) == (Range(2, 0, 3, 3), Range(3, 1, 3, 6))


def test_a_feature_that_no_record_has_is_left_out():
    known = SchemaGuess()
    known.add_rows([{"x": 1, "y": 2}])
    found = collect_guessing({"x": np.array([1])}, known, {})
    assert list(summarize(found, uncounted=(), threads=1).features) == ["x"]


def test_any_number_of_threads_gives_the_same():
    rng = np.random.default_rng(1)
    data = {f"x{i}": rng.standard_normal((300, 7)) for i in range(9)}
    assert statistics_of(data, threads=1) == statistics_of(data, threads=5)
