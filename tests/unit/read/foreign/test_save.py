from dataclasses import replace

import pytest

from datum import Feature
from datum._read.foreign import detect
from datum._read.foreign.detect import open_dataset, save_manifest
from datum._read.verify import verify_shards
from datum.errors import CorruptRecordError, ManifestError, WriteError
from datum.format import Manifest
from tests.unit.read.foreign.files_written import numbers, write_file, write_numbers
from tests.unit.read.foreign.test_detect import write_prepared

NAMES = ["train-00000-of-00002.tfrecord", "train-00001-of-00002.tfrecord", "test.record"]


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
def test_the_next_load_is_that_of_a_published_dataset(tmp_path, compression):
    write_numbers(tmp_path, *NAMES, compression=compression)
    (tmp_path / "val.tfrecord").touch()
    found = open_dataset(tmp_path)
    path = save_manifest(found)
    assert path == tmp_path / "datum.json"
    saved = open_dataset(tmp_path)
    assert saved.is_published
    assert (saved.schema, saved.compression) == (found.schema, compression)
    assert numbers(saved) == {"train": [0, 1], "val": [], "test": [2]}
    assert verify_shards(saved).is_sound
    assert None not in [shard.crc32c for shard in saved.splits["train"].shards]


def test_what_is_known_of_features_is_saved_too(tmp_path):
    write_prepared(tmp_path)
    found = replace(open_dataset(tmp_path), metadata={"x": {"class_names": ["a", "b"]}})
    save_manifest(found)
    assert Manifest.load(tmp_path).metadata == {"x": {"class_names": ["a", "b"]}}


def test_a_manifest_is_not_replaced(tmp_path):
    write_numbers(tmp_path, *NAMES)
    found = open_dataset(tmp_path)
    save_manifest(found)
    for contents in (found, open_dataset(tmp_path)):
        with pytest.raises(WriteError, match="expected a dataset without a manifest"):
            save_manifest(contents)


def test_files_of_several_folders_are_refused(tmp_path):
    write_numbers(tmp_path, "train/a.tfrecord", "val/a.tfrecord")
    with pytest.raises(WriteError, match=r"in the folder of the manifest, got 'train/a\.tfrecord'"):
        save_manifest(open_dataset(tmp_path))
    assert not (tmp_path / "datum.json").exists()


def test_files_of_several_compressions_are_refused(tmp_path):
    write_file(tmp_path / "a.tfrecord", [{"x": 1}])
    write_file(tmp_path / "b.tfrecord", [{"x": 1}], compression="gzip")
    with pytest.raises(WriteError, match="compressed in one way, got None and gzip"):
        save_manifest(open_dataset(tmp_path))


def test_names_that_no_manifest_can_hold_are_refused_before_anything_is_read(tmp_path):
    (path,) = write_numbers(tmp_path, "what?.tfrecord")
    found = open_dataset(tmp_path)
    path.unlink()
    with pytest.raises(ManifestError, match="expected a file of the same folder"):
        save_manifest(found)


def test_shards_that_are_not_as_told_are_refused(tmp_path):
    write_prepared(tmp_path)
    path = write_file(tmp_path / "d-train.tfrecord-00000-of-00001", [{"x": 1}, {"x": 2}])
    found = open_dataset(tmp_path, schema={"x": Feature("int64")})
    with pytest.raises(CorruptRecordError, match=r"expected 1 record, as dataset_info.json says"):
        save_manifest(found)
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(CorruptRecordError, match="bytes, .*, got"):
        save_manifest(found)
    assert not (tmp_path / "datum.json").exists()


def test_a_manifest_that_was_made_meanwhile_is_not_replaced(tmp_path, monkeypatch):
    write_numbers(tmp_path, *NAMES)
    found = open_dataset(tmp_path)
    made_meanwhile = lambda *_: (tmp_path / "datum.json").write_text("x")  # noqa: E731
    monkeypatch.setattr(detect, "_check_place", made_meanwhile)
    with pytest.raises(WriteError, match=r"datum.json: expected to write the manifest, got"):
        save_manifest(found)
    assert (tmp_path / "datum.json").read_text() == "x"
