import numpy as np
import pytest

import datum
from datum.format import Manifest, RecordWriter, encode


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
