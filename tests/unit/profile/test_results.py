from datum import Feature
from datum._inspect.profile.results import (
    Distribution,
    Duplicates,
    FeatureProfile,
    PayloadProfile,
    ProfileWarning,
    SplitProfile,
)


def test_a_feature_as_json_tells_type_and_counts():
    found = FeatureProfile(Feature("int64", optional=True), 3, 1, numbers=Distribution(3)).to_json()
    assert (found["dtype"], found["optional"]) == ("int64", True)
    assert (found["present"], found["missing"]) == (3, 1)
    assert "lengths" not in found
    assert found["numbers"]["count"] == 3


def test_the_share_that_is_missing_of_nothing_is_none():
    assert FeatureProfile(Feature("int64"), 0, 0).missing_share == 0
    assert FeatureProfile(Feature("int64"), 1, 3).missing_share == 0.75


def test_a_warning_says_where_it_is():
    warning = ProfileWarning("missing", "text", "hint", "x", "train", "5 %")
    assert str(warning) == "train, x: text"
    assert str(ProfileWarning("damage", "text", "hint")) == "text"
    assert warning.title == "missing values"
    assert warning.to_json()["figure"] == "5 %"


def test_duplicates_as_json_have_pairs():
    found = Duplicates("val", "train", 1, ((3, 7),)).to_json()
    assert found["examples"] == [[3, 7]]


def test_payloads_come_as_json_with_hexadecimal_bytes():
    payloads = PayloadProfile(Distribution(1), "bytes", ((1, "varint", 1, "5"),), b"\xff", 1)
    found = SplitProfile(1, 10, 1, 1, {}, payloads).to_json()["payloads"]
    assert found["first"] == "ff"
    assert found["fields"] == [{"field": 1, "type": "varint", "records": 1, "example": "5"}]
