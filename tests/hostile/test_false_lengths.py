"""Lengths that no file can hold, with a right checksum: refused without being believed."""

from __future__ import annotations

import gzip
import zlib

import pytest

from datum import CorruptRecordError, Feature, Schema
from datum.format import RecordFile, discover, read_batches
from tests.hostile.shards import HEADER_BYTES, MIB, framed, header, read, run_measured

LENGTHS = [2**31, 2**40, 2**63, 2**64 - 17, 2**64 - 16, 2**64 - 12, 2**64 - 1]
BEFORE, AFTER = [b"before"], [b"after", b""]
START = len(framed(*BEFORE))
WRITERS = {"gzip": gzip.compress, "zlib": zlib.compress}


def shard(length: int) -> bytes:
    return framed(*BEFORE) + header(length) + b"some bytes" + framed(*AFTER)


@pytest.mark.parametrize("length", LENGTHS)
def test_a_plain_shard_is_torn_where_the_length_lies(length):
    file = shard(length)
    for recovery in ("strict", "tail"):
        payloads, damage, end = read(file, recovery)
        (found,) = [end] if recovery == "strict" else damage
        assert payloads == BEFORE
        assert found is not None
        assert (found.offset, found.end, found.record) == (START, len(file), 1)
        assert found.kind == "torn payload"


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("compression", WRITERS)
def test_a_compressed_shard_has_a_record_that_is_too_large(length, compression):
    file = WRITERS[compression](shard(length))
    for recovery in ("strict", "tail"):
        payloads, damage, end = read(file, recovery)
        assert (payloads, damage) == (BEFORE, [])
        assert end is not None
        assert (end.offset, end.record, end.kind) == (START, 1, "oversized record")


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("compression", [None, *WRITERS])
def test_skipping_goes_on_after_the_false_header(length, compression):
    file = shard(length)
    payloads, damage, end = read(WRITERS[compression](file) if compression else file, "skip")
    assert (payloads, end) == (BEFORE + AFTER, None)
    (lost,) = damage
    assert (lost.offset, lost.end) == (START, START + HEADER_BYTES + 10)
    assert lost.kind == ("oversized record" if compression else "torn payload")


@pytest.mark.parametrize("length", LENGTHS)
def test_every_other_way_to_read_is_refused_too(length, tmp_path):
    path = tmp_path / "false.tfrecord"
    path.write_bytes(shard(length))
    schema = Schema({"x": Feature("int64", optional=True)})
    for use in (
        lambda: len(RecordFile(path)),
        lambda: RecordFile(path)[0],
        lambda: RecordFile(path, check_crc=False)[0],
        lambda: list(RecordFile(path)),
        lambda: list(RecordFile(path, check_crc=False)),
        lambda: discover(path),
        lambda: list(read_batches(path, schema)),
    ):
        with pytest.raises(CorruptRecordError, match=r"false\.tfrecord: record"):
            use()


def test_no_length_is_believed_before_its_bytes_are_there(tmp_path):
    for length in LENGTHS:
        (tmp_path / f"{length}.plain").write_bytes(shard(length))
        (tmp_path / f"{length}.gzip").write_bytes(gzip.compress(shard(length)))
        (tmp_path / f"{length}.zlib").write_bytes(zlib.compress(shard(length)))
    body = """
count = 0
for path in Path(args[0]).iterdir():
    for mode in MODES:
        count += len(read(path, mode)[0])
return count"""
    count, growth = run_measured(body, tmp_path)
    assert count == 3 * len(LENGTHS) * (1 + 1 + 3)
    assert growth < 16 * MIB


@pytest.mark.parametrize("compression", WRITERS)
def test_the_limit_of_a_compressed_shard_is_the_callers(compression):
    file = WRITERS[compression](framed(b"x" * 100, b"y" * 101, b"z"))
    payloads, _, end = read(file, "strict", max_record_bytes=100)
    assert payloads == [b"x" * 100]
    assert end is not None
    assert end.kind == "oversized record"
    payloads, damage, _ = read(file, "skip", max_record_bytes=100)
    assert payloads == [b"x" * 100, b"z"]
    assert [(d.offset, d.end) for d in damage] == [(116, 116 + 117)]
