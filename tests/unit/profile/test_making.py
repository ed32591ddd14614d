import json

import numpy as np
import pytest

import datum
from datum._inspect.profile.run import SMALL_RECORDS


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "table"
    rng = np.random.default_rng(0)
    splits = {
        "train": [
            {"x": float(rng.normal()), "label": int(n % 3), "name": f"n{n}"} for n in range(300)
        ],
        "val": [{"x": 100.0 + n, "label": 0, "name": f"v{n}"} for n in range(100)],
    }
    datum.write(None, path, splits=splits, progress=False)
    return path


def test_every_split_and_feature_is_told(table):
    found = datum.profile(table)
    assert list(found.splits) == ["train", "val"]
    assert list(found.splits["val"].features) == ["x", "label", "name"]
    assert found.splits["val"].features["x"].numbers.lowest == 100
    assert (found.records, found.seen, found.is_complete) == (400, 400, True)
    assert (found.writer, found.version, found.compression) == ("datum", 1, None)


def test_all_splits_together_are_told_too(table):
    found = datum.profile(table).features
    assert found["label"].counts.values == ((0, 200), (1, 100), (2, 100))
    assert found["x"].numbers.highest == 199
    assert found["x"].numbers.count == 400


def test_of_samples_each_split_counts_as_much_as_it_has_records(table):
    found = datum.profile(table, sample=100).features["x"]
    assert sum(found.numbers.histogram.counts) == 400
    assert found.numbers.quantiles[0.5] < 100


def test_counts_of_a_sample_are_scaled_to_all_records(table):
    found = datum.profile(table, split="train", sample=30, columns=["name"])
    assert found.splits["train"].features["name"].counts.total == 30
    assert found.features["name"].counts.total == 300


def test_one_split_can_be_asked_for(table):
    found = datum.profile(table, split="val")
    assert list(found.splits) == ["val"]
    assert found.records == 100


def test_a_part_of_a_split_can_be_asked_for(table):
    found = datum.profile(table, split="train[:50%]")
    assert found.records == 150
    assert 0 < found.bytes < datum.load(table).splits["train"].bytes


def test_some_features_can_be_asked_for(table):
    assert list(datum.profile(table, columns=["name"]).features) == ["name"]
    with pytest.raises(datum.SchemaError, match="did you mean 'label'"):
        datum.profile(table, columns=["labl"])


@pytest.mark.parametrize("sample", [0, -1, True, 1.5, "fast"])
def test_a_sample_is_a_number_of_records(table, sample):
    with pytest.raises(ValueError, match="expected `sample` of 1 or more"):
        datum.profile(table, sample=sample)


def test_results_do_not_depend_on_the_number_of_threads(tmp_path):
    rng = np.random.default_rng(0)
    columns = {"x": rng.normal(size=100_000), "n": rng.integers(0, 9, 100_000)}
    datum.write(columns, tmp_path / "out", shards=3, progress=False)
    first, second = (datum.profile(tmp_path / "out", threads=n).to_json() for n in (1, 4))
    first["seconds"] = second["seconds"] = 0
    assert json.dumps(first) == json.dumps(second)


def test_progress_is_told_up_to_the_end(table):
    calls = []
    datum.profile(table, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (400, 400)
    assert calls == sorted(calls)
    calls.clear()
    datum.profile(table, sample=30, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (60, 60)


def test_a_quick_look_sees_all_of_what_is_small(table):
    assert datum.profile(table, sample="quick").is_complete


def test_a_quick_look_sees_some_of_what_is_large(tmp_path):
    datum.write({"x": np.arange(SMALL_RECORDS + 1)}, tmp_path / "out", progress=False)
    found = datum.profile(tmp_path / "out", sample="quick")
    assert found.seen == 4096
    assert not found.is_complete


def test_a_quick_look_at_large_records_reads_few_of_them(tmp_path):
    blobs = [bytes([n]) * 2**21 for n in range(40)]
    datum.write({"x": blobs}, tmp_path / "out", progress=False)
    found = datum.profile(tmp_path / "out", sample="quick")
    assert 20 <= found.seen <= 32


def test_what_records_lack_shows_although_there_is_a_default(tmp_path):
    schema = {"x": datum.Feature("int64", default=7)}
    datum.write([{"x": 1}, {}], tmp_path / "out", schema=schema, progress=False)
    found = datum.profile(tmp_path / "out").features["x"]
    assert (found.present, found.missing) == (1, 1)


def test_records_of_no_features_are_told_by_their_bytes(tmp_path):
    with datum.format.RecordWriter(tmp_path / "a.tfrecord") as writer:
        writer.write(b"some text")
    found = datum.profile(datum.load(tmp_path / "a.tfrecord", schema={}))
    assert found.features == {}
    assert found.splits["train"].payloads.kind == "text"


def test_small_sound_datasets_have_no_warnings(tmp_path):
    datasets = pytest.importorskip("sklearn.datasets")
    digits, iris = datasets.load_digits(), datasets.load_iris(as_frame=True)
    splits = {"train": 0.9, "val": 0.1}
    columns = {"image": digits.images, "label": digits.target}
    datum.write(columns, tmp_path / "digits", splits=splits, progress=False)
    datum.write(iris.frame, tmp_path / "iris", progress=False)
    assert datum.profile(tmp_path / "digits").warnings == ()
    assert datum.profile(tmp_path / "iris").warnings == ()
