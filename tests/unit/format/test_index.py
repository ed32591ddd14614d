import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum import CorruptIndexError
from datum.format import Index, RecordFile, RecordWriter, frame

INDEX = Index(np.array([0, 21, 40]), 61)
HINT = "hint: delete it; the records themselves are enough to build it again"


def test_lengths_are_those_of_the_payloads():
    assert INDEX.lengths.tolist() == [5, 3, 5]
    assert len(INDEX) == 3


def test_an_index_of_no_records():
    index = Index.from_bytes(Index(np.empty(0, np.int64), 0).to_bytes())
    assert len(index) == 0
    assert index.stream_bytes == 0
    assert index.lengths.tolist() == []


@given(st.lists(st.integers(0, 2**33), max_size=50))
def test_bytes_bring_back_the_same_index(lengths):
    ends = np.cumsum(np.array([0, *lengths], np.int64) + 16)[: len(lengths) + 1] - 16
    found = Index.from_bytes(Index(ends[:-1], int(ends[-1])).to_bytes())
    assert found.offsets.tolist() == ends[:-1].tolist()
    assert found.stream_bytes == ends[-1]
    assert found.lengths.tolist() == lengths


def test_a_file_brings_back_the_same_index(tmp_path):
    INDEX.save(tmp_path / "a.index")
    found = Index.load(tmp_path / "a.index")
    assert found.offsets.tolist() == [0, 21, 40]
    assert found.stream_bytes == 61


@pytest.mark.parametrize(
    ("offsets", "stream_bytes"),
    [([1, 20], 40), ([0, 15], 40), ([0, 20], 35), ([0, 20, 10], 60), ([], 5), ([0, -20], 40)],
)
def test_offsets_that_leave_no_room_for_records_are_refused(offsets, stream_bytes):
    with pytest.raises(ValueError, match="not those of records that follow one another"):
        Index(np.array(offsets, np.int64), stream_bytes).to_bytes()


@pytest.mark.parametrize(
    ("shard", "index"),
    [
        ("a/train-00000-of-00008.tfrecord", "a/train-00000-of-00008.index"),
        ("plain", "plain.index"),
        ("a.tfrecord.gz", "a.tfrecord.gz.index"),
    ],
)
def test_the_index_lies_beside_its_shard(shard, index):
    assert Index.path_for(shard).as_posix() == index


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda b: b"", "the file is too short to be an index"),
        (lambda b: b[:39], "the file is too short to be an index"),
        (lambda b: b"NOTDATUM" + b[8:], "the file does not start with DATUMIDX"),
        (lambda b: b[:-1], "the number of records does not match the size of the file"),
        (lambda b: b + bytes(8), "the number of records does not match the size of the file"),
    ],
)
def test_what_is_no_index_is_refused_with_the_reason(change, reason):
    message = f"x.index: expected an index of records: {reason}\n{HINT}"
    with pytest.raises(CorruptIndexError, match=f"^{re.escape(message)}$"):
        Index.from_bytes(change(INDEX.to_bytes()), file="x.index")


def test_every_flipped_bit_is_noticed():
    data = INDEX.to_bytes()
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptIndexError, match="expected an index of records"):
            Index.from_bytes(bytes(damaged))


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "a.index"
    path.write_bytes(b"nonsense" * 10)
    with pytest.raises(CorruptIndexError, match=f"^{re.escape(str(path))}: expected an index"):
        Index.load(path)


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        Index.load(tmp_path / "a.index")


def test_writer_frames_and_file_have_the_same_index(tmp_path):
    payloads = [b"", b"x" * 1000, b"yy"]
    with RecordWriter(tmp_path / "a.tfrecord") as writer:
        for payload in payloads:
            writer.write(payload)
    framed = frame(payloads)
    built = RecordFile(tmp_path / "a.tfrecord").index
    assert writer.index.to_bytes() == framed.index.to_bytes() == built.to_bytes()


def test_the_bytes_are_those_of_the_format():
    expected = bytes.fromhex("444154554d494458 01000000 00000000 0300000000000000 3d00000000000000")
    data = INDEX.to_bytes()
    assert data[:32] == expected
    assert data[40:] == np.array([0, 21, 40], "<i8").tobytes()
    assert len(data) == 64
