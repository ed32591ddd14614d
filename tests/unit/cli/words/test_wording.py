"""Counts, sizes and features as commands write them."""

import pytest

from datum import Feature
from datum.cli.formatting import describe_feature
from datum.errors import count_of, format_bytes


def test_counts_have_separators_and_the_right_number():
    assert count_of(1, "shard") == "1 shard"
    assert count_of(0, "shard") == "0 shards"
    assert count_of(12_345, "class", "classes") == "12,345 classes"


@pytest.mark.parametrize(
    ("nbytes", "text"), [(0, "0 B"), (1000, "1.0 kB"), (10**9, "1.0 GB"), (5 * 10**15, "5000.0 TB")]
)
def test_sizes_have_units(nbytes, text):
    assert format_bytes(nbytes) == text


@pytest.mark.parametrize(
    ("feature", "text"),
    [
        (Feature("int64"), "int64"),
        (Feature("str", (None,)), "str (?)"),
        (Feature("int64", (None, 2), sequence=True), "int64 (?, 2), sequence"),
        (Feature("int64", default=7), "int64, default 7"),
        (Feature("float64", optional=True), "float64, optional"),
    ],
)
def test_features_are_short(feature, text):
    assert describe_feature(feature) == text
