"""TFRecord files without a description."""

import csv
import gzip
import os
import zlib
from pathlib import Path

import numpy as np
import pytest

from datum import Feature, Schema
from datum._read.foreign.bare import (
    common_compression,
    merge_found,
    open_files,
    relative_name,
    scan_files,
)
from datum._read.foreign.detect import open_dataset
from datum._read.foreign.record_files import (
    is_beside,
    list_folder,
    select_record_files,
    sniff,
)
from datum.errors import CorruptRecordError, DatumError, ManifestError, SchemaError
from datum.format import ShardInfo, frame
from tests.unit.read.foreign.files_written import numbers, split_of, write_file, write_numbers

RECORDS = frame([b"one", b"two"]).to_bytes()


CONTENTS = {
    "records": (RECORDS, "records"),
    "a header": (RECORDS[:12], "records"),
    "gzip": (gzip.compress(RECORDS), "records"),
    "gzip, cut": (gzip.compress(RECORDS)[:-9], "records"),
    "zlib": (zlib.compress(RECORDS), "records"),
    "gzip after an empty member": (gzip.compress(b"") + gzip.compress(RECORDS), "records"),
    "empty": (b"", "nothing"),
    "gzip of nothing": (gzip.compress(b""), "nothing"),
    "a header, cut": (RECORDS[:11], "other"),
    "a byte before": (b"x" + RECORDS, "other"),
    "text": (b"plain text that is longer than a header", "other"),
    "gzip of text": (gzip.compress(b"plain text that is longer than a header"), "other"),
    "zlib of text": (zlib.compress(b"some"), "other"),
    "gzip of a header, cut": (gzip.compress(RECORDS)[:12], "other"),
    "like gzip": (b"\x1f\x8b\x08" + bytes(100), "other"),
}


# By name: gzip puts the time into its header, and xdist wants the same names of every process.
@pytest.mark.parametrize("name", CONTENTS)
def test_a_file_is_told_by_its_beginning(tmp_path, name):
    content, kind = CONTENTS[name]
    path = tmp_path / "file"
    path.write_bytes(content)
    assert sniff(path) == kind


def test_what_cannot_be_read_is_an_error_naming_it(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "missing"):
        with pytest.raises(ManifestError, match=f"{name}: expected a TFRecord file to read"):
            sniff(tmp_path / name)


@pytest.mark.parametrize(
    "name",
    [
        *("train.index", "datum.json", "labels.txt", "label_map.pbtxt", "rows.csv.gz", "a.jpg"),
        *("_SUCCESS", ".hidden.tfrecord", "README", "LICENSE", "README.md", "data.tar.gz"),
        *("x-00000-of-00002.array_record", "Notes.TXT"),
    ],
)
def test_files_beside_records_are_known_by_their_names(name):
    assert is_beside(name)


@pytest.mark.parametrize(
    "name",
    ["train-00000-of-00004", "a.tfrecord", "a.tfr", "a.gz", "a.record", "txt", "data", "json"],
)
def test_other_files_may_hold_records(name):
    assert not is_beside(name)


def test_a_folder_is_listed_in_natural_order(tmp_path):
    for name in ("x-10", "x-9", ".hidden", "_tmp", "a.json"):
        (tmp_path / name).touch()
    for name in ("val", "train", ".git", "_work", "lost+found"):
        (tmp_path / name).mkdir()
    files, folders = list_folder(tmp_path)
    assert [path.name for path in files] == ["x-9", "x-10"]
    assert [path.name for path in folders] == ["train", "val"]


def make(folder, contents):
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in contents]


def test_record_files_are_selected_whatever_their_names(tmp_path):
    contents = {"a": RECORDS, "b.dat": gzip.compress(RECORDS), "c.tfrecord": b"", "d": b""}
    found = select_record_files(make(tmp_path, contents))
    assert [path.name for path in found] == ["a", "b.dat", "c.tfrecord"]


@pytest.mark.parametrize("name", ["notes", "b.tfrecord", "weights.bin"])
def test_any_other_file_among_record_files_is_an_error_naming_it(tmp_path, name):
    files = make(tmp_path, {"a.tfrecord": RECORDS, name: b"something else"})
    with pytest.raises(CorruptRecordError, match=f"{name}: expected a TFRecord file, got other"):
        select_record_files(files)


def test_a_file_named_like_records_is_an_error_even_alone(tmp_path):
    for name in ("a.tfrecord", "a.tfr", "a.record", "a.tfrecords.gz", "nodes-00000-of-00001"):
        with pytest.raises(CorruptRecordError, match="expected a TFRecord file"):
            select_record_files(make(tmp_path, {name: b"something else"}))


def test_other_files_alone_are_no_record_files(tmp_path):
    assert select_record_files(make(tmp_path, {"weights.bin": b"something", "empty": b""})) == []


def test_files_that_may_be_damaged_are_selected_when_damage_is_skipped(tmp_path):
    sound, damaged = tmp_path / "a", tmp_path / "b.tfrecord"
    sound.write_bytes(frame([b"x"]).to_bytes())
    damaged.write_bytes(bytes(50))
    assert select_record_files([sound, damaged], skips_damage=True) == [sound, damaged]
    other = tmp_path / "notes"
    other.write_text("nothing of that kind")
    assert select_record_files([damaged], skips_damage=True) == [damaged]
    assert select_record_files([other], skips_damage=True) == []


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


STEPS = {"x": Feature("int64", (None,), sequence=True)}


@pytest.mark.parametrize("discovers", [True, False])
@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
def test_records_are_counted(tmp_path, discovers, compression):
    paths = [
        write_file(
            tmp_path / f"{count}",
            [{"x": 1}] * count,
            {"x": Feature("int64")},
            compression=compression,
        )
        for count in (0, 1, 5000)
    ]
    files = scan_files(paths, discovers=discovers)
    assert [file.records for file in files] == [0, 1, 5000]
    assert [file.bytes for file in files] == [path.stat().st_size for path in paths]
    assert files[2].compression == compression
    assert (files[2].found is None) is not discovers


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_an_index_of_others_does_not_count(tmp_path, compression):
    path = write_file(tmp_path / "a.tfrecord", [{"x": 1}] * 3, compression=compression)
    (tmp_path / "index").mkdir()
    (tmp_path / "index/of-a.index").write_text("0 17\n17 17\n")
    assert scan_files([path], discovers=False)[0].records == 3


@pytest.mark.parametrize("discovers", [True, False])
def test_damage_is_told_with_its_file(tmp_path, discovers):
    sound, torn = write_file(tmp_path / "a", [{"x": 1}]), write_file(tmp_path / "b", [{"x": 1}] * 9)
    torn.write_bytes(torn.read_bytes()[:-3])
    with pytest.raises(CorruptRecordError, match=r"b: record 8 at byte \d+: .*\nhint: restore"):
        scan_files([sound, torn], discovers=discovers)
    torn.write_bytes(b"no records at all")
    with pytest.raises(CorruptRecordError, match="b: expected a TFRecord file, got other bytes"):
        scan_files([sound, torn], discovers=discovers)


def test_a_damaged_payload_is_found_when_records_are_looked_through(tmp_path):
    path = write_file(tmp_path / "a", [{"x": 1}] * 3)
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptRecordError, match="record 2 .* payload checksum"):
        scan_files([path], discovers=True)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ManifestError, match="gone: expected a TFRecord file to read"):
        scan_files([tmp_path / "gone"], discovers=False)


def test_records_of_other_messages_are_told_with_their_file(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(frame([b"\x0a\x03abc"]).to_bytes())
    with pytest.raises((SchemaError, CorruptRecordError), match="a: .*tf.train.Example"):
        scan_files([path], discovers=True)


def scan(tmp_path, *parts):
    paths = [write_file(tmp_path / f"{at}", *part) for at, part in enumerate(parts)]
    return scan_files(paths, discovers=True)


def test_features_of_all_files_are_merged(tmp_path):
    files = scan(
        tmp_path,
        ([{"x": 1, "only": "a", "v": [1, 2]}],),
        ([{"x": 2, "v": [1, 2, 3]}, {"x": 3, "v": [1, 2]}],),
    )
    merged = merge_found(files)
    assert merged.records == 3
    assert merged.schema(text=True) == Schema(
        {
            "only": Feature("str", optional=True),
            "v": Feature("int64", (None,)),
            "x": Feature("int64"),
        }
    )


def test_two_kinds_are_told_with_a_file_of_each(tmp_path):
    files = scan(tmp_path, ([{"x": 1}],), ([{"x": 2}],), ([{"x": 0.5}],))
    with pytest.raises(SchemaError) as caught:
        merge_found(files)
    first, last = tmp_path / "0", tmp_path / "2"
    assert str(caught.value).startswith(
        "feature 'x': expected one kind in all records,"
        f" got float (in {last}) and int64 (in {first})\nhint: "
    )
    assert caught.value.feature == "x"


def test_a_feature_that_is_a_sequence_in_some_files_only_is_refused(tmp_path):
    files = scan(tmp_path, ([{"x": 1}],), ([{"x": [1]}], STEPS))
    with pytest.raises(SchemaError, match=r"'x': expected one place .* \(in .*1\) and none \(in"):
        merge_found(files)


def test_a_feature_in_both_places_of_one_record_is_the_sequence(tmp_path):
    schema = {"x": Feature("int64"), "y": Feature("int64", (None,), sequence=True, keys="x")}
    merged = merge_found(scan(tmp_path, ([{"x": 1, "y": [2]}], schema)))
    assert merged.schema()["x"].sequence


def test_shards_are_named_from_their_folder_on():
    assert relative_name(Path("a/b/c"), Path("a")) == "b/c"
    assert relative_name(Path("a/c"), Path("b")) == str(Path("a/c").absolute())


def test_empty_shards_have_no_say_in_the_compression():
    plain, packed = ShardInfo("a", 1, 20, None), ShardInfo("b", 1, 20, None, "gzip")
    empty = ShardInfo("c", 0, 0, None)
    assert common_compression([packed, empty, packed]) == "gzip"
    assert common_compression([plain, packed]) is None
    assert common_compression([]) is None


@pytest.mark.parametrize("discovers", [True, False])
def test_damage_is_listed_where_it_is_skipped(tmp_path, discovers):
    path = write_file(tmp_path / "a", [{"x": n} for n in range(9)])
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data[:-3])
    (file,) = scan_files([path], discovers=discovers, skips_damage=True)
    assert file.records == 7
    assert [(one.record, one.kind) for one in file.damage] == [
        (0, "payload checksum"),
        (8, "torn payload"),
    ]
    assert (file.found is None) is not discovers


def test_records_that_are_no_messages_are_listed_with_other_damage(tmp_path):
    path = write_file(tmp_path / "a", [{"x": n} for n in range(3)])
    path.write_bytes(path.read_bytes() + frame([b"\xff\xff", b""]).to_bytes()[:-2])
    (file,) = scan_files([path], discovers=True, skips_damage=True)
    assert file.records == 3
    assert [(one.record, one.kind) for one in file.damage] == [
        (3, "malformed"),
        (4, "torn payload"),
    ]
    assert file.damage[0].end == file.damage[1].offset


def test_progress_is_of_all_files(tmp_path):
    paths = [write_file(tmp_path / f"{n}", [{"x": n}] * 3000) for n in range(3)]
    total = sum(path.stat().st_size for path in paths)
    seen = []
    scan_files(paths, discovers=True, progress=lambda *given: seen.append(given))
    assert seen == sorted(seen)
    assert seen[-1] == (total, total)


def test_an_interrupt_is_not_kept(tmp_path):
    paths = [write_file(tmp_path / f"{n}", [{"x": n}] * 10) for n in range(20)]

    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scan_files(paths, discovers=True, threads=2, progress=interrupt)
