"""Every bit of a shard flipped: always noticed, and never more than one record lost."""

from __future__ import annotations

import bisect

import pytest

from datum import CorruptRecordError
from datum.format import Damage, Index, RecordFile, frame
from tests.hostile.shards import HEADER_BYTES, bounds, flipped, framed, read

PAYLOADS = [b"first", b"", b"\0" * 13, bytes(range(60)), b"last"]
SHARD = framed(*PAYLOADS)
BOUNDS = bounds(PAYLOADS)
BITS = range(8 * len(SHARD))


def hit_by(bit: int) -> tuple[int, str]:
    """The record that holds a bit, and how its damage shows."""
    record = bisect.bisect_right(BOUNDS, bit // 8) - 1
    in_header = bit // 8 - BOUNDS[record] < HEADER_BYTES
    return record, "length checksum" if in_header else "payload checksum"


@pytest.mark.parametrize("recovery", ["strict", "tail"])
def test_reading_ends_at_the_record_that_was_hit(recovery):
    for bit in BITS:
        record, kind = hit_by(bit)
        start = BOUNDS[record]
        end = start + HEADER_BYTES if kind == "length checksum" else BOUNDS[record + 1]
        damage = Damage("<memory>", start, end, record, kind)
        assert read(flipped(SHARD, bit), recovery) == (PAYLOADS[:record], [], damage), bit


@pytest.mark.parametrize("chunk", [1, 2, 1024])
def test_skipping_loses_one_record_and_reports_its_bytes(chunk):
    for bit in BITS:
        record, kind = hit_by(bit)
        damage = Damage("<memory>", BOUNDS[record], BOUNDS[record + 1], record, kind)
        kept = PAYLOADS[:record] + PAYLOADS[record + 1 :]
        assert read(flipped(SHARD, bit), "skip", chunk=chunk) == (kept, [damage], None), bit


def test_random_access_notices_the_record_that_was_hit_and_no_other(tmp_path):
    path = tmp_path / "shard.tfrecord"
    frame(PAYLOADS).index.save(Index.path_for(path))
    for bit in BITS[::5]:
        record, kind = hit_by(bit)
        path.write_bytes(flipped(SHARD, bit))
        file = RecordFile(path)
        for other in set(range(len(PAYLOADS))) - {record}:
            assert file[other] == PAYLOADS[other]
        with pytest.raises(CorruptRecordError) as caught:
            file[record]
        damage = Damage(str(path), BOUNDS[record], BOUNDS[record + 1], record, kind)
        assert caught.value.damage == damage


def test_records_keep_their_numbers_past_damage():
    damaged = flipped(SHARD, 8 * BOUNDS[2])
    (records,) = RecordFile(damaged, recovery="skip").chunks()
    assert records.numbers.tolist() == [0, 1, 3, 4]


def test_a_first_header_that_comes_to_look_compressed_costs_one_record():
    others = [b"second", b"third"]
    for length in range(256):
        shard = framed(bytes(length), *others)
        for bit in range(16):
            file = flipped(shard, bit)
            payloads, damage, end = read(file, "strict")
            assert (payloads, damage) == ([], [])
            assert end is not None
            payloads, damage, end = read(file, "skip")
            assert (payloads, end) == (others, None), (length, bit)
            assert [(d.offset, d.end, d.record) for d in damage] == [(0, 16 + length, 0)]


def test_two_hits_cost_two_records():
    for first, second in [(0, 3), (1, 2), (3, 4)]:
        damaged = flipped(flipped(SHARD, 8 * BOUNDS[first]), 8 * BOUNDS[second] + 5)
        payloads, damage, _ = read(damaged, "skip")
        kept = [p for i, p in enumerate(PAYLOADS) if i not in (first, second)]
        assert payloads == kept
        lost = {byte for d in damage for byte in range(d.offset, d.end)}
        expected = {byte for i in (first, second) for byte in range(BOUNDS[i], BOUNDS[i + 1])}
        assert lost == expected
