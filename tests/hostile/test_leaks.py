"""Errors let go of what they held: no reference, view or memory stays behind."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest

from datum import BytesColumn, DatumError, Feature, Ragged, Schema, _core
from datum.format import Index, RecordFile, Records, discover, encode, parse
from tests.contract import wire
from tests.hostile.shards import MIB, framed, run_measured

BAD_MESSAGE = b"\x0a\xff" + bytes(50)
NUMBERS = Schema({"x": Feature("int64", (None,))})


def records_in(buffer: bytearray, payload: bytes) -> Records:
    buffer[:] = payload
    return Records(buffer, np.array([0]), np.array([len(payload)]), np.array([0]))


@pytest.mark.parametrize(
    "use",
    [
        lambda buffer: parse(records_in(buffer, BAD_MESSAGE), NUMBERS),
        lambda buffer: parse(records_in(buffer, wire.example()), NUMBERS),
        lambda buffer: discover(records_in(buffer, BAD_MESSAGE)),
        lambda buffer: list(RecordFile(buffer)),
        lambda buffer: RecordFile(buffer)[5],
        lambda buffer: BytesColumn(buffer, np.array([0, 99])).to_list(),
        lambda buffer: BytesColumn(buffer, np.array([0, 1]), is_text=True).to_list(),
        lambda buffer: Index.from_bytes(buffer),
        lambda buffer: _core.crc32c(buffer, 0, "abacus"),
        lambda buffer: encode({"x": BytesColumn(buffer, np.array([0, 99]))}),
        lambda buffer: encode([{"x": memoryview(buffer)}, {"x": "text"}]),
        lambda buffer: encode([{"x": np.frombuffer(buffer, np.int8)}, {"x": "text"}], NUMBERS),
    ],
)
def test_memory_that_was_looked_at_is_let_go(use):
    buffer = bytearray(b"\xff" * 64)
    with pytest.raises((DatumError, IndexError, ValueError)):
        use(buffer)
    gc.collect()  # the traceback
    buffer.append(0)  # refused by Python while anybody has a view of it


def test_memory_that_was_read_is_let_go_with_the_columns():
    buffer = bytearray(wire.example(wire.entry(b"x", wire.bytes_list(wire.delimited(1, b"abc")))))
    records = Records(buffer, np.array([0]), np.array([len(buffer)]), np.array([0]))
    batch = parse(records, Schema({"x": Feature("bytes")}))
    assert batch["x"].to_list() == [b"abc"]
    buffer.append(0)


@pytest.mark.parametrize("bad", [{"x": "text"}, {"x": None}, {"x": [1, "a"]}, {"y": 1}, 5, {}])
def test_rows_that_were_refused_are_let_go(bad):
    values = [10**10 + i for i in range(50)]
    array = np.arange(50)
    rows = [{"x": values}, {"x": array}, bad]
    objects: list[Any] = [values, array, rows, *values, *rows[:2]]
    before = [sys.getrefcount(item) for item in objects]
    for _ in range(100):
        with pytest.raises((DatumError, TypeError)):
            encode(rows, NUMBERS)
    assert [sys.getrefcount(item) for item in objects] == before


@pytest.mark.parametrize("dtype", ["bytes", "str"])
def test_strings_that_were_written_or_refused_are_let_go(dtype):
    text = ["one " * 10, "two " * 10]
    strings = text if dtype == "str" else [item.encode() for item in text]
    schema = Schema({"x": Feature(dtype, (None,))})
    before = [sys.getrefcount(item) for item in strings]
    for _ in range(100):
        encode([{"x": strings}], schema)
        with pytest.raises(DatumError):
            encode([{"x": strings}, {"x": [*strings, 5]}], schema)
    assert [sys.getrefcount(item) for item in strings] == before


def test_columns_that_were_refused_are_let_go():
    array, splits = np.arange(10), np.array([0, 5, 10])
    schema = Schema({"x": Feature("int8", (None,)), "y": Feature("int64", (2,))})
    before = sys.getrefcount(array), sys.getrefcount(splits)
    for _ in range(100):
        with pytest.raises(DatumError):
            encode({"x": Ragged(array, splits), "y": np.zeros((2, 3), np.int64)}, schema)
    assert (sys.getrefcount(array), sys.getrefcount(splits)) == before


_REPEATED = {
    "parse, malformed": "parse([good, good, bad], numbers)",
    "parse, missing": "parse([good, empty], numbers)",
    "parse, sound": "parse([good, good], numbers)",
    "discover, malformed": "discover([good, bad])",
    "discover, sound": "discover([good, good])",
    "encode, refused": "encode([{'x': list(range(5000))}, {'x': 'text'}], numbers)",
    "encode, sound": "encode([{'x': list(range(5000))}] * 2, numbers)",
    "encode, strings refused": "encode([{'x': ['text' * 5000]}, {'x': [5]}], words)",
    "scan, damaged": "list(RecordFile(framed(good, good)[:-1]))",
    "scan, skipped": "list(RecordFile(flipped(framed(good, good), 300), recovery='skip'))",
    "scan, compressed and cut": "list(RecordFile(zipped[:-5]))",
    "index, damaged": "Index.from_bytes(index[:-1])",
    "random access, damaged": "RecordFile(flipped(framed(good, good), 300))[0]",
    "batches, refused": "list(read_batches(path, words, threads=2))",
}


def test_no_memory_is_lost_however_often_it_fails(tmp_path):
    path = tmp_path / "shard.tfrecord"
    path.write_bytes(framed(*encode([{"x": list(range(2000))}] * 3)))
    body = f"""
import gzip, random
numbers = Schema({{"x": Feature("int64", (None,))}})
words = Schema({{"x": Feature("str", (None,))}})
(good,) = encode([{{"x": list(range(10_000))}}])
bad, empty = good[:-1], b""
index = frame([b""] * 5000).index.to_bytes()
zipped = gzip.compress(framed(random.Random(0).randbytes(20_000)))
path = args[0]
grown = {{}}
scope = {{**globals(), **locals()}}
for name, use in {_REPEATED!r}.items():
    code = compile(use, name, "eval")
    def repeat(times):
        for _ in range(times):
            try:
                eval(code, scope)
            except DatumError:
                pass
    repeat(50)
    start = peak()
    repeat(500)
    grown[name] = peak() - start
return grown"""
    grown, _ = run_measured(body, path)
    assert list(grown) == list(_REPEATED)
    # A leak of what one call holds, 20 KB or more, would make 10 MB.
    assert {name: growth for name, growth in grown.items() if growth > 4 * MIB} == {}
