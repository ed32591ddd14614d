import os
import re

import pytest

from datum import Feature, Schema
from datum._read.foreign.detect import open_dataset
from datum.errors import CorruptRecordError, ManifestError
from datum.format import Manifest
from datum.format.durable import hold_folder
from tests.unit.read.foreign.files_written import numbers, write_file, write_numbers
from tests.unit.read.written import write_numbered

INFO = '{"name": "d", "splits": [{"name": "train", "shardLengths": ["1"]}]}'


def write_prepared(folder, x=0):
    """A dataset of the form of TFDS, with one record."""
    write_file(folder / "d-train.tfrecord-00000-of-00001", [{"x": x}])
    (folder / "dataset_info.json").write_text(INFO)


# This library's own.


def test_a_published_dataset_is_as_its_manifest_says(tmp_path):
    manifest = write_numbered(tmp_path)
    for path in (tmp_path, tmp_path / "datum.json", str(tmp_path)):
        contents = open_dataset(path)
        assert (contents.folder, contents.writer) == (tmp_path, "datum")
        assert contents.splits == manifest.splits
        assert contents.is_published


def test_a_manifest_wins_over_all_else(tmp_path):
    write_numbered(tmp_path)
    for name in ("shard_info.json", "datum_to_type_and_shape_mapping.json", "features.json"):
        (tmp_path / name).write_text("not JSON")
    assert open_dataset(tmp_path).writer == "datum"


def test_a_damaged_manifest_is_not_passed_over(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / "datum.json").write_text("{}")
    with pytest.raises(ManifestError, match=r"datum\.json"):
        open_dataset(tmp_path)


def test_a_published_dataset_can_be_read_by_another_schema(tmp_path):
    write_numbered(tmp_path)
    contents = open_dataset(tmp_path, schema={"x": Feature("int64")})
    assert list(contents.schema) == ["x"]
    assert numbers(contents)["val"] == [10, 11, 12]


# Files.


def test_one_file_is_a_dataset(tmp_path):
    (path,) = write_numbers(tmp_path, "val-00003-of-00004.tfrecord")
    contents = open_dataset(path)
    assert numbers(contents) == {"val": [0]}
    assert contents.folder == tmp_path


def test_a_list_of_files_reads_what_is_there(tmp_path):
    names = ["a/train-00000-of-00004", "b/val-0.tfr", "b/x-1.tfrecord"]
    paths = write_numbers(tmp_path, *names)
    contents = open_dataset([str(paths[0]), *paths[1:]])
    assert numbers(contents) == {"train": [0, 2], "val": [1]}
    assert contents.folder == tmp_path
    assert [shard.name for shard in contents.splits["val"].shards] == ["b/val-0.tfr"]


def test_a_list_keeps_its_order_and_a_folder_goes_by_numbers(tmp_path):
    paths = write_numbers(tmp_path, "x-9.tfrecord", "x-10.tfrecord")
    assert numbers(open_dataset(reversed(paths))) == {"train": [1, 0]}
    for path in (tmp_path, tmp_path / "x-*"):
        assert numbers(open_dataset(path)) == {"train": [0, 1]}


def test_relative_and_absolute_paths_go_together(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = write_numbers(tmp_path, "a/0.tfrecord", "b/1.tfrecord")
    assert numbers(open_dataset(["a/0.tfrecord", paths[1]])) == {"train": [0, 1]}
    assert numbers(open_dataset(["a/0.tfrecord"])) == {"train": [0]}
    assert numbers(open_dataset("b/1.tfrecord")) == {"train": [1]}


def test_a_list_must_name_files_and_each_once(tmp_path):
    (path,) = write_numbers(tmp_path, "a.tfrecord")
    with pytest.raises(ManifestError, match="expected paths of TFRecord files, got none"):
        open_dataset([])
    with pytest.raises(ManifestError, match="expected a TFRecord file in a list, got a folder"):
        open_dataset([path, tmp_path])
    with pytest.raises(ManifestError, match="expected each file once"):
        open_dataset([path, tmp_path / "." / "a.tfrecord"])
    with pytest.raises(ManifestError, match="gone: expected a TFRecord file to read"):
        open_dataset([path, tmp_path / "gone"])


def test_a_pattern_reads_what_fits(tmp_path):
    write_numbers(tmp_path, "train-0-of-2.tfr", "train-1-of-2.tfr", "val-0.tfr", "sub/val-1.tfr")
    (tmp_path / "train-0-of-2.json").write_text("{}")
    (tmp_path / "train-0-of-2.index").write_text("of another kind")
    assert numbers(open_dataset(tmp_path / "train-*")) == {"train": [0, 1]}
    assert numbers(open_dataset(str(tmp_path / "train-0*"))) == {"train": [0]}
    assert numbers(open_dataset(tmp_path / "**" / "val-?.tfr")) == {"val": [3, 2]}
    with pytest.raises(ManifestError, match="expected a pattern of TFRecord files, got none"):
        open_dataset(tmp_path / "test-*")


def test_a_pattern_of_shards_that_are_lost_is_refused(tmp_path):
    write_numbers(tmp_path, "train-0-of-2.tfr")
    with pytest.raises(ManifestError, match=r"there is no train-1-of-2\.tfr"):
        open_dataset(tmp_path / "train-*")


def test_a_file_may_be_named_like_a_pattern(tmp_path):
    (path,) = write_numbers(tmp_path, "train[1].tfrecord")
    assert numbers(open_dataset(path)) == {"train": [0]}


# Folders of files.


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
def test_the_splits_of_bare_files_are_those_of_their_names(tmp_path, compression):
    names = [
        "train-00000-of-00002.tfrecord",
        "train-00001-of-00002.tfrecord",
        "test.record",
        "rest",
    ]
    write_numbers(tmp_path, *names, compression=compression)
    for name in ("README.md", "labels.txt", "train-00000-of-00002.index", "_SUCCESS", ".x.crc"):
        (tmp_path / name).write_text("beside the records")
    contents = open_dataset(tmp_path)
    assert numbers(contents) == {"train": [3, 0, 1], "test": [2]}
    assert contents.compression == compression
    assert contents.folder == tmp_path
    assert contents.schema == Schema({"x": Feature("int64")})


def test_a_file_that_is_damaged_is_named(tmp_path):
    _, second = write_numbers(tmp_path, "train-0.tfrecord", "train-1.tfrecord")
    data = second.read_bytes()
    for damaged in (data[:5], b"\0" + data[1:], data[:-1], data + data[:7]):
        second.write_bytes(damaged)
        with pytest.raises(CorruptRecordError, match=re.escape(str(second))):
            open_dataset(tmp_path)
    second.unlink()
    assert numbers(open_dataset(tmp_path)) == {"train": [0]}


def test_shards_that_are_missing_in_a_folder_are_named(tmp_path):
    write_numbers(tmp_path, "train-00000-of-00003.tfrecord", "train-00002-of-00003.tfrecord")
    with pytest.raises(ManifestError, match=r"no train-00001-of-00003\.tfrecord\nhint: .*a list"):
        open_dataset(tmp_path)
    assert numbers(open_dataset(sorted(tmp_path.iterdir()))) == {"train": [0, 1]}


def test_folders_of_splits_are_read_one_level_down(tmp_path):
    names = ["train/a-1.tfrecord", "train/val-2.tfrecord", "Split-eval/data-00000-of-00001.gz"]
    write_numbers(tmp_path, *names)
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.jpg").touch()
    contents = open_dataset(tmp_path)
    assert numbers(contents) == {"train": [0, 1], "eval": [2]}
    assert contents.splits["eval"].shards[0].name == "Split-eval/data-00000-of-00001.gz"
    assert numbers(open_dataset(tmp_path / "Split-eval")) == {"eval": [2]}


def test_two_folders_of_one_split_are_refused(tmp_path):
    write_numbers(tmp_path, "train/a.tfrecord", "Split-train/a.tfrecord")
    with pytest.raises(ManifestError, match="expected one folder for split 'train'"):
        open_dataset(tmp_path)


def test_a_split_folder_with_shards_missing_is_refused(tmp_path):
    write_numbers(tmp_path, "train/a-0-of-2")
    with pytest.raises(ManifestError, match="there is no a-1-of-2"):
        open_dataset(tmp_path)


def test_files_in_the_folder_itself_come_before_folders(tmp_path):
    write_numbers(tmp_path, "a.tfrecord", "backup/a.tfrecord")
    assert numbers(open_dataset(tmp_path)) == {"train": [0]}


# Nothing of the kind.


def test_a_folder_with_nothing_says_what_was_looked_for(tmp_path):
    for name in ("notes.txt", "weights.bin"):
        (tmp_path / name).write_text("no records")
    (tmp_path / "sub").mkdir()
    with pytest.raises(ManifestError) as caught:
        open_dataset(tmp_path)
    message = str(caught.value)
    for name in ("datum.json", "shard_info.json", "dataset_info.json", "TFRecord files", "\nhint:"):
        assert name in message


def test_datasets_in_folders_are_pointed_at(tmp_path):
    write_numbered(tmp_path / "photos")
    write_numbers(tmp_path, "train/a.tfrecord")
    with pytest.raises(ManifestError, match=r"got a folder of some\nhint: load one .*photos"):
        open_dataset(tmp_path)


def test_a_write_that_did_not_finish_is_pointed_at(tmp_path):
    (tmp_path / "photos").mkdir()
    os.close(hold_folder(tmp_path / ".photos.partial"))
    with pytest.raises(ManifestError, match=r"hint: a write did not finish.*\.photos\.partial"):
        open_dataset(tmp_path / "photos")


@pytest.mark.parametrize(
    "name", ["missing", "missing.json", "nul\0", "nul\0*", "x" * 5000, "x" * 5000 + "*"]
)
def test_what_is_not_there_is_an_error(tmp_path, name):
    for path in (f"{tmp_path}/{name}", [f"{tmp_path}/{name}"]):
        with pytest.raises(ManifestError):
            open_dataset(path)


def test_a_home_that_is_not_there_is_an_error():
    with pytest.raises(ManifestError, match="expected a path"):
        open_dataset("~nobody_of_this_name/data")


def test_a_file_that_holds_no_records_is_refused(tmp_path):
    (tmp_path / "a.tfrecord").write_text("some text that is no record")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(CorruptRecordError, match="expected a TFRecord file"):
        open_dataset(tmp_path / "a.tfrecord")
    with pytest.raises(ManifestError, match="other"):
        open_dataset(tmp_path / "other.json")


# TFDS, as far as it is about folders.


@pytest.mark.parametrize("below", ["1.0.0", "config/1.0.0"])
def test_the_one_version_below_is_opened(tmp_path, below):
    write_prepared(tmp_path / below)
    for path in (tmp_path, tmp_path / below, tmp_path / below / "dataset_info.json"):
        contents = open_dataset(path)
        assert (contents.folder, contents.writer) == (tmp_path / below, "tfds")
        assert numbers(contents) == {"train": [0]}


def test_several_versions_are_named(tmp_path):
    write_prepared(tmp_path / "1.0.0")
    write_prepared(tmp_path / "config" / "2.0.0")
    with pytest.raises(ManifestError, match=r"got 1\.0\.0, config/2\.0\.0\nhint: load one of them"):
        open_dataset(tmp_path)


def test_only_features_are_told(tmp_path):
    write_file(tmp_path / "d-train.tfrecord-00000-of-00001", [{"title": "a"}, {"title": "b"}])
    write_file(tmp_path / "d-test.tfrecord-00000-of-00001", [{"title": "c"}])
    package = "tensorflow_datasets.core.features"
    (tmp_path / "features.json").write_text(
        f'{{"pythonClassName": "{package}.features_dict.FeaturesDict", "featuresDict": {{'
        f'"features": {{"title": {{"pythonClassName": "{package}.text_feature.Text",'
        '"text": {}}}}}'
    )
    contents = open_dataset(tmp_path)
    assert contents.schema == Schema({"title": Feature("str")})
    assert {name: split.records for name, split in contents.splits.items()} == {
        "train": 2,
        "test": 1,
    }
    assert contents.writer == "tfds"


def test_a_manifest_file_of_any_name_is_one(tmp_path):
    manifest = write_numbered(tmp_path)
    (tmp_path / "datum.json").rename(tmp_path / "other.json")
    assert (
        open_dataset(tmp_path / "other.json").splits
        == Manifest.load(tmp_path / "other.json").splits
        == manifest.splits
    )


@pytest.mark.parametrize("form", ["folder", "pattern", "list", "splits", "file"])
def test_damage_is_skipped_in_every_kind_of_path(tmp_path, form):
    folder = tmp_path / "train" if form == "splits" else tmp_path
    path = write_file(folder / "a.tfrecord", [{"x": 0}, {"x": 1}])
    path.write_bytes(path.read_bytes()[:-1])
    given = {"pattern": folder / "*.tfrecord", "list": [path], "file": path}.get(form, tmp_path)
    with pytest.raises(CorruptRecordError):
        open_dataset(given)
    contents = open_dataset(given, skips_damage=True)
    assert contents.splits["train"].records == 1
    assert [one.kind for one in contents.damage] == ["torn payload"]


def test_a_set_that_is_not_whole_opens_where_damage_is_skipped(tmp_path):
    write_numbers(tmp_path, "x-00000-of-00003", "x-00002-of-00003")
    contents = open_dataset(tmp_path, skips_damage=True)
    assert contents.splits["train"].records == 2
    assert [one.file for one in contents.damage] == [str(tmp_path / "x-00001-of-00003")]


def test_a_first_record_that_is_damaged_does_not_hide_the_others(tmp_path):
    path = write_file(tmp_path / "a.tfrecord", [{"x": 0}, {"x": 1}])
    path.write_bytes(b"?" + path.read_bytes()[1:])
    for given in (tmp_path, path):
        assert open_dataset(given, skips_damage=True).splits["train"].records == 1
