import gc
import random
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import datum
from datum import Feature, Schema
from datum._read import numbered as numbered_module
from datum._read.local import find_local
from datum._read.shards import ShardRange
from datum.format import Index, Parser, RecordFile, frame
from tests.unit.read.opened import ALL, opened, parts_of, shard_path, write_parts
from tests.unit.read.written import NUMBERED, numbered, write_dataset


@pytest.fixture
def parts(tmp_path):
    return write_parts(tmp_path)


# What is read.


@pytest.mark.parametrize("threads", [0, 1, 2, 5])
def test_records_come_in_the_order_asked_for(parts, threads):
    records = opened(parts, threads)
    wanted = [19, 0, 7, 7, 3, 8, 0]
    taken = records.take(records.submit(np.array(wanted)))
    assert taken.columns["x"].tolist() == wanted
    assert taken.columns["text"].to_list() == [f"record {x}" for x in wanted]
    assert taken.rows is None
    assert taken.damage == ()
    records.close()


def test_an_interrupt_is_not_taken_for_a_wrong_path(parts, monkeypatch):
    class Interrupted(type(Path())):
        def __fspath__(self):
            raise KeyboardInterrupt

    def find_interrupted(*args, **options):
        found = find_local(*args, **options)
        return replace(found, path=Interrupted(found.path), index=Interrupted(found.index))

    monkeypatch.setattr(numbered_module, "find_local", find_interrupted)
    assert opened(parts, 0).read([3])["x"].tolist() == [3]


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_tickets_are_taken_in_any_order(parts, threads):
    records = opened(parts, threads)
    rng = random.Random(0)
    asked = {}
    for _ in range(200):
        wanted = [rng.randrange(20) for _ in range(rng.randrange(40))]
        asked[records.submit(wanted)] = wanted
    tickets = list(asked)
    rng.shuffle(tickets)
    for ticket in tickets:
        assert records.take(ticket).columns["x"].tolist() == asked[ticket]
    records.close()


def test_several_threads_of_python_share_one_loader(parts):
    records = opened(parts, 2)
    wrong = []

    def run(seed):
        rng = random.Random(seed)
        for _ in range(200):
            wanted = [rng.randrange(20) for _ in range(8)]
            found = records.read(wanted)["x"].tolist()
            if found != wanted:
                wrong.append((wanted, found))

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    records.close()


def test_no_numbers_give_columns_of_no_rows(parts):
    for threads in (0, 1):
        columns = opened(parts, threads).read([])
        assert columns["x"].shape == (0,)
        assert columns["x"].dtype == np.int64
        assert len(columns["text"]) == 0


def test_runs_may_be_parts_of_shards(parts):
    (shards, first), (_, _), (_, last) = parts
    pieces = [(shards, ShardRange(last.shard, 4, 9)), (shards, ShardRange(first.shard, 6, 7))]
    records = opened([*pieces, pieces[0]])
    assert len(records) == 11
    assert records.read(range(11))["x"].tolist() == [12, 13, 14, 15, 16, 6, 12, 13, 14, 15, 16]
    assert records.locate(5) == (str(shard_path(parts)), 6, Index.load(
        Index.path_for(shard_path(parts))).offsets[6])  # fmt: skip


EVERYTHING = Schema(
    {
        "number": Feature("int64"),
        "small": Feature("uint8", (2,)),
        "matrix": Feature("float32", (2, 3)),
        "half": Feature("float16", (2,)),
        "word": Feature("str"),
        "words": Feature("str", (None,)),
        "pair": Feature("bytes", (2,)),
        "ragged": Feature("int64", (None,)),
        "rows": Feature("float32", (None, 2)),
        "nested": Feature("int64", (None, None)),
        "sparse": Feature("float32", (9,), encoding="sparse"),
        "raw": Feature("uint16", (2, 2), encoding="raw"),
        "shaped": Feature("float64", (None, None), encoding="raw"),
        "maybe": Feature("int64", optional=True),
        "maybe_word": Feature("str", optional=True),
        "filled": Feature("float32", default=2.5),
        "when": Feature("datetime64[s]"),
        "flag": Feature("bool"),
        "steps": Feature("int64", (None,), sequence=True),
        "nested_steps": Feature("str", (None, None), sequence=True),
    }
)


def row_of(i):
    rng = np.random.default_rng(i)
    row = {
        "number": i,
        "small": [i % 256, 1],
        "matrix": rng.random((2, 3), np.float32),
        "half": np.array([i, 0.5], np.float16),
        "word": f"ä{i}",
        "words": [f"w{k}" for k in range(i % 4)],
        "pair": [b"\0" * (i % 3), b"\xff"],
        "ragged": list(range(i % 5)),
        "rows": rng.random((i % 3, 2), np.float32),
        "nested": [list(range(k)) for k in range(i % 4)],
        "sparse": datum.Sparse(np.array([[i % 9]]), np.array([1.5], np.float32), (9,)),
        "raw": rng.integers(0, 9, (2, 2), np.uint16),
        "shaped": rng.random((i % 3 + 1, 2)),
        "when": np.datetime64(i, "s"),
        "flag": i % 2 == 0,
        "steps": list(range(i % 6)),
        "nested_steps": [[f"s{k}"] * k for k in range(i % 3)],
    }
    if i % 3:
        row |= {"maybe": i, "maybe_word": f"m{i}"}
    if i % 2:
        row["filled"] = float(i)
    return row


def assert_same(found, expected):
    assert type(found) is type(expected)
    if isinstance(expected, datum.Masked):
        assert_same(found.present, expected.present)
        assert_same(found.values, expected.values)
    elif isinstance(expected, datum.Ragged):
        assert_same(found.row_splits, expected.row_splits)
        assert_same(found.values, expected.values)
    elif isinstance(expected, datum.Sparse):
        assert found.dense_shape == expected.dense_shape
        assert_same(found.indices, expected.indices)
        assert_same(found.values, expected.values)
    elif isinstance(expected, np.ndarray) and expected.dtype == object:
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        assert np.array_equal(found, expected)
    else:
        assert found.shape == expected.shape
        assert found.to_list() == expected.to_list()


@pytest.mark.parametrize("threads", [0, 2])
def test_every_kind_of_column_is_as_reading_in_order_makes_it(tmp_path, threads):
    rows = [[row_of(i) for i in range(30)], [row_of(i) for i in range(30, 50)]]
    manifest = write_dataset(tmp_path, {"train": rows}, EVERYTHING)
    records = opened(parts_of(tmp_path, manifest), threads, schema=EVERYTHING)
    everything = RecordFile(frame([
        payload for path in sorted(tmp_path.glob("*.tfrecord")) for payload in RecordFile(path)
    ]).to_bytes())  # fmt: skip
    for wanted in ([*range(50)], [49, 3, 3, 30, 29], [17], []):
        found = records.read(wanted)
        expected = Parser(EVERYTHING).parse(everything.records(wanted))
        assert list(found) == list(expected)
        for name in expected:
            assert_same(found[name], expected[name])
    records.close()


def test_columns_outlive_what_read_them(parts):
    records = opened(parts)
    columns = records.read(ALL)
    records.close()
    del records
    gc.collect()
    assert columns["text"].to_list() == [f"record {x}" for x in ALL]


def test_columns_are_aligned_for_frameworks_that_adopt_memory(parts):
    for wanted in ([0], ALL, ALL * 1000):
        assert opened(parts, 0).read(wanted)["x"].ctypes.data % 64 == 0


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_compressed_shards_are_read_by_number(tmp_path, compression):
    manifest = write_dataset(
        tmp_path, {"train": [numbered(*range(7)), numbered(*range(7, 20))]}, compression=compression
    )
    records = opened(parts_of(tmp_path, manifest))
    assert records.read([19, 0, 8])["x"].tolist() == [19, 0, 8]
    records.close()


def test_foreign_files_are_read_by_number(tmp_path):
    write_dataset(tmp_path, {"train": [numbered(*range(7)), numbered(*range(7, 20))]})
    for path in [*tmp_path.glob("index/*"), *tmp_path.glob("*.json")]:
        path.unlink()
    split = datum.load(sorted(tmp_path.glob("*.tfrecord")), schema=dict(NUMBERED))["train"]
    records = opened([(split.shards, run) for run in split.runs])
    assert records.read([19, 0, 8])["x"].tolist() == [19, 0, 8]
    records.close()


# What is asked wrongly.


@pytest.mark.parametrize("wrong", [[-1], [20], [0, 2**40]])
def test_numbers_outside_are_refused(parts, wrong):
    with pytest.raises(IndexError, match=rf"within 20 records, got {wrong[-1]}"):
        opened(parts).submit(wrong)


@pytest.mark.parametrize("wrong", [[0.5], [[1]], ["a"], 3])
def test_what_is_no_number_is_refused(parts, wrong):
    with pytest.raises(TypeError, match="expected numbers of records"):
        opened(parts).submit(wrong)


def test_a_ticket_is_taken_once(parts):
    for threads in (0, 1):
        records = opened(parts, threads)
        ticket = records.submit([1])
        records.take(ticket)
        for wrong in (ticket, 99):
            with pytest.raises(KeyError, match="expected a ticket"):
                records.take(wrong)
