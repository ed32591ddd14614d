"""TFRecord files read by number and in order."""

import gc
import gzip
import os
import re
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum import (
    BytesColumn,
    CorruptIndexError,
    CorruptRecordError,
    Damage,
    Feature,
    Masked,
    Ragged,
    SchemaError,
    Sparse,
    _core,
)
from datum.format import Index, RecordFile, Records, encode, frame, parse
from datum.format.column_input import make_sources

PAYLOADS = [b"zero", b"", b"two" * 50, b"three", b"4"]
FRAMED = frame(PAYLOADS)
DATA = FRAMED.to_bytes()
OFFSETS = FRAMED.offsets.tolist()
HINT = "hint: recovery='skip' reads what is intact and lists what is not"


def flipped(position: int, data: bytes = DATA) -> bytes:
    """The file with one bit changed."""
    changed = bytearray(data)
    changed[position] ^= 1
    return bytes(changed)


def read(file: RecordFile) -> list[bytes]:
    """The payloads, without asking how many there are."""
    return [payload for payload in file]  # noqa: C416 - list(file) asks for the length too


@pytest.fixture
def shard(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(DATA)
    return path


# Sources.
def test_a_file_is_read_in_order(shard):
    file = RecordFile(shard)
    assert list(file) == PAYLOADS
    assert list(file) == PAYLOADS
    assert file.name == str(shard)
    assert file.compression is None
    assert file.damage == []


@pytest.mark.parametrize("make", [str, os.fspath, lambda path: path])
def test_a_path_may_be_text_or_a_path(shard, make):
    assert list(RecordFile(make(shard))) == PAYLOADS


@pytest.mark.parametrize(
    "make", [bytes, bytearray, memoryview, lambda b: np.frombuffer(b, np.uint8)]
)
def test_memory_is_read_like_a_file(make):
    file = RecordFile(make(DATA))
    assert list(file) == PAYLOADS
    assert file[1:3] == PAYLOADS[1:3]
    assert file.name == "<memory>"


def test_memory_may_have_items_of_any_size():
    file = RecordFile(np.frombuffer(frame([b"abcd", b"efgh"]).to_bytes(), np.uint32))
    assert list(file) == [b"abcd", b"efgh"]
    assert file[1] == b"efgh"


def test_an_empty_file_has_no_records(tmp_path):
    path = tmp_path / "empty.tfrecord"
    path.touch()
    for source in (path, b""):
        file = RecordFile(source)
        assert list(file) == []
        assert len(file) == 0
        assert file[:] == []


def test_what_is_no_regular_file_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        RecordFile(tmp_path / "missing")
    with pytest.raises(OSError, match=re.escape(str(tmp_path))):
        RecordFile(tmp_path)


def test_an_unknown_recovery_is_refused():
    with pytest.raises(ValueError, match="expected `recovery` strict, tail or skip, got 'lazy'"):
        RecordFile(DATA, recovery="lazy")


def test_a_file_cut_while_it_is_read_is_refused(shard):
    file = RecordFile(shard)
    chunks = file.chunks(1)
    assert list(next(chunks)) == PAYLOADS[:1]
    os.truncate(shard, 20)
    message = (
        f"{shard}: expected {len(DATA)} bytes, got 20: the file was truncated while it was read"
    )
    with pytest.raises(CorruptRecordError, match=f"^{re.escape(message)}") as caught:
        next(chunks)
    assert (caught.value.damage.offset, caught.value.damage.end) == (20, len(DATA))


def test_a_file_larger_than_the_memory_kept_is_read_whole(tmp_path):
    payloads = [bytes([i]) * 2**20 for i in range(40)]
    path = tmp_path / "large.tfrecord"
    path.write_bytes(frame(payloads).to_bytes())
    chunks = list(RecordFile(path).chunks(1))
    assert [payload for chunk in chunks for payload in chunk] == payloads  # the first ones too


# Chunks.
@pytest.mark.parametrize("max_records", [1, 2, 4, 5, 6, 1000])
def test_chunks_are_runs_of_at_most_so_many(max_records):
    chunks = list(RecordFile(DATA).chunks(max_records))
    assert [payload for chunk in chunks for payload in chunk] == PAYLOADS
    assert all(len(chunk) == max_records for chunk in chunks[:-1])
    assert 0 < len(chunks[-1]) <= max_records
    assert np.concatenate([chunk.numbers for chunk in chunks]).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_runs_ask_anew_how_many_records_they_may_have(compress):
    sizes = iter([2, 1, 5])
    runs = list(RecordFile(compress(DATA)).runs(lambda: next(sizes, 9)))
    assert [list(run) for run in runs] == [PAYLOADS[:2], PAYLOADS[2:3], PAYLOADS[3:]]


def test_a_chunk_knows_file_number_and_offset(shard):
    chunks = list(RecordFile(shard).chunks(2))
    assert chunks[1].locate(1) == (str(shard), 3, OFFSETS[3])


@pytest.mark.parametrize("compression", [gzip.compress, zlib.compress])
def test_chunks_of_a_compressed_file_know_their_offset_in_the_stream(compression):
    payloads = [b"%d" % i * 300 for i in range(5000)]
    framed = frame(payloads)
    file = RecordFile(compression(framed.to_bytes()))
    found = [chunk.locate(i) for chunk in file.chunks(77) for i in range(len(chunk))]
    assert [offset for _, _, offset in found] == framed.offsets.tolist()
    assert [number for _, number, _ in found] == list(range(5000))


@pytest.mark.parametrize("max_records", [0, -1])
def test_chunks_of_no_records_are_refused(max_records):
    with pytest.raises(ValueError, match=f"`max_records` of 1 or more, got {max_records}"):
        RecordFile(DATA).chunks(max_records)


@given(st.lists(st.binary(max_size=300), max_size=40), st.integers(1, 50))
def test_any_payloads_are_read_back(payloads, max_records):
    data = frame(payloads).to_bytes()
    file = RecordFile(data)
    assert [p for chunk in file.chunks(max_records) for p in chunk] == payloads
    assert file[:] == payloads
    assert read(RecordFile(gzip.compress(data))) == payloads


# Compressed files.
@pytest.mark.parametrize(("compress", "name"), [(gzip.compress, "gzip"), (zlib.compress, "zlib")])
def test_a_compressed_file_is_read_in_order(tmp_path, compress, name):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(compress(DATA))
    file = RecordFile(path)
    assert file.compression == name
    assert list(file) == PAYLOADS
    assert file.index.offsets.tolist() == OFFSETS
    assert file.index.stream_bytes == len(DATA)
    assert repr(file) == f"RecordFile({str(path)!r}, {name})"


def test_a_compressed_file_does_not_know_its_length():
    with pytest.raises(TypeError, match=r"does not know its length\nhint: len\(file.index\)"):
        len(RecordFile(gzip.compress(DATA)))


def test_records_larger_than_a_piece_of_the_stream_are_read():
    payloads = [bytes(5_000_000), b"small", bytes(3_000_000)]
    assert read(RecordFile(gzip.compress(frame(payloads).to_bytes(), 1))) == payloads


def test_random_access_to_a_compressed_file_is_refused():
    file = RecordFile(gzip.compress(DATA))
    message = (
        "<memory>: expected a file that is not compressed, got gzip\n"
        "hint: read it in order, or rewrite it without compression"
    )
    for access in (lambda: file[0], lambda: file[[1, 3]], lambda: file.records([0])):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            access()
    with pytest.raises((TypeError, ValueError), match="compressed"):
        file[1:3]


def test_a_record_above_the_limit_is_refused_in_a_compressed_file():
    file = RecordFile(gzip.compress(DATA), max_record_bytes=100)
    chunks = file.chunks(1)
    assert list(next(chunks)) == [b"zero"]
    with pytest.raises(CorruptRecordError, match=r"record 2 at byte 36: .* damage: oversized rec"):
        list(chunks)


def test_a_record_above_the_limit_is_stepped_over():
    file = RecordFile(gzip.compress(DATA), max_record_bytes=100, recovery="skip")
    assert read(file) == [b"zero", b"", b"three", b"4"]
    assert file.damage == [Damage("<memory>", 36, OFFSETS[3], 2, "oversized record")]


def test_the_limit_is_not_for_files_whose_size_is_known():
    assert list(RecordFile(DATA, max_record_bytes=1)) == PAYLOADS


@pytest.mark.parametrize("compress", [gzip.compress, zlib.compress])
def test_a_compressed_file_that_is_cut_off_is_damaged(compress):
    data = compress(DATA)[:-6]
    with pytest.raises(CorruptRecordError, match="the .* stream is truncated.*compressed stream"):
        read(RecordFile(data))
    for recovery in ("tail", "skip"):
        file = RecordFile(data, recovery=recovery)
        assert read(file) == PAYLOADS[: len(read(file))]
        assert [damage.kind for damage in file.damage] == ["compressed stream"]


def test_what_was_lost_before_a_compressed_file_is_cut_off_is_listed():
    framed = frame([np.random.default_rng(i).bytes(1000) for i in range(100)])
    data = bytearray(framed.to_bytes())
    for i in range(50, 60):
        data[framed.offsets[i]] ^= 1
    file = RecordFile(gzip.compress(bytes(data), 1)[:55_000], recovery="skip")
    assert len(read(file)) == 50
    assert min(damage.offset for damage in file.damage) == framed.offsets[50]


# Damage.
DAMAGED = {
    "length": (flipped(OFFSETS[3]), "length checksum", OFFSETS[4]),
    "length crc": (flipped(OFFSETS[3] + 8), "length checksum", OFFSETS[4]),
    "payload": (flipped(OFFSETS[3] + 13), "payload checksum", OFFSETS[4]),
    "payload crc": (flipped(OFFSETS[4] - 1), "payload checksum", OFFSETS[4]),
}
TORN = {
    "header": (DATA[: OFFSETS[3] + 5], "torn header"),
    "payload": (DATA[: OFFSETS[3] + 14], "torn payload"),
    "payload crc": (DATA[: OFFSETS[4] - 1], "torn payload"),
}


@pytest.mark.parametrize(("data", "kind"), [case[:2] for case in DAMAGED.values()], ids=DAMAGED)
@pytest.mark.parametrize("recovery", ["strict", "tail"])
def test_damage_is_an_error_that_names_file_record_and_offset(tmp_path, data, kind, recovery):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(data)
    chunks = RecordFile(path, recovery=recovery).chunks(3)
    assert list(next(chunks)) == PAYLOADS[:3]
    message = (
        f"{path}: record 3 at byte {OFFSETS[3]}: expected an intact record, got damage: {kind}"
    )
    with pytest.raises(CorruptRecordError, match=f"^{re.escape(message)}\n{HINT}$") as caught:
        next(chunks)
    damage = caught.value.damage
    assert (damage.file, damage.offset, damage.record) == (str(path), OFFSETS[3], 3)
    assert damage.kind == kind
    assert damage.offset < damage.end


@pytest.mark.parametrize(("data", "kind", "end"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_stepped_over_and_listed(data, kind, end):
    file = RecordFile(data, recovery="skip")
    assert read(file) == [*PAYLOADS[:3], PAYLOADS[4]]
    assert file.damage == [Damage("<memory>", OFFSETS[3], end, 3, kind)]
    numbers = np.concatenate([chunk.numbers for chunk in file.chunks(1)])
    assert numbers.tolist() == [0, 1, 2, 4]


@pytest.mark.parametrize(("data", "kind"), TORN.values(), ids=TORN)
def test_a_torn_last_record_is_an_error_unless_allowed(data, kind):
    with pytest.raises(CorruptRecordError, match=f"record 3 at byte {OFFSETS[3]}: .*{kind}"):
        read(RecordFile(data))
    for recovery in ("tail", "skip"):
        file = RecordFile(data, recovery=recovery)
        assert read(file) == PAYLOADS[:3]
        assert file.damage == [Damage("<memory>", OFFSETS[3], len(data), 3, kind)]


@pytest.mark.parametrize(
    "data", [*(case[0] for case in DAMAGED.values()), *(case[0] for case in TORN.values())]
)
@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_list_of_a_damaged_file_is_what_iterating_gives(data, compress):
    file = RecordFile(compress(data), recovery="skip")
    assert list(file) == read(file)


@pytest.mark.parametrize("data", [case[0] for case in TORN.values()], ids=TORN)
def test_whole_records_before_a_torn_one_have_random_access(data):
    file = RecordFile(data, recovery="tail")
    assert list(file) == PAYLOADS[:3]
    assert len(file) == 3
    assert file[-1] == PAYLOADS[2]


def test_without_checks_payloads_come_as_they_are():
    file = RecordFile(flipped(OFFSETS[3] + 12), check_crc=False)
    assert read(file) == [*PAYLOADS[:3], b"uhree", PAYLOADS[4]]
    assert file[3] == b"uhree"


def test_each_reading_lists_its_own_damage():
    file = RecordFile(flipped(OFFSETS[3] + 13), recovery="skip")
    for _ in range(2):
        read(file)
        assert len(file.damage) == 1
    file.chunks()
    assert file.damage == []


def test_asking_for_the_length_leaves_the_damage_listed():
    file = RecordFile(flipped(OFFSETS[3] + 13), recovery="skip")
    read(file)
    assert len(file.damage) == 1
    len(file)
    assert len(file.damage) == 1


def test_several_damages_are_all_listed():
    data = flipped(OFFSETS[0] + 12, flipped(OFFSETS[2], flipped(OFFSETS[4] + 12)))
    file = RecordFile(data, recovery="skip")
    assert read(file) == [b"", b"three"]
    assert [(damage.record, damage.kind) for damage in file.damage] == [
        (0, "payload checksum"),
        (2, "length checksum"),
        (4, "payload checksum"),
    ]


@pytest.mark.parametrize("length", [0x0178, 0x5E78, 0x9C78, 0x1D08])
def test_a_damaged_header_that_looks_like_zlib_costs_one_record(length):
    data = flipped(8, frame([bytes(length), b"one", b"two"]).to_bytes())
    file = RecordFile(data, recovery="skip")
    assert file.compression is None
    assert read(file) == [b"one", b"two"]
    assert file.damage == [Damage("<memory>", 0, length + 16, 0, "length checksum")]


# Random access.
def test_records_are_found_by_number():
    file = RecordFile(DATA)
    assert len(file) == 5
    assert [file[i] for i in range(-5, 5)] == PAYLOADS * 2
    assert file[np.int64(3)] == b"three"


@pytest.mark.parametrize(
    "at", [slice(1, 3), slice(None, None, -2), slice(9, 20), slice(-2, None), slice(3, 1)]
)
def test_slices_are_those_of_a_list(at):
    assert RecordFile(DATA)[at] == PAYLOADS[at]


@pytest.mark.parametrize("at", [[3, 0, 3, -1], (1,), [], np.array([4, 2]), range(3)])
def test_records_come_in_the_order_asked(at):
    assert RecordFile(DATA)[at] == [PAYLOADS[i] for i in at]


@pytest.mark.parametrize("at", [5, -6, [0, 5], [-6]])
def test_a_number_outside_is_an_index_error(at):
    with pytest.raises(IndexError, match="<memory>: expected numbers within 5 records, got"):
        RecordFile(DATA)[at]


@pytest.mark.parametrize(
    "at", [[1.7], np.array([0.0]), "a", None, 1.0, np.array([True] * 5), [[0, 1]]], ids=repr
)
def test_what_is_no_number_is_refused(at):
    with pytest.raises(TypeError, match="<memory>: expected numbers of records, got"):
        RecordFile(DATA)[at]


def test_records_are_taken_without_copying(shard):
    file = RecordFile(shard)
    records = file.records([2, 0])
    assert isinstance(records, Records)
    assert list(records) == [PAYLOADS[2], PAYLOADS[0]]
    assert records.locate(0) == (str(shard), 2, OFFSETS[2])


@pytest.mark.parametrize(("data", "kind", "end"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_record_is_an_error_when_asked_for(tmp_path, data, kind, end):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(data)
    FRAMED.index.save(Index.path_for(path))
    file = RecordFile(path)
    assert file[2] == PAYLOADS[2]
    with pytest.raises(CorruptRecordError, match=f"record 3 at byte {OFFSETS[3]}") as caught:
        file[[1, 3]]
    assert caught.value.damage == Damage(str(path), OFFSETS[3], end, 3, kind)


def test_a_damaged_length_is_an_error_while_the_index_is_built():
    with pytest.raises(CorruptRecordError, match=f"record 3 at byte {OFFSETS[3]}"):
        RecordFile(flipped(OFFSETS[3]))[0]


@pytest.mark.parametrize("position", [OFFSETS[3], OFFSETS[3] + 12, 0])
def test_records_around_damage_have_random_access(position):
    file = RecordFile(flipped(position), recovery="skip")
    whole = read(file)
    assert len(file) == 4
    assert file[:] == whole
    assert file[-1] == PAYLOADS[4]


@pytest.mark.parametrize("position", [OFFSETS[3], OFFSETS[3] + 12, 0])
def test_records_around_damage_have_no_index(position):
    file = RecordFile(flipped(position), recovery="skip")
    with pytest.raises(CorruptRecordError, match="expected records without gaps to index"):
        _ = file.index


# The index beside a file.
def test_the_index_beside_a_file_is_used(shard):
    FRAMED.index.save(Index.path_for(shard))
    shard.write_bytes(flipped(OFFSETS[3]))  # so that it could not be built
    assert len(RecordFile(shard)) == 5
    assert RecordFile(shard)[4] == PAYLOADS[4]


def test_a_damaged_index_is_an_error(shard):
    FRAMED.index.save(Index.path_for(shard))
    Index.path_for(shard).write_bytes(b"nonsense")
    with pytest.raises(CorruptIndexError, match=re.escape(str(Index.path_for(shard)))):
        len(RecordFile(shard))
    assert read(RecordFile(shard)) == PAYLOADS


def test_the_index_of_another_file_is_an_error(shard):
    frame([b"other"]).index.save(Index.path_for(shard))
    message = (
        f"{Index.path_for(shard)}: expected an index of {len(DATA)} bytes, as {shard} has,"
        " got one of 21\nhint: delete it, or restore the shard"
    )
    with pytest.raises(CorruptIndexError, match=f"^{re.escape(message)}$"):
        RecordFile(shard)[0]


def test_an_index_of_the_same_size_but_other_records_is_noticed(shard):
    frame([b"", b"zero", *PAYLOADS[2:]]).index.save(Index.path_for(shard))
    with pytest.raises(CorruptRecordError, match="record 1 at byte 16"):
        RecordFile(shard)[1]


# Closing, and what outlives it.
def test_records_and_columns_outlive_the_file(tmp_path):
    path = tmp_path / "a.tfrecord"
    schema = {"x": Feature("int64"), "name": Feature("str"), "tags": Feature("bytes", (None,))}
    rows = [{"x": i, "name": f"row {i}", "tags": [b"t"] * (i % 3)} for i in range(50)]
    path.write_bytes(encode(rows, schema).to_bytes())
    with RecordFile(path) as file:
        chunk = next(file.chunks())
        taken = file.records([3])
        batch = parse(chunk, schema)
    expected = list(chunk)
    path.unlink()
    del file, chunk
    gc.collect()
    assert batch["x"].tolist() == list(range(50))
    assert batch["name"].to_list() == [row["name"] for row in rows]
    assert batch["tags"].to_list() == [row["tags"] for row in rows]
    assert list(taken) == [expected[3]]


def test_a_file_may_be_closed_twice(shard):
    file = RecordFile(shard)
    file.close()
    file.close()


READS = {"list": list, "chunks": lambda file: next(file.chunks()), "number": lambda file: file[0]}
COUNTS = {"len": len, "index": lambda file: file.index, "slice": lambda file: file[:]}


@pytest.mark.parametrize("use", [*READS.values(), *COUNTS.values()], ids=[*READS, *COUNTS])
def test_a_closed_file_says_so(shard, use):
    with RecordFile(shard) as file:
        pass
    with pytest.raises(ValueError, match="closed"):
        use(file)


@pytest.mark.parametrize("use", READS.values(), ids=READS)
def test_a_closed_file_whose_index_is_known_says_so(shard, use):
    with RecordFile(shard) as file:
        assert len(file) == 5
    with pytest.raises(ValueError, match="closed"):
        use(file)


def test_a_reading_that_was_begun_goes_on_when_the_file_is_closed(shard):
    file = RecordFile(shard)
    chunks = file.chunks(1)
    assert list(next(chunks)) == PAYLOADS[:1]
    file.close()
    assert [payload for chunk in chunks for payload in chunk] == PAYLOADS[1:]


def test_repr_names_the_file(shard):
    assert repr(RecordFile(shard)) == f"RecordFile({str(shard)!r})"
    assert repr(RecordFile(DATA)) == "RecordFile('<memory>')"


def test_an_index_that_is_not_ours_is_passed_over_on_request(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(frame([b"one", b"two"]).to_bytes())
    (tmp_path / "index").mkdir()
    Index.path_for(path).write_text("0 19\n19 19\n")  # of another kind
    assert RecordFile(path, use_index=False)[1] == b"two"
    with pytest.raises(CorruptIndexError):
        RecordFile(path)[1]


SMALL_PAYLOADS = [b"one", b"", b"three"]


def test_payloads_come_back_as_they_went_in():
    records = Records.of(SMALL_PAYLOADS)
    assert len(records) == 3
    assert list(records) == SMALL_PAYLOADS
    assert [records[i] for i in range(3)] == SMALL_PAYLOADS
    assert records[-1] == b"three"
    assert records.lengths.tolist() == [3, 0, 5]
    assert records.numbers.tolist() == [0, 1, 2]


def test_payloads_may_come_from_a_generator():
    assert list(Records.of(payload for payload in SMALL_PAYLOADS)) == SMALL_PAYLOADS


def test_no_records():
    assert list(Records.of([])) == []
    assert len(Records.join([])) == 0


@pytest.mark.parametrize("at", [3, -4])
def test_a_record_outside_is_an_index_error(at):
    with pytest.raises(IndexError):
        Records.of(SMALL_PAYLOADS)[at]


def test_one_run_is_joined_without_copying():
    records = Records.of(SMALL_PAYLOADS)
    assert Records.join([records]) is records


def test_joined_runs_know_where_each_record_came_from():
    first = Records(b"..onetwo", np.array([2, 5]), np.array([3, 3]), np.array([7, 8]), "a", 100)
    second = Records(b"three", np.array([0]), np.array([5]), np.array([0]), "b", None)
    joined = Records.join([first, second])
    assert list(joined) == [b"one", b"two", b"three"]
    assert joined.locate(0) == ("a", 7, 90)  # the header stands 12 bytes before the payload
    assert joined.locate(1) == ("a", 8, 93)
    assert joined.locate(2) == ("b", 0, None)


def test_runs_joined_twice_are_still_located():
    parts = [Records.of([b"x"]), Records.of([b"y", b"z"])]
    again = Records.join([Records.join(parts), Records.of([b"w"])])
    assert list(again) == [b"x", b"y", b"z", b"w"]
    assert [again.locate(i)[1] for i in range(4)] == [0, 0, 1, 0]


def test_records_in_memory_have_no_offset():
    assert Records.of(SMALL_PAYLOADS).locate(1) == ("<memory>", 1, None)


@pytest.mark.parametrize(
    "make", [bytes, bytearray, memoryview, lambda b: np.frombuffer(b, np.uint32)]
)
def test_the_buffer_may_have_items_of_any_size(make):
    records = Records(make(b"..oneone"), np.array([2, 5]), np.array([3, 3]), np.array([0, 1]))
    assert records[0] == b"one"
    assert list(records) == [b"one", b"one"]


def test_a_slice_outside_the_buffer_is_refused():
    records = Records(b"abc", np.array([1]), np.array([3]), np.array([0]))
    with pytest.raises(IndexError, match="outside the buffer"):
        list(records)


def test_framed_records_lie_in_the_frames():
    framed = frame(SMALL_PAYLOADS)
    records = framed.records()
    assert list(records) == SMALL_PAYLOADS
    assert np.shares_memory(np.asarray(records.buffer), framed.data)
    assert records.locate(1) == ("<memory>", 1, 19)


COLUMNS = {
    "array": (Feature("int64", (2,)), np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    "other dtype": (Feature("int64"), np.array([1, 2], np.int8), [1, 2]),
    "strided": (Feature("int64"), np.array([1, 9, 2, 9])[::2], [1, 2]),
    "big-endian": (Feature("float32"), np.array([1.5, 2.5], ">f8"), [1.5, 2.5]),
    "bools": (Feature("bool"), np.array([True, False]), [True, False]),
    "strings": (Feature("str"), BytesColumn.from_values(["a", "ü"]), ["a", "ü"]),
    "strings of numpy": (Feature("str"), np.array(["a", "ü"]), ["a", "ü"]),
    "bytes of numpy": (Feature("bytes"), np.array([b"a", b"bc"]), [b"a", b"bc"]),
    "objects": (Feature("bytes"), np.array([b"a", b"bc"], object), [b"a", b"bc"]),
    "ragged": (Feature("int64", (None,)), Ragged.from_rows([[1], [2, 3]]), [[1], [2, 3]]),
    "dense for ragged": (Feature("int64", (None,)), np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    "dense for nested": (
        Feature("int64", (None, None)),
        np.arange(8).reshape(2, 2, 2),
        np.arange(8).reshape(2, 2, 2).tolist(),
    ),
    "list": (Feature("float64"), [1.5, 2.5], [1.5, 2.5]),
    "tuple": (Feature("float64"), (1.5, 2.5), [1.5, 2.5]),
    "list of ints": (Feature("int64"), [1, 2], [1, 2]),
    "shaped": (
        Feature("float64", (1, None)),
        [np.ones((1, 1)), np.ones((1, 3))],
        [[[1]], [[1] * 3]],
    ),
    "sparse": (
        Feature("float32", (3,), encoding="sparse"),
        Sparse(np.array([[1, 2], [0, 1]]), np.array([7.0, 5.0]), (2, 3)),
        [([1], [5.0]), ([2], [7.0])],
    ),
    "masked": (
        Feature("int64", optional=True),
        Masked(np.array([1, 99]), np.array([True, False])),
        [1, None],
    ),
    "masked ragged": (
        Feature("str", (None,), optional=True),
        Masked(Ragged.from_rows([["a"], ["gone"]]), np.array([True, False])),
        [["a"], None],
    ),
}


@pytest.mark.parametrize(("feature", "column", "rows"), COLUMNS.values(), ids=COLUMNS)
def test_a_column_in_any_form_writes_what_its_rows_write(feature, column, rows):
    from_rows = encode([{"x": row} for row in rows], {"x": feature})
    assert encode({"x": column}, {"x": feature}).to_bytes() == from_rows.to_bytes()


def test_a_scipy_matrix_writes_what_its_rows_write():
    sparse = pytest.importorskip("scipy.sparse", exc_type=ImportError)
    feature = Feature("float32", (3,), encoding="sparse")
    matrix = sparse.csr_array(np.array([[0, 5, 0], [0, 0, 7]], np.float32))
    from_rows = encode([{"x": ([1], [5.0])}, {"x": ([2], [7.0])}], {"x": feature})
    assert encode({"x": matrix}, {"x": feature}).to_bytes() == from_rows.to_bytes()
    assert encode({"x": matrix}).to_bytes() == from_rows.to_bytes()


def test_values_that_occur_twice_in_a_scipy_matrix_are_summed():
    sparse = pytest.importorskip("scipy.sparse", exc_type=ImportError)
    matrix = sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 3))
    feature = Feature("float32", (3,), encoding="sparse")
    assert parse(encode({"x": matrix}, {"x": feature}), {"x": feature})[
        "x"
    ].to_dense().tolist() == [[0, 3, 0]]


def test_sources_are_one_for_each_key():
    rows = [[[1], [2, 3]], []]
    sources = make_sources("x", Feature("int64", (None, None)), rows, 2)
    assert len(sources) == 2
    assert all(isinstance(source, _core.ColumnInput) for source in sources)


@pytest.mark.parametrize(
    ("feature", "column", "message"),
    [
        (
            Feature("int64"),
            Masked(np.array([1, 2]), np.array([True, False])),
            "record 1, feature 'x': expected a value, got none\nhint: mark the feature optional",
        ),
        (
            Feature("int64"),
            np.zeros((2, 1), int),
            "feature 'x': expected shape (2,), got ndarray of shape (2, 1)",
        ),
        (Feature("int64", (3,)), np.zeros((2, 2), int), "feature 'x': expected shape (2, 3), got"),
        (Feature("uint8"), np.array([1, 300]), "record 1, feature 'x': expected uint8, got 300"),
        (Feature("uint8"), np.array([1, -1]), "record 1, feature 'x': expected uint8, got -1"),
        (
            Feature("float32"),
            np.array([1, 1e300]),
            "record 1, feature 'x': expected float32, got",
        ),
        (Feature("int64"), np.array([1.5, 2]), "record 0, feature 'x': expected int64, got"),
        (Feature("str"), BytesColumn.from_values([b"a", b"b"]), "expected str, got bytes"),
        (Feature("bytes"), BytesColumn.from_values(["a", "b"]), "expected bytes, got str"),
        (
            Feature("int64", (None,)),
            Ragged(Ragged.from_rows([[1], [2]]), np.array([0, 1, 2])),
            "feature 'x': expected 2 rows, ragged in 1 dimension(s), got Ragged",
        ),
        (
            Feature("uint8", (None,)),
            Ragged.from_rows([[1, 2], [3, 300]]),
            "record 1, feature 'x': expected uint8, got 300",
        ),
        (
            Feature("uint8", (None, None)),
            Ragged.from_rows([[[1], [2]], [[], [300]]], levels=2),
            "record 1, feature 'x': expected uint8, got 300",
        ),
        (
            Feature("float32", (3,), encoding="sparse"),
            Sparse(np.array([[0, 1]]), np.array([5.0]), (2, 4)),
            "feature 'x': expected a Sparse of shape (2, 3), got Sparse",
        ),
        (
            Feature("float32", (3,), encoding="sparse"),
            Sparse(np.array([[0, 1], [1, 3]]), np.array([5.0, 6.0]), (2, 3)),
            "record 1, feature 'x': expected indices within (2, 3), got [1, 3]",
        ),
        (
            Feature("uint8", (3,), encoding="sparse"),
            Sparse(np.array([[1, 1], [0, 2]]), np.array([300, 1]), (2, 3)),
            "record 1, feature 'x': expected uint8, got 300",
        ),
        (
            Feature("float32", (3,), encoding="sparse"),
            np.zeros((2, 3)),
            "feature 'x': expected a Sparse of shape (2, 3), got ndarray of shape (2, 3)",
        ),
        (
            Feature("float64", (None, 1, None)),
            [np.ones((1, 1, 1)), np.ones((1, 2, 1))],
            "record 1, feature 'x': expected shape (None, 1, None), got ",
        ),
        (
            Feature("int16", (None, None), encoding="raw"),
            [np.ones((1, 1), int), np.full((1, 1), 99_999)],
            "record 1, feature 'x': expected int16, got 99999",
        ),
    ],
    ids=repr,
)
def test_a_column_that_does_not_fit_is_refused(feature, column, message):
    with pytest.raises(SchemaError, match=re.escape(message)):
        make_sources("x", feature, column, 2)


def test_a_column_of_another_length_is_refused():
    tensors = [np.ones((1, 1)), np.ones((1, 1))]
    with pytest.raises(SchemaError, match="^feature 'x': expected 3 rows, got 2$"):
        make_sources("x", Feature("float64", (None, None)), tensors, 3)
    with pytest.raises(SchemaError, match="^feature 'x': expected shape .3,., got ndarray"):
        make_sources("x", Feature("int64"), np.array([1, 2]), 3)


def test_numbers_are_no_strings():
    with pytest.raises(SchemaError, match="^feature 'x': expected str, got ndarray of shape"):
        make_sources("x", Feature("str"), np.array([1, 2]), 2)


def test_masked_columns_without_gaps_fit_features_that_must_be_there():
    masked = Masked(np.array([1, 2]), np.array([True, True]))
    expected = encode({"x": np.array([1, 2])}, {"x": Feature("int64")}).to_bytes()
    assert encode({"x": masked}, {"x": Feature("int64")}).to_bytes() == expected
