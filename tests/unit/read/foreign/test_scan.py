from pathlib import Path

import pytest

from datum import Feature, Schema
from datum._read.foreign.bare import (
    common_compression,
    merge_found,
    relative_name,
    scan_files,
)
from datum.errors import CorruptRecordError, ManifestError, SchemaError
from datum.format import ShardInfo, frame
from tests.unit.read.foreign.files_written import write_file

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
