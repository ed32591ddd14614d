"""Empty files and records, which are fine, and bytes after the last record, which are not."""

from __future__ import annotations

import pytest

from datum.format import Damage, Index, RecordFile, RecordWriter
from tests.hostile.shards import HEADER_BYTES, MODES, framed, read

PAYLOADS = [b"one", b""]
SHARD = framed(*PAYLOADS)
GARBAGE = bytes(range(7, 107))  # its first twelve bytes are no header


@pytest.mark.parametrize("recovery", MODES)
def test_an_empty_file_has_no_records(recovery, tmp_path):
    path = tmp_path / "empty.tfrecord"
    path.write_bytes(b"")
    assert read(path, recovery) == ([], [], None)
    assert read(b"", recovery) == ([], [], None)
    assert len(RecordFile(path)) == 0
    assert RecordFile(path)[:] == []
    RecordFile(path).index.save(Index.path_for(path))
    assert RecordFile(path)[:] == []


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_an_empty_compressed_file_has_no_records(compression):
    with RecordWriter(compression=compression) as writer:
        pass
    for recovery in MODES:
        assert read(writer.getvalue(), recovery) == ([], [], None)


@pytest.mark.parametrize("recovery", MODES)
def test_records_of_no_bytes_are_records(recovery):
    assert read(framed(b"", b"", b""), recovery) == ([b"", b"", b""], [], None)
    assert RecordFile(framed(b"", b""))[:] == [b"", b""]


@pytest.mark.parametrize("filling", [bytes(100), GARBAGE], ids=["zeros", "garbage"])
def test_bytes_after_the_last_record_are_damage(filling):
    start = len(SHARD)
    for count in range(1, len(filling)):
        file = SHARD + filling[:count]
        is_short = count < HEADER_BYTES
        kind = "torn header" if is_short else "length checksum"
        fatal = Damage("<memory>", start, start + min(count, HEADER_BYTES), 2, kind)
        rest = Damage("<memory>", start, start + count, 2, kind)
        assert read(file, "strict") == (PAYLOADS, [], fatal), count
        assert read(file, "tail") == (PAYLOADS, *(([rest], None) if is_short else ([], fatal)))
        assert read(file, "skip") == (PAYLOADS, [rest], None)


@pytest.mark.parametrize("filling", [bytes(100), GARBAGE], ids=["zeros", "garbage"])
def test_a_file_without_any_record_is_damage(filling):
    for count in range(1, len(filling)):
        payloads, _, end = read(filling[:count], "strict")
        assert payloads == []
        assert end is not None
        assert end.offset == end.record == 0
        payloads, damage, _ = read(filling[:count], "skip")
        assert payloads == []
        assert [(d.offset, d.end) for d in damage] == [(0, count)]


def test_bytes_between_records_are_damage():
    for count in range(1, 40):
        file = SHARD + GARBAGE[:count] + framed(b"after")
        payloads, damage, _ = read(file, "skip")
        assert payloads == [*PAYLOADS, b"after"]
        assert [(d.offset, d.end) for d in damage] == [(len(SHARD), len(SHARD) + count)]
        _, _, end = read(file, "tail")
        assert end is not None
        assert end.offset == len(SHARD)
