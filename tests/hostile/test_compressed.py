"""Compressed shards that are misnamed, cut, damaged, padded or bombs: right data or an error."""

from __future__ import annotations

import gzip
import itertools
import random
import struct
import zlib

import pytest

from datum import CorruptRecordError
from datum.format import Index, RecordFile, discover
from tests.hostile.shards import (
    MIB,
    MODES,
    bounds,
    flipped,
    framed,
    header,
    read,
    run_measured,
)

PAYLOADS = [b"first", b"", b"text " * 20, random.Random(1).randbytes(80), b"last"]
SHARD = framed(*PAYLOADS)
BOUNDS = bounds(PAYLOADS)
COMPRESS = {"gzip": gzip.compress, "zlib": zlib.compress}
COMPRESSED = {name: compress(SHARD) for name, compress in COMPRESS.items()}
FORMATS = pytest.mark.parametrize("compression", COMPRESSED)


def is_subsequence(some: list[bytes], of: list[bytes]) -> bool:
    rest = iter(of)
    return all(payload in rest for payload in some)


@pytest.mark.parametrize("name", ["a.gz", "a.tfrecord", "a.tfrecord.gz", "a.zlib", "a", "a.zip"])
def test_the_name_of_a_file_says_nothing_about_its_compression(name, tmp_path):
    for compression, content in {None: SHARD, **COMPRESSED}.items():
        path = tmp_path / name
        path.write_bytes(content)
        for recovery in MODES:
            assert read(path, recovery) == (PAYLOADS, [], None)
        assert RecordFile(path).compression == compression


def test_members_may_end_anywhere():
    for cut in range(len(SHARD) + 1):
        content = gzip.compress(SHARD[:cut]) + gzip.compress(SHARD[cut:])
        for recovery in MODES:
            assert read(content, recovery) == (PAYLOADS, [], None), cut


def test_members_may_be_tiny_or_empty():
    members = [gzip.compress(bytes([byte])) + gzip.compress(b"") for byte in SHARD]
    assert read(b"".join(members), "strict") == (PAYLOADS, [], None)


def test_gzip_headers_may_have_every_optional_field():
    body = COMPRESSED["gzip"][10:]
    start = b"\x1f\x8b\x08\x1e" + bytes(6)  # FHCRC, FEXTRA, FNAME, FCOMMENT
    fields = start + struct.pack("<H", 5) + b"extra" + b"name\0" + b"comment\0"
    checksum = struct.pack("<H", zlib.crc32(fields) & 0xFFFF)
    content = fields + checksum + body
    assert read(content, "strict") == (PAYLOADS, [], None)
    for cut in range(3, len(fields) + 2):
        payloads, _, end = read(content[:cut], "strict")
        assert payloads == []
        assert end is not None
        assert end.kind == "compressed stream"


@FORMATS
def test_a_stream_cut_at_any_byte_is_noticed(compression):
    content = COMPRESSED[compression]
    for cut in range(1, len(content)):
        payloads, damage, end = read(content[:cut], "strict")
        assert damage == []
        assert end is not None, cut
        assert payloads == PAYLOADS[: len(payloads)]
        assert (end.offset, end.record) == (BOUNDS[len(payloads)], len(payloads))
        for recovery in ("tail", "skip"):
            assert read(content[:cut], recovery) == (payloads, [end], None)


@FORMATS
def test_a_stream_cut_near_its_end_gives_up_only_what_is_lost(compression):
    content = COMPRESSED[compression]
    trailer = 8 if compression == "gzip" else 4
    for cut in range(len(content) - trailer, len(content)):
        payloads, damage, _ = read(content[:cut], "tail")
        assert payloads == PAYLOADS
        assert [d.kind for d in damage] == ["compressed stream"]


@FORMATS
def test_a_flipped_bit_is_noticed_or_does_no_harm(compression):
    content = COMPRESSED[compression]
    for bit in range(8 * len(content)):
        damaged = flipped(content, bit)
        payloads, _, end = read(damaged, "strict")
        if end is None:
            assert payloads == PAYLOADS, bit
        assert payloads == PAYLOADS[: len(payloads)], bit
        for recovery in ("tail", "skip"):
            kept, damage, stop = read(damaged, recovery)
            assert is_subsequence(kept, PAYLOADS), bit
            assert kept == PAYLOADS or damage or stop, bit
            assert (damage == [] and stop is None) == (end is None), bit
            assert recovery == "tail" or stop is None


@FORMATS
def test_a_flipped_bit_of_the_data_is_never_taken_for_a_torn_end(compression):
    records = [random.Random(i).randbytes(50) for i in range(40)]
    damaged = bytearray(COMPRESS[compression](framed(*records)))
    damaged[1000:1050] = bytes(50)
    payloads, _, end = read(bytes(damaged), "tail")
    assert end is not None
    assert end.kind in ("compressed stream", "payload checksum", "length checksum")
    assert payloads == records[: len(payloads)]
    kept, damage, end = read(bytes(damaged), "skip")
    assert is_subsequence(kept, records)
    assert damage
    assert end is None


@FORMATS
@pytest.mark.parametrize("tail", [b"x", b"\0\0x", SHARD, bytes(range(1, 99))])
def test_bytes_after_the_stream_are_an_error(compression, tail):
    content = COMPRESSED[compression] + tail
    for recovery in ("strict", "tail"):
        payloads, _, end = read(content, recovery)
        assert payloads == PAYLOADS
        assert end is not None
        assert (end.offset, end.record, end.kind) == (len(SHARD), 5, "compressed stream")
    payloads, damage, end = read(content, "skip")
    assert (payloads, end) == (PAYLOADS, None)
    assert [(d.offset, d.kind) for d in damage] == [(len(SHARD), "compressed stream")]


@FORMATS
def test_zeros_after_the_stream_are_padding(compression):
    for recovery in MODES:
        assert read(COMPRESSED[compression] + bytes(5000), recovery) == (PAYLOADS, [], None)


def test_a_second_member_that_is_damaged_is_noticed():
    content = gzip.compress(framed(*PAYLOADS[:2])) + flipped(gzip.compress(framed(b"x" * 90)), 120)
    payloads, _, end = read(content, "strict")
    assert payloads == PAYLOADS[:2]
    assert end is not None
    assert end.offset == BOUNDS[2]


def test_nothing_but_whole_records_comes_out_of_other_formats():
    others = [
        b"PK\x03\x04" + SHARD,
        b"BZh91AY&SY" + SHARD,
        b"\xfd7zXZ\x00" + SHARD,
        b"\x28\xb5\x2f\xfd" + SHARD,
        COMPRESSED["zlib"][2:-4],  # deflate without a wrapper
        b"\x1f\x8b\x07" + COMPRESSED["gzip"][3:],  # a method that gzip does not have
        b"\x1f\x8c" + COMPRESSED["gzip"][2:],
        gzip.compress(COMPRESSED["gzip"]),
        gzip.compress(b"not records at all, but long enough"),
        b"not records at all, but long enough",
    ]
    for content in others:
        payloads, _, end = read(content, "strict")
        assert payloads == []
        assert end is not None
        assert is_subsequence(read(content, "skip")[0], PAYLOADS)


@FORMATS
def test_damage_within_a_stream_is_that_of_its_records(compression):
    for bit in range(8 * BOUNDS[1], 8 * BOUNDS[3], 3):
        damaged = flipped(SHARD, bit)
        for recovery in MODES:
            assert read(COMPRESS[compression](damaged), recovery) == read(damaged, recovery), bit


@FORMATS
def test_damage_that_runs_into_the_cut_is_reported_from_its_start(compression):
    noise = random.Random(2).randbytes(5000)
    content = COMPRESS[compression](SHARD + flipped(header(100), 0) + noise)[:-20]
    payloads, damage, end = read(content, "skip")
    assert (payloads, end) == (PAYLOADS, None)
    assert damage[0].offset == len(SHARD)
    assert damage[-1].end > len(SHARD) + 4000
    for one, other in itertools.pairwise(damage):
        assert one.end == other.offset


@FORMATS
def test_random_access_is_refused(compression):
    file = RecordFile(COMPRESSED[compression])
    with pytest.raises(ValueError, match="not compressed"):
        file[0]
    assert len(file.index) == len(PAYLOADS)


@FORMATS
def test_an_index_of_a_damaged_stream_is_refused(compression):
    for content in (COMPRESSED[compression][:-20], COMPRESSED[compression] + b"x"):
        with pytest.raises(CorruptRecordError):
            RecordFile(content).index  # noqa: B018


def test_discovery_of_a_damaged_stream_is_an_error(tmp_path):
    path = tmp_path / "cut.gz"
    path.write_bytes(COMPRESSED["gzip"][:-1])
    with pytest.raises(CorruptRecordError, match=r"cut\.gz"):
        discover(path)


def test_an_index_beside_a_compressed_shard_does_not_make_it_plain(tmp_path):
    path = tmp_path / "shard.tfrecord"
    path.write_bytes(COMPRESSED["gzip"])
    RecordFile(path).index.save(Index.path_for(path))
    assert list(RecordFile(path)) == PAYLOADS
    with pytest.raises(ValueError, match="not compressed"):
        RecordFile(path)[0]


# Bombs: little input, much output.

_BOMB = """
found = []
for mode in MODES:
    payloads, damage, end = read(Path(args[0]), mode, max_record_bytes=int(args[1]))
    found.append([len(payloads), [d.kind for d in damage], end and end.kind])
return found"""


def test_a_bomb_of_zeros_takes_no_memory(tmp_path):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(4 * MIB)) * 48)
    assert path.stat().st_size < MIB
    found, growth = run_measured(_BOMB, path, 2**28)
    kind = "length checksum"
    assert found == [[0, [], kind], [0, [], kind], [0, [kind], None]]
    assert growth < 16 * MIB


def test_a_bomb_behind_a_record_that_is_allowed_takes_no_more_than_that(tmp_path):
    path = tmp_path / "bomb.gz"
    zeros = gzip.compress(bytes(4 * MIB))
    path.write_bytes(gzip.compress(framed(b"first") + header(8 * MIB)) + zeros * 48)
    found, growth = run_measured(_BOMB, path, 8 * MIB)
    kind = "payload checksum"
    assert found == [[1, [], kind], [1, [], kind], [1, [kind], None]]
    assert growth < 4 * 8 * MIB


def test_a_bomb_behind_a_record_that_is_too_large_is_not_opened(tmp_path):
    path = tmp_path / "bomb.gz"
    zeros = gzip.compress(bytes(4 * MIB))
    path.write_bytes(gzip.compress(framed(b"first") + header(128 * MIB)) + zeros * 48)
    found, growth = run_measured(_BOMB, path, 8 * MIB)
    kind = "oversized record"
    assert found == [[1, [], kind], [1, [], kind], [1, [kind], None]]
    assert growth < 16 * MIB


def test_a_bomb_of_empty_records_is_read_in_pieces(tmp_path):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(framed(b"") * (2 * MIB // 16)) * 16)
    body = """
return sum(len(chunk) for chunk in RecordFile(Path(args[0])).chunks())"""
    count, growth = run_measured(body, path)
    assert count == 16 * 2 * MIB // 16
    assert growth < 16 * MIB


def test_a_file_of_empty_members_takes_no_more_than_linear_work(tmp_path):
    path = tmp_path / "members.gz"
    path.write_bytes(gzip.compress(b"") * 20_000 + gzip.compress(SHARD))
    body = """
return len(read(Path(args[0]), "strict")[0])"""
    count, growth = run_measured(body, path)
    assert count == len(PAYLOADS)
    assert growth < 16 * MIB
