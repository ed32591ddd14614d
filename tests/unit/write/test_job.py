"""What is written beside the shards."""

import json

import numpy as np
import pytest

import datum
from datum.sources.table_part import TablePart
from tests.unit.write.datasets import read, rows, write


def test_encoders_are_applied_and_described(tmp_path):
    text = pytest.importorskip("sklearn.feature_extraction.text")
    source = [{"text": "a bee"}, {"text": "bee sea"}]
    encoders = {"text": text.CountVectorizer()}
    write(source, tmp_path / "out", encoders=encoders, shuffle=False)
    ds = datum.load(tmp_path / "out")
    assert ds.schema["text"].encoding == "sparse"
    assert ds.metadata["text"]["size"] == 2
    assert read(tmp_path / "out")[1]["text"].to_dense().tolist() == [1, 1]


def test_statistics_are_kept(tmp_path):
    write([{"x": i % 10} for i in range(1000)], tmp_path / "out")
    found = datum.load(tmp_path / "out").statistics["train"]
    assert "x" in json.dumps(found)


def test_the_files_of_the_older_library_are_written_on_request(tmp_path):
    write(rows(3), tmp_path / "out", sidecars=["older"])
    assert json.loads((tmp_path / "out/shard_info.json").read_text()) == {
        "train": {"train-00000-of-00001.tfrecord": 3}
    }


def test_a_source_that_keeps_records_back_is_noticed(tmp_path):
    class Forgetful(TablePart):
        def read(self, numbers):
            return super().read(numbers[numbers != 7])

    class Source:
        def parts(self):
            return {"train": Forgetful({"x": np.arange(100)})}

    with pytest.raises(datum.WriteError, match="expected 100 records, as the source has, got 99"):
        write(Source(), tmp_path / "out")
    assert not (tmp_path / "out").exists()
