"""Index files that are damaged, of another shard, or made to mislead."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pytest

from datum import CorruptIndexError, CorruptRecordError
from datum.format import Index, RecordFile, frame
from tests.hostile.shards import bounds, flipped, framed, masked_crc

PAYLOADS = [b"first", b"", b"third record"]
INDEX = frame(PAYLOADS).index.to_bytes()


def index_file(
    offsets: Sequence[int],
    stream_bytes: int,
    *,
    magic: bytes = b"DATUMIDX",
    version: int = 1,
    shard_crc: int = 0,
    records: int | None = None,
) -> bytes:
    """An index with right checksums around whatever it says."""
    table = struct.pack(f"<{len(offsets)}Q", *offsets)
    count = len(offsets) if records is None else records
    head = magic + struct.pack("<IIQQ", version, shard_crc, count, stream_bytes)
    head += masked_crc(table)
    return head + masked_crc(head) + table


def test_the_file_made_by_hand_is_that_of_the_library():
    assert index_file(bounds(PAYLOADS)[:-1], bounds(PAYLOADS)[-1]) == INDEX
    assert Index.from_bytes(INDEX).lengths.tolist() == list(map(len, PAYLOADS))


def test_every_flipped_bit_is_noticed():
    for bit in range(8 * len(INDEX)):
        with pytest.raises(CorruptIndexError):
            Index.from_bytes(flipped(INDEX, bit))


def test_every_cut_is_noticed():
    for cut in range(len(INDEX)):
        with pytest.raises(CorruptIndexError):
            Index.from_bytes(INDEX[:cut])


def test_every_byte_more_is_noticed():
    for count in range(1, 20):
        with pytest.raises(CorruptIndexError):
            Index.from_bytes(INDEX + bytes(count))


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        (b"", "too short"),
        (bytes(4096), "DATUMIDX"),
        (framed(*PAYLOADS, bytes(100)), "DATUMIDX"),
        (index_file([0], 20, version=0), "version"),
        (index_file([0], 20, version=2), "version"),
        (index_file([0], 20, records=0), "number of records"),
        (index_file([0], 20, records=2), "number of records"),
        (index_file([0], 20, records=2**61), "number of records"),
        (index_file([0], 20, records=2**61 + 1), "number of records"),
        (index_file([0], 20, records=2**64 - 1), "number of records"),
        (index_file([], 0, records=2**61), "number of records"),
        (index_file([], 1), "consecutive records"),
        (index_file([], 2**64 - 1), "consecutive records"),
        (index_file([1], 20), "consecutive records"),
        (index_file([0], 15), "consecutive records"),
        (index_file([0, 15], 40), "consecutive records"),
        (index_file([0, 0], 40), "consecutive records"),
        (index_file([0, 40, 20], 80), "consecutive records"),
        (index_file([0, 2**63 - 8, 16], 2**63), "consecutive records"),
        (index_file([0, 2**64 - 8], 2**64 - 1), "consecutive records"),
        (index_file([0, 2**64 - 16], 2**64 - 1), "consecutive records"),
        (index_file([0], 2**63), "consecutive records"),
        (index_file([0, 2**63], 2**64 - 1), "consecutive records"),
    ],
)
def test_what_the_index_says_is_checked(file, problem, tmp_path):
    path = tmp_path / "shard.index"
    path.write_bytes(file)
    with pytest.raises(CorruptIndexError, match=problem) as caught:
        Index.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("offsets", "stream_bytes"),
    [([5], 40), ([0, 5], 40), ([0, 16], 20), ([-16, 0], 40), ([0, 2**62], 100), ([], 5)],
)
def test_an_index_that_would_not_be_read_is_not_written(offsets, stream_bytes):
    with pytest.raises(ValueError, match="consecutive records"):
        Index(np.array(offsets, np.int64), stream_bytes).to_bytes()


def test_a_damaged_index_beside_a_shard_is_an_error_not_a_guess(tmp_path):
    path = tmp_path / "shard.tfrecord"
    path.write_bytes(framed(*PAYLOADS))
    (tmp_path / "index").mkdir()
    Index.path_for(path).write_bytes(INDEX[:-1])
    with pytest.raises(CorruptIndexError, match=r"of-shard\.index"):
        RecordFile(path)[0]
    assert next(RecordFile(path).chunks())[0] == PAYLOADS[0]


def test_the_index_of_another_shard_of_the_same_size_is_noticed(tmp_path):
    path = tmp_path / "shard.tfrecord"
    path.write_bytes(framed(*PAYLOADS))
    end = bounds(PAYLOADS)[-1]
    (tmp_path / "index").mkdir()
    for second in range(16, end - 32):
        offsets = [0, second, second + 16]
        if offsets == bounds(PAYLOADS)[:-1]:
            continue
        Index.path_for(path).write_bytes(index_file(offsets, end))
        with pytest.raises(CorruptRecordError):
            RecordFile(path)[:]


def test_an_index_of_fewer_or_more_records_is_noticed(tmp_path):
    path = tmp_path / "shard.tfrecord"
    path.write_bytes(framed(*PAYLOADS))
    *starts, end = bounds(PAYLOADS)
    (tmp_path / "index").mkdir()
    for offsets in (starts[:1], starts[:2], [*starts, end - 16]):
        Index.path_for(path).write_bytes(index_file(offsets, end))
        with pytest.raises((CorruptIndexError, CorruptRecordError)):
            RecordFile(path)[:]


def test_a_folder_in_the_place_of_the_index_is_passed_by(tmp_path):
    path = tmp_path / "shard.tfrecord"
    path.write_bytes(framed(*PAYLOADS))
    Index.path_for(path).mkdir(parents=True)
    assert RecordFile(path)[:] == PAYLOADS
