from datum import Feature
from datum._inspect.profile.results import (
    Distribution,
    FeatureProfile,
    ImageProfile,
    ValueCounts,
    describe_feature,
    percent,
)


def test_numbers_are_told_by_range_and_mean():
    one = FeatureProfile(Feature("float32", (3,)), 1, 1, numbers=Distribution(3, 0.5, 2.0, 1.25))
    assert describe_feature(one) == "float32 3, 50.0 % missing, 0.5 to 2, mean 1.25"


def test_images_are_told_by_format_and_size():
    side = Distribution(2, 10, 20)
    images = ImageProfile({"jpeg": 2}, {3: 2}, side, Distribution(2, 8, 8), side)
    feature = Feature("uint8", (None, None, 3), encoding="image")
    one = FeatureProfile(feature, 2, 0, sizes=Distribution(2, 900, 1200), images=images)
    assert describe_feature(one) == (
        "uint8 ? x ? x 3, jpeg of 10-20 x 8 pixels, 900 to 1,200 bytes"
    )


def test_rows_and_values_are_told():
    counts = ValueCounts(2, ((1, 2), (2, 1)), 3)
    one = FeatureProfile(
        Feature("int64", (None,)), 2, 0, lengths=Distribution(2, 0, 1000), counts=counts
    )
    assert describe_feature(one) == "int64 ?, lengths 0 to 1,000, 2 values"


def test_images_without_a_header_are_told_so():
    none = Distribution(0)
    one = FeatureProfile(Feature("bytes"), 1, 0, images=ImageProfile({}, {}, none, none, none, 1))
    assert describe_feature(one) == "bytes, unreadable"


def test_a_little_is_not_nothing():
    assert (percent(0), percent(1e-5), percent(0.5)) == ("0.0 %", "<0.1 %", "50.0 %")
