import json
import math

import pytest

from datum import SchemaError
from datum.format.statistics import MAX_DISTINCT, Counts, FeatureStatistics, Range, Statistics


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
