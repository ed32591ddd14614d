"""A shard cut off at every byte, alone and with its index beside it."""

from __future__ import annotations

import bisect

import pytest

from datum import CorruptIndexError, CorruptRecordError
from datum.format import Damage, Index, RecordFile, discover
from tests.hostile.shards import HEADER_BYTES, bounds, framed, read

PAYLOADS = [b"first", b"", b"\0" * 13, bytes(range(100)), b"last"]
SHARD = framed(*PAYLOADS)
BOUNDS = bounds(PAYLOADS)
CUTS = range(len(SHARD))


def torn_at(cut: int) -> tuple[int, Damage | None]:
    """How many records are whole, and what is wrong with the rest."""
    whole = bisect.bisect_right(BOUNDS, cut) - 1
    left = cut - BOUNDS[whole]
    kind = "torn header" if left < HEADER_BYTES else "torn payload"
    return whole, Damage("<memory>", BOUNDS[whole], cut, whole, kind) if left else None


def test_strict_reading_ends_with_an_error_unless_cut_between_records():
    for cut in CUTS:
        whole, damage = torn_at(cut)
        assert read(SHARD[:cut], "strict") == (PAYLOADS[:whole], [], damage), cut


@pytest.mark.parametrize("recovery", ["tail", "skip"])
def test_recovery_drops_and_reports_just_the_torn_record(recovery):
    for cut in CUTS:
        whole, damage = torn_at(cut)
        expected = PAYLOADS[:whole], [damage] if damage else [], None
        assert read(SHARD[:cut], recovery) == expected, cut


def test_checksums_are_not_needed_to_notice():
    for cut in CUTS:
        whole, damage = torn_at(cut)
        assert read(SHARD[:cut], "strict", check_crc=False) == (PAYLOADS[:whole], [], damage), cut


def test_random_access_without_an_index_file_notices_too():
    for cut in CUTS:
        whole, damage = torn_at(cut)
        file = RecordFile(SHARD[:cut])
        if damage is None:
            assert file[:] == PAYLOADS[:whole]
            continue
        with pytest.raises(CorruptRecordError) as caught:
            len(file)
        assert caught.value.damage == damage


def test_discovery_notices_too(tmp_path):
    path = tmp_path / "cut.tfrecord"
    path.write_bytes(framed(b"", b"")[:-1])
    with pytest.raises(CorruptRecordError, match="torn payload"):
        discover(path)


def test_with_an_index_beside_it_every_cut_is_noticed(tmp_path):
    path = tmp_path / "shard.tfrecord"
    path.write_bytes(SHARD)
    RecordFile(path).index.save(Index.path_for(path))
    assert RecordFile(path)[:] == PAYLOADS
    for cut in CUTS:
        path.write_bytes(SHARD[:cut])
        for use in (len, lambda file: file.index, lambda file: file[0], lambda file: file[:]):
            with pytest.raises(CorruptIndexError, match="shard"):
                use(RecordFile(path))


def test_with_an_index_beside_it_a_longer_shard_is_noticed(tmp_path):
    path = tmp_path / "shard.tfrecord"
    path.write_bytes(SHARD)
    RecordFile(path).index.save(Index.path_for(path))
    path.write_bytes(SHARD + framed(b"one more"))
    with pytest.raises(CorruptIndexError, match=str(len(SHARD))):
        RecordFile(path)[0]
