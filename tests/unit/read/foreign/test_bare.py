import csv

import numpy as np
import pytest

from datum import Feature, Schema
from datum._read.foreign.bare import open_files
from datum._read.foreign.detect import open_dataset
from datum.errors import CorruptRecordError, DatumError, SchemaError
from datum.format import frame
from tests.unit.read.foreign.files_written import numbers, split_of, write_file, write_numbers

EXAMPLES = ("Example", "SequenceExample")


def test_splits_are_sorted_and_files_stay_in_their_order(tmp_path):
    paths = write_numbers(tmp_path, "c", "b", "a", "d")
    given = dict(zip(paths, ["odd", "train", "train", "test"], strict=True))
    contents = open_files(tmp_path, given, None)
    assert list(numbers(contents).items()) == [("train", [1, 2]), ("test", [3]), ("odd", [0])]
    assert [shard.name for shard in contents.splits["train"].shards] == ["b", "a"]
    assert contents.writer == "tfrecord files"
    assert not contents.is_published


def test_a_schema_that_is_given_is_not_looked_for(tmp_path):
    paths = [
        write_file(tmp_path / "a", [{"x": 1, "y": np.float32(0.5)}]),
        write_file(tmp_path / "b", [{"x": "text", "y": np.float32(1.5)}]),
    ]
    schema = Schema({"y": Feature("float32")})
    contents = open_files(tmp_path, dict.fromkeys(paths, "train"), schema)
    assert contents.schema == schema
    assert [row["y"] for row in split_of(contents, "train")] == [0.5, 1.5]


def test_files_of_several_compressions_are_read_together(tmp_path):
    given = {}
    for at, compression in enumerate(("gzip", None, "zlib")):
        path = tmp_path / f"{at}"
        given[write_file(path, [{"x": at}], compression=compression)] = "train"
    contents = open_files(tmp_path, given, None)
    assert contents.compression is None
    assert [s.compression for s in contents.splits["train"].shards] == ["gzip", None, "zlib"]
    assert numbers(contents) == {"train": [0, 1, 2]}


def test_files_without_records_need_a_schema(tmp_path):
    path = tmp_path / "a"
    path.touch()
    with pytest.raises(
        SchemaError, match="/a: expected records.*got a file without any.*\nhint: list"
    ):
        open_files(tmp_path, {path: "train"}, None)
    contents = open_files(tmp_path, {path: "train"}, Schema({"x": Feature("int64")}))
    assert contents.splits["train"].records == 0
    assert list(split_of(contents, "train")) == []


def test_records_without_features_are_refused(tmp_path):
    path = write_file(tmp_path / "a", [{}, {}], {})
    with pytest.raises(SchemaError, match=r"with features, got 2 record\(s\) without"):
        open_files(tmp_path, {path: "train"}, None)


def test_every_file_of_other_writers_opens_or_is_refused(shared_data):
    folder = shared_data / "foreign_tfrecords"
    with (folder / "MANIFEST.tsv").open(encoding="utf-8") as manifest:
        entries = list(csv.DictReader(manifest, delimiter="\t"))
    assert len(entries) > 50
    for entry in entries:
        path = folder / entry["file"]
        if entry["payload"] not in EXAMPLES:
            with pytest.raises(DatumError):
                open_dataset(path)
            continue
        contents = open_dataset(path)
        ((name, split),) = contents.splits.items()
        assert split.records == int(entry["records"]), path.name
        compression = None if entry["compression"] == "none" else entry["compression"].lower()
        assert contents.compression == compression, path.name
        read = split_of(contents, name).batches(256, threads=1)
        assert sum(len(next(iter(batch.values()))) for batch in read) == split.records, path.name


def test_the_files_of_one_writer_open_together(shared_data):
    pattern = shared_data / "foreign_tfrecords" / "*baskerville*.tfr"
    contents = open_dataset(pattern)
    records = {name: split.records for name, split in contents.splits.items()}
    assert records == {"train": 4, "valid": 12, "test": 4}
    assert contents.compression == "zlib"


def test_damaged_files_open_with_what_is_sound(tmp_path):
    sound, torn = write_numbers(tmp_path, "a", "b")
    torn.write_bytes(torn.read_bytes() * 2 + b"torn")
    contents = open_files(tmp_path, {sound: "train", torn: "val"}, None, skips_damage=True)
    assert [split.records for split in contents.splits.values()] == [1, 2]
    assert [(one.file, one.kind) for one in contents.damage] == [(str(torn), "torn header")]
    assert contents.left_out == {"b": ()}


def test_missing_files_are_listed_with_the_damage(tmp_path):
    (path,) = write_numbers(tmp_path, "a")
    gone = tmp_path / "gone"
    contents = open_files(tmp_path, {path: "train"}, None, skips_damage=True, missing=[gone])
    assert [(one.file, one.kind) for one in contents.damage] == [(str(gone), "missing file")]


@pytest.mark.parametrize("schema", [None, Schema({})])
def test_files_without_a_sound_record_are_no_record_files(tmp_path, schema):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"something else altogether")
    with pytest.raises(CorruptRecordError, match="expected a TFRecord file, got other bytes"):
        open_files(tmp_path, {path: "train"}, schema, skips_damage=True)


def test_files_of_no_examples_at_all_are_refused_as_such(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(frame([b"\xff\xff", b"\xfe"]).to_bytes())
    with pytest.raises(CorruptRecordError, match=r"record 0 at byte 0: expected a tf\.train"):
        open_files(tmp_path, {path: "train"}, None, skips_damage=True)
    contents = open_files(tmp_path, {path: "train"}, Schema({}), skips_damage=True)
    assert contents.splits["train"].records == 2
    assert contents.damage == ()
