import gzip
import os
import zlib

import pytest

from datum._read.foreign.record_files import (
    is_beside,
    list_folder,
    select_record_files,
    sniff,
)
from datum.errors import CorruptRecordError, ManifestError
from datum.format import frame

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
