import json

from datum._inspect.profile.results import (
    Distribution,
    Histogram,
    ImageProfile,
    ValueCounts,
    plain,
)

SOME = Distribution(3, 0, 4, 2.0, 1.5, {0.5: 2.0}, histogram=Histogram((0.0, 5.0), (3,)))


def test_a_distribution_as_json_has_the_names_that_manifests_have():
    found = SOME.to_json()
    assert (found["count"], found["min"], found["max"], found["mean"]) == (3, 0, 4, 2.0)
    assert found["quantiles"] == {"0.5": 2.0}
    assert found["histogram"] == {"edges": [0.0, 5.0], "counts": [3]}


def test_nothing_has_no_histogram():
    assert Distribution(0).to_json()["histogram"] is None


def test_counts_as_json_have_names_where_there_are_some():
    found = ValueCounts(2, ((0, 5), (7, 1)), 6, names={0: "cat"}).to_json()
    assert found["values"] == [{"value": 0, "count": 5, "name": "cat"}, {"value": 7, "count": 1}]


def test_values_without_a_name_are_called_what_they_are():
    counts = ValueCounts(3, (), 0)
    assert [counts.name_of(value) for value in (7, "text", b"\xff")] == ["7", "text", "\\xff"]


def test_images_as_json_can_be_written():
    found = ImageProfile({"png": 3}, {3: 3}, SOME, SOME, SOME).to_json()
    assert json.loads(json.dumps(found))["channels"] == {"3": 3}


def test_bytes_become_text_for_json():
    assert plain(b"a\xff") == "a\\xff"
    assert plain(5) == 5
