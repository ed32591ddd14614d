"""The results of a profile: as text, as JSON, in the manifest."""

import json

import numpy as np
import pytest

import datum
from datum import Feature
from datum._inspect.profile.results import (
    Distribution,
    Duplicates,
    FeatureProfile,
    Histogram,
    ImageProfile,
    PayloadProfile,
    ProfileWarning,
    SplitProfile,
    ValueCounts,
    describe_feature,
    percent,
    plain,
)
from datum._inspect.profile.run import known_statistics
from datum.cli.feature_table import describe_values
from datum.cli.terminal import UNICODE
from datum.format import Manifest, RecordWriter, encode


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


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "mixed"
    rows = [
        {"label": ["cat", "dog"][n % 2], "x": [float(n)] * (n % 3), "b": bytes([n, 255])}
        | ({"some": n} if n % 2 else {})
        for n in range(40)
    ]
    datum.write(rows, path, progress=False, shuffle=False)
    return datum.profile(path)


def test_json_holds_all_of_it(found):
    document = json.loads(json.dumps(found.to_json()))
    assert document["records"] == 40
    assert document["complete"] is True
    feature = document["splits"]["train"]["features"]["label"]
    assert feature["counts"]["values"][0] == {"value": "cat", "count": 20}
    assert feature["label"] is True
    assert document["features"]["x"]["lengths"]["max"] == 2
    assert document["features"]["some"]["missing"] == 20
    assert document["features"]["b"]["examples"][0] == "\x00\\xff"
    assert document["features"]["x"]["numbers"]["quantiles"].keys() == {
        "0.05",
        "0.25",
        "0.5",
        "0.75",
        "0.95",
    }
    assert [one["kind"] for one in document["warnings"]] == ["missing"]


def test_text_tells_splits_features_and_warnings(found):
    lines = str(found).splitlines()
    assert lines[0].endswith("mixed: 40 records, all read")
    assert lines[1].startswith("  train  40 records, 1 shard, ")
    assert lines[2] == "features:"
    assert lines[3].split() == ["label", "str,", "3", "to", "3", "bytes,", "2", "values"]
    assert lines[-1] == "  some: 50.0 % of the records lack it"


def test_text_tells_how_much_was_looked_at(tmp_path):
    datum.write({"x": np.arange(1000)}, tmp_path / "out", progress=False)
    found = datum.profile(tmp_path / "out", sample=10)
    assert "1,000 records, 10 of 1,000 read" in str(found)
    assert not found.is_complete
    assert found.shards == 1


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


@pytest.fixture
def foreign(tmp_path):
    rows = [{"x": n, "t": "ab"[n % 2], "f": n / 4, "r": [n] * (n % 3)} for n in range(30)]
    schema = {
        "x": datum.Feature("int64"),
        "t": datum.Feature("str"),
        "f": datum.Feature("float32"),
        "r": datum.Feature("int64", (None,)),
    }
    with RecordWriter(tmp_path / "train.tfrecord") as writer:
        for payload in datum.format.RecordFile(encode(rows, schema).to_bytes()):
            writer.write(payload)
    return tmp_path


def test_statistics_are_kept_in_the_manifest_and_known_from_then_on(foreign):
    datum.load(foreign).save_manifest()
    whole = datum.profile(foreign)
    assert whole.save() == foreign / "datum.json"
    known = datum.profile(foreign, sample=3).features
    assert (known["x"].numbers.count, known["x"].numbers.mean) == (30, 14.5)
    assert known["t"].counts.values == (("a", 15), ("b", 15))
    assert known["r"].lengths.highest == 2
    assert datum.load(foreign).verify().is_sound


def test_they_are_those_that_a_write_counts(tmp_path):
    columns = {"x": np.arange(50), "f": np.arange(50) / 8, "t": ["a", "b"] * 25}
    datum.write(columns, tmp_path / "out", progress=False)
    before = Manifest.load(tmp_path / "out").statistics
    datum.profile(tmp_path / "out").save()
    assert Manifest.load(tmp_path / "out").statistics == before


def test_nothing_but_statistics_is_changed(foreign):
    datum.load(foreign).save_manifest()
    before = Manifest.load(foreign)
    datum.profile(foreign).save()
    after = Manifest.load(foreign)
    assert (after.schema, after.splits, after.metadata) == (
        before.schema,
        before.splits,
        before.metadata,
    )


def test_without_a_manifest_there_is_no_place_for_them(foreign):
    with pytest.raises(datum.WriteError, match="save_manifest"):
        datum.profile(foreign).save()


@pytest.mark.parametrize("options", [{"sample": 3}, {"columns": ["x"]}])
def test_a_look_at_some_is_not_kept(foreign, options):
    datum.load(foreign).save_manifest()
    with pytest.raises(datum.WriteError, match="all records and features"):
        datum.profile(foreign, **options).save()


def test_a_part_of_a_split_is_not_kept(foreign):
    datum.load(foreign).save_manifest()
    with pytest.raises(datum.ManifestError, match="whole splits"):
        datum.profile(foreign, split="train[:10]").save()


def write(path):
    rng = np.random.default_rng(0)
    columns = {
        "x": rng.normal(size=5000),
        "few": rng.integers(0, 3, 5000),
        "many": rng.integers(0, 50, 5000),
        "id": np.arange(5000),
    }
    datum.write(columns, path, progress=False)
    return columns, datum.profile(path, sample=50)


def test_a_sample_knows_the_ranges_of_all_records(tmp_path):
    columns, found = write(tmp_path / "out")
    numbers = found.splits["train"].features["x"].numbers
    stored = columns["x"].astype(np.float32)
    assert (numbers.count, numbers.lowest) == (5000, stored.min())
    assert numbers.highest == stored.max()
    assert numbers.is_exact
    assert numbers.histogram.edges[0] == numbers.lowest
    assert sum(numbers.histogram.counts) == 50
    assert found.features["x"].present == 5000


def test_a_sample_knows_the_counts_of_few_values(tmp_path):
    columns, found = write(tmp_path / "out")
    counts = found.features["few"].counts
    assert counts.is_exact
    assert dict(counts.values) == dict(enumerate(np.bincount(columns["few"]).tolist()))


def test_of_many_values_it_knows_how_many_there_are(tmp_path):
    _, found = write(tmp_path / "out")
    counts = found.features["many"].counts
    assert counts.distinct == 50
    assert counts.is_counted
    assert not counts.is_complete
    assert not counts.is_exact


def test_of_ids_it_knows_that_they_are_many(tmp_path):
    _, found = write(tmp_path / "out")
    counts = found.features["id"].counts
    assert counts.distinct > 1000
    assert counts.is_known
    assert not counts.is_counted


def test_the_mean_of_all_stands_without_the_deviation_of_a_sample(tmp_path):
    columns, found = write(tmp_path / "out")
    numbers = found.features["x"].numbers
    assert numbers.mean == pytest.approx(columns["x"].mean(), abs=1e-6)
    assert numbers.std is None
    assert datum.profile(tmp_path / "out").features["x"].numbers.std is not None


def test_info_tells_no_count_of_a_sample_for_that_of_all(tmp_path):
    rows = {"id": [f"id{n}" for n in range(9000)], "word": [f"w{n % 900}" for n in range(9000)]}
    datum.write(rows, tmp_path / "out", progress=False)
    features = datum.profile(tmp_path / "out", sample=2000).features
    shown = [describe_values(features[name], UNICODE) for name in ("id", "word")]
    assert shown[0].startswith("at least 2,000 values, ")
    assert shown[1].startswith("900 values, ")


def test_nothing_is_known_of_a_part_of_a_split(tmp_path):
    write(tmp_path / "out")
    dataset = datum.load(tmp_path / "out")
    assert known_statistics(dataset, "train").records == 5000
    assert known_statistics(dataset, "train[:10]") is None
    found = datum.profile(dataset, split="train[:10]")
    assert found.features["x"].numbers.count == 10


def test_statistics_of_another_kind_are_passed_by(tmp_path):
    write(tmp_path / "out")
    manifest = datum.format.Manifest.load(tmp_path / "out")
    changed = datum.format.Manifest(
        manifest.schema, manifest.splits, manifest.metadata, {"train": {"mine": 1}}
    )
    changed.save(tmp_path / "out")
    assert known_statistics(datum.load(tmp_path / "out"), "train") is None
    found = datum.profile(tmp_path / "out", sample=10)
    assert found.splits["train"].features["x"].numbers.count == 10
