"""Records read by number from files that are damaged, cut, changed, or not what they seem."""

import os
from dataclasses import replace

import numpy as np
import pytest

import datum
from datum import Feature, Schema, _core
from datum.errors import CorruptIndexError, CorruptRecordError, ManifestError, SchemaError
from datum.format import Index, Parser, RecordFile, frame
from tests.unit.read.opened import flip, opened, parts_of, shard_path, write_four, write_parts
from tests.unit.read.written import NUMBERED, numbered, write_dataset


@pytest.fixture
def parts(tmp_path):
    return write_parts(tmp_path)


@pytest.mark.parametrize("threads", [0, 1])
def test_any_flipped_byte_of_a_shard_is_seen_and_only_its_record_lost(tmp_path, threads):
    parts = write_four(tmp_path)
    path = shard_path(parts)
    data = path.read_bytes()
    ends = [*Index.load(Index.path_for(path)).offsets[1:].tolist(), len(data)]
    for at in range(len(data)):
        flip(path, at)
        broken = next(i for i, end in enumerate(ends) if at < end)
        start = ([0, *ends])[broken]
        records = opened(parts, threads)
        with pytest.raises(CorruptRecordError, match=rf": record {broken} at byte {start}") as info:
            records.read([3, 2, 1, 0, broken])
        assert info.value.damage.file == str(path)
        assert info.value.damage.record == broken
        assert (info.value.damage.offset, info.value.damage.end) == (start, ends[broken])
        assert info.value.damage.kind == (
            "length checksum" if at - start < 12 else "payload checksum"
        )
        sound = [number for number in range(4) if number != broken]
        assert records.read(sound)["x"].tolist() == sound
        records.close()
        records = opened(parts, threads, "skip")
        taken = records.take(records.submit([3, 2, 1, 0, broken]))
        assert taken.columns["x"].tolist() == [x for x in (3, 2, 1, 0) if x != broken]
        assert taken.rows.tolist() == [row for row in range(4) if 3 - row != broken]
        assert [damage.record for damage in taken.damage] == [broken, broken]
        records.close()
        path.write_bytes(data)


def test_any_flipped_byte_of_an_index_gives_right_records_or_an_error(tmp_path):
    parts = write_four(tmp_path)
    index = Index.path_for(shard_path(parts))
    data = index.read_bytes()
    seen = set()
    for at in range(len(data)):
        flip(index, at)
        for wanted in ([0], [1], [2], [3], [0, 1, 2, 3]):
            records = opened(parts, 0)
            try:
                assert records.read(wanted)["x"].tolist() == wanted
            except CorruptIndexError:
                seen.add(at)
            records.close()
        # Skipping is no reason to lose what is sound.
        records = opened(parts, 0, "skip")
        assert records.read([0, 1, 2, 3])["x"].tolist() == [0, 1, 2, 3]
        records.close()
        index.write_bytes(data)
    assert seen >= {*range(32), *range(36, len(data))}  # all but the CRC of the offsets


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_shard_cut_anywhere_gives_an_error_or_its_whole_records(tmp_path, on_error):
    parts = write_four(tmp_path)
    path = shard_path(parts)
    data = path.read_bytes()
    ends = [*Index.load(Index.path_for(path)).offsets[1:].tolist(), len(data)]
    for size in range(len(data)):
        path.write_bytes(data[:size])
        records = opened(parts, 0, on_error)
        ticket = records.submit([3, 2, 1, 0])
        if on_error == "raise":
            with pytest.raises(CorruptRecordError, match=rf"expected {len(data)} bytes"):
                records.take(ticket)
        else:
            taken = records.take(ticket)
            whole = [x for x in (3, 2, 1, 0) if ends[x] <= size]
            assert taken.columns["x"].tolist() == whole
            assert taken.rows.tolist() == [3 - x for x in whole]
            assert len(taken.damage) == 4 - len(whole)
            assert all(damage.file == str(path) for damage in taken.damage)
        records.close()


def test_the_first_bad_row_is_told_whatever_is_wrong_with_it(tmp_path):
    schema = Schema({"x": Feature("int64"), "text": Feature("int64")})
    parts = write_four(tmp_path)
    flip(shard_path(parts), 14)  # record 0
    for threads in (0, 1):
        records = opened(parts, threads, schema=schema)
        with pytest.raises(SchemaError, match=r"record 2 at byte \d+, feature 'text'") as info:
            records.read([2, 0])
        assert (info.value.record, info.value.feature) == (2, "text")
        with pytest.raises(CorruptRecordError, match="record 0 at byte 0"):
            records.read([0, 2])
        records.close()


def test_records_that_hold_no_message_are_left_out_on_request(tmp_path):
    write_dataset(tmp_path, {"train": [numbered(0, 1, 2, 3)]})
    path = next(tmp_path.glob("*.tfrecord"))
    payloads = list(RecordFile(path))
    payloads[1] = payloads[3] = b"\x0a\xff\xff"
    for old in [path, tmp_path / "datum.json", *tmp_path.glob("index/*")]:
        old.unlink()
    path.write_bytes(frame(payloads).to_bytes())
    split = datum.load([path], schema=dict(NUMBERED))["train"]
    parts = [(split.shards, run) for run in split.runs]
    for threads in (0, 2):
        records = opened(parts, threads, "skip")
        taken = records.take(records.submit([3, 2, 1, 0, 2]))
        assert taken.columns["text"].to_list() == ["record 2", "record 0", "record 2"]
        assert taken.rows.tolist() == [1, 3, 4]
        assert [(found.record, found.kind) for found in taken.damage] == [
            (3, "malformed"),
            (1, "malformed"),
        ]
        taken = records.take(records.submit([3, 1]))
        assert taken.columns["x"].shape == (0,)
        records.close()
        records = opened(parts, threads)
        with pytest.raises(CorruptRecordError, match="record 3 .*expected a tf.train.Example"):
            records.read([0, 3, 1])
        records.close()


def test_a_schema_that_does_not_fit_is_an_error_though_damage_is_skipped(tmp_path):
    parts = write_four(tmp_path)
    flip(shard_path(parts), 14)
    schema = Schema({"x": Feature("int64"), "other": Feature("int64")})
    records = opened(parts, 1, "skip", schema)
    with pytest.raises(SchemaError, match="record 3 .*'other': expected a value, got none"):
        records.read([0, 3])
    records.close()


def test_a_column_that_does_not_hold_together_names_its_record(tmp_path):
    schema = Schema({"a": Feature("int64", (None, None))})
    broken = Schema({"a": Feature("int64", (None,)), "a_lengths_1": Feature("int64", (None,))})
    rows = [{"a": [1, 2], "a_lengths_1": [2]}, {"a": [1, 2], "a_lengths_1": [5]}]
    parts = parts_of(tmp_path, write_dataset(tmp_path, {"train": [rows]}, broken))
    records = opened(parts, 1, schema=schema)
    assert records.read([0, 0])["a"].to_list() == [[[1, 2]], [[1, 2]]]
    with pytest.raises(SchemaError, match=r"00001\.tfrecord: record 1 at byte \d+, feature 'a'"):
        records.read([0, 1])
    records.close()


def test_a_missing_shard_is_told_when_its_batch_is_taken(parts):
    shard_path(parts, 2).unlink()
    records = opened(parts)
    good, bad = records.submit([0, 7]), records.submit([0, 8])
    assert records.take(good).columns["x"].tolist() == [0, 7]
    with pytest.raises(ManifestError, match="expected a shard, as the manifest says"):
        records.take(bad)
    records.close()


def test_a_shard_that_was_changed_is_refused(parts):
    path = shard_path(parts)
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(CorruptRecordError, match="the file was truncated or changed"):
        opened(parts).read([0])


def test_small_files_are_read_when_they_are_opened(parts):
    path = shard_path(parts)
    for cut in (path, Index.path_for(path)):
        data = cut.read_bytes()
        records = opened(parts, 0)
        ticket = records.submit([0])  # opens the files
        os.truncate(cut, 10)
        assert records.take(ticket).columns["x"].tolist() == [0]
        records.close()
        cut.write_bytes(data)


# Files as the core opens them.


def test_files_that_do_not_fit_are_not_opened(parts, tmp_path):
    info, path = parts[0][1].shard, shard_path(parts)
    index = Index.path_for(path)

    version = _core.MappedFile(path).version

    def opening(path=path, version=version, index=index, first=0, total=info.records, crc=None):
        shards = _core.ShardSet(np.array([0, 7]))
        shards.open(0, path, version, index, first, total, crc)

    opening()
    opening(str(path), index=str(index))
    opening(crc=info.crc32c)
    with pytest.raises(_core.Fault, match="bytes"):
        opening(version=(*version[:2], version[2] + 1, *version[3:]))
    for place in (0, 1, 3, 4, 5):
        other = [*version]
        other[place] += 1
        with pytest.raises(_core.Fault, match="version"):
            opening(version=tuple(other))
    told = replace(Index.load(index), shard_crc32c=info.crc32c)
    told.save(tmp_path / "told.index")
    opening(index=tmp_path / "told.index", crc=info.crc32c)
    with pytest.raises(_core.Fault, match="index shard"):
        opening(index=tmp_path / "told.index", crc=info.crc32c ^ 1)
    with pytest.raises(_core.Fault, match="index records"):
        opening(total=info.records + 1)
    with pytest.raises(_core.Fault, match="index records"):
        opening(first=1)
    with pytest.raises(_core.Fault, match="index records"):
        opening(first=2**64 - 1)
    with pytest.raises(_core.Fault, match="index bytes"):
        opening(index=Index.path_for(shard_path(parts, 1)))
    with pytest.raises(_core.Fault, match="DATUMIDX"):
        opening(index=path)
    with pytest.raises(FileNotFoundError, match="nothing"):
        opening(path=tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match="nothing"):
        opening(index=tmp_path / "nothing")
    with pytest.raises(IsADirectoryError):
        opening(path=tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="fifo"):
        opening(path=tmp_path / "fifo")


def test_runs_that_cannot_be_are_refused(parts):
    for ends in ([], [1], [0, 5, 3], [-1, 4]):
        with pytest.raises(ValueError, match="expected ends of runs"):
            _core.ShardSet(np.array(ends, np.int64))
    shards = _core.ShardSet(np.array([0, 7]))
    with pytest.raises(IndexError, match="no such run"):
        shards.open(1, shard_path(parts), (0,) * 6, "", 0, 7)
    loader = _core.BatchLoader(Parser(NUMBERED).plan, shards, 1, False)
    with pytest.raises(_core.Fault, match="not open"):
        loader.take(loader.submit(np.array([3])))


def test_offsets_in_memory_need_not_be_right(tmp_path):
    parts = write_four(tmp_path)
    path = shard_path(parts)
    size = path.stat().st_size
    right = Index.load(Index.path_for(path)).offsets
    plan = Parser(Schema({"x": Feature("int64")})).plan
    for wrong in (-1, 1, size - 1, size, size + 1, 2**62, -(2**63)):
        offsets = right.copy()
        offsets[2] = wrong
        shards = _core.ShardSet(np.array([0, 4]))
        shards.open_at(0, path, _core.MappedFile(path).version, offsets, 0)
        loader = _core.BatchLoader(plan, shards, 0, True)
        columns, _, rows, damage = loader.take(loader.submit(np.arange(4)))
        assert columns[0][0].tolist() == [0, 1, 3]
        assert rows.tolist() == [0, 1, 3]
        assert [row for row, _ in damage] == [2]


def test_a_hostile_index_asks_for_no_memory(tmp_path):
    """Offsets that promise the whole file for every record, as a table of wrong offsets may."""
    parts = write_four(tmp_path)
    path = shard_path(parts)
    with path.open("r+b") as file:
        file.truncate(1 << 40)  # a file of holes
    data = bytearray(Index(np.array([0, 2**39]), 1 << 40).to_bytes())
    (tmp_path / "hostile.index").write_bytes(data)
    shards = _core.ShardSet(np.array([0, 2]))
    version = _core.MappedFile(path).version
    shards.open(0, path, version, tmp_path / "hostile.index", 0, 2)
    loader = _core.BatchLoader(Parser(NUMBERED).plan, shards, 0, False)
    with pytest.raises(_core.Fault, match="length checksum"):
        loader.take(loader.submit(np.zeros(1000, np.int64)))
