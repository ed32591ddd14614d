"""Who wrote a dataset, and what its files are called."""

import os
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import datum
from datum import CorruptRecordError, Feature, Schema
from datum._read.foreign import detect
from datum._read.foreign.detect import open_dataset, save_manifest
from datum._read.foreign.record_files import (
    check_member,
    check_sets,
    expect,
    natural_order,
    read_json,
    size_of,
    split_of_file,
    split_of_folder,
    split_order,
)
from datum._read.verify import find_notes, verify_shards
from datum.errors import ManifestError, WriteError
from datum.format import Manifest
from datum.format.durable import hold_folder
from tests.unit.read.foreign.files_written import numbers, write_file, write_numbers
from tests.unit.read.written import write_numbered
from tests.unit.write.datasets import picture

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
    with pytest.raises(ManifestError, match="expected a pattern of TFRecord files, got no"):
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
    with pytest.raises(ManifestError, match=r"got a folder of datasets\nhint: load one .*photos"):
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


@pytest.mark.parametrize(
    ("path", "split"),
    [
        ("train-00000-of-00004.tfrecord", "train"),
        ("validation-00003-of-00128", "validation"),
        ("train_0.tfrecords", "train"),
        ("valid-1.tfr", "valid"),
        ("128_valid.tfrecords", "valid"),
        ("nsynth-train.tfrecord", "train"),
        ("test.record", "test"),
        ("dmlab-train.tfrecord-00000-of-00001", "train"),
        ("test_set-train.tfrecord", "train"),
        ("golden.training_examples.tfrecord.gz-00001-of-00003", "training"),
        ("val2017.tfrecord", "val"),
        ("Train.tfrecord", "train"),
        ("dev.tfrecord", "dev"),
        ("trainer.tfrecord", "train"),
        ("contest.tfrecord", "train"),
        ("evaluate_me.tfrecord", "train"),
        ("data.tfrecord", "train"),
        ("Split-eval/data_tfrecord-00000-of-00012.gz", "eval"),
        ("Split-extra/data_tfrecord-00000-of-00012.gz", "extra"),
        ("test/a.tfrecord", "test"),
        ("test/train-0.tfrecord", "train"),
        ("test_files/a.tfrecord", "train"),
    ],
)
def test_the_split_of_a_file_is_told_by_a_word_of_its_name(path, split):
    assert split_of_file(Path(path)) == split


def test_a_folder_that_cannot_name_a_split_is_refused():
    with pytest.raises(
        ManifestError,
        match=r"my data: expected a folder named after a split.*hint".replace(".*", "(.|\n)*"),
    ):
        split_of_folder(Path("my data"))
    with pytest.raises(ManifestError, match="'all' stands for every split"):
        split_of_folder(Path("all"))


def test_splits_of_training_come_first():
    names = ["zebra", "test", "aardvark", "validation", "train"]
    assert sorted(names, key=split_order) == ["train", "validation", "test", "aardvark", "zebra"]


def test_numbers_in_names_count_by_their_value():
    names = ["x-10-b", "x-9-b", "x-9-a", "x", "10", "9"]
    assert sorted(names, key=natural_order) == ["9", "10", "x", "x-9-a", "x-9-b", "x-10-b"]


def paths(folder, *names):
    return [folder / name for name in names]


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["a.tfrecord", "b.tfrecord"],
        ["train-00000-of-00002", "train-00001-of-00002", "val-00000-of-00001"],
        ["t-1-of-2.tfrecord", "t-2-of-2.tfrecord"],
        ["t_0-of-2.gz", "t_1-of-2.gz"],
        ["t.tfrecord.gz-00000-of-00001"],
        ["t-5-of-3"],  # of no set: it cannot be
        ["t-00000-of-00002", "t-00001-of-00002.gz"],
        ["a/t-0-of-1", "b/t-0-of-1"],
    ],
)
def test_whole_sets_of_shards_are_fine(tmp_path, names):
    check_sets(paths(tmp_path, *names))


def test_missing_shards_are_named(tmp_path):
    given = paths(tmp_path, "t-00001-of-00004.tfrecord", "t-00003-of-00004.tfrecord")
    with pytest.raises(ManifestError) as caught:
        check_sets(given)
    assert str(caught.value) == (
        f"{tmp_path}: expected all 4 shards of a set, but there is no t-00000-of-00004.tfrecord,"
        " t-00002-of-00004.tfrecord\n"
        "hint: copy them here, or load a list of the files that are here"
    )


def test_shards_that_were_not_asked_for_are_not_missing(tmp_path):
    (tmp_path / "t-1-of-2").touch()
    check_sets(paths(tmp_path, "t-0-of-2"))
    (tmp_path / "t-1-of-2").unlink()
    with pytest.raises(ManifestError, match="no t-1-of-2\n"):
        check_sets(paths(tmp_path, "t-0-of-2"))


def test_a_set_that_starts_at_one_may_lack_one_too(tmp_path):
    with pytest.raises(ManifestError, match="there is no t-2-of-3\n"):
        check_sets(paths(tmp_path, "t-1-of-3", "t-3-of-3"))


def test_a_huge_count_takes_no_time_to_refuse(tmp_path):
    with pytest.raises(ManifestError, match="expected all 999999999999999999 shards"):
        check_sets(paths(tmp_path, "t-0-of-999999999999999999"))


@pytest.mark.parametrize(
    "names",
    [
        ["t-00000-of-00001", "t-00000-of-00002", "t-00001-of-00002"],
        ["t-00000-of-00001", "t-0-of-1"],
        ["t-00000-of-00001", "t-00000-of-00001.gz"],
    ],
)
def test_shards_of_two_exports_are_refused(tmp_path, names):
    with pytest.raises(
        ManifestError, match=r"expected one set of shards, got t-00000-of-00001 and"
    ):
        check_sets(paths(tmp_path, *names))


def test_missing_shards_may_be_listed_instead(tmp_path):
    paths = [tmp_path / f"x-0000{n}-of-00009" for n in (0, 4)]
    for path in paths:
        path.touch()
    missing = check_sets(paths, may_miss=True)
    assert [path.name[:7] for path in missing] == [f"x-0000{n}" for n in (1, 2, 3, 5, 6, 7, 8)]
    assert check_sets([tmp_path / "plain.tfrecord"], may_miss=True) == []


def test_of_a_huge_set_not_all_that_is_missing_is_listed(tmp_path):
    path = tmp_path / "x-00000-of-999999999999999999"
    path.touch()
    assert len(check_sets([path], may_miss=True)) == 1000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "expected JSON, got an empty file"),
        (b"{", "line 1, column 2"),
        (b"\xff", "expected UTF-8"),
        (b"[]", r"\$: expected an object, got a list"),
        (b'{"a": 1, "a": 2}', "expected each name once"),
        (b'{"a": NaN}', "finite"),
        (b'{"a": 99999999999999999999}', "64 bits"),
        (b"[" * 100_000, "nesting"),
    ],
)
def test_json_that_is_not_sound_is_refused_naming_the_file(tmp_path, text, problem):
    path = tmp_path / "shard_info.json"
    path.write_bytes(text)
    with pytest.raises(ManifestError, match=rf"shard_info\.json: .*{problem}"):
        read_json(path)


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    for name in ("pipe.json", "missing.json"):
        with pytest.raises(ManifestError):
            read_json(tmp_path / name)


def test_an_object_is_read(tmp_path):
    (tmp_path / "x.json").write_text('{"a": [1, "b"]}')
    assert read_json(tmp_path / "x.json") == {"a": [1, "b"]}


def test_only_regular_files_have_a_size(tmp_path):
    (tmp_path / "a").write_bytes(b"123")
    assert size_of(tmp_path / "a") == 3
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "missing", ".", "x" * 5000, "nul\0"):
        assert size_of(tmp_path / name) is None


def test_a_truth_value_is_no_number():
    assert expect(3, int, "x") == 3
    assert expect(True, bool, "x") is True
    with pytest.raises(ManifestError, match="x: expected an integer, got true"):
        expect(True, int, "x")


@pytest.mark.parametrize("name", ["a", "a-00000-of-00001", "train/a.tfrecord", "..a", "a..b/c"])
def test_files_below_a_folder_are_members(name):
    assert check_member(name, "x") == name


@pytest.mark.parametrize(
    "name",
    ["", ".", "/etc/passwd", "../a", "a/../../b", "..", "a\\b", "C:a", "a\0b", "a\nb", "//host/a"],
)
def test_files_elsewhere_are_no_members(name):
    with pytest.raises(ManifestError, match="x: expected the name of a file in this folder, got"):
        check_member(name, "x")


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
    with pytest.raises(WriteError, match="files of one compression, got None and gzip"):
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


@pytest.fixture
def photos(tmp_path):
    """A dataset of images with class names, of two splits whose names tell none."""
    for label in ("cat", "dog"):
        for number in range(10):
            picture(tmp_path / "photos" / label / f"{number}.png", 10 * number)
    splits = {"first": 0.5, "second": 0.5}
    options = {"splits": splits, "shards": 3, "shuffle": False, "progress": False}
    datum.write(tmp_path / "photos", tmp_path / "out", **options)
    return tmp_path / "out"


def shards_of(folder, split):
    return sorted(folder.glob(f"{split}-*"))


def labels(split):
    return [int(record["label"]) for record in split]


@pytest.mark.parametrize("pattern", ["*.tfrecord", "first-*", "*", "first-0000[12]-*"])
def test_a_pattern_keeps_what_the_manifest_says(photos, pattern, recwarn):
    whole, found = datum.load(photos), datum.load(photos / pattern)
    assert found.schema == whole.schema
    assert found.schema["image"].encoding == "image"
    assert found.metadata == whole.metadata
    assert found.metadata["label"]["class_names"] == ["cat", "dog"]
    names = {name: [one.name for one in split.shards] for name, split in found.splits.items()}
    expected = {
        name: [shard.name for shard in split.shards if (photos / shard.name).match(pattern)]
        for name, split in whole.splits.items()
    }
    assert names == {name: shards for name, shards in expected.items() if shards}
    assert found.verify().is_sound
    assert not recwarn


def test_only_the_shards_of_a_list_count_in_its_order(photos):
    whole = datum.load(photos)
    files = shards_of(photos, "second")
    sizes = [shard.records for shard in whole.splits["second"].shards]
    found = datum.load([files[2], str(files[0])])
    assert list(found) == ["second"]
    assert found.schema == whole.schema
    records = labels(whole["second"])
    assert labels(found["second"]) == [*records[sum(sizes[:2]) :], *records[: sizes[0]]]
    batch = next(iter(found.to_numpy("second", batch_size=2)))
    assert batch["image"].shape == (2, 6, 8, 3)


def test_one_file_keeps_what_the_manifest_says(photos):
    found = datum.load(shards_of(photos, "first")[1])
    assert list(found) == ["first"]
    assert found.metadata["label"]["class_names"] == ["cat", "dog"]


def test_statistics_are_those_of_splits_that_are_whole(photos):
    whole = open_dataset(photos)
    assert dict(open_dataset(photos / "first-*").statistics) == {"first": whole.statistics["first"]}
    assert not open_dataset(shards_of(photos, "first")[:2]).statistics


def test_other_shards_are_no_strays_of_a_part(photos):
    assert find_notes(open_dataset(shards_of(photos, "first")[0])) == ()
    assert datum.load(photos / "first-*").verify().notes == ()


def test_a_schema_that_is_given_counts(photos):
    found = datum.load(photos / "first-*", schema={"label": Feature("int64")})
    assert list(found.schema) == ["label"]
    assert len(labels(found["first"])) == len(found["first"])


def test_encodings_survive_that_records_alone_do_not_tell(tmp_path):
    values = np.arange(60.0).reshape(10, 3, 2)
    columns = {"x": values, "small": values.astype(np.float16), "flag": np.arange(10) % 2 == 0}
    datum.write(columns, tmp_path / "out", shards=2, shuffle=False, progress=False)
    found = datum.load(str(tmp_path / "out" / "train-*"))
    assert found.schema == datum.load(tmp_path / "out").schema
    assert np.array_equal(np.stack([record["x"] for record in found["train"]]), values)


def test_a_shard_of_another_size_is_told(photos):
    file = shards_of(photos, "first")[0]
    file.write_bytes(file.read_bytes()[:-3])
    message = r"first-00000-of-00003\.tfrecord: expected \d+ bytes, as the manifest says, got"
    for given in (photos / "first-*", [file], file):
        with pytest.raises(CorruptRecordError, match=message):
            datum.load(given)
    assert datum.load(shards_of(photos, "first")[1:]).schema["image"].encoding == "image"


def test_what_is_sound_of_a_damaged_shard_keeps_its_class_names(photos):
    file = shards_of(photos, "first")[0]
    file.write_bytes(file.read_bytes()[:-3])
    before = len(datum.load(photos)["first"])
    with pytest.warns(UserWarning, match="left out"):
        found = datum.load(photos / "first-*", on_error="skip")
    assert len(labels(found["first"])) == before - 1
    assert found.metadata["label"]["class_names"] == ["cat", "dog"]
    assert found.schema == datum.load(photos).schema
    datum.repair(photos / "first-*", photos.parent / "repaired", progress=False)
    repaired = datum.load(photos.parent / "repaired")
    assert repaired.metadata["label"]["class_names"] == ["cat", "dog"]


def test_a_damaged_manifest_is_passed_by_with_a_warning(photos):
    (photos / "datum.json").write_text("{")
    with pytest.warns(UserWarning, match=r"read without their manifest: .*datum\.json"):
        found = datum.load(photos / "first-*")
    assert repr(found).splitlines()[0].endswith("tfrecord files)")
    assert "label" in found.schema


def test_files_that_the_manifest_does_not_name_are_read_as_they_are(photos):
    stray = photos / "more.tfrecord"
    stray.write_bytes(shards_of(photos, "first")[0].read_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = datum.load([stray, *shards_of(photos, "first")])
    assert repr(found).splitlines()[0].endswith("tfrecord files)")


def test_shards_of_several_datasets_are_read_as_they_are(photos, tmp_path):
    datum.write(tmp_path / "photos", tmp_path / "other", progress=False)
    found = datum.load([*shards_of(photos, "first"), *shards_of(tmp_path / "other", "train")])
    assert sum(split.records for split in found.splits.values()) > 20


def test_added_shards_are_described_too(tmp_path):
    for append in (False, True):
        rows = [{"x": number, "text": "a"} for number in range(5)]
        datum.write(rows, tmp_path / "out", append=append, progress=False)
    found = datum.load(tmp_path / "out" / "train*")
    assert len(found["train"]) == 10
    assert find_notes(open_dataset(tmp_path / "out" / "train*")) == ()
