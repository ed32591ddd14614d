import gzip

import pytest

import datum
from datum import CorruptRecordError
from datum.cli.record_places import CHUNK_RECORDS, Asked, open_source, read_records
from datum.format import Index, RecordFile, frame

COUNT = 2 * CHUNK_RECORDS + 7


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(frame([b"%d" % i for i in range(COUNT)]).to_bytes())
    return path


def read(path, asked, split=None):
    found = list(read_records(open_source(str(path), split=split, asked=asked), asked))
    return [one.payload if one.payload is not None else one.problem for one in found]


def change(path, record, at=14):
    data = bytearray(path.read_bytes())
    offsets = RecordFile(path).index.offsets
    data[int(offsets[record]) + at] ^= 0x40
    path.write_bytes(data)


def test_records_come_in_the_order_asked_for(file):
    asked = Asked(numbers=[COUNT - 1, slice(2, 4), 0])
    assert read(file, asked) == [b"%d" % (COUNT - 1), b"2", b"3", b"0"]
    assert read(file, Asked(COUNT + 5)) == [b"%d" % i for i in range(COUNT)]
    with pytest.raises(IndexError, match=f"within {COUNT} records, got 600"):
        read(file, Asked(numbers=[600]))


@pytest.mark.parametrize("asked", [Asked(10**30), Asked(numbers=[slice(0, 10**17)])])
def test_more_records_than_there_can_be_are_those_that_there_are(file, asked):
    assert read(file, asked) == [b"%d" % i for i in range(COUNT)]


def test_numbers_go_on_through_files(tmp_path):
    for name, payloads in (("a-0", [b"0", b"1"]), ("a-1", []), ("a-2", [b"2", b"3"])):
        (tmp_path / f"{name}.tfrecord").write_bytes(frame(payloads).to_bytes())
    assert read(tmp_path, Asked(9)) == [b"0", b"1", b"2", b"3"]
    assert read(tmp_path, Asked(numbers=[3, 1])) == [b"3", b"1"]


def test_of_a_compressed_file_no_more_is_inflated_than_need_be(tmp_path):
    data = gzip.compress(frame([bytes([i % 251]) * 5000 for i in range(3000)]).to_bytes())
    path = tmp_path / "a.gz"
    path.write_bytes(data[:-20])  # what is torn at its end is not come to
    assert [one[:1] for one in read(path, Asked(2))] == [b"\x00", b"\x01"]


@pytest.mark.parametrize(("at", "kind"), [(14, "payload checksum"), (3, "length checksum")])
def test_damage_is_told_in_place_of_its_record(file, at, kind):
    change(file, 1, at)
    found = read(file, Asked(4))
    assert found[1].startswith(f"damaged: {kind}, bytes 17-")
    assert [found[0], found[2], found[3]] == [b"0", b"2", b"3"]


def test_a_file_that_ends_within_a_record_is_told(file):
    file.write_bytes(file.read_bytes()[:-3])
    assert read(file, Asked(numbers=[COUNT - 2, COUNT - 1]))[1].startswith("damaged: torn payload")


def test_a_file_without_a_sound_record_is_refused(tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(b"something else that is no record")
    with pytest.raises(CorruptRecordError, match="expected a TFRecord file"):
        read(tmp_path / "a.tfrecord", Asked())


@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("has_index", [True, False])
def test_records_of_datasets_are_read_with_and_without_an_index(tmp_path, compression, has_index):
    rows = [{"x": i} for i in range(9)]
    options = {"shuffle": False, "shards": 2, "progress": False, "compression": compression}
    datum.write(rows, tmp_path / "ds", **options)
    ds = datum.load(tmp_path / "ds")
    payloads = [
        one for shard in ds.splits["train"].shards for one in RecordFile(ds.path / shard.name)
    ]
    for path in [] if has_index else list(ds.path.glob("index/*")):
        path.unlink()
    assert read(ds.path, Asked(numbers=[8, 0, slice(3, 6)])) == [
        payloads[i] for i in (8, 0, 3, 4, 5)
    ]


def test_a_damaged_index_does_not_keep_records_from_being_read(tmp_path):
    datum.write([{"x": i} for i in range(3)], tmp_path / "ds", shuffle=False, progress=False)
    shard = tmp_path / "ds" / "train-00000-of-00001.tfrecord"
    Index.path_for(shard).write_bytes(b"broken")
    assert all(isinstance(one, bytes) for one in read(tmp_path / "ds", Asked(3)))
