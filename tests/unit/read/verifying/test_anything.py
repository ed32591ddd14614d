import pytest

from datum._read.verify import verify_path
from datum.errors import CorruptRecordError, ManifestError
from datum.format import RecordWriter, frame
from tests.unit.read.foreign.files_written import write_file
from tests.unit.read.written import write_numbered

SHARD = "train-00002-of-00003.tfrecord"


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
    assert report.notes[0].startswith("features not looked at: ")
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
