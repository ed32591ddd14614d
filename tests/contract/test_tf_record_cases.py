"""The cases that TensorFlow tests its record reader and writer with, put to ours."""

from __future__ import annotations

import io
import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from datum import CorruptIndexError, CorruptRecordError
from datum.format import Index, RecordFile, RecordWriter, frame
from tests.contract.oracle import tensorflow_reads

COMPRESSIONS = [None, "gzip", "zlib"]
TINY = [*range(1, 21), 65536]


def _write(payloads: list[bytes], compression: Any = None) -> bytes:
    with RecordWriter(compression=compression) as writer:
        for payload in payloads:
            writer.write(payload)
    return writer.getvalue()


# Reading what was written.


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_no_records_make_an_empty_file(tmp_path: Path, compression: Any) -> None:
    content = _write([], compression)
    assert list(RecordFile(content)) == []
    assert tensorflow_reads(tmp_path / "empty", content, compression) == []


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_records_come_back_and_then_nothing(compression: Any) -> None:
    records = iter(RecordFile(_write([b"foo", b"bar", b"", b"xxxx"], compression)))
    assert list(itertools.islice(records, 4)) == [b"foo", b"bar", b"", b"xxxx"]
    assert next(records, None) is None
    assert next(records, None) is None  # reading at the end again is no error


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_hundred_thousand_records(compression: Any) -> None:
    payloads = [f"{number}.".encode() for number in range(100_000)]
    with RecordWriter(compression=compression) as writer:
        writer.write_framed(frame(payloads))
    assert list(RecordFile(writer.getvalue())) == payloads


def test_records_of_very_different_sizes() -> None:
    chance = random.Random(301)
    payloads = [
        (f"{number}." * 2**17)[: chance.randrange(2 ** chance.randrange(18))].encode()
        for number in range(500)
    ]
    assert list(RecordFile(_write(payloads))) == payloads


def test_reads_out_of_order_find_their_records() -> None:
    payloads = [f"{number}.".encode() for number in range(10)]
    file = RecordFile(_write(payloads))
    assert list(file) == payloads
    assert file[3] == b"3."
    assert file[8] == b"8."
    assert file[[8, 3, 3, 0]] == [b"8.", b"3.", b"3.", b"0."]
    assert file.index.offsets.tolist() == [18 * number for number in range(10)]


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_reads_out_of_order_of_a_compressed_file_say_what_to_do(compression: Any) -> None:
    file = RecordFile(_write([b"0.", b"1."], compression))
    with pytest.raises(ValueError, match=f"got {compression}\nhint: read it in order"):
        file[1]
    assert len(file.index) == 2
    assert list(file) == [b"0.", b"1."]


# Tiny buffers.


@pytest.mark.parametrize("size", TINY)
def test_runs_of_any_size_hold_the_same_records(size: int) -> None:
    payloads = [b"abc", b"defg", b"", b"hij"] * 10
    runs = list(RecordFile(_write(payloads)).chunks(size))
    assert [payload for run in runs for payload in run] == payloads
    assert all(len(run) == size for run in runs[:-1])


def test_an_index_knows_how_many_records_and_bytes_there_are() -> None:
    index = RecordFile(_write([b"abc", b"defg"])).index
    assert (len(index), index.lengths.sum(), index.stream_bytes) == (2, 7, 39)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_skipping_records(compression: Any) -> None:
    file = RecordFile(_write([b"abc", b"defg", b"hij"], compression))
    assert list(itertools.islice(file, 2, None)) == [b"hij"]
    assert list(itertools.islice(file, 3, None)) == []


def test_skipping_more_than_there_is() -> None:
    file = RecordFile(_write([b"abc", b"defg"]))
    assert file[2:] == []
    assert file[1:9] == [b"defg"]


# The end, and beyond.


@pytest.mark.parametrize("beyond", [0, 5])
def test_records_past_the_end_are_an_index_error(beyond: int) -> None:
    file = RecordFile(_write([b"foo", b"bar", b"x" * 10_000]))
    with pytest.raises(IndexError, match="3 records"):
        file[3 + beyond]
    with pytest.raises(IndexError, match="3 records"):
        file[-4 - beyond]


@pytest.mark.parametrize("beyond", [-1, 1, 5, 2**40])
def test_an_index_that_ends_elsewhere_than_its_file_is_refused(tmp_path: Path, beyond: int) -> None:
    content = _write([b"foo", b"x" * 100])
    (tmp_path / "shard.tfrecord").write_bytes(content)
    path = Index.path_for(tmp_path / "shard.tfrecord")
    Index(RecordFile(content).index.offsets, len(content) + beyond).save(path)
    file = RecordFile(tmp_path / "shard.tfrecord")
    with pytest.raises(CorruptIndexError):
        file[1]


def test_an_error_does_not_lose_the_records_before_and_after() -> None:
    content = bytearray(_write([b"well", b"hello", b"there"]))
    content[20 + 13] ^= 1  # in the payload of record 1
    file = RecordFile(bytes(content))
    for _ in range(2):
        records = iter(file)
        assert next(records) == b"well"
        with pytest.raises(CorruptRecordError):
            next(records)
    assert (file[0], file[2]) == (b"well", b"there")
    with pytest.raises(CorruptRecordError):
        file[1]


# Damage: one record, one byte of it changed.

ONE_BYTE = {
    "length": (6, "length checksum"),
    "CRC of the length": (10, "length checksum"),
    "data": (14, "payload checksum"),
    "CRC of the data": (18, "payload checksum"),
}


@pytest.mark.parametrize(("at", "kind"), ONE_BYTE.values(), ids=ONE_BYTE)
def test_a_changed_byte_is_found(tmp_path: Path, at: int, kind: str) -> None:
    content = bytearray(_write([b"foo"]))
    assert len(content) == 19
    content[at] = (content[at] + 100) % 256
    with pytest.raises(CorruptRecordError, match="record 0 at byte 0") as caught:
        list(RecordFile(bytes(content)))
    damage = caught.value.damage
    end = 12 if kind == "length checksum" else 19  # without its length, a record has no end
    assert (damage.offset, damage.end, damage.record, damage.kind) == (0, end, 0, kind)
    assert tensorflow_reads(tmp_path / "damaged", bytes(content)) is None


@pytest.mark.parametrize(("at", "kind"), ONE_BYTE.values(), ids=ONE_BYTE)
def test_a_changed_byte_costs_one_record(at: int, kind: str) -> None:
    content = bytearray(_write([b"foo", b"bar", b"baz"]))
    content[19 + at] = (content[19 + at] + 100) % 256
    file = RecordFile(bytes(content), recovery="skip")
    assert list(file) == [b"foo", b"baz"]
    assert [(d.offset, d.end, d.record, d.kind) for d in file.damage] == [(19, 38, 1, kind)]


def test_a_record_cut_off_is_found_at_every_byte(tmp_path: Path) -> None:
    content = _write([b"foo", b"123"])
    for cut in range(20, len(content)):
        with pytest.raises(CorruptRecordError) as caught:
            list(RecordFile(content[:cut]))
        kind = "torn header" if cut < 19 + 12 else "torn payload"
        assert (caught.value.damage.offset, caught.value.damage.kind) == (19, kind)
    # TensorFlow takes a header cut off for the end of the file, and reports the rest.
    assert tensorflow_reads(tmp_path / "header", content[: 19 + 11]) in ([b"foo"], None)
    assert tensorflow_reads(tmp_path / "payload", content[: 19 + 14]) is None


def test_junk_is_no_record_file(tmp_path: Path) -> None:
    junk = b"abcdefghijklmno"
    with pytest.raises(CorruptRecordError, match="record 0 at byte 0"):
        list(RecordFile(junk))
    assert tensorflow_reads(tmp_path / "junk", junk) is None


@pytest.mark.parametrize("junk", [b"nonsense that is no gzip", b"\x1f\x8b\x08 but then no more"])
def test_junk_is_no_compressed_file(junk: bytes) -> None:
    with pytest.raises(CorruptRecordError):
        list(RecordFile(junk))


# The writer.


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_closed_writer_writes_no_more(tmp_path: Path, compression: Any) -> None:
    writer = RecordWriter(tmp_path / "records", compression=compression)
    writer.write(b"abc")
    writer.close()
    size = (tmp_path / "records").stat().st_size
    with pytest.raises(ValueError, match="closed"):
        writer.write(b"abc")
    writer.close()  # a second time is fine
    assert (tmp_path / "records").stat().st_size == size
    assert list(RecordFile(tmp_path / "records")) == [b"abc"]


def test_what_was_written_so_far_can_be_read() -> None:
    payloads = [b"abcdefghijklmnopqrstuvwxyz", b"0123456789!@#$%^&*()", b"a" * 26]
    target = io.BytesIO()
    writer = RecordWriter(target)
    for count, payload in enumerate(payloads, 1):
        writer.write(payload)
        assert list(RecordFile(target.getvalue())) == payloads[:count]
        assert len(writer) == count
