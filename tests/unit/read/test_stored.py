"""The records of a dataset as a source."""

import os

import numpy as np

import datum
from datum._read.copy import StoredRecords, StoredStream, lasting_metadata
from datum.sources import Source
from tests.unit.rewrite.damaged import shard_of, write_numbers


def part_of(folder, instruction="train"):
    (part,) = datum.load(folder)[instruction].parts().values()
    return part


def test_datasets_and_splits_are_sources(tmp_path):
    write_numbers(tmp_path / "in")
    dataset = datum.load(tmp_path / "in")
    assert isinstance(dataset, Source)
    assert isinstance(dataset["train"], Source)
    assert list(dataset.parts()) == ["train"]


def test_plain_shards_are_read_in_any_order_and_others_in_theirs(tmp_path):
    write_numbers(tmp_path / "plain")
    write_numbers(tmp_path / "packed", compression="zlib")
    assert isinstance(part_of(tmp_path / "plain"), StoredRecords)
    assert isinstance(part_of(tmp_path / "packed"), StoredStream)


def test_a_part_is_called_as_its_split(tmp_path):
    write_numbers(tmp_path / "in", splits={"a": 0.5, "b": 0.5})
    dataset = datum.load(tmp_path / "in")
    names = [*dataset, "b[:10%]", "a+b", "all"]
    assert [list(dataset[name].parts()) for name in names] == [
        ["a"],
        ["b"],
        ["b"],
        ["train"],
        ["train"],
    ]


def test_fingerprints_tell_the_records_apart(tmp_path):
    write_numbers(tmp_path / "in")
    write_numbers(tmp_path / "other", count=91)
    found = {
        part_of(tmp_path / "in").fingerprint,
        part_of(tmp_path / "in", "train[:50]").fingerprint,
        part_of(tmp_path / "other").fingerprint,
    }
    assert len(found) == 3
    assert part_of(tmp_path / "in").fingerprint in found


def test_files_that_nobody_described_are_told_by_when_they_changed(tmp_path):
    write_numbers(tmp_path / "in")
    (tmp_path / "in" / "datum.json").unlink()
    before = part_of(tmp_path / "in").fingerprint
    os.utime(shard_of(tmp_path / "in"), (1, 1))
    assert part_of(tmp_path / "in").fingerprint != before


def test_statistics_are_those_of_whole_splits_alone(tmp_path):
    write_numbers(tmp_path / "in")
    dataset = datum.load(tmp_path / "in")
    assert dataset.parts()["train"].statistics == dataset.statistics["train"]
    assert part_of(tmp_path / "in").statistics is None


def test_counts_of_images_are_not_metadata_of_a_part():
    metadata = {
        "image": {"formats": {"png": 3}, "dtypes": ["uint8"], "height": [1, 2], "colours": "x"},
        "photo": {"formats": {"png": 3}, "dtypes": ["uint8"]},
        "size": {"height": [1, 2]},
        "blank": {},
    }
    assert lasting_metadata(metadata) == {
        "image": {"colours": "x"},
        "size": {"height": [1, 2]},
        "blank": {},
    }


def test_runs_of_one_shard_share_its_places(tmp_path):
    write_numbers(tmp_path / "in", shards=1)
    part = part_of(tmp_path / "in", "train[:5]+train[-5:]")
    assert part.runs[0].places() is part.runs[1].places()
    assert part.read(np.arange(10)).numbers.tolist() == list(range(10))
