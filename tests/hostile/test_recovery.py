"""Reading past damage: the same whatever the pieces, complete, and never slower than linear."""

from __future__ import annotations

import gzip
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from datum import CorruptRecordError, Feature, Schema, _core
from datum.format import RecordFile, encode, read_batches
from tests.hostile.shards import MIB, MODES, bounds, flipped, framed, header, read, run_measured

SHARD = framed(*[bytes([i]) * (7 * i % 90) for i in range(12)])


@st.composite
def damaged_shards(draw: st.DrawFn) -> bytes:
    """Records, with some bytes changed, dropped, repeated or put in between."""
    shard = bytearray(framed(*draw(st.lists(st.binary(max_size=40), max_size=6))))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(shard)))
        count = draw(st.integers(0, 30))
        action = draw(st.sampled_from(["change", "drop", "repeat", "insert", "header"]))
        piece = bytes(shard[at : at + count])
        if action == "change":
            shard[at : at + count] = bytes(byte ^ 0x5A for byte in piece)
        elif action == "drop":
            del shard[at : at + count]
        elif action == "repeat":
            shard[at:at] = piece
        elif action == "insert":
            shard[at:at] = draw(st.binary(max_size=30))
        else:
            shard[at:at] = header(draw(st.integers(0, 100)))
    return bytes(shard)


def scan_in_pieces(shard: bytes, recovery: str, sizes: list[int]) -> tuple[list, list, tuple]:
    """What the scanner finds when it is shown ever more of a stream."""
    scanner = _core.Scanner(recovery, True, True, 2**64 - 1)
    found, damage, shown = [], [], 0
    while scanner.fatal is None:
        is_last = shown == len(shard)
        start = scanner.position
        starts, lengths, numbers = scanner.scan(shard[start:shown], 0, is_last, 1 << 20)
        found += zip(starts + start, lengths, numbers, strict=True)
        damage += scanner.take_damage()
        if is_last:
            break
        shown = min(len(shard), shown + (sizes.pop(0) if sizes else len(shard)))
    return found, damage, scanner.fatal


@given(damaged_shards(), st.lists(st.integers(1, 60), max_size=20), st.sampled_from(MODES))
@example(framed(b"a" * 30)[:-1], [1] * 60, "skip")
def test_the_size_of_the_pieces_changes_nothing(shard, sizes, recovery):
    whole = scan_in_pieces(shard, recovery, [len(shard)])
    assert scan_in_pieces(shard, recovery, sizes) == whole


@given(damaged_shards(), st.integers(1, 7), st.sampled_from(MODES))
def test_the_number_of_records_asked_for_changes_nothing(shard, chunk, recovery):
    assert read(shard, recovery, chunk=chunk) == read(shard, recovery)


@given(damaged_shards())
def test_compression_changes_nothing(shard):
    for recovery in MODES:
        if RecordFile(shard).compression is None:
            assert read(gzip.compress(shard), recovery) == read(shard, recovery)


@given(damaged_shards())
def test_every_byte_is_of_a_record_or_of_damage(shard):
    payloads, damage, end = read(shard, "skip")
    assert end is None
    sizes = [16 + len(payload) for payload in payloads]
    assert sum(sizes) + sum(d.end - d.offset for d in damage) == len(shard)
    assert [d.offset for d in damage] == sorted(d.offset for d in damage)
    assert all(d.offset < d.end for d in damage)
    assert len({d.record for d in damage}) == len(damage)


@given(damaged_shards())
def test_each_mode_reads_what_the_stricter_one_does_and_goes_on(shard):
    strict, tail, skip = (read(shard, mode) for mode in MODES)
    assert tail[0][: len(strict[0])] == strict[0]
    assert skip[0][: len(tail[0])] == tail[0]
    assert strict[1] == []
    assert len(tail[1]) <= 1
    if strict[2] is None:
        assert tail == skip == strict


@given(damaged_shards())
def test_a_list_of_the_file_is_what_its_chunks_hold(shard):
    file = RecordFile(shard, recovery="skip")
    assert list(file) == read(shard, "skip")[0]
    assert len(file) == len(list(file))
    assert file[:] == list(file)


def test_a_record_within_a_record_is_found_only_when_the_outer_one_is_damaged():
    inner = framed(b"inner")
    shard = framed(inner, b"next")
    assert read(shard, "skip")[0] == [inner, b"next"]
    damaged = flipped(shard, 3)
    payloads, damage, _ = read(damaged, "skip")
    assert payloads == [b"inner", b"next"]
    assert [(d.offset, d.end) for d in damage] == [(0, 12), (12 + len(inner), 16 + len(inner))]


def test_batches_report_the_damage_of_every_file(tmp_path):
    schema = Schema({"x": Feature("int64")})
    paths = []
    for name in ("a", "b"):
        shard = encode([{"x": i} for i in range(4)], schema).to_bytes()
        paths.append(tmp_path / f"{name}.tfrecord")
        paths[-1].write_bytes(flipped(shard, 8 * 14))
    reader = read_batches(paths, schema, batch_size=3, recovery="skip")
    assert [batch["x"].tolist() for batch in reader] == [[1, 2, 3], [1, 2, 3]]
    assert [(d.file, d.record) for d in reader.damage] == [(str(path), 0) for path in paths]
    with pytest.raises(CorruptRecordError, match=r"a\.tfrecord: record 0 at byte 0"):
        list(read_batches(paths, schema))


def test_noise_is_searched_once():
    noise = random.Random(0).randbytes(4 * MIB)
    payloads, damage, _ = read(framed(b"a") + noise + framed(b"b"), "skip")
    assert payloads == [b"a", b"b"]
    assert [(d.offset, d.end) for d in damage] == [(17, 17 + len(noise))]


# Work that grows with the square of the size would take hours here, not seconds.
_READ_FALSE_HEADERS = """
import gzip
found = []
for size, chunk in (({small}, 1), ({large}, 1024)):  # a record a chunk: work for each would show
    unit, rest = {unit}, {rest}
    file = unit * (size // len(unit)) + rest
    for content in (file, gzip.compress(file, 1)):
        payloads, damage, _ = read(content, "skip", chunk=chunk)
        found.append([size, len(payloads), len(damage), damage[-1].end])
return found"""


@pytest.mark.parametrize(
    ("unit", "rest"),
    [
        ("header(size // 2)", "bytes(size // 2)"),
        ("header(size // 2) + framed(b'')", "bytes(size // 2)"),
        ("header(size * 2)", "b''"),
        ("header(0)", "b''"),
        ("flipped(framed(b'x'), 96) + framed(b'')", "b''"),
        ("flipped(framed(b'x'), 0) + framed(b'')", "b''"),
    ],
    ids=[
        "headers that claim the rest",
        "headers that claim the rest, between empty records",
        "headers that claim more than there is",
        "headers alone",
        "every other payload damaged",
        "every other header damaged",
    ],
)
def test_a_file_made_to_be_searched_takes_no_more_than_linear_work(unit, rest):
    body = _READ_FALSE_HEADERS.format(unit=unit, rest=rest, small=MIB // 2, large=8 * MIB)
    found, _ = run_measured(body, timeout_s=100)
    assert found[0] == found[1]
    assert found[2] == found[3]
    for size, _, damage, end in found:
        assert damage > 0
        assert end > size / 2


def test_many_damaged_records_are_each_reported():
    count = 20_000
    unit = flipped(framed(b"x"), 96) + framed(b"y")
    payloads, damage, _ = read(unit * count, "skip")
    assert payloads == [b"y"] * count
    starts = range(0, count * len(unit), len(unit))
    assert [(d.offset, d.end) for d in damage] == [(at, at + 17) for at in starts]
    assert [d.record for d in damage] == list(range(0, 2 * count, 2))


def test_damage_at_every_record_boundary_of_a_longer_shard_loses_that_record():
    payloads = [bytes([i]) * (7 * i % 90) for i in range(12)]
    for record, at in enumerate(bounds(payloads)[:-1]):
        kept, damage, _ = read(flipped(SHARD, 8 * at), "skip", chunk=5)
        assert kept == payloads[:record] + payloads[record + 1 :]
        assert [d.record for d in damage] == [record]
