"""`datum.verify` and its report."""

import io
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import datum
from datum import Feature, Schema, Sparse, _core
from datum._read import record_checks, shards
from datum._read import record_checks as checking
from datum._read import verify as verifying
from datum._read.foreign.detect import open_dataset
from datum._read.record_checks import (
    Findings,
    PictureChecks,
    Problem,
    RecordChecks,
    VerifyReport,
    compare_statistics,
    cut_records,
    find_fault,
    make_parser,
    slices_of,
    summarize_columns,
)
from datum._read.shards import ByteCounter, Checksum, StoppedError, WatchedFile, end_of
from datum._read.verify import find_notes, verify_path, verify_shard, verify_shards
from datum.errors import CorruptRecordError, Damage, ManifestError
from datum.format import (
    Index,
    Manifest,
    Parser,
    RecordFile,
    Records,
    RecordWriter,
    ShardInfo,
    Statistics,
    encode,
    frame,
    parse,
)
from datum.format.durable import hold_folder
from datum.reader import load
from tests.unit.read.foreign.files_written import write_file
from tests.unit.read.written import NUMBERED, numbered, write_dataset, write_numbered

SHARD = "train-00002-of-00003.tfrecord"


def problems(folder):
    return [(one.shard, one.kind, one.text) for one in load(folder).verify().problems]


def change(path, at, value):
    data = bytearray(path.read_bytes())
    data[at] = value
    path.write_bytes(data)


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
@pytest.mark.parametrize("has_index", [True, False])
def test_a_sound_dataset_has_no_problems(tmp_path, compression, has_index):
    manifest = write_numbered(tmp_path, compression=compression, has_index=has_index)
    report = load(tmp_path).verify()
    assert report.is_sound
    assert report.problems == ()
    assert (report.records, report.shards) == (13, 4)
    assert report.bytes == sum(split.bytes for split in manifest.splits.values())
    assert str(report).startswith(f"{tmp_path}: sound: 13 records, 4 shards, ")


def test_a_flipped_bit_is_told_with_its_record(tmp_path):
    write_numbered(tmp_path)
    change(tmp_path / SHARD, 80, 0xFF)
    report = load(tmp_path).verify()
    assert not report.is_sound
    assert report.records == 12
    assert report.lost == 1
    of_file, of_count, of_record = report.problems
    assert of_file.kind == "file checksum"
    assert (of_count.kind, of_count.text) == (
        "record count",
        "expected 6 records, got 5 intact ones",
    )
    assert (of_record.kind, of_record.record) == ("payload checksum", 1)
    assert (of_record.offset, of_record.end) == (52, 104)
    assert {problem.split for problem in report.problems} == {"train"}
    assert f"\n  {SHARD}: record 1 at byte 52: payload checksum: expected" in str(report)


def test_every_cut_is_told(tmp_path):
    write_numbered(tmp_path)
    path = tmp_path / SHARD
    data = path.read_bytes()
    for cut in range(len(data)):
        path.write_bytes(data[:cut])
        assert (SHARD, "size", f"expected {len(data)} bytes, got {cut}") in problems(tmp_path)


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
def test_every_changed_byte_is_told(tmp_path, compression):
    write_numbered(tmp_path, compression=compression)
    path = tmp_path / SHARD
    data = path.read_bytes()
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        assert problems(tmp_path)


def test_a_missing_shard_is_told(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / SHARD).unlink()
    assert problems(tmp_path) == [(SHARD, "missing file", "expected a file, got none")]
    assert load(tmp_path).verify().lost == 6


def test_a_folder_in_the_place_of_a_shard_is_told(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / SHARD).unlink()
    (tmp_path / SHARD).mkdir()
    ((shard, kind, text),) = problems(tmp_path)
    assert (shard, kind) == (SHARD, "unreadable file")
    assert "expected a readable file" in text


def test_an_index_of_another_shard_is_told(tmp_path):
    write_numbered(tmp_path)
    index = Index.path_for(tmp_path / SHARD)
    other = Index.path_for(tmp_path / "val-00000-of-00001.tfrecord")
    index.write_bytes(other.read_bytes())
    text = "index/of-train-00002-of-00003.index: expected the places of these records, got others"
    assert problems(tmp_path) == [(SHARD, "index", text)]


def test_a_damaged_index_is_told(tmp_path):
    write_numbered(tmp_path)
    change(Index.path_for(tmp_path / SHARD), 50, 1)
    ((shard, kind, text),) = problems(tmp_path)
    assert (shard, kind) == (SHARD, "index")
    assert text.startswith("index/of-train-00002-of-00003.index: expected an index of records")
    assert "\n" not in text


def test_another_compression_is_told(tmp_path):
    manifest = write_numbered(tmp_path, compression="gzip")
    type(manifest)(manifest.schema, {"val": manifest.splits["val"]}, compression="zlib").save(
        tmp_path
    )
    assert problems(tmp_path) == [
        ("val-00000-of-00001.tfrecord", "compression", "expected zlib, got gzip")
    ]


def test_much_damage_is_told_in_short(tmp_path, monkeypatch):
    monkeypatch.setattr("datum._read.record_checks.MAX_LISTED", 2)
    write_numbered(tmp_path)
    for at in (20, 80, 120, 180):
        change(tmp_path / SHARD, at, 0xFF)
    found = problems(tmp_path)
    assert sum(kind == "payload checksum" for _, kind, _ in found) == 2
    assert found[-1] == (SHARD, "more", "2 more problems of records")


@pytest.mark.usefixtures("permissions_count")
def test_a_shard_that_may_not_be_read_is_told(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / SHARD).chmod(0)
    ((_, kind, text),) = problems(tmp_path)
    assert kind == "unreadable file"
    assert "Permission denied" in text


def test_the_report_is_the_same_for_any_number_of_threads(tmp_path):
    write_numbered(tmp_path)
    for at in (20, 80):
        change(tmp_path / SHARD, at, 0xFF)
    (tmp_path / "val-00000-of-00001.tfrecord").unlink()
    dataset = load(tmp_path)
    assert dataset.verify(threads=1) == dataset.verify(threads=4)


def test_shards_that_nobody_described_are_verified_by_their_records(tmp_path):
    write_numbered(tmp_path, has_index=False)
    (tmp_path / "datum.json").unlink()
    (tmp_path / "index").mkdir(exist_ok=True)
    (tmp_path / "index/of-train-00000-of-00003.index").write_text("an index of another kind")
    contents = open_dataset(tmp_path)
    report = verify_shards(contents)
    assert (report.is_sound, report.records, report.shards) == (True, 13, 4)
    change(tmp_path / SHARD, 80, 0xFF)
    found = verify_shards(contents)
    assert [(one.kind, one.record) for one in found.problems] == [
        ("record count", None),
        ("payload checksum", 1),
    ]
    assert found.lost == 1
    (tmp_path / SHARD).write_bytes(b"")
    assert "expected 312 bytes, got 0" in [p.text for p in verify_shards(contents).problems]


def test_shards_that_were_swapped_are_told_by_name(tmp_path):
    write_dataset(tmp_path, {"train": [numbered(1, 2), numbered(3, 4), numbered(500)]})
    first, second, third = (tmp_path / f"train-0000{n}-of-00003.tfrecord" for n in range(3))
    kept = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(third.read_bytes())
    third.write_bytes(kept)
    found = [one for one in load(tmp_path).verify().problems if "content" in one.text]
    assert [(one.kind, one.text.rpartition(": the content of ")[2]) for one in found] == [
        ("file checksum", second.name),
        ("size", third.name),
        ("size", first.name),
    ]


def test_records_that_are_not_what_the_schema_says_are_told(tmp_path):
    rows = [{"x": 1, "text": "a"}, {"x": 2}, {"x": 3, "text": "c"}, {"text": "d"}]
    schema = Schema({"x": Feature("int64", optional=True), "text": Feature("str", optional=True)})
    written = write_dataset(tmp_path, {"train": [rows]}, schema)
    Manifest(NUMBERED, written.splits).save(tmp_path)
    report = load(tmp_path).verify()
    assert [(one.kind, one.record, one.feature) for one in report.problems] == [
        ("schema", 1, "text"),
        ("schema", 3, "x"),
    ]
    assert report.problems[0].text == "expected a value, got none"
    assert report.problems[0].offset == 45
    assert (report.records, report.lost) == (2, 2)


def test_a_schema_that_contradicts_itself_is_told(tmp_path):
    write_numbered(tmp_path)
    features = {"x": Feature("int64"), "y": Feature("int64", keys="x")}
    report = load(tmp_path, schema=features).verify()
    assert [one.kind for one in report.problems] == ["schema"]
    assert "use the same key 'x'" in report.problems[0].text
    assert report.records == 13


def test_images_are_decoded_only_when_asked_for(tmp_path):
    rows = [{"image": png(n)} for n in range(8)]
    rows[5]["image"] = rows[5]["image"][:-40] + bytes(40)
    schema = Schema({"image": Feature("uint8", (None, None, 1), encoding="image")})
    write_dataset(tmp_path, {"train": [rows[:3], rows[3:]]}, schema)
    dataset = load(tmp_path)
    assert dataset.verify().is_sound
    for threads in (1, 3):
        report = dataset.verify(deep=True, threads=threads)
        (problem,) = report.problems
        assert (problem.kind, problem.record, problem.feature) == ("image", 2, "image")
        assert problem.shard == "train-00001-of-00002.tfrecord"
        assert (report.records, report.lost, report.images) == (7, 1, 7)


def test_statistics_of_the_manifest_are_compared_when_asked_for(tmp_path):
    datum.write({"x": [5, 6, 7], "y": ["a", "b", "a"]}, tmp_path / "out", progress=False)
    assert load(tmp_path / "out").verify(deep=True).is_sound
    manifest = Manifest.load(tmp_path / "out")
    told = json.loads(json.dumps(manifest.statistics["train"]))
    told["features"]["x"]["numbers"]["max"] = 8
    changed = Manifest(manifest.schema, manifest.splits, statistics={"train": told})
    changed.save(tmp_path / "out")
    assert load(tmp_path / "out").verify().is_sound
    (problem,) = load(tmp_path / "out").verify(deep=True).problems
    assert (problem.kind, problem.shard, problem.split) == ("statistics", "datum.json", "train")
    assert problem.feature == "x"
    assert problem.text == ("expected greatest of numbers of 8, as the manifest says, got 7")


@pytest.mark.parametrize("threads", [1, 3])
def test_progress_rises_to_all_bytes(tmp_path, threads):
    manifest = write_numbered(tmp_path)
    total = sum(split.bytes for split in manifest.splits.values())
    seen = []
    load(tmp_path).verify(threads=threads, progress=lambda *given: seen.append(given))
    assert seen == sorted(seen)
    assert seen[-1] == (total, total)


def test_progress_comes_to_its_end_past_missing_shards(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / SHARD).unlink()
    seen = []
    load(tmp_path).verify(progress=lambda *given: seen.append(given))
    assert seen[-1][0] == seen[-1][1]


def test_a_verification_that_is_given_up_leaves_no_threads(tmp_path):
    write_dataset(tmp_path, {"train": [numbered(n) for n in range(20)]})

    def refuse(done, total):
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        load(tmp_path).verify(threads=2, progress=refuse)
    assert threading.active_count() == before


def test_files_that_are_missing_of_a_set_are_told(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / "datum.json").unlink()
    (tmp_path / SHARD).unlink()
    report = verify_shards(open_dataset(tmp_path, skips_damage=True))
    assert [(one.kind, one.shard) for one in report.problems] == [
        ("missing file", str(tmp_path / SHARD))
    ]


def png(seed):
    target = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 255, (9, 7), np.uint8)
    Image.fromarray(pixels).save(target, "png")
    return target.getvalue()


def test_bytes_of_all_files_are_summed_up():
    seen = []
    counter = ByteCounter(30, lambda *given: seen.append(given))
    first, second = counter.of_file(10), counter.of_file(20)
    first(4)
    second(20)
    first(10)
    assert seen == [(4, 30), (24, 30), (30, 30)]


def test_more_than_a_file_has_and_steps_back_do_not_count():
    seen = []
    note = ByteCounter(10, lambda done, total: seen.append(done)).of_file(10)
    for done in (5, 3, 99):
        note(done)
    assert seen == [5, 5, 10]


def test_nobody_has_to_listen():
    ByteCounter(1, None).of_file(1)(1)


def test_those_who_read_are_told_to_give_up():
    counter = ByteCounter(10, None)
    note = counter.of_file(10)
    counter.is_stopped = True
    with pytest.raises(StoppedError):
        note(1)


def test_calls_come_one_at_a_time():
    inside, most = 0, 0

    def progress(done, total):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        inside -= 1

    counter = ByteCounter(4000, progress)
    notes = [counter.of_file(1000) for _ in range(4)]
    threads = [threading.Thread(target=lambda n=n: [*map(n, range(1000))]) for n in notes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_a_file_tells_how_far_it_is_read(tmp_path, compression):
    path = tmp_path / "a"
    with RecordWriter(path, compression=compression) as writer:
        for n in range(3000):
            writer.write(b"%d" % n)
    seen = []
    with WatchedFile(path, seen.append) as file:
        assert sum(map(len, file.chunks(1000))) == 3000
    assert seen == sorted(seen)
    assert seen[-1] == path.stat().st_size
    assert (len(set(seen)) > 2) == (compression is None)


def test_the_end_of_a_run_is_that_of_its_last_record(tmp_path):
    with RecordWriter(tmp_path / "a") as writer:
        writer.write(b"abc")
        writer.write(b"")
    with WatchedFile(tmp_path / "a", lambda done: None) as file:
        assert [end_of(records) for records in file.chunks(1)] == [19, 35]


def kinds(report):
    return [problem.kind for problem in report.problems]


def test_a_dataset_is_verified_by_its_folder_or_manifest(tmp_path):
    write_numbered(tmp_path)
    for path in (tmp_path, str(tmp_path), tmp_path / "datum.json"):
        report = verify_path(path)
        assert (report.is_sound, report.records) == (True, 13)
        assert report.seconds > 0


@pytest.mark.parametrize("name", ["", "datum.json"])
def test_a_damaged_manifest_is_told_and_its_files_are_verified(tmp_path, name):
    write_numbered(tmp_path)
    manifest = tmp_path / "datum.json"
    manifest.write_bytes(manifest.read_bytes().replace(b"record", b"Record"))
    report = verify_path(tmp_path / name)
    assert kinds(report) == ["manifest"]
    assert (report.problems[0].shard, report.records) == ("datum.json", 13)
    assert not report.problems[0].text.startswith(str(tmp_path))
    assert "the files were read as plain TFRecord files" in report.notes


def test_a_manifest_that_is_a_folder_is_told(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / "datum.json").unlink()
    (tmp_path / "datum.json").mkdir()
    assert kinds(verify_path(tmp_path)) == ["manifest"]


def test_a_damaged_manifest_without_files_is_an_error(tmp_path):
    (tmp_path / "datum.json").write_text("{}")
    with pytest.raises(ManifestError, match=r"datum\.json"):
        verify_path(tmp_path)


def test_damaged_files_that_nobody_described_are_verified(tmp_path):
    path = write_file(tmp_path / "a.tfrecord", [{"x": n} for n in range(20)])
    path.write_bytes(path.read_bytes()[:-5])
    for given in (path, tmp_path, tmp_path / "*.tfrecord", [path], iter([path])):
        report = verify_path(given)
        assert kinds(report) == ["torn payload"]
        assert (report.records, report.lost) == (19, 1)


def test_records_that_are_no_examples_are_verified_by_their_crcs(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(frame([b"\xff plain text", b"more"]).to_bytes())
    report = verify_path(path)
    assert (report.is_sound, report.records) == (True, 2)
    assert report.notes[0].startswith("features not checked: ")
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    report = verify_path(path)
    assert kinds(report) == ["payload checksum"]
    assert report.records == 1


def test_an_iterator_of_files_may_be_gone_through_twice(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(frame([b"\xff plain text", b"more"]).to_bytes())
    assert verify_path(iter([path])).records == 2
    with pytest.raises(TypeError, match="expected a path"):
        verify_path(5)


def test_some_records_that_are_no_examples_are_told(tmp_path):
    path = write_file(tmp_path / "a.tfrecord", [{"x": n} for n in range(3)])
    path.write_bytes(path.read_bytes() + frame([b"\xff\xff"]).to_bytes())
    report = verify_path(path)
    assert [(one.kind, one.record) for one in report.problems] == [("malformed", 3)]
    assert (report.records, report.lost) == (3, 1)


def test_files_without_records_are_sound(tmp_path):
    (tmp_path / "a.tfrecord").touch()
    report = verify_path(tmp_path / "a.tfrecord")
    assert (report.is_sound, report.records) == (True, 0)


@pytest.mark.parametrize("content", [b"no records at all", bytes(1000), b"\x1f\x8b\x08 no gzip"])
def test_what_holds_no_records_is_an_error(tmp_path, content):
    (tmp_path / "a.tfrecord").write_bytes(content)
    with pytest.raises(CorruptRecordError, match="expected a TFRecord file, got other bytes"):
        verify_path(tmp_path / "a.tfrecord")


def test_what_is_not_there_is_an_error(tmp_path):
    with pytest.raises(ManifestError):
        verify_path(tmp_path / "gone")


def test_a_shard_without_any_sound_record_is_told_among_others(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / "datum.json").unlink()
    (tmp_path / SHARD).write_bytes(bytes(312))
    report = verify_path(tmp_path)
    assert {(one.shard, one.kind) for one in report.problems} == {(SHARD, "length checksum")}
    assert report.records == 7


def test_features_of_two_kinds_are_noted(tmp_path):
    write_file(tmp_path / "a.tfrecord", [{"x": 1}])
    write_file(tmp_path / "b.tfrecord", [{"x": 0.5}])
    report = verify_path(tmp_path)
    assert report.is_sound
    assert "expected one kind in all records" in report.notes[0]


def test_progress_goes_through_both_passes(tmp_path):
    path = tmp_path / "a.tfrecord"
    with RecordWriter(path) as writer:
        for n in range(5000):
            writer.write(b"" if n % 2 else b"\x0a\x00")
    seen = []
    verify_path(path, progress=lambda *given: seen.append(given))
    size = path.stat().st_size
    assert seen == sorted(seen)
    assert len({done for done, _ in seen}) > 4
    assert seen[-1] == (2 * size, 2 * size)


@pytest.fixture
def found():
    return Findings("train", "a.tfrecord")


def test_problems_of_the_file_come_first_and_records_by_number(found):
    found.add_record("schema", "expected x", (9, 900), feature="y")
    found.add_damage(Damage("/data/a.tfrecord", 100, 150, 2, "payload checksum"))
    found.add("size", "expected 5 bytes, got 6")
    assert [(one.kind, one.record) for one in found.problems] == [
        ("size", None),
        ("payload checksum", 2),
        ("schema", 9),
    ]
    assert {(one.split, one.shard) for one in found.problems} == {("train", "a.tfrecord")}
    assert found.problems[2].feature == "y"


def test_damage_says_what_was_expected_and_how_much_is_lost(found):
    found.add_damage(Damage("a", 100, 150, 2, "torn payload"))
    (problem,) = found.problems
    assert (problem.offset, problem.end) == (100, 150)
    assert problem.text == "expected a whole record, got the end after 50 bytes of it"
    assert found.damaged == 1


def test_damage_after_the_last_record_costs_none(found):
    found.add_damage(Damage("a", 150, 150, 7, "compressed stream"))
    found.add_damage(Damage("a", 100, 150, 2, "torn payload"))
    assert (found.damaged, found.lost) == (2, 1)


def test_damage_of_a_kind_yet_unknown_is_told(found):
    found.add_damage(Damage("a", 0, 1, 0, "something new"))
    assert found.problems[0].kind == "something new"
    assert found.problems[0].text == "expected an intact record, got damage"


def test_what_is_too_much_is_counted(found, monkeypatch):
    monkeypatch.setattr(record_checks, "MAX_LISTED", 2)
    for number in range(5):
        found.add_damage(Damage("a", number, number + 1, number, "torn header"))
    found.add_record("image", "expected an image", (7, None))
    found.add("record count", "expected 9")
    kinds = [one.kind for one in found.problems]
    assert kinds == ["record count", "torn header", "torn header", "more"]
    assert found.problems[-1].text == "4 more problems of records"
    assert found.damaged == 5


@pytest.fixture
def folder(tmp_path):
    write_numbered(tmp_path / "out")
    return tmp_path / "out"


def notes(folder):
    return find_notes(open_dataset(folder))


def test_there_is_nothing_to_tell_of_a_dataset_alone_in_its_folder(folder):
    (folder / "README.md").touch()
    assert notes(folder) == ()


def test_files_that_the_manifest_does_not_name_are_told(folder):
    for n in range(5):
        (folder / f"old-{n}.tfrecord").touch()
    (note,) = notes(folder)
    assert note == (
        "5 TFRecord files that datum.json does not list:"
        " old-0.tfrecord, old-1.tfrecord, old-2.tfrecord, ..."
    )


def test_shards_without_an_index_are_told(folder):
    Index.path_for(folder / "val-00000-of-00001.tfrecord").unlink()
    (note,) = notes(folder)
    assert note.startswith("1 shard without an index")
    assert note.endswith("val-00000-of-00001.tfrecord")


def test_a_quarantine_is_told_with_its_records(tmp_path):
    rows = [{"x": 1}, {"x": "no number"}, {"x": 3}]
    schema = {"x": datum.Feature("int64")}
    datum.write(rows, tmp_path / "out", schema=schema, on_error="quarantine", progress=False)
    assert notes(tmp_path / "out") == ("quarantine.jsonl: 1 record left out when it was written",)


@pytest.mark.parametrize("place", [".out.partial", "out/.datum.partial"])
def test_what_an_interrupted_write_left_is_told(folder, place):
    (folder.parent / place).mkdir()
    assert notes(folder) == ()  # it may be anybody's
    os.close(hold_folder(folder.parent / place))
    (note,) = notes(folder)
    assert note.startswith(str(folder.parent / place))
    assert "did not finish" in note


def test_files_that_were_not_finished_are_told(folder):
    (folder / ".datum.json.12345678.datum-new").touch()
    (folder / "index" / ".of-train.index.12345678.datum-new").touch()
    (folder / "mine.new").touch()
    (note,) = notes(folder)
    names = ".datum.json.12345678.datum-new, index/.of-train.index.12345678.datum-new"
    assert note == f"2 files of an interrupted write: {names}"


def test_a_manifest_that_may_be_lost_is_told(folder):
    (folder / "datum.json").unlink()
    (note,) = notes(folder)
    assert note.startswith("no datum.json: read as plain TFRecord files")
    next(folder.glob("index/*")).unlink()
    assert notes(folder) == ()


def test_a_single_shard_beside_its_manifest_is_none_that_lost_it(folder):
    assert notes(folder / "val-00000-of-00001.tfrecord") == ()


def test_a_folder_that_is_gone_has_no_notes(folder):
    contents = open_dataset(folder)
    assert find_notes(replace(contents, folder=folder / "gone")) == ()


GREY = Feature("uint8", (None, None, 1), encoding="image")
COLOUR = Feature("uint8", (None, None, 3), encoding="image")


def image(kind="png", mode="L", size=(7, 9)):
    target = io.BytesIO()
    channels = {"L": (), "RGB": (3,)}[mode]
    pixels = np.random.default_rng(5).integers(0, 255, (*size, *channels), np.uint8)
    Image.fromarray(pixels).save(target, kind)
    return target.getvalue()


def check(rows, schema, **options):
    (records,) = RecordFile(encode(rows, Schema(schema)).to_bytes()).chunks()
    findings = Findings("train", "a")
    checks = PictureChecks(Schema(schema), **{"pool": None, **options})
    bad = checks.check(parse(records, schema), records, findings)
    return bad, checks, findings.problems


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "bmp", "webp", "tiff"])
def test_whole_images_have_no_fault(kind):
    assert find_fault(image(kind, "RGB"), COLOUR) is None
    assert find_fault(image(kind, "RGB"), None) is None


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "bmp", "webp", "tiff"])
def test_images_that_are_cut_have_one(kind):
    data = image(kind, "RGB", (40, 50))
    assert "expected a" in find_fault(data[: len(data) // 3], COLOUR)


def test_a_sum_that_a_png_holds_of_itself_is_checked():
    data = bytearray(image())
    data[data.index(b"IDAT") + 8] ^= 1
    assert "damaged" in find_fault(bytes(data), GREY)


def test_an_image_of_another_shape_than_its_feature_is_a_fault():
    feature = Feature("uint8", (8, 8, 1), encoding="image")
    fault = find_fault(image(size=(7, 9)), feature)
    assert fault == "expected an image of shape (8, 8, 1), got (7, 9, 1)"


@pytest.mark.parametrize("has_pool", [True, False])
def test_the_records_of_images_that_cannot_be_decoded_are_told(has_pool):
    schema = {"a": GREY, "b": Feature("uint8", (None, None, 1), encoding="image", optional=True)}
    rows = [{"a": image(), "b": image()} for _ in range(6)]
    rows[1] = {"a": image()}
    rows[2] = {"a": b"no image", "b": image()[:-30]}
    rows[4]["b"] = b""
    with ThreadPoolExecutor(2) as pool:
        bad, checks, problems = check(rows, schema, pool=pool if has_pool else None)
    assert bad == 2
    assert checks.decoded == 8
    found = [(one.kind, one.record, one.feature) for one in problems]
    assert found == [("image", 2, "a"), ("image", 2, "b"), ("image", 4, "b")]
    assert problems[0].text.startswith("expected a JPEG, PNG, WebP, GIF, BMP or TIFF image, got")
    assert problems[0].offset > 0


BYTES = {"image/encoded": Feature("bytes"), "other": Feature("bytes")}


def test_bytes_that_mostly_hold_images_are_taken_for_such_where_nobody_described_them():
    rows = [{"image/encoded": image(), "other": b"anything"} for _ in range(5)]
    rows[0]["image/encoded"] = b"\x00"
    bad, checks, problems = check(rows, BYTES, guesses=True)
    assert (bad, checks.decoded) == (1, 4)
    assert [(one.record, one.feature) for one in problems] == [(0, "image/encoded")]
    assert check(rows, BYTES)[1].decoded == 0


def test_what_bytes_hold_is_decided_once():
    checks = PictureChecks(Schema(BYTES), pool=None, guesses=True)
    findings = Findings("train", "a")
    for data in (image(), b"now something else"):
        rows = [{"image/encoded": data, "other": b""}]
        (records,) = RecordFile(encode(rows, BYTES).to_bytes()).chunks()
        checks.check(parse(records, BYTES), records, findings)
    assert [one.kind for one in findings.problems] == ["image"]


def test_features_that_no_record_has_decide_nothing():
    schema = {"x": Feature("bytes", optional=True), "y": Feature("int64")}
    bad, checks, _ = check([{"y": 1}], schema, guesses=True)
    assert (bad, checks.decoded) == (0, 0)


LOOSE = Schema(
    {"x": Feature("int64", (None,), optional=True), "t": Feature("bytes", optional=True)}
)


def check_records(payloads, schema, **options):
    findings = Findings("train", "a")
    checks = RecordChecks(make_parser(Schema(schema)), findings, **options)
    checks.check(Records.of(payloads))
    found = [(one.kind, one.record, one.feature) for one in findings.problems]
    return found, checks, findings


def encoded(*rows):
    return list(RecordFile(encode(list(rows), LOOSE).to_bytes()))


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("slice_bytes", [1, 50, 10**6])
def test_every_record_that_does_not_fit_is_told(monkeypatch, threads, slice_bytes):
    monkeypatch.setattr(checking, "SLICE_BYTES", slice_bytes)
    payloads = encoded(*({"x": [n], "t": b"%d" % n} for n in range(40)))
    payloads[3:5] = encoded({"x": [1, 2], "t": b""}, {"t": b""})
    payloads[20:21] = encoded({"x": [1], "t": b"\xff"})
    payloads[39] = b"\xff\xff\xff"
    schema = {"x": Feature("int64"), "t": Feature("str")}
    found, checks, _ = check_records(payloads, schema, threads=threads)
    assert found == [
        ("schema", 3, "x"),
        ("schema", 4, "x"),
        ("schema", 20, "t"),
        ("malformed", 39, None),
    ]
    assert checks.unusable == 4


def test_texts_say_what_was_expected_without_the_place():
    payloads = encoded({"x": [1, 2]}, {"x": [1], "t": b"\xff"})
    _, _, findings = check_records(payloads, {"x": Feature("int64")})
    assert findings.problems[0].text == "expected 1 values, got 2"
    _, _, findings = check_records([b"\xff\xff"], {"x": Feature("int64")})
    assert findings.problems[0].text == checking._NO_EXAMPLE


def test_keys_that_do_not_fit_each_other_are_told_for_each_record():
    schema = {"x": Feature("float32", (5,), encoding="sparse")}
    stored = Schema({"x_index": Feature("int64", (None,)), "x_value": Feature("float32", (None,))})
    rows = [{"x_index": [n], "x_value": [0.5]} for n in (1, 9, 2, 7)]
    rows += [{"x_index": [1, 2], "x_value": [0.5]}, {"x_index": [0], "x_value": [1.0]}]
    payloads = list(RecordFile(encode(rows, stored).to_bytes()))
    found, checks, _ = check_records(payloads, schema)
    assert found == [("schema", 1, "x"), ("schema", 3, "x"), ("schema", 4, "x")]
    assert checks.unusable == 3


def test_defaults_do_not_hide_what_is_missing_from_statistics():
    schema = {"x": Feature("int64", optional=True, default=7)}
    found, checks, _ = check_records(encoded({"x": [1]}, {}), schema, summarizes=True)
    assert found == []
    assert checks.statistics.features["x"].missing == 1


def test_without_a_schema_records_are_not_looked_into():
    found, checks, _ = check_records([b"anything"], {}, summarizes=True)
    assert (found, checks.unusable, checks.statistics) == ([], 0, None)


def test_records_known_to_be_no_messages_are_told_and_passed_over():
    payloads = [*encoded({"x": [1]}), b"\xff", *encoded({"x": [3]})]
    found, checks, _ = check_records(payloads, {"x": Feature("int64")}, malformed=(1,))
    assert found == [("malformed", 1, None)]
    assert (checks.left_out, checks.unusable) == (1, 1)


def test_slices_have_few_bytes_or_one_record():
    records = Records.of([b"a" * 10, b"b" * 10, b"c" * 100, b"d", b"e"])
    parts = [list(part) for part in slices_of(records, 20)]
    assert parts == [[b"a" * 10, b"b" * 10], [b"c" * 100], [b"d", b"e"]]
    assert list(slices_of(Records.of([]), 20)) == []


def test_a_part_knows_where_it_is_from():
    file = RecordFile(frame([b"one", b"two", b"three"]).to_bytes())
    (records,) = file.chunks()
    part = cut_records(records, 1, 3)
    assert list(part) == [b"two", b"three"]
    assert part.locate(0) == records.locate(1)
    assert cut_records(records, 0, 3) is records
    assert np.array_equal(part.numbers, [1, 2])


DAMAGE = Problem("train", "a.tfrecord", "payload checksum", "expected x, got y", 7, 312, 400)
REPORT = VerifyReport(Path("photos"), 1000, 2_500_000, 4, ())


def test_a_problem_names_file_record_and_byte():
    assert str(DAMAGE) == "a.tfrecord: record 7 at byte 312: payload checksum: expected x, got y"


def test_a_problem_of_a_feature_names_it():
    problem = replace(DAMAGE, kind="schema", feature="label")
    assert problem.place == "record 7 at byte 312, feature 'label'"
    assert "record 7 at byte 312, feature 'label': schema: " in str(problem)


def test_a_problem_of_a_whole_file_has_no_place():
    problem = Problem("train", "a.tfrecord", "missing file", "expected a file, got none")
    assert problem.place == ""
    assert str(problem) == "a.tfrecord: missing file: expected a file, got none"


def test_a_sound_report_is_one_line():
    assert REPORT.is_sound
    assert str(REPORT) == "photos: sound: 1,000 records, 4 shards, 2.5 MB read"


def test_a_report_lists_problems_and_notes():
    report = replace(REPORT, problems=(DAMAGE,), notes=("a stray",), lost=3)
    assert not report.is_sound
    assert str(report).splitlines() == [
        "photos: 1 problem: 1,000 records, 4 shards, 2.5 MB read, 3 records lost",
        f"  {DAMAGE}",
        "  note: a stray",
    ]


def test_reports_that_differ_in_time_alone_are_equal():
    assert replace(REPORT, seconds=1.0) == replace(REPORT, seconds=2.0)


def test_a_report_as_json_has_every_field():
    report = replace(REPORT, problems=(DAMAGE,), notes=("a stray",), lost=3, seconds=0.25)
    found = json.loads(json.dumps(report.to_json()))
    assert found == {
        "path": "photos",
        "is_sound": False,
        "records": 1000,
        "lost": 3,
        "bytes": 2_500_000,
        "shards": 4,
        "seconds": 0.25,
        "is_deep": False,
        "images": 0,
        "problems": [
            {
                "split": "train",
                "shard": "a.tfrecord",
                "kind": "payload checksum",
                "text": "expected x, got y",
                "record": 7,
                "offset": 312,
                "end": 400,
                "feature": None,
            }
        ],
        "notes": ["a stray"],
    }


def write(path, payloads, compression=None):
    with RecordWriter(path, compression=compression) as writer:
        for payload in payloads:
            writer.write(payload)
    writer.index.save(Index.path_for(path))
    data = path.read_bytes()
    return ShardInfo(path.name, len(payloads), len(data), _core.crc32c(data), compression)


def verify(path, shard, *, is_published=True):
    findings, done = Findings("train", shard.name), []
    found = verify_shard(
        path,
        shard,
        findings,
        RecordChecks(None, findings),
        is_published=is_published,
        on_bytes=done.append,
    )
    return found, [one.kind for one in findings.problems], done


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
@pytest.mark.parametrize("count", [0, 1, 10_000])
def test_a_sound_shard_is_read_to_its_end(tmp_path, compression, count):
    shard = write(tmp_path / "a.tfrecord", [b"x" * (n % 50) for n in range(count)], compression)
    found, kinds, done = verify(tmp_path / "a.tfrecord", shard)
    assert kinds == []
    assert (found.records, found.bytes, found.crc) == (count, shard.bytes, shard.crc32c)
    assert done == sorted(done)
    assert done[-1] == shard.bytes


def test_a_compressed_shard_with_an_index_tells_how_far_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(verifying, "MAX_RUN_RECORDS", 64)
    payloads = [np.random.default_rng(n).bytes(500) for n in range(2000)]
    shard = write(tmp_path / "a.tfrecord", payloads, "gzip")
    _, _, done = verify(tmp_path / "a.tfrecord", shard)
    assert len(set(done)) > 10
    Index.path_for(tmp_path / "a.tfrecord").unlink()
    _, _, done = verify(tmp_path / "a.tfrecord", shard)
    assert done == [shard.bytes]


def test_runs_of_large_records_are_short(tmp_path, monkeypatch):
    monkeypatch.setattr(verifying, "RUN_BYTES", 10_000)
    shard = write(tmp_path / "a.tfrecord", [b"x" * 1000] * 200)
    sizes = []
    seen = RecordFile.runs

    def runs(self, next_size):
        for records in seen(self, next_size):
            sizes.append(len(records))
            yield records

    monkeypatch.setattr(RecordFile, "runs", runs)
    verify(tmp_path / "a.tfrecord", shard)
    assert sizes[0] == verifying.FIRST_RUN_RECORDS
    assert set(sizes[1:-1]) == {10}


def test_an_index_with_the_places_of_other_records_is_told(tmp_path):
    path = tmp_path / "a.tfrecord"
    shard = write(path, [b"abc", b"", b"abc"])
    for offsets, end in (([0, 16, 35], 54), ([0, 19], 54), ([], 0), ([0, 19, 35, 54], 100)):
        Index(np.array(offsets, np.int64), end).save(Index.path_for(path))
        assert verify(path, shard)[1] == ["index"]


def test_an_index_of_others_counts_only_if_it_is_one_of_ours(tmp_path):
    path = tmp_path / "a.tfrecord"
    shard = write(path, [b"abc", b""])
    Index.path_for(path).write_text("something else")
    assert verify(path, shard)[1] == ["index"]
    assert verify(path, shard, is_published=False)[1] == []
    Index(np.array([0]), 35).save(Index.path_for(path))
    assert verify(path, shard, is_published=False)[1] == ["index"]


def test_of_a_damaged_shard_the_index_is_not_blamed(tmp_path):
    path = tmp_path / "a.tfrecord"
    shard = write(path, [b"abc"] * 5)
    path.write_bytes(path.read_bytes()[:-1])
    assert verify(path, shard)[1] == ["size", "record count", "torn payload"]


def test_much_damage_is_not_kept(tmp_path):
    path = tmp_path / "a.tfrecord"
    shard = write(path, [b"abcd"] * 1000)
    data = bytearray(path.read_bytes())
    data[12::20] = b"?" * 1000
    path.write_bytes(data)
    _, kinds, _ = verify(path, shard)
    assert kinds.count("payload checksum") == 100
    assert kinds[-1] == "more"


def test_a_checksum_is_taken_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "CHECKSUM_BYTES", 7)
    data = bytes(range(256))
    (tmp_path / "a").write_bytes(data)
    checksum = Checksum("a", _core.MappedFile(tmp_path / "a"))
    for to in (0, 5, 100, 100, None):
        checksum.advance(to)
    assert (checksum.nbytes, checksum.crc) == (256, _core.crc32c(data))


def summarize(rows, schema):
    schema = Schema(schema)
    (records,) = RecordFile(encode(rows, schema).to_bytes()).chunks()
    return summarize_columns(Parser(schema).parse(records), records, schema)


def differences(told, found):
    return list(compare_statistics(told.to_json(), found))


NUMBERS = {"x": Feature("int64"), "y": Feature("float32", optional=True)}
ROWS = [{"x": 1, "y": 0.5}, {"x": 5}, {"x": 3, "y": float("nan")}]


def test_equal_records_have_no_differences():
    assert differences(summarize(ROWS, NUMBERS), summarize(ROWS, NUMBERS)) == []


@pytest.mark.parametrize(
    ("rows", "feature", "text"),
    [
        ([*ROWS, {"x": 2}], None, "expected records of 3, as the manifest says, got 4"),
        ([{"x": 1, "y": 1}, *ROWS[1:]], "y", "expected least of numbers of 0.5"),
        ([*ROWS[:2], {"x": 3}], "y", "expected records in which it is present of 2"),
        ([*ROWS[:2], {"x": 3, "y": 0.5}], "y", "expected count of nan of numbers of 1"),
        ([{"x": 9, "y": 0.5}, *ROWS[1:]], "x", "expected greatest of numbers of 5"),
        ([{"x": 3, "y": 0.5}, *ROWS[1:]], "x", "expected count of 1 of 1"),
    ],
)
def test_what_differs_is_told_with_its_feature(rows, feature, text):
    found = differences(summarize(ROWS, NUMBERS), summarize(rows, NUMBERS))
    assert any(name == feature and problem.startswith(text) for name, problem in found)


def test_statistics_in_another_form_are_not_compared():
    assert list(compare_statistics({"x": {"min": 0}}, Statistics())) == []


def test_no_records_are_nothing():
    assert summarize_columns({}, RecordFile(b"").records([]), Schema({})).records == 0


def test_what_a_write_counted_is_what_is_found(tmp_path):
    """Of every kind of feature."""
    rng = np.random.default_rng(3)
    rows = []
    for n in range(60):
        row = {
            "int": n,
            "uint64": np.uint64(2**63 + n),
            "flag": n % 2 == 0,
            "float16": np.float16(n),
            "float64": n / 7,
            "complex": 1j * n,
            "when": np.datetime64("2020-01-01") + n,
            "bytes": bytes([n]),
            "words": ["a", "bc"][: n % 3],
            "ragged": list(range(n % 4)),
            "nested": [[1] * (n % 3), [2]],
            "raw": rng.integers(0, 255, (n % 3 + 1, 100), np.uint8),
            "vector": rng.random(200),
            "sparse": Sparse(np.array([[n % 5]]), np.array([1.5]), (5,)),
        }
        if n % 3:
            row |= {"seldom": n * 0.5, "label": "ab"[n % 2]}
        rows.append(row)
    for compression in (None, "gzip"):
        out = tmp_path / str(compression)
        datum.write(rows, out, shards=3, compression=compression, progress=False)
        dataset = datum.load(out)
        (told,) = dataset.statistics.values()
        assert set(told["features"]) == set(rows[1])
        for threads in (1, 4):
            assert dataset.verify(deep=True, threads=threads).problems == ()
