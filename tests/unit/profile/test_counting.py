import numpy as np
import pytest

import datum
from datum.format import RecordWriter, encode


def write_foreign(path, rows, schema):
    payloads = datum.format.RecordFile(encode(rows, schema).to_bytes())
    with RecordWriter(path) as writer:
        for payload in payloads:
            writer.write(payload)


@pytest.mark.parametrize("sample", [None, 60])
def test_a_record_that_does_not_fit_the_schema_costs_its_neighbours_not_all(tmp_path, sample):
    one, two = datum.Schema({"x": datum.Feature("int64")}), {"x": datum.Feature("int64", (2,))}
    write_foreign(tmp_path / "train-a.tfrecord", [{"x": n} for n in range(100)], one)
    write_foreign(tmp_path / "train-b.tfrecord", [{"x": [n, n]} for n in range(100)], two)
    found = datum.profile(datum.load(tmp_path, schema=one), sample=sample, threads=1)
    (warning,) = [one for one in found.warnings if one.kind == "damage"]
    assert warning.text.startswith("train-b.tfrecord: record ")
    assert warning.text.endswith("feature 'x': expected 1 values, got 2")
    assert 0 < found.seen <= 100
    assert found.splits["train"].features["x"].numbers.count == found.seen


def test_each_shard_that_fails_is_told_once(tmp_path):
    datum.write({"x": np.arange(1000)}, tmp_path / "out", shards=2, progress=False)
    dataset = datum.load(tmp_path / "out")
    (tmp_path / "out" / "train-00000-of-00002.tfrecord").unlink()
    found = datum.profile(dataset, sample=200)
    assert [one.kind for one in found.warnings].count("damage") == 1


def test_an_error_while_counting_ends_the_threads(tmp_path):
    datum.write({"x": np.arange(1000)}, tmp_path / "out", shards=4, progress=False)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        datum.profile(tmp_path / "out", progress=stop, threads=2)
